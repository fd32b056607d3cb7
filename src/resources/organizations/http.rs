//! `/api/organizations/`, and the JSON of an organization: its stored fields, then the fields that differ by caller.

use crate::auth::CallerKey;
use crate::http::prelude::*;
use crate::resources::members::{Level, Membership};
use crate::resources::projects::api::ProjectSummary;
use crate::resources::projects::{self, NewProject, Project};
use crate::resources::shared::prelude::*;
use crate::resources::{cascade_delete, roles};

use super::{Fields, NewOrganization, Organization, OrganizationPatch};

const LIST: &str = "/api/organizations/";
const ONE: &str = "/api/organizations/{organization_id}/";

/// Adds the routes of organizations.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("organization:read");
    let write = Requirements::scope("organization:write");
    routes.resource(
        "organizations",
        "The tenants: each contains members, projects and everything in them.",
    );
    routes
        .get(LIST, "organizations_list", read, list)
        .summary("List your organizations. A page contains at most 1,000 of their projects.")
        .returns_page::<OrganizationBody>();
    routes
        .post(LIST, "organizations_create", write.unscoped_key("create an organization"), create)
        .summary("Create an organization and its first project. You become its owner.")
        .body::<NewOrganization>()
        .example(r#"{"name": "Corp"}"#)
        .returns::<OrganizationBody>(201);
    routes
        .get(ONE, "organizations_retrieve", read, retrieve)
        .summary("Retrieve an organization.")
        .returns::<OrganizationBody>(200);
    routes
        .patch(ONE, "organizations_partial_update", write.level(Level::Admin), update)
        .summary("Update an organization.")
        .body::<OrganizationPatch>()
        .example(r#"{"members_can_invite": false}"#)
        .returns::<OrganizationBody>(200);
    routes
        .delete(ONE, "organizations_destroy", write.level(Level::Owner), destroy)
        .summary("Delete an organization and everything in it.");
}

async fn list(at: ReadAccess<Global>, page: PageParams) -> ApiResult {
    page.respond(at, |tx, at, page| {
        let Window { offset, limit, .. } = page.window(Order::Ascending);
        let mine = at.caller.open_memberships(tx, usize::MAX)?;
        let mut items = JsonItems::default();
        let mut left = MAX_PROJECTS;
        for member in mine.iter().skip(offset).take(limit) {
            items.push(WrittenBy(&mut |out| {
                left -= write_full(tx, member, &at.caller.key, left, out)?;
                Ok(())
            }))?;
        }
        Ok((mine.len() as u64, items.into_bytes()))
    })
    .await
}

async fn create(at: WriteAccess<Global>, JsonBody(sent): JsonBody) -> ApiResult {
    let (new, seed) = (Parsed::<NewOrganization>::new(&sent), Seed::generate());
    at.post(move |tx, caller, _: &Global, now| {
        let mut rng = seed.rng();
        let id = super::create(tx, new.get()?, &mut rng, now)?;
        let first = NewProject::of(&crate::input::JsonObject::new());
        let (member, _) = projects::create_first(tx, id, caller.user.id, &first, &mut rng, now)?;
        body(tx, &member, &caller.key).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve(at: ReadAccess<InOrganization>) -> ApiResult {
    at.read(|tx, at| body(tx, &at.tenant.member, &at.caller.key)).await.map(ApiResponse::Object)
}

async fn update(at: WriteAccess<InOrganization>, JsonBody(sent): JsonBody) -> ApiResult {
    let patch = Parsed::<OrganizationPatch>::new(&sent);
    at.update_and_render::<Organization>(
        move |tx, _, tenant: &InOrganization, now, large| {
            let id = tenant.member.organization;
            let is_large = is_expensive(tx, id)?;
            large.require_reserved(is_large.then_some(0))?;
            let patch = patch.get()?;
            super::update(tx, id, patch, now)?;
            roles::set_default(tx, id, &patch.default_role_id, now)?;
            Ok((id, is_large))
        },
        |tx, caller, tenant| body(tx, &tenant.member, &caller.key),
    )
    .await
}

async fn destroy(at: WriteAccess<InOrganization>) -> ApiResult {
    at.delete::<Organization>(|tx, _, tenant: &InOrganization, _| {
        cascade_delete::delete_organization(tx, tenant.member.organization)?;
        Ok(tenant.member.organization)
    })
    .await
}

fn body(tx: &dyn Raw, member: &Membership, key: &CallerKey) -> Result<Versioned> {
    let mut json = Vec::with_capacity(2048);
    write_full(tx, member, key, MAX_PROJECTS, &mut json)?;
    Ok(Versioned::new(tx.version::<Organization>(&member.organization)?, json))
}

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
