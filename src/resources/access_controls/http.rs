//! `/api/projects/:project_id/access_controls/`.

use axum::extract::State;

use crate::access::{Admitted, Changing, InProject, Needs};
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::routes::Routes;
use crate::input::Parsed;
use crate::state::App;

use super::NewAccessControl;

const OF_PROJECT: &str = "/api/projects/{project_id}/access_controls/";

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
}

async fn retrieve(at: Admitted<InProject>) -> Answered {
    super::body(&*at.tx, &at.place).map(Answer::Shown)
}

async fn update(State(app): State<App>, at: Changing<InProject>, Body(sent): Body) -> Answered {
    let sent = Parsed::<NewAccessControl>::of(&sent);
    let rule = app
        .change(&at, move |tx, _, place: &InProject, now| super::update(tx, place, &sent, now))
        .await?;
    Ok(rule.map_or(Answer::NoContent, Answer::Shown))
}
