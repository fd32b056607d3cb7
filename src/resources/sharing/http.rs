//! `/api/projects/:project_id/dashboards/:dashboard_id/sharing/`, and the public pages at `/shared/:token`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::access::{Admitted, Changing, InProject, Needs};
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::html::{Document, UNLISTED};
use crate::http::path::{DashboardRef, Token};
use crate::http::routes::Routes;
use crate::ids::DashboardId;
use crate::input::Parsed;
use crate::resources::dashboards;
use crate::state::App;
use crate::store::Tx;

use super::body::{Public, Shared, SharingBody};
use super::{Sharing, SharingPatch, page};

const ONE: &str = "/api/projects/{project_id}/dashboards/{dashboard_id}/sharing/";
const REFRESH: &str = "/api/projects/{project_id}/dashboards/{dashboard_id}/sharing/refresh/";
const PUBLIC: &str = "/shared/{token}/";

/// The routes of sharing.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("sharing_configuration:read");
    let write = Needs::scope("sharing_configuration:write");
    routes.noun("sharing", "Public pages of dashboards.");
    routes
        .get(ONE, "dashboards_sharing_retrieve", read, retrieve)
        .summary("Retrieve whether a dashboard has a public page, and the token that opens it.")
        .answers::<SharingBody>(200);
    routes
        .patch(ONE, "dashboards_sharing_partial_update", write, update)
        .summary("Open or close the public page of a dashboard.")
        .takes::<SharingPatch>()
        .example(r#"{"enabled": true}"#)
        .answers::<SharingBody>(200);
    routes
        .post(REFRESH, "dashboards_sharing_refresh_create", write, refresh)
        .summary("Replace the token. The old one opens the page for five minutes more.")
        .answers::<SharingBody>(200);
    let nothing =
        Needs::nothing("the token in the path is the key to one dashboard that was made public");
    routes
        .get(PUBLIC, "shared_retrieve", nothing, open)
        .summary("Open the public page of a dashboard; its JSON, where the path ends in `.json`.")
        .media(&["text/html"])
        .answers::<Public>(200)
        .may(404);
}

async fn retrieve(
    State(app): State<App>,
    at: Admitted<InProject>,
    DashboardRef(id): DashboardRef,
) -> Answered {
    let dashboard = dashboards::get_live(&*at.tx, at.place.project.id, id?)?;
    let rights = dashboard.rights(&*at.tx, &at.place)?;
    rights.require_view()?;
    super::body(&*at.tx, app.sharing(), of(&dashboard), rights.can_share()).map(Answer::Shown)
}

async fn update(
    State(app): State<App>,
    at: Changing<InProject>,
    DashboardRef(id): DashboardRef,
    Body(sent): Body,
) -> Answered {
    let (id, patch) = (id?, Parsed::<SharingPatch>::of(&sent));
    let (tokens, expected) = (app.sharing().clone(), at.expected.clone());
    app.change(&at, move |tx, _, place: &InProject, now| {
        let dashboard = get_editable(tx, place, id)?;
        if let Some(enabled) = super::update(tx, &tokens, of(&dashboard), &patch, now)? {
            dashboards::note_sharing(tx, &dashboard, enabled)?;
        }
        expected.require::<Sharing>(tx, &of(&dashboard))?;
        super::body(tx, &tokens, of(&dashboard), true)
    })
    .await
    .map(Answer::Shown)
}

async fn refresh(
    State(app): State<App>,
    at: Changing<InProject>,
    DashboardRef(id): DashboardRef,
    Body(_): Body,
) -> Answered {
    let (id, tokens) = (id?, app.sharing().clone());
    app.post(&at, move |tx, _, place: &InProject, now| {
        let dashboard = get_editable(tx, place, id)?;
        let enabled = super::refresh(tx, &tokens, of(&dashboard), now)?;
        dashboards::note_sharing(tx, &dashboard, enabled)?;
        super::body(tx, &tokens, of(&dashboard), true).map(Answer::Shown)
    })
    .await
}

/// What a token opens, as JSON where the path ends in `.json` and as a page otherwise. What opens nothing
/// answers the same whatever the reason. A dashboard may be long, so it waits for a turn that no caller with a
/// key waits for.
async fn open(State(app): State<App>, Token(token): Token) -> Result<Response> {
    let before = token.strip_suffix(".json");
    let render = if before.is_some() { json } else { html };
    let token = before.unwrap_or(&token).to_owned();
    let tx = app.store().snapshot()?;
    match super::find_open(&*tx, app.sharing(), &token, app.now())? {
        Some(of) => app.public_pages().take(move || render(Shared::find(&*tx, of)?, &token)).await,
        None => render(None, &token),
    }
}

fn json(found: Option<Shared>, _: &str) -> Result<Response> {
    let answer = match found {
        Some(shared) => Ok(Answer::Plain(shared.json()?)),
        None => Err(Error::not_found()),
    };
    Ok((UNLISTED, answer).into_response())
}

fn html(found: Option<Shared>, token: &str) -> Result<Response> {
    let (status, page) = match found {
        Some(shared) => (StatusCode::OK, page::render(&shared, token)?),
        None => (StatusCode::NOT_FOUND, page::missing()?),
    };
    let style = include_str!("page/style.css");
    let document = Document { title: &page.title, style, script: "", body: &page.body };
    Ok((status, document).into_response())
}

fn get_editable(tx: &impl Tx, place: &InProject, id: DashboardId) -> Result<dashboards::Head> {
    let dashboard = dashboards::get_live(tx, place.project.id, id)?;
    dashboard.rights(tx, place)?.require_share()?;
    Ok(dashboard)
}

fn of(dashboard: &dashboards::Head) -> super::Of {
    (dashboard.project, dashboard.id)
}
