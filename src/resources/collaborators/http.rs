//! `/api/projects/:project_id/dashboards/:dashboard_id/collaborators/`.

use crate::http::prelude::*;
use crate::ids::DashboardId;
use crate::resources::dashboards;
use crate::resources::users::UserFilter;

use super::{Collaborator, CollaboratorBody, NewCollaborator, RestrictedDashboard};

const LIST: &str = "/api/projects/{project_id}/dashboards/{dashboard_id}/collaborators/";
const ONE: &str =
    "/api/projects/{project_id}/dashboards/{dashboard_id}/collaborators/{user__uuid}/";

/// Adds the routes of collaborators.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("dashboard:read");
    let write = Requirements::scope("dashboard:write");
    routes.resource("collaborators", "Users who may edit a restricted dashboard.");
    routes
        .get(LIST, "dashboards_collaborators_list", read, list)
        .summary("List the collaborators of a dashboard.")
        .in_path::<DashboardId>()
        .returns_all::<CollaboratorBody>();
    routes
        .post(LIST, "dashboards_collaborators_create", write, create)
        .summary("Add a collaborator to a restricted dashboard.")
        .in_path::<DashboardId>()
        .body::<NewCollaborator>()
        .example(r#"{"user_uuid": "0197a2f4-5c1e-7b3a-9d2e-3f4a5b6c7d8e", "level": 37}"#)
        .returns::<CollaboratorBody>(201);
    routes
        .delete(ONE, "dashboards_collaborators_destroy", write, destroy)
        .summary("Remove a collaborator.")
        .in_path::<DashboardId>()
        .in_path::<UserFilter>()
        .may_return(400);
}

async fn list(at: ReadAccess<InProject>, PathParam(id): PathParam<DashboardId>) -> ApiResult {
    let id = id?;
    let listed = at.read(move |tx, at| {
        let meta = dashboards::get_live(tx, at.tenant.project.id, id)?;
        meta.rights(tx, &at.tenant)?.require_view()?;
        super::list(tx, &at.tenant, meta.id)
    });
    listed.await.map(ApiResponse::Json)
}

async fn create(
    at: WriteAccess<InProject>,
    PathParam(id): PathParam<DashboardId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, new, seed) = (id?, Parsed::<NewCollaborator>::new(&sent), at.app.seed());
    at.post(move |tx, _, tenant: &InProject, now| {
        let dashboard = get_editable(tx, tenant, id)?;
        let row = super::create(tx, tenant, dashboard, &new, &mut seed.rng(), now)?;
        super::body(tx, &row).map(ApiResponse::Created)
    })
    .await
}

async fn destroy(
    at: WriteAccess<InProject>,
    PathParam(id): PathParam<DashboardId>,
    PathParam(named): PathParam<UserFilter>,
) -> ApiResult {
    let id = id?;
    at.delete::<Collaborator>(move |tx, caller, tenant: &InProject, _| {
        let dashboard = get_editable(tx, tenant, id)?;
        let user = named.clone()?.get(tx, caller.user.id)?;
        super::delete(tx, tenant, dashboard, user)?;
        Ok((tenant.project.id, id, user))
    })
    .await
}

/// The dashboard, for a caller who may edit it.
fn get_editable(tx: &dyn Raw, tenant: &InProject, id: DashboardId) -> Result<RestrictedDashboard> {
    let meta = dashboards::get_live(tx, tenant.project.id, id)?;
    meta.rights(tx, tenant)?.require_edit()?;
    let dashboards::Meta { id, created_by, restriction_level, .. } = meta;
    Ok(RestrictedDashboard { id, created_by, restriction_level })
}
