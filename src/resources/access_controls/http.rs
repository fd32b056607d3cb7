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

use super::body::{
    DashboardAccessControl, DashboardAccessControls, ProjectAccessControl, ProjectAccessControls,
};
use super::{NewAccessControl, NewDashboardAccessControl, NewResourceAccessControl};

const OF_PROJECT: &str = "/api/projects/{project_id}/access_controls/";
const OF_DASHBOARDS: &str = "/api/projects/{project_id}/resource_access_controls/";
const OF_DASHBOARD: &str = "/api/projects/{project_id}/dashboards/{id}/access_controls/";
const NOT_OF_DASHBOARD: &str =
    "/api/projects/{project_id}/dashboards/{id}/resource_access_controls/";

/// An example of a rule on a project.
const ON_PROJECT: &str =
    r#"{"organization_member": "0197a2f4-5c1e-7b3a-9d2e-3f4a5b6c7d8e", "access_level": "member"}"#;

/// The routes of access controls.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("access_control:read");
    let write = Needs::scope("access_control:write");
    routes
        .noun("access_controls", "Who may do what, by name, in a project and with its dashboards.");
    routes
        .get(OF_PROJECT, "projects_access_controls_retrieve", read, retrieve)
        .summary("Retrieve the rules on a project.")
        .answers::<ProjectAccessControls>(200)
        .unversioned();
    routes
        .put(OF_PROJECT, "projects_access_controls_update", write, update)
        .summary("Put a member's rule on a project; 204 where the level is null, which removes it.")
        .takes::<NewAccessControl>()
        .example(ON_PROJECT)
        .answers::<ProjectAccessControl>(200)
        .unversioned()
        .may(204);
    routes
        .get(OF_DASHBOARDS, "projects_resource_access_controls_retrieve", read, retrieve_all)
        .summary("Retrieve the rules on all dashboards of a project.")
        .answers::<DashboardAccessControls>(200)
        .unversioned();
    routes
        .put(OF_DASHBOARDS, "projects_resource_access_controls_update", write, update_all)
        .summary("Put a rule on all dashboards; 204 where the level is null, which removes it.")
        .takes::<NewResourceAccessControl>()
        .example(r#"{"resource": "dashboard", "access_level": "viewer"}"#)
        .answers::<DashboardAccessControl>(200)
        .unversioned()
        .may(204);
    routes
        .get(OF_DASHBOARD, "dashboards_access_controls_retrieve", read, retrieve_one)
        .summary("Retrieve the rules on a dashboard.")
        .id::<DashboardId>()
        .answers::<DashboardAccessControls>(200)
        .unversioned();
    routes
        .put(OF_DASHBOARD, "dashboards_access_controls_update", write, update_one)
        .summary("Put a rule on a dashboard; 204 where the level is null, which removes it.")
        .id::<DashboardId>()
        .takes::<NewDashboardAccessControl>()
        .example(r#"{"access_level": "none"}"#)
        .answers::<DashboardAccessControl>(200)
        .unversioned()
        .may(204);
    let operation = "dashboards_resource_access_controls_retrieve";
    routes
        .get(NOT_OF_DASHBOARD, operation, read, refuse)
        .summary("Refused: such rules are a project's.")
        .id::<DashboardId>()
        .refuses(400);
}

async fn retrieve(State(app): State<App>, at: Admitted<InProject>) -> Answered {
    app.long_reads().read(at, |tx, at| super::body(tx, &at.place)).await.map(Answer::Plain)
}

async fn update(State(app): State<App>, at: Changing<InProject>, Body(sent): Body) -> Answered {
    let sent = Parsed::<NewAccessControl>::of(&sent);
    let rule = app
        .change(&at, move |tx, _, place: &InProject, now| super::update(tx, place, &sent, now))
        .await?;
    Ok(rule.map_or(Answer::NoContent, Answer::Plain))
}

async fn retrieve_all(State(app): State<App>, at: Admitted<InProject>) -> Answered {
    app.long_reads().read(at, |tx, at| super::body_of_all(tx, &at.place)).await.map(Answer::Plain)
}

async fn update_all(State(app): State<App>, at: Changing<InProject>, Body(sent): Body) -> Answered {
    let sent = Parsed::<NewResourceAccessControl>::of(&sent);
    let rule = app
        .change(&at, move |tx, _, place: &InProject, now| super::update_all(tx, place, &sent, now))
        .await?;
    Ok(rule.map_or(Answer::NoContent, Answer::Plain))
}

async fn retrieve_one(
    State(app): State<App>,
    at: Admitted<InProject>,
    Id(id): Id<DashboardId>,
) -> Answered {
    let id = id?;
    let shown = app
        .long_reads()
        .read(at, move |tx, at| super::body_of_one(tx, &at.place, id, rights(tx, &at.place, id)?));
    shown.await.map(Answer::Plain)
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
