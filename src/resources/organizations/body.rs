//! How an organization is shown to one of its members: its own JSON as stored, then what differs by caller.

use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::Caller;
use crate::access::gate::Limits;
use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId};
use crate::json::{Array, Object};
use crate::resources::members::{Level, Membership};
use crate::resources::projects::body::ProjectSummary;
use crate::resources::projects::{self, Project};
use crate::store::{Order, Tx, Window};

use super::{Organization, Shown, splice_own};

/// An organization, as one of its members sees it.
#[derive(ToSchema)]
#[schema(as = Organization)]
pub struct OrganizationBody {
    /// Its own fields.
    #[serde(flatten)]
    pub own: Shown,
    /// 9: there are no plugins.
    pub plugins_access_level: i64,
    /// Empty: every feature is on.
    pub available_product_features: Vec<Value>,
    /// Null.
    pub customer_id: Option<String>,
    /// What the caller may do in it: 1 member, 8 admin, 15 owner.
    pub membership_level: Level,
    /// The projects that the caller may see; an answer shows at most 1,000.
    pub teams: Vec<Team>,
    /// The same projects, in short.
    pub projects: Vec<BasicProject>,
    /// About the installation.
    pub metadata: Metadata,
    /// How many members there are.
    pub member_count: u64,
}

/// A project, as its organization shows it.
#[derive(ToSchema)]
pub struct Team {
    /// The summary form.
    #[serde(flatten)]
    pub summary: ProjectSummary,
    /// Its number, once more.
    pub project_id: ProjectId,
}

/// A project, in short.
#[derive(ToSchema)]
pub struct BasicProject {
    /// Its number.
    pub id: ProjectId,
    /// The organization it belongs to.
    pub organization_id: OrganizationId,
    /// Its name.
    pub name: String,
}

/// About the installation.
#[derive(ToSchema)]
pub struct Metadata {
    /// `none`.
    pub instance_tag: String,
}

/// An organization of the caller's, in short.
#[derive(ToSchema)]
pub struct BasicOrganization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
    /// Its name in URLs.
    pub slug: String,
    /// The id of an uploaded logo.
    pub logo_media_id: Option<Uuid>,
    /// What the caller may do in it: 1 member, 8 admin, 15 owner.
    pub membership_level: Level,
    /// Whether plain members' keys open it.
    pub members_can_use_personal_api_keys: bool,
}

/// How many organizations an answer lists in the basic form at the most; `/api/organizations/` has them all.
pub const MOST_ORGANIZATIONS: usize = 100;
/// How many projects an answer shows within organizations at the most; `/api/organizations/:id/projects/` has them
/// all.
pub const MOST_PROJECTS: usize = 1000;
/// With more projects than this, the full form is written off the request threads, and not inside a write.
const FEW_PROJECTS: u64 = 64;

/// Whether it takes long to write the full form of an organization.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn is_long(tx: &impl Tx, organization: OrganizationId) -> Result<bool> {
    Ok(tx.count::<Project>(&organization)? > FEW_PROJECTS)
}

/// Appends the full form: the organization's own fields, and what differs by member, with `most` projects at the
/// most. Returns how many projects it shows.
///
/// # Errors
/// 404 when the organization is gone.
pub fn write_full(
    tx: &impl Tx,
    member: &Membership,
    key: &Limits,
    most: usize,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let id = member.organization;
    let mut shown = 0;
    splice_own(tx, id, Object::begin(out))?
        .field("membership_level", &member.level)?
        .with("teams", |out| {
            write_projects(tx, member, key, most, out, |project, summary, out| {
                shown += 1;
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
                let name: projects::Shown =
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
    Ok(shown)
}

fn write_projects(
    tx: &impl Tx,
    member: &Membership,
    key: &Limits,
    most: usize,
    out: &mut Vec<u8>,
    mut write: impl FnMut(ProjectId, &[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let window = Window { offset: 0, limit: most, order: Order::Ascending };
    let mut array = Array::begin(out);
    projects::list(tx, member, key.only_projects(), window, |id, summary| {
        array.item(|out| write(id, summary, out))
    })?;
    array.end();
    Ok(())
}

/// Appends the basic form of the oldest organizations that the caller belongs to and the key shows.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn write_basic_of(tx: &impl Tx, caller: &Caller, out: &mut Vec<u8>) -> Result<()> {
    let mut array = Array::begin(out);
    for member in caller.open_memberships(tx, MOST_ORGANIZATIONS)? {
        let shown = tx.get::<Organization>(&member.organization)?.shown;
        array.item(|out| {
            Object::begin(out)
                .field("id", &shown.id)?
                .field("name", &shown.name)?
                .field("slug", &shown.slug)?
                .field("logo_media_id", &shown.logo_media_id)?
                .field("membership_level", &member.level)?
                .field(
                    "members_can_use_personal_api_keys",
                    &shown.members_can_use_personal_api_keys,
                )?
                .end();
            Ok(())
        })?;
    }
    array.end();
    Ok(())
}
