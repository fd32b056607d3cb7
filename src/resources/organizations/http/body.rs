//! The JSON of an organization: its stored fields, then the fields that differ by caller.

use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::Caller;
use crate::auth::authorize::CallerKey;
use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId};
use crate::json::{Array, Object};
use crate::resources::members::{Level, Membership};
use crate::resources::projects::body::ProjectSummary;
use crate::resources::projects::{self, Project};
use crate::store::{Order, Tx, Window};

use super::super::{Fields, Organization, splice_own};

/// An organization, as one of its members sees it.
#[derive(ToSchema)]
#[schema(as = Organization)]
pub struct OrganizationBody {
    /// The organization's own fields.
    #[serde(flatten)]
    pub own: Fields,
    /// Always 9: the highest level. There are no plugins.
    pub plugins_access_level: i64,
    /// Always empty. Every feature is available to every organization.
    pub available_product_features: Vec<Value>,
    /// Always null.
    pub customer_id: Option<String>,
    /// The caller's level: 1 member, 8 admin, 15 owner.
    pub membership_level: Level,
    /// The projects that the caller can access. A response contains at most 1,000.
    pub teams: Vec<Team>,
    /// The same projects in a short form.
    pub projects: Vec<BasicProject>,
    /// Information about the installation.
    pub metadata: Metadata,
    /// The number of members.
    pub member_count: u64,
}

/// A project in the JSON of its organization.
#[derive(ToSchema)]
pub struct Team {
    /// The summary of the project.
    #[serde(flatten)]
    pub summary: ProjectSummary,
    /// The id of the project, same as `id`.
    pub project_id: ProjectId,
}

/// A project in its short form.
#[derive(ToSchema)]
pub struct BasicProject {
    /// The id of the project.
    pub id: ProjectId,
    /// The organization of the project.
    pub organization_id: OrganizationId,
    /// The name of the project.
    pub name: String,
}

/// Information about the installation.
#[derive(ToSchema)]
pub struct Metadata {
    /// Always `none`.
    pub instance_tag: String,
}

/// An organization of the caller in its short form.
#[derive(ToSchema)]
pub struct BasicOrganization {
    /// The id of the organization.
    pub id: OrganizationId,
    /// The name of the organization.
    pub name: String,
    /// The name of the organization in URLs.
    pub slug: String,
    /// The id of an uploaded logo.
    pub logo_media_id: Option<Uuid>,
    /// The caller's level: 1 member, 8 admin, 15 owner.
    pub membership_level: Level,
    /// Whether plain members may access the organization with API keys.
    pub members_can_use_personal_api_keys: bool,
}

/// The maximum number of organizations in the short form in a response. `/api/organizations/` lists all of them.
pub const MAX_ORGANIZATIONS: usize = 100;
/// The maximum number of projects within organizations in a response. `/api/organizations/:id/projects/` lists all of
/// them.
pub const MAX_PROJECTS: usize = 1000;
/// With more projects than this, the full form is rendered on a blocking thread and outside of write transactions.
const MAX_INLINE_PROJECTS: u64 = 64;

/// Returns whether rendering the full form of an organization takes long.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn is_expensive(tx: &impl Tx, organization: OrganizationId) -> Result<bool> {
    Ok(tx.count::<Project>(&organization)? > MAX_INLINE_PROJECTS)
}

/// Appends the full form: the organization's own fields, those that differ by member, and at most `most` projects.
/// Returns the number of projects.
///
/// # Errors
/// 404 if the organization was deleted.
pub fn write_full(
    tx: &impl Tx,
    member: &Membership,
    key: &CallerKey,
    most: usize,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let id = member.organization;
    let mut fields = 0;
    splice_own(tx, id, Object::begin(out))?
        .field("membership_level", &member.level)?
        .with("teams", |out| {
            write_projects(tx, member, key, most, out, |project, summary, out| {
                fields += 1;
                Object::begin(out)
                    .splice(summary)
                    .raw("ingested_event", b"false")
                    .field("project_id", &project)?
                    .end();
                Ok(())
            })
        })?
        .with("projects", |out| {
            write_projects(tx, member, key, most, out, |project, summary, out| {
                let name: projects::Fields =
                    serde_json::from_slice(summary).map_err(Error::internal)?;
                Object::begin(out)
                    .field("id", &project)?
                    .field("organization_id", &id)?
                    .field("name", &name.name)?
                    .end();
                Ok(())
            })
        })?
        .field("metadata", &serde_json::json!({ "instance_tag": "none" }))?
        .field("member_count", &tx.count::<Membership>(&id)?)?
        .end();
    Ok(fields)
}

fn write_projects(
    tx: &impl Tx,
    member: &Membership,
    key: &CallerKey,
    most: usize,
    out: &mut Vec<u8>,
    mut write: impl FnMut(ProjectId, &[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let window = Window { offset: 0, limit: most, order: Order::Ascending };
    let mut array = Array::begin(out);
    projects::list(tx, member, key.scoped_projects(), window, |id, summary| {
        array.item(|out| write(id, summary, out))
    })?;
    array.end();
    Ok(())
}

/// Appends the short form of the caller's oldest organizations that the caller's key can access.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn write_basic_of(tx: &impl Tx, caller: &Caller, out: &mut Vec<u8>) -> Result<()> {
    let mut array = Array::begin(out);
    for member in caller.open_memberships(tx, MAX_ORGANIZATIONS)? {
        let fields = tx.get::<Organization>(&member.organization)?.fields;
        array.item(|out| {
            Object::begin(out)
                .field("id", &fields.id)?
                .field("name", &fields.name)?
                .field("slug", &fields.slug)?
                .field("logo_media_id", &fields.logo_media_id)?
                .field("membership_level", &member.level)?
                .field(
                    "members_can_use_personal_api_keys",
                    &fields.members_can_use_personal_api_keys,
                )?
                .end();
            Ok(())
        })?;
    }
    array.end();
    Ok(())
}
