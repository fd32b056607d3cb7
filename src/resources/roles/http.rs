//! `/api/organizations/:organization_id/roles/`.

mod memberships;
mod renaming;

use axum::extract::State;

use crate::auth::{InOrganization, ReadAccess, Requirements, WriteAccess};
use crate::http::body::JsonBody;
use crate::http::paging::PageParams;
use crate::http::path::PathId;
use crate::http::query::QueryParams;
use crate::http::routes::Routes;
use crate::ids::RoleId;
use crate::input::{Flag, Parsed};
use crate::resources::cascade_delete;
use crate::resources::members::Level;
use crate::resources::users::UserFilter;
use crate::response::{ApiResponse, ApiResult};
use crate::secret::Seed;
use crate::state::App;
use crate::store::Order;

use super::api::{ListedRole, RoleBody, basic_body};
use super::{ListOptions, NewRole, Role, RolePatch};

const LIST: &str = "/api/organizations/{organization_id}/roles/";
const ONE: &str = "/api/organizations/{organization_id}/roles/{id}/";

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
        .query::<UserFilter>("user", "Only roles of this user: a UUID, or `@me`.")
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
        .put(ONE, "roles_update", write, replace)
        .summary("Rename a role.")
        .id::<RoleId>()
        .body::<NewRole>()
        .example(r#"{"name": "Analytics"}"#)
        .returns::<RoleBody>(200);
    routes
        .patch(ONE, "roles_partial_update", write, update)
        .summary("Rename a role.")
        .id::<RoleId>()
        .body::<RolePatch>()
        .example(r#"{"name": "Analytics"}"#)
        .returns::<RoleBody>(200);
    routes
        .delete(ONE, "roles_destroy", write, destroy)
        .summary("Delete a role, its memberships and the access rules that name it.")
        .id::<RoleId>();
    memberships::routes(routes);
}

async fn list(access: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    let user = page.query().read::<UserFilter>("user")?;
    let is_basic = page.query().read::<Flag>("basic")?.unwrap_or(false);
    let options = ListOptions { user, is_basic };
    page.with_scan(user.is_some())
        .respond(access, move |tx, at, page| {
            let (organization, caller) = (at.tenant.member.organization, at.caller.user.id);
            super::list(tx, organization, caller, options, page.window(Order::Ascending))
        })
        .await
}

async fn create(
    State(app): State<App>,
    access: WriteAccess<InOrganization>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (new, seed) = (Parsed::<NewRole>::new(&sent), Seed::generate());
    app.post(&access, move |tx, _, tenant: &InOrganization, now| {
        let organization = tenant.member.organization;
        let id = super::create(tx, organization, new.get()?, &mut seed.rng(), now)?;
        super::body(tx, organization, id).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve(
    State(app): State<App>,
    access: ReadAccess<InOrganization>,
    PathId(id): PathId<RoleId>,
    query: QueryParams,
) -> ApiResult {
    let (id, is_basic) = (id?, query.read::<Flag>("basic")?.unwrap_or(false));
    let read = app.long_reads().read(access, move |tx, at| {
        let organization = at.tenant.member.organization;
        if is_basic { basic_body(tx, organization, id) } else { super::body(tx, organization, id) }
    });
    read.await.map(ApiResponse::Object)
}

async fn replace(
    State(app): State<App>,
    access: WriteAccess<InOrganization>,
    PathId(id): PathId<RoleId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let new = Parsed::<NewRole>::new(&sent);
    renaming::rename(app, access, id?, move || Ok(Some(new.get()?.name.clone()))).await
}

async fn update(
    State(app): State<App>,
    access: WriteAccess<InOrganization>,
    PathId(id): PathId<RoleId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let patch = Parsed::<RolePatch>::new(&sent);
    renaming::rename(app, access, id?, move || Ok(patch.get()?.name.clone())).await
}

async fn destroy(
    State(app): State<App>,
    access: WriteAccess<InOrganization>,
    PathId(id): PathId<RoleId>,
) -> ApiResult {
    let id = id?;
    app.delete::<Role, _>(&access, move |tx, _, tenant: &InOrganization, now| {
        let organization = tenant.member.organization;
        cascade_delete::delete_role(tx, organization, id, now)?;
        Ok((organization, id))
    })
    .await
}
