//! `/api/projects/:project_id/access_controls/`, `/api/projects/:project_id/resource_access_controls/` and
//! `/api/projects/:project_id/dashboards/:id/access_controls/`.

use axum::extract::State;

use crate::access::levels::Rights;
use crate::access::{Admitted, Changing, InProject, Needs};
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::path::Id;
use crate::http::routes::Routes;
use crate::ids::DashboardId;
use crate::input::Parsed;
use crate::resources::dashboards::Dashboard;
use crate::state::App;
use crate::store::Tx;

use super::{NewAccessControl, NewDashboardAccessControl, NewResourceAccessControl};

const OF_PROJECT: &str = "/api/projects/{project_id}/access_controls/";
const OF_DASHBOARDS: &str = "/api/projects/{project_id}/resource_access_controls/";
const OF_DASHBOARD: &str = "/api/projects/{project_id}/dashboards/{id}/access_controls/";
const NOT_OF_DASHBOARD: &str =
    "/api/projects/{project_id}/dashboards/{id}/resource_access_controls/";

/// The routes of access controls.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("access_control:read");
    let write = Needs::scope("access_control:write");
    routes
        .get(OF_PROJECT, "projects_access_controls_retrieve", read, retrieve)
        .answers(200, "AccessControls");
    routes
        .put(OF_PROJECT, "projects_access_controls_update", write, update)
        .takes::<NewAccessControl>()
        .answers(200, "AccessControl");
    routes
        .get(OF_DASHBOARDS, "projects_resource_access_controls_retrieve", read, retrieve_all)
        .answers(200, "AccessControls");
    routes
        .put(OF_DASHBOARDS, "projects_resource_access_controls_update", write, update_all)
        .takes::<NewResourceAccessControl>()
        .answers(200, "AccessControl");
    routes
        .get(OF_DASHBOARD, "dashboards_access_controls_retrieve", read, retrieve_one)
        .answers(200, "AccessControls");
    routes
        .put(OF_DASHBOARD, "dashboards_access_controls_update", write, update_one)
        .takes::<NewDashboardAccessControl>()
        .answers(200, "AccessControl");
    let operation = "dashboards_resource_access_controls_retrieve";
    routes.get(NOT_OF_DASHBOARD, operation, read, refuse).answers(400, "Error");
}

async fn retrieve(at: Admitted<InProject>) -> Answered {
    super::body(&*at.tx, &at.place).map(Answer::Plain)
}

async fn update(State(app): State<App>, at: Changing<InProject>, Body(sent): Body) -> Answered {
    let sent = Parsed::<NewAccessControl>::of(&sent);
    let rule = app
        .change(&at, move |tx, _, place: &InProject, now| super::update(tx, place, &sent, now))
        .await?;
    Ok(rule.map_or(Answer::NoContent, Answer::Plain))
}

async fn retrieve_all(at: Admitted<InProject>) -> Answered {
    super::body_of_all(&*at.tx, &at.place).map(Answer::Plain)
}

async fn update_all(State(app): State<App>, at: Changing<InProject>, Body(sent): Body) -> Answered {
    let sent = Parsed::<NewResourceAccessControl>::of(&sent);
    let rule = app
        .change(&at, move |tx, _, place: &InProject, now| super::update_all(tx, place, &sent, now))
        .await?;
    Ok(rule.map_or(Answer::NoContent, Answer::Plain))
}

async fn retrieve_one(at: Admitted<InProject>, Id(id): Id<DashboardId>) -> Answered {
    let id = id?;
    let rights = rights(&*at.tx, &at.place, id)?;
    super::body_of_one(&*at.tx, &at.place, id, rights).map(Answer::Plain)
}

async fn update_one(
    State(app): State<App>,
    at: Changing<InProject>,
    Id(id): Id<DashboardId>,
    Body(sent): Body,
) -> Answered {
    let (id, sent) = (id?, Parsed::<NewDashboardAccessControl>::of(&sent));
    let rule = app
        .change(&at, move |tx, _, place: &InProject, now| {
            let rights = rights(tx, place, id)?;
            super::update_one(tx, place, id, rights, &sent, now)
        })
        .await?;
    Ok(rule.map_or(Answer::NoContent, Answer::Plain))
}

/// Rules on all dashboards are not one dashboard's (facts-dashboards §9).
async fn refuse(at: Admitted<InProject>, Id(id): Id<DashboardId>) -> Answered {
    rights(&*at.tx, &at.place, id?)?.require_view()?;
    Err(Error::invalid(
        "invalid_input",
        "Resource-level access controls can only be configured for projects.",
    ))
}

/// What the caller may do with a live dashboard.
fn rights(tx: &impl Tx, place: &InProject, id: DashboardId) -> Result<Rights> {
    let found = tx.head::<Dashboard>(&(place.project.id, id))?.filter(|head| !head.deleted);
    found.ok_or_else(Error::not_found)?.rights(tx, place)
}
