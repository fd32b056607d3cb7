//! The JSON of an organization: its stored fields, then the fields that differ by caller.

use crate::auth::{Caller, CallerKey};
use crate::resources::members::{Level, Membership};
use crate::resources::projects::api::ProjectSummary;
use crate::resources::projects::{self, Project};
use crate::resources::roles;
use crate::resources::shared::prelude::*;

use super::super::{Fields, Organization};

output! {
    /// An organization, as one of its members sees it.
    pub struct OrganizationBody<'a> as Organization {
        /// The organization's own fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// The id of the role that users get when they join, if there is one.
        default_role_id: Option<RoleId>,
        /// Always 9: the highest level. There are no plugins.
        plugins_access_level: i64 = 9,
        /// Always empty. Every feature is available to every organization.
        available_product_features: Vec<Value> = [],
        /// Always null.
        customer_id: Option<String> = null,
        /// The caller's level: 1 member, 8 admin, 15 owner.
        membership_level: Level,
        /// The projects that the caller can access. A response contains at most 1,000.
        teams: WrittenBy<'a> as Vec<Team>,
        /// The same projects in a short form.
        projects: WrittenBy<'a> as Vec<BasicProject>,
        /// Information about the installation.
        metadata: Metadata,
        /// The number of members.
        member_count: u64,
    }
}

output! {
    /// A project in the JSON of its organization.
    pub struct Team<'a> {
        /// The summary of the project.
        ..summary: ProjectSummary<'a>,
        /// The id of the project, same as `id`.
        project_id: ProjectId,
    }
}

/// A project in its short form.
#[derive(Serialize, ToSchema)]
pub struct BasicProject {
    /// The id of the project.
    pub id: ProjectId,
    /// The organization of the project.
    pub organization_id: OrganizationId,
    /// The name of the project.
    pub name: String,
}

output! {
    /// Information about the installation.
    pub struct Metadata {
        /// Always `none`.
        instance_tag: String = "none",
    }
}

/// An organization of the caller in its short form.
#[derive(Serialize, ToSchema)]
pub struct BasicOrganization {
    /// The id of the organization.
    pub id: OrganizationId,
    /// The name of the organization.
    pub name: String,
    /// The name of the organization in URLs.
    #[schema(max_length = 48)]
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
pub fn is_expensive(tx: &dyn Raw, organization: OrganizationId) -> Result<bool> {
    Ok(tx.count::<Project>(&organization)? > MAX_INLINE_PROJECTS)
}

/// Appends the full form: the organization's own fields, those that differ by member, and at most `most` projects.
/// Returns the number of projects.
///
/// # Errors
/// 404 if the organization was deleted.
pub fn write_full(
    tx: &dyn Raw,
    member: &Membership,
    key: &CallerKey,
    most: usize,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let id = member.organization;
    let own = tx
        .view::<Organization, _>(&id, |row| Ok(row.fields.to_vec()))?
        .ok_or_else(Error::not_found)?;
    let mut count = 0;
    let body = OrganizationBody {
        own: JsonText::new(&own),
        default_role_id: roles::default_of(tx, id)?,
        membership_level: member.level,
        teams: WrittenBy(&mut |out| {
            write_projects(tx, member, key, most, out, &mut |array, project_id, own| {
                count += 1;
                array.push(Team { summary: ProjectSummary { own }, project_id })
            })
        }),
        projects: WrittenBy(&mut |out| {
            write_projects(tx, member, key, most, out, &mut |array, project, own| {
                let name = own.parse()?.name;
                array.push(BasicProject { id: project, organization_id: id, name })
            })
        }),
        metadata: Metadata {},
        member_count: tx.count::<Membership>(&id)?,
    };
    body.write_json(out)?;
    Ok(count)
}

/// Appends a project to an array.
type PushProject<'p> =
    dyn FnMut(&mut Array<'_>, ProjectId, JsonText<'_, projects::Fields>) -> Result<()> + 'p;

fn write_projects(
    tx: &dyn Raw,
    member: &Membership,
    key: &CallerKey,
    most: usize,
    out: &mut Vec<u8>,
    push: &mut PushProject<'_>,
) -> Result<()> {
    let window = Window { offset: 0, limit: most, order: Order::Ascending };
    Array::write(out, |array| {
        let only = key.scoped_projects();
        projects::list(tx, member, only, window, &mut |id, own| push(array, id, own)).map(drop)
    })
}

/// Appends the short form of the caller's oldest organizations that the caller's key can access.
pub fn write_basic_of(tx: &dyn Raw, caller: &Caller, out: &mut Vec<u8>) -> Result<()> {
    Array::write(out, |array| {
        for member in caller.open_memberships(tx, MAX_ORGANIZATIONS)? {
            let fields = tx.get::<Organization>(&member.organization)?.fields;
            array.push(BasicOrganization {
                id: fields.id,
                name: fields.name,
                slug: fields.slug,
                logo_media_id: fields.logo_media_id,
                membership_level: member.level,
                members_can_use_personal_api_keys: fields.members_can_use_personal_api_keys,
            })?;
        }
        Ok(())
    })
}
