//! `/api/organizations/:organization_id/roles/`.

use utoipa::PartialSchema;
use utoipa::openapi::RefOr;

use crate::http::prelude::*;
use crate::ids::{RoleId, RoleMembershipId};
use crate::input::{Flag, Input, Schema};
use crate::resources::cascade_delete;
use crate::resources::members::Level;
use crate::resources::users::UserFilter;
use crate::store::Record;

use super::api::{ListedRole, RoleBody, RoleMembershipBody, basic_body, list_members, member_body};
use super::{NewRole, NewRoleMembership, Role, RoleMembership, RolePatch, memberships};

const LIST: &str = "/api/organizations/{organization_id}/roles/";
const ONE: &str = "/api/organizations/{organization_id}/roles/{id}/";
const MEMBERSHIPS: &str = "/api/organizations/{organization_id}/roles/{role_id}/role_memberships/";
const MEMBERSHIP: &str =
    "/api/organizations/{organization_id}/roles/{role_id}/role_memberships/{id}/";

/// Adds the routes of roles and of their members.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("organization:read");
    let write = Requirements::scope("organization:write").level(Level::Admin);
    routes.resource("roles", "Groups of members, to whom access controls give a level together.");
    routes
        .get(LIST, "roles_list", read, list)
        .summary("List the roles of an organization, by name.")
        .query::<bool>(
            "basic",
            "True for the basic form, with the number of members instead of the members.",
        )
        .query_as::<UserFilter>("user", "Only roles of this user: a UUID, or `@me`.")
        .returns_page::<ListedRole<'_>>()
        .may_return(400);
    routes
        .post(LIST, "roles_create", write, create)
        .summary("Create a role in an organization.")
        .body::<NewRole>()
        .example(r#"{"name": "Analysts"}"#)
        .returns::<RoleBody>(201);
    routes
        .get(ONE, "roles_retrieve", read, retrieve)
        .summary("Retrieve a role and its members.")
        .id::<RoleId>()
        .query::<bool>(
            "basic",
            "True for the basic form, with the number of members instead of the members.",
        )
        .returns::<ListedRole<'_>>(200);
    routes
        .put(ONE, "roles_update", write, rename::<NewRole>)
        .summary("Rename a role.")
        .id::<RoleId>()
        .body::<NewRole>()
        .example(r#"{"name": "Analytics"}"#)
        .returns::<RoleBody>(200);
    routes
        .patch(ONE, "roles_partial_update", write, rename::<RolePatch>)
        .summary("Rename a role.")
        .id::<RoleId>()
        .body::<RolePatch>()
        .example(r#"{"name": "Analytics"}"#)
        .returns::<RoleBody>(200);
    routes
        .delete(ONE, "roles_destroy", write, destroy)
        .summary("Delete a role, its memberships and the access rules that name it.")
        .id::<RoleId>();
    routes
        .get(MEMBERSHIPS, "roles_role_memberships_list", read, list_memberships)
        .summary("List the members of a role, in the order in which they joined it.")
        .in_path::<RoleId>()
        .returns_page::<RoleMembershipBody>();
    routes
        .post(MEMBERSHIPS, "roles_role_memberships_create", write, add_member)
        .summary("Add a member of the organization to a role.")
        .in_path::<RoleId>()
        .body::<NewRoleMembership>()
        .example(r#"{"user_uuid": "0197a2f4-5c1e-7b3a-9d2e-3f4a5b6c7d8e"}"#)
        .returns::<RoleMembershipBody>(201);
    routes
        .get(MEMBERSHIP, "roles_role_memberships_retrieve", read, retrieve_membership)
        .summary("Retrieve the membership of a member in a role.")
        .in_path::<RoleId>()
        .id::<RoleMembershipId>()
        .returns::<RoleMembershipBody>(200);
    routes
        .delete(MEMBERSHIP, "roles_role_memberships_destroy", write, remove_member)
        .summary("Remove a member from a role.")
        .in_path::<RoleId>()
        .id::<RoleMembershipId>();
}

async fn list(at: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    let user = page.query().read::<UserFilter>("user")?;
    let is_basic = page.query().read::<Flag>("basic")?.unwrap_or(false);
    page.with_scan(user.is_some())
        .respond(at, move |tx, at, page| {
            let (organization, caller) = (at.tenant.member.organization, at.caller.user.id);
            let window = page.window(Order::Ascending);
            super::list(tx, organization, caller, user, is_basic, window)
        })
        .await
}

async fn create(at: WriteAccess<InOrganization>, JsonBody(sent): JsonBody) -> ApiResult {
    let (new, seed) = (Parsed::<NewRole>::new(&sent), at.app.seed());
    at.post(move |tx, _, tenant: &InOrganization, now| {
        let organization = tenant.member.organization;
        let id = super::create(tx, organization, new.get()?, &mut seed.rng(), now)?;
        super::body(tx, (organization, id)).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve(
    at: ReadAccess<InOrganization>,
    PathId(id): PathId<RoleId>,
    query: QueryParams,
) -> ApiResult {
    let (id, is_basic) = (id?, query.read::<Flag>("basic")?.unwrap_or(false));
    let read = at.read(move |tx, at| {
        let key = (at.tenant.member.organization, id);
        if is_basic { basic_body(tx, key) } else { super::body(tx, key) }
    });
    read.await.map(ApiResponse::Object)
}

/// Renames a role. An invalid body counts only if the role exists.
async fn rename<N: Input + Into<RolePatch> + Send + 'static>(
    at: WriteAccess<InOrganization>,
    PathId(id): PathId<RoleId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, patch) = (id?, N::parse(&sent).map(Into::into));
    at.update_and_render::<Role>(
        move |tx, _, tenant: &InOrganization, _, large| {
            let key = (tenant.member.organization, id);
            let is_large = super::is_expensive(tx, key)?;
            large.require_reserved(is_large.then_some(0))?;
            super::rename(tx, key, &patch)?;
            Ok((key, is_large))
        },
        move |tx, _, tenant| super::body(tx, (tenant.member.organization, id)),
    )
    .await
}

async fn destroy(at: WriteAccess<InOrganization>, PathId(id): PathId<RoleId>) -> ApiResult {
    let id = id?;
    at.delete::<Role>(move |tx, _, tenant: &InOrganization, now| {
        let organization = tenant.member.organization;
        cascade_delete::delete_role(tx, organization, id, now)?;
        Ok((organization, id))
    })
    .await
}

impl PathParameter for RoleId {
    const NAME: &'static str = "role_id";
    const DESCRIPTION: &'static str = "The id of the role.";

    fn schema() -> RefOr<Schema> {
        <Self as PartialSchema>::schema()
    }

    fn parse(text: &str) -> Result<Self> {
        text.parse().map_err(|_| Error::not_found())
    }
}

async fn list_memberships(
    at: ReadAccess<InOrganization>,
    PathParam(role): PathParam<RoleId>,
    page: PageParams,
) -> ApiResult {
    let role = role?;
    page.respond(at, move |tx, at, page| {
        list_members(tx, (at.tenant.member.organization, role), page.window(Order::Ascending))
    })
    .await
}

async fn add_member(
    at: WriteAccess<InOrganization>,
    PathParam(role): PathParam<RoleId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (new, seed) = (Parsed::<NewRoleMembership>::new(&sent), at.app.seed());
    let role = role.ok();
    at.post(move |tx, _, tenant: &InOrganization, now| {
        let organization = tenant.member.organization;
        let added = memberships::add(tx, organization, role, &new, &mut seed.rng(), now)?;
        member_body(tx, &added).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve_membership(
    at: ReadAccess<InOrganization>,
    PathParam(role): PathParam<RoleId>,
    PathId(id): PathId<RoleMembershipId>,
) -> ApiResult {
    let role = (at.tenant.member.organization, role?);
    let member = memberships::get(at.tx(), role, id?)?;
    member_body(at.tx(), &member).map(ApiResponse::Object)
}

async fn remove_member(
    at: WriteAccess<InOrganization>,
    PathParam(role): PathParam<RoleId>,
    PathId(id): PathId<RoleMembershipId>,
) -> ApiResult {
    let (role, id) = (role?, id?);
    at.delete::<RoleMembership>(move |tx, _, tenant: &InOrganization, _| {
        let member = memberships::get(tx, (tenant.member.organization, role), id)?;
        memberships::remove(tx, &member)?;
        Ok(member.key())
    })
    .await
}
