//! `sharing/` below dashboards and insights, and the public pages at `/shared/:token`.

use std::sync::LazyLock;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use utoipa::PartialSchema;

use crate::app::PageKey;
use crate::base::json::Either;
use crate::fair::fair_queue::Consumer;
use crate::http::extract::{Extract, ReceivedRequest};
use crate::http::html::{HtmlPage, SECRET_URL_HEADERS, headers};
use crate::http::path::path_parameter;
use crate::http::prelude::*;
use crate::resources::access_controls::shared::{Shared, SharedMeta};
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::{Insight, InsightRef};
use crate::resources::shared::prelude::*;
use crate::store::BoundedRead;

use super::api::{PublicDashboard, PublicInsight, SharedInsight, SharingBody, dashboard_json};
use super::page::{self, PublicPage};
use super::{Shareable, Sharing, SharingKey, SharingPatch, not_found};

const OF_DASHBOARD: &str = "/api/projects/{project_id}/dashboards/{dashboard_id}/sharing/";
const REFRESH_OF_DASHBOARD: &str =
    "/api/projects/{project_id}/dashboards/{dashboard_id}/sharing/refresh/";
const OF_INSIGHT: &str = "/api/projects/{project_id}/insights/{id}/sharing/";
const REFRESH_OF_INSIGHT: &str = "/api/projects/{project_id}/insights/{id}/sharing/refresh/";
const PUBLIC: &str = "/shared/{token}/";

const WRITE: &str = "sharing_configuration:write";

const STYLE: &str = include_str!("page/style.css");
/// Response headers of every public page.
static HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| headers(STYLE, ""));

/// Adds the routes of sharing.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("sharing_configuration:read");
    let write = Requirements::scope(WRITE);
    routes.resource("sharing", "Public pages of dashboards and insights.");
    routes
        .get(OF_DASHBOARD, "dashboards_sharing_retrieve", read, retrieve::<Dashboard>)
        .summary("Retrieve the sharing configuration of a dashboard, with its token.")
        .in_path::<DashboardId>()
        .returns::<SharingBody>(200);
    routes
        .patch(OF_DASHBOARD, "dashboards_sharing_partial_update", write, update::<Dashboard>)
        .summary("Enable or disable the public page of a dashboard.")
        .in_path::<DashboardId>()
        .body::<SharingPatch>()
        .example(r#"{"enabled": true}"#)
        .returns::<SharingBody>(200);
    let operation = "dashboards_sharing_refresh_create";
    routes
        .post(REFRESH_OF_DASHBOARD, operation, write, refresh::<Dashboard>)
        .summary("Replace the token of a public page. The old one remains valid for 5 minutes.")
        .in_path::<DashboardId>()
        .returns::<SharingBody>(200);
    routes
        .get(OF_INSIGHT, "insights_sharing_retrieve", read, retrieve::<Insight>)
        .summary("Retrieve the sharing configuration of an insight, with its token.")
        .id::<InsightRef>()
        .returns::<SharingBody>(200);
    routes
        .patch(OF_INSIGHT, "insights_sharing_partial_update", write, update::<Insight>)
        .summary("Enable or disable the public page of an insight.")
        .id::<InsightRef>()
        .body::<SharingPatch>()
        .example(r#"{"enabled": true}"#)
        .returns::<SharingBody>(200);
    let operation = "insights_sharing_refresh_create";
    routes
        .post(REFRESH_OF_INSIGHT, operation, write, refresh::<Insight>)
        .summary("Replace the token of a public page. The old one remains valid for 5 minutes.")
        .id::<InsightRef>()
        .returns::<SharingBody>(200);
    let nothing = Requirements::public("the token in the path gives access to one shared object");
    routes
        .get(PUBLIC, "shared_retrieve", nothing, open)
        .summary(
            "Open the public page of a dashboard or an insight, or its JSON if the path ends in `.json`.",
        )
        .in_path::<PathToken>()
        .media_types(&["text/html"])
        .returns::<Either<PublicDashboard<'_>, PublicInsight>>(200)
        .may_return(404);
}

async fn retrieve<R: Shared + Loggable>(
    at: ReadAccess<InProject>,
    PathObject(named): PathObject<R>,
) -> ApiResult {
    let object = Shareable::find::<R>(at.tx(), &at.tenant, &named?)?;
    object.require_view()?;
    let may_share = object.can_share && at.caller.key.has_scope(WRITE);
    super::body(at.tx(), at.app.sharing(), object.key, may_share).map(ApiResponse::Object)
}

async fn update<R: Shared + Loggable>(
    at: WriteAccess<InProject>,
    PathObject(named): PathObject<R>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (named, patch) = (named?, Parsed::<SharingPatch>::new(&sent));
    let tokens = at.app.sharing().clone();
    at.update::<Sharing>(move |tx, _, tenant: &InProject, now| {
        let of = Shareable::find::<R>(tx, tenant, &named)?.require_share()?;
        super::update(tx, tenant, &tokens, of, &patch, now)?;
        Ok((of, super::body(tx, &tokens, of, true)?))
    })
    .await
}

async fn refresh<R: Shared + Loggable>(
    at: WriteAccess<InProject>,
    PathObject(named): PathObject<R>,
    _: IgnoredBody,
) -> ApiResult {
    let (named, tokens) = (named?, at.app.sharing().clone());
    at.post(move |tx, _, tenant: &InProject, now| {
        let of = Shareable::find::<R>(tx, tenant, &named)?.require_share()?;
        super::rotate(tx, &tokens, of, now)?;
        super::body(tx, &tokens, of, true).map(ApiResponse::Object)
    })
    .await
}

/// Opens a public page, or its JSON if the path ends in `.json`.
///
/// Each request checks the token; only the rendered page is cached. The response to a token that opens
/// nothing is the same for every reason.
async fn open(State(app): State<App>, PathParam(token): PathParam<PathToken>) -> Result<Response> {
    let PathToken(token) = token?;
    let before = token.strip_suffix(".json");
    let is_html = before.is_none();
    let token = before.unwrap_or(&token).to_owned();
    let tx = app.store().fresh().await?;
    let found = match super::find_open(&*tx, app.sharing(), &token, app.now())? {
        Some(of @ (_, Object::Dashboard(_))) => find_live::<Dashboard>(&*tx, of)?,
        Some(of @ (_, Object::Insight(_))) => find_live::<Insight>(&*tx, of)?,
        None => None,
    };
    let Some((object, version, owner)) = found else {
        return Ok(if is_html {
            missing()
        } else {
            (SECRET_URL_HEADERS, Error::not_found()).into_response()
        });
    };
    let html = is_html.then(|| app.sharing().hash(&token));
    let key = PageKey { generation: tx.generation(), object, version, html };
    let render = move |tx: &BoundedRead<'_>| render(tx, object, is_html.then_some(&*token));
    let body = app.public_pages().get(&key, owner, tx, render).await?;
    Ok(if is_html {
        (HEADERS.clone(), body).into_response()
    } else {
        (SECRET_URL_HEADERS, [(CONTENT_TYPE, "application/json")], body).into_response()
    })
}

/// Returns an object with its version and its organization; `None` if it does not exist or is deleted.
fn find_live<R: Shared>(
    tx: &dyn Raw,
    of: SharingKey,
) -> Result<Option<(SharingKey, u64, Consumer)>> {
    let found = tx.view::<R, _>(&R::key_of(of.0, of.1.number()), |row| {
        let SharedMeta { organization, deleted, .. } = R::shared(&row.meta);
        Ok((!deleted).then_some((of, row.version, Consumer::Organization(organization.0))))
    })?;
    Ok(found.flatten())
}

/// Renders the public page with links for this token, or the public JSON if there is no token.
fn render(
    tx: &BoundedRead<'_>,
    (project, object): SharingKey,
    token: Option<&str>,
) -> Result<Vec<u8>> {
    let PublicPage { title, body } = match (object, token) {
        (Object::Dashboard(id), None) => return dashboard_json(tx, (project, id)),
        (Object::Insight(id), None) => return SharedInsight::get(tx, (project, id))?.json(),
        (Object::Dashboard(id), Some(token)) => page::of_dashboard(tx, (project, id), token)?,
        (Object::Insight(id), Some(_)) => {
            page::of_insight(&SharedInsight::get(tx, (project, id))?)?
        }
    };
    Ok(HtmlPage { title: &title, style: STYLE, script: "", body: &body }.html().into_bytes())
}

/// Returns the page for an unknown, disabled or expired token.
fn missing() -> Response {
    let body = include_str!("page/missing.html").trim_end();
    let html = HtmlPage { title: "Page not found", style: STYLE, script: "", body }.html();
    (StatusCode::NOT_FOUND, HEADERS.clone(), html).into_response()
}

/// What the path's `{dashboard_id}`, or the `{id}` of an insight, names; or a 404 if it does not parse. The handler
/// returns the 404 itself, because a bad body takes precedence over a missing object.
struct PathObject<R: Shared>(Result<R::Ref>);

impl<R: Shared + Loggable> Extract for PathObject<R> {
    fn extract(ReceivedRequest { parts, .. }: &mut ReceivedRequest) -> Result<Self> {
        let text = path_parameter(parts, "dashboard_id").or_else(|| path_parameter(parts, "id"));
        let named = text.and_then(|text| text.parse().ok());
        Ok(Self(named.ok_or_else(not_found::<R>)))
    }
}

/// The path's `{token}`, unchecked.
struct PathToken(String);

impl PathParameter for PathToken {
    const NAME: &'static str = "token";
    const DESCRIPTION: &'static str =
        "The token of the public page. With the suffix `.json` the response is JSON.";

    fn schema() -> RefOr<Schema> {
        String::schema()
    }

    fn parse(text: &str) -> Result<Self> {
        Ok(Self(text.to_owned()))
    }
}
