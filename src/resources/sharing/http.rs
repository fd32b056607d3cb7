//! `/api/projects/:project_id/dashboards/:dashboard_id/sharing/`, and the public pages at `/shared/:token`.

pub mod path;

use std::sync::LazyLock;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::auth::{InProject, ReadAccess, Requirements, WriteAccess};
use crate::error::{Error, Result};
use crate::fair_queue::Consumer;
use crate::http::body::{IgnoredBody, JsonBody};
use crate::http::html::{HtmlPage, SECRET_URL_HEADERS, headers};
use crate::http::routes::Routes;
use crate::ids::{DashboardId, OrganizationId};
use crate::input::Parsed;
use crate::resources::access_objects::Object;
use crate::resources::dashboards::http::path::PathDashboardId;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::{self, Dashboard};
use crate::response::{ApiResponse, ApiResult};
use crate::state::{App, PageKey};
use crate::store::{BoundedRead, Tx};

use self::path::PathToken;
use super::body::{Public, SharedDashboard, SharedInsight, SharingBody};
use super::page::{self, PublicPage};
use super::{Sharing, SharingKey, SharingPatch};

const ONE: &str = "/api/projects/{project_id}/dashboards/{dashboard_id}/sharing/";
const WRITE: &str = "sharing_configuration:write";
const REFRESH: &str = "/api/projects/{project_id}/dashboards/{dashboard_id}/sharing/refresh/";
const PUBLIC: &str = "/shared/{token}/";

const STYLE: &str = include_str!("page/style.css");
/// Response headers of every public page.
static HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| headers(STYLE, ""));

/// Registers the routes of sharing.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("sharing_configuration:read");
    let write = Requirements::scope(WRITE);
    routes.resource("sharing", "Public pages of dashboards.");
    routes
        .get(ONE, "dashboards_sharing_retrieve", read, retrieve)
        .summary("Retrieve the sharing configuration of a dashboard, with its token.")
        .in_path::<PathDashboardId>()
        .returns::<SharingBody>(200);
    routes
        .patch(ONE, "dashboards_sharing_partial_update", write, update)
        .summary("Enable or disable the public page of a dashboard.")
        .in_path::<PathDashboardId>()
        .body::<SharingPatch>()
        .example(r#"{"enabled": true}"#)
        .returns::<SharingBody>(200);
    routes
        .post(REFRESH, "dashboards_sharing_refresh_create", write, refresh)
        .summary("Replace the token of a public page. The old one remains valid for 5 minutes.")
        .in_path::<PathDashboardId>()
        .returns::<SharingBody>(200);
    let nothing =
        Requirements::public("the token in the path gives access to one shared dashboard");
    routes
        .get(PUBLIC, "shared_retrieve", nothing, open)
        .summary("Open the public page of a dashboard, or its JSON if the path ends in `.json`.")
        .in_path::<PathToken>()
        .media_types(&["text/html"])
        .returns::<Public>(200)
        .may_return(404);
}

async fn retrieve(
    State(app): State<App>,
    access: ReadAccess<InProject>,
    PathDashboardId(id): PathDashboardId,
) -> ApiResult {
    let dashboard = dashboards::get_live(&*access.snapshot, access.tenant.project.id, id?)?;
    let rights = dashboard.rights(&*access.snapshot, &access.tenant)?;
    rights.require_view()?;
    let may_share = rights.can_share() && access.caller.key.has_scope(WRITE);
    super::body(&*access.snapshot, app.sharing(), of(&dashboard), may_share)
        .map(ApiResponse::Object)
}

async fn update(
    State(app): State<App>,
    access: WriteAccess<InProject>,
    PathDashboardId(id): PathDashboardId,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, patch) = (id?, Parsed::<SharingPatch>::new(&sent));
    let (tokens, expected) = (app.sharing().clone(), access.if_match.clone());
    app.change(&access, move |tx, _, tenant: &InProject, now| {
        let dashboard = get_editable(tx, tenant, id)?;
        super::update(tx, &tokens, of(&dashboard), &patch, now)?;
        expected.require::<Sharing>(tx, &of(&dashboard))?;
        super::body(tx, &tokens, of(&dashboard), true)
    })
    .await
    .map(ApiResponse::Object)
}

async fn refresh(
    State(app): State<App>,
    access: WriteAccess<InProject>,
    PathDashboardId(id): PathDashboardId,
    _: IgnoredBody,
) -> ApiResult {
    let (id, tokens) = (id?, app.sharing().clone());
    app.post(&access, move |tx, _, tenant: &InProject, now| {
        let dashboard = get_editable(tx, tenant, id)?;
        super::rotate(tx, &tokens, of(&dashboard), now)?;
        super::body(tx, &tokens, of(&dashboard), true).map(ApiResponse::Object)
    })
    .await
}

/// Opens a public page, or its JSON if the path ends in `.json`.
///
/// Each request checks the token; only the rendered page is cached. The response to a token that opens
/// nothing is the same for every reason.
async fn open(State(app): State<App>, PathToken(token): PathToken) -> Result<Response> {
    let before = token.strip_suffix(".json");
    let is_html = before.is_none();
    let token = before.unwrap_or(&token).to_owned();
    let tx = app.store().snapshot()?;
    let found = super::find_open(&*tx, app.sharing(), &token, app.now())?;
    let Some(live) = found.map(|of| LivePage::find(&*tx, of)).transpose()?.flatten() else {
        return if is_html {
            missing()
        } else {
            Ok((SECRET_URL_HEADERS, Error::not_found()).into_response())
        };
    };
    let LivePage { object, version, owner } = live;
    let html = is_html.then(|| app.sharing().hash(&token));
    let key = PageKey { generation: tx.generation(), object, version, html };
    let render = move |tx: &BoundedRead<'_>| render(tx, object, is_html.then_some(&*token));
    let body = app.public_pages().get(&key, owner, tx, render).await?;
    let mut response = if is_html {
        (HEADERS.clone(), body).into_response()
    } else {
        (SECRET_URL_HEADERS, [(CONTENT_TYPE, "application/json")], body).into_response()
    };
    response.extensions_mut().insert(owner);
    Ok(response)
}

/// A live object that a token opens.
struct LivePage {
    object: SharingKey,
    version: u64,
    /// The organization of the object.
    owner: Consumer,
}

impl LivePage {
    /// Returns the object; `None` if it does not exist or is deleted.
    fn find(tx: &impl Tx, object: SharingKey) -> Result<Option<Self>> {
        let live = |organization: OrganizationId, version, deleted: bool| {
            let owner = Consumer::Organization(organization.0);
            Ok((!deleted).then_some(Self { object, version, owner }))
        };
        let found = match object.1 {
            Object::Dashboard(id) => tx.view::<Dashboard, _>(&(object.0, id), |row| {
                live(row.meta.organization, row.version, row.meta.deleted)
            }),
            Object::Insight(id) => tx.view::<Insight, _>(&(object.0, id), |row| {
                live(row.meta.organization, row.version, row.meta.deleted)
            }),
        };
        Ok(found?.flatten())
    }
}

/// Renders the public page with links for this token, or the public JSON if there is no token.
fn render(
    tx: &BoundedRead<'_>,
    (project, object): SharingKey,
    token: Option<&str>,
) -> Result<Vec<u8>> {
    let PublicPage { title, body } = match (object, token) {
        (Object::Dashboard(id), None) => {
            let key = (project, id);
            return SharedDashboard::get(tx, key)?.json(tx, key);
        }
        (Object::Insight(id), None) => return SharedInsight::get(tx, (project, id))?.json(),
        (Object::Dashboard(id), Some(token)) => page::of_dashboard(tx, (project, id), token)?,
        (Object::Insight(id), Some(_)) => {
            page::of_insight(&SharedInsight::get(tx, (project, id))?)?
        }
    };
    Ok(HtmlPage { title: &title, style: STYLE, script: "", body: &body }.html().into_bytes())
}

fn missing() -> Result<Response> {
    let PublicPage { title, body } = &page::missing()?;
    let html = HtmlPage { title, style: STYLE, script: "", body }.html();
    Ok((StatusCode::NOT_FOUND, HEADERS.clone(), html).into_response())
}

fn get_editable(tx: &impl Tx, tenant: &InProject, id: DashboardId) -> Result<dashboards::Meta> {
    let dashboard = dashboards::get_live(tx, tenant.project.id, id)?;
    dashboard.rights(tx, tenant)?.require_share()?;
    Ok(dashboard)
}

fn of(dashboard: &dashboards::Meta) -> SharingKey {
    (dashboard.project, Object::Dashboard(dashboard.id))
}
