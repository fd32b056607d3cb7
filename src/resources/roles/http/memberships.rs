//! `/api/organizations/:organization_id/roles/:role_id/role_memberships/`.

use axum::extract::State;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;

use crate::auth::{InOrganization, ReadAccess, Requirements, WriteAccess};
use crate::error::{Error, Result};
use crate::http::body::JsonBody;
use crate::http::paging::PageParams;
use crate::http::path::{PathId, PathParam};
use crate::http::routes::{PathParameter, Routes};
use crate::ids::{RoleId, RoleMembershipId};
use crate::input::{Parsed, Schema};
use crate::resources::members::Level;
use crate::resources::roles::api::{RoleMembershipBody, list_members, member_body};
use crate::resources::roles::{NewRoleMembership, RoleMembership, memberships};
use crate::response::{ApiResponse, ApiResult};
use crate::secret::Seed;
use crate::state::App;
use crate::store::{Order, Record};

const LIST: &str = "/api/organizations/{organization_id}/roles/{role_id}/role_memberships/";
const ONE: &str = "/api/organizations/{organization_id}/roles/{role_id}/role_memberships/{id}/";

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

pub(super) fn routes(routes: &mut Routes) {
    let read = Requirements::scope("organization:read");
    let write = Requirements::scope("organization:write").level(Level::Admin);
    routes
        .get(LIST, "roles_role_memberships_list", read, list)
        .summary("List the members of a role, in the order in which they joined it.")
        .in_path::<RoleId>()
        .returns_page::<RoleMembershipBody>();
    routes
        .post(LIST, "roles_role_memberships_create", write, create)
        .summary("Add a member of the organization to a role.")
        .in_path::<RoleId>()
        .body::<NewRoleMembership>()
        .example(r#"{"user_uuid": "0197a2f4-5c1e-7b3a-9d2e-3f4a5b6c7d8e"}"#)
        .returns::<RoleMembershipBody>(201);
    routes
        .get(ONE, "roles_role_memberships_retrieve", read, retrieve)
        .summary("Retrieve the membership of a member in a role.")
        .in_path::<RoleId>()
        .id::<RoleMembershipId>()
        .returns::<RoleMembershipBody>(200);
    routes
        .delete(ONE, "roles_role_memberships_destroy", write, destroy)
        .summary("Remove a member from a role.")
        .in_path::<RoleId>()
        .id::<RoleMembershipId>();
}

async fn list(
    access: ReadAccess<InOrganization>,
    PathParam(role): PathParam<RoleId>,
    page: PageParams,
) -> ApiResult {
    let role = role?;
    page.respond(access, move |tx, at, page| {
        list_members(tx, at.tenant.member.organization, role, page.window(Order::Ascending))
    })
    .await
}

async fn create(
    State(app): State<App>,
    access: WriteAccess<InOrganization>,
    PathParam(role): PathParam<RoleId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (new, seed) = (Parsed::<NewRoleMembership>::new(&sent), Seed::generate());
    let role = role.ok();
    app.post(&access, move |tx, _, tenant: &InOrganization, now| {
        let organization = tenant.member.organization;
        let added = memberships::add(tx, organization, role, &new, &mut seed.rng(), now)?;
        member_body(tx, &added).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve(
    access: ReadAccess<InOrganization>,
    PathParam(role): PathParam<RoleId>,
    PathId(id): PathId<RoleMembershipId>,
) -> ApiResult {
    let organization = access.tenant.member.organization;
    let member = memberships::get(&*access.snapshot, organization, role?, id?)?;
    member_body(&*access.snapshot, &member).map(ApiResponse::Object)
}

async fn destroy(
    State(app): State<App>,
    access: WriteAccess<InOrganization>,
    PathParam(role): PathParam<RoleId>,
    PathId(id): PathId<RoleMembershipId>,
) -> ApiResult {
    let (role, id) = (role?, id?);
    app.delete::<RoleMembership, _>(&access, move |tx, _, tenant: &InOrganization, _| {
        let member = memberships::get(tx, tenant.member.organization, role, id)?;
        memberships::remove(tx, &member)?;
        Ok(member.key())
    })
    .await
}
