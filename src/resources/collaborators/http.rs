//! `/api/projects/:project_id/dashboards/:dashboard_id/collaborators/`.

use axum::extract::State;

use crate::access::{Admitted, Changing, InProject, Needs};
use crate::error::Result;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::path::{DashboardRef, UserRef};
use crate::http::routes::Routes;
use crate::ids::DashboardId;
use crate::input::Parsed;
use crate::resources::{dashboards, users};
use crate::secret::Seed;
use crate::state::App;
use crate::store::Tx;

use super::body::CollaboratorBody;
use super::{Collaborator, NewCollaborator, Restricted};

const LIST: &str = "/api/projects/{project_id}/dashboards/{dashboard_id}/collaborators/";
const ONE: &str =
    "/api/projects/{project_id}/dashboards/{dashboard_id}/collaborators/{user__uuid}/";

/// The routes of collaborators.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("dashboard:read");
    let write = Needs::scope("dashboard:write");
    routes.noun("collaborators", "Who edits a dashboard that is restricted to them.");
    routes
        .get(LIST, "dashboards_collaborators_list", read, list)
        .summary("List the collaborators of a dashboard.")
        .answers_all::<CollaboratorBody>();
    routes
        .post(LIST, "dashboards_collaborators_create", write, create)
        .summary("Make somebody a collaborator of a restricted dashboard.")
        .takes::<NewCollaborator>()
        .example(r#"{"user_uuid": "0197a2f4-5c1e-7b3a-9d2e-3f4a5b6c7d8e", "level": 37}"#)
        .answers::<CollaboratorBody>(201);
    routes
        .delete(ONE, "dashboards_collaborators_destroy", write, destroy)
        .summary("Remove a collaborator.")
        .may(400);
}

async fn list(
    State(app): State<App>,
    at: Admitted<InProject>,
    DashboardRef(id): DashboardRef,
) -> Answered {
    let id = id?;
    let listed = app.long_reads().read(at, move |tx, at| {
        let head = dashboards::get_live(tx, at.place.project.id, id)?;
        head.rights(tx, &at.place)?.require_view()?;
        super::list(tx, &at.place, head.id)
    });
    listed.await.map(Answer::Plain)
}

async fn create(
    State(app): State<App>,
    at: Changing<InProject>,
    DashboardRef(id): DashboardRef,
    Body(sent): Body,
) -> Answered {
    let (id, new, seed) = (id?, Parsed::<NewCollaborator>::of(&sent), Seed::take());
    app.post(&at, move |tx, _, place: &InProject, now| {
        let dashboard = get_editable(tx, place, id)?;
        let row = super::create(tx, place, dashboard, &new, &mut seed.draw(), now)?;
        super::body(tx, &row).map(Answer::Created)
    })
    .await
}

async fn destroy(
    State(app): State<App>,
    at: Changing<InProject>,
    DashboardRef(id): DashboardRef,
    UserRef(named): UserRef,
) -> Answered {
    let (id, expected) = (id?, at.expected.clone());
    app.change(&at, move |tx, caller, place: &InProject, _| {
        let dashboard = get_editable(tx, place, id)?;
        let user = match named.clone()? {
            Some(uuid) => users::get_by_uuid(tx, uuid)?,
            None => caller.user.id,
        };
        super::remove(tx, place, dashboard, user)?;
        expected.require::<Collaborator>(tx, &(place.project.id, id, user))
    })
    .await?;
    Ok(Answer::NoContent)
}

/// The dashboard, for a caller who may edit it.
fn get_editable(tx: &impl Tx, place: &InProject, id: DashboardId) -> Result<Restricted> {
    let head = dashboards::get_live(tx, place.project.id, id)?;
    head.rights(tx, place)?.require_edit()?;
    let dashboards::Head { id, created_by, restriction_level, .. } = head;
    Ok(Restricted { id, created_by, restriction_level })
}
