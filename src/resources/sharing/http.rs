//! `/api/projects/:project_id/dashboards/:dashboard_id/sharing/`, and the public pages at `/shared/:token`.

use std::sync::LazyLock;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::access::{Admitted, Changing, InProject, Needs};
use crate::error::{Error, Result};
use crate::fair::Consumer;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::html::{Document, UNLISTED, headers};
use crate::http::path::{DashboardRef, Token};
use crate::http::routes::Routes;
use crate::ids::DashboardId;
use crate::input::Parsed;
use crate::resources::dashboards::{self, Dashboard};
use crate::state::{App, PageKey};
use crate::store::{BoundedRead, Tx};

use super::body::{Public, Shared, SharingBody};
use super::page::{self, Page};
use super::{Sharing, SharingPatch};

const ONE: &str = "/api/projects/{project_id}/dashboards/{dashboard_id}/sharing/";
const WRITE: &str = "sharing_configuration:write";
const REFRESH: &str = "/api/projects/{project_id}/dashboards/{dashboard_id}/sharing/refresh/";
const PUBLIC: &str = "/shared/{token}/";

const STYLE: &str = include_str!("page/style.css");
/// The headers of every public page.
static HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| headers(STYLE, ""));

/// The routes of sharing.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("sharing_configuration:read");
    let write = Needs::scope(WRITE);
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
    let may_share = rights.can_share() && at.caller.key.allows(WRITE);
    super::body(&*at.tx, app.sharing(), of(&dashboard), may_share).map(Answer::Shown)
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

/// What a token opens, as JSON if the path ends in `.json`, and as a page otherwise. Whether it opens anything is read
/// for each request; only what is shown then may be kept. What opens nothing answers the same whatever the reason.
async fn open(State(app): State<App>, Token(token): Token) -> Result<Response> {
    let before = token.strip_suffix(".json");
    let is_html = before.is_none();
    let token = before.unwrap_or(&token).to_owned();
    let tx = app.store().snapshot()?;
    let found = super::find_open(&*tx, app.sharing(), &token, app.now())?;
    let Some(live) = found.map(|of| Live::find(&*tx, of)).transpose()?.flatten() else {
        return if is_html {
            missing()
        } else {
            Ok((UNLISTED, Error::not_found()).into_response())
        };
    };
    let Live { dashboard, version, owner } = live;
    let html = is_html.then(|| app.sharing().hash(&token));
    let key = PageKey { opening: tx.opening(), dashboard, version, html };
    let render = move |tx: &BoundedRead<'_>| {
        let shared = Shared::find(tx, dashboard)?.ok_or_else(Error::not_found)?;
        if is_html { render(tx, &shared, &token) } else { shared.json() }
    };
    let body = app.public_pages().get(&key, owner, tx, render).await?;
    let mut response = if is_html {
        (HEADERS.clone(), body).into_response()
    } else {
        (UNLISTED, [(CONTENT_TYPE, "application/json")], body).into_response()
    };
    response.extensions_mut().insert(owner);
    Ok(response)
}

/// A live dashboard that a token opens.
struct Live {
    dashboard: super::Of,
    version: u64,
    /// Its organization.
    owner: Consumer,
}

impl Live {
    /// The dashboard, unless it is removed.
    fn find(tx: &impl Tx, dashboard: super::Of) -> Result<Option<Self>> {
        let found = tx.view::<Dashboard, _>(&dashboard, |row| {
            let owner = Consumer::Organization(row.head.organization.0);
            let live = Self { dashboard, version: row.version, owner };
            Ok((!row.head.deleted).then_some(live))
        })?;
        Ok(found.flatten())
    }
}

fn render(tx: &BoundedRead<'_>, shared: &Shared, token: &str) -> Result<Vec<u8>> {
    let page = page::render(shared, token, |bytes| tx.spend(bytes))?;
    let Page { title, body } = &page;
    Ok(Document { title, style: STYLE, script: "", body }.html().into_bytes())
}

fn missing() -> Result<Response> {
    let Page { title, body } = &page::missing()?;
    let html = Document { title, style: STYLE, script: "", body }.html();
    Ok((StatusCode::NOT_FOUND, HEADERS.clone(), html).into_response())
}

fn get_editable(tx: &impl Tx, place: &InProject, id: DashboardId) -> Result<dashboards::Head> {
    let dashboard = dashboards::get_live(tx, place.project.id, id)?;
    dashboard.rights(tx, place)?.require_share()?;
    Ok(dashboard)
}

fn of(dashboard: &dashboards::Head) -> super::Of {
    (dashboard.project, dashboard.id)
}
