//! `/api/projects/:project_id/insights/`.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::auth::{InProject, ReadAccess, Requirements, WriteAccess};
use crate::error::{Error, Result};
use crate::http::body::JsonBody;
use crate::http::paging::PageParams;
use crate::http::path::{PathId, QueryParams};
use crate::http::routes::Routes;
use crate::ids::DashboardId;
use crate::input::{FieldType, Flag};
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::insights::body::InsightBody;
use crate::response::{ApiResponse, ApiResult};
use crate::secret::Seed;
use crate::state::App;
use crate::store::{BoundedRead, Order};

use super::body::{AnyInsight, ListedInsight};
use super::{InsightFields, InsightRef, ParsedBody, ResponseOptions};

const LIST: &str = "/api/projects/{project_id}/insights/";
const ONE: &str = "/api/projects/{project_id}/insights/{id}/";

/// Registers the routes of insights.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("insight:read");
    let write = Requirements::scope("insight:write");
    routes.resource("insights", "Stored queries of a project, which dashboards can show.");
    routes
        .get(LIST, "insights_list", read, list)
        .summary("List the insights of a project by ID.")
        .query::<bool>("basic", "True for the basic form, without results.")
        .query::<String>("refresh", "Has no effect: queries are not run.")
        .returns_page::<ListedInsight<'_>>();
    routes
        .post(LIST, "insights_create", write, create)
        .summary("Create an insight, and put it on dashboards.")
        .body::<InsightFields>()
        .example(r#"{"name": "Visitors", "query": {"kind": "TrendsQuery"}, "tags": ["weekly"]}"#)
        .returns::<InsightBody<'_>>(201);
    routes
        .get(ONE, "insights_retrieve", read, retrieve)
        .summary("Retrieve an insight by its ID or short ID.")
        .id::<InsightRef>()
        .query::<bool>("basic", "True for the basic form, without results.")
        .query::<u64>("from_dashboard", "Adds the color and layouts of the tile on this dashboard.")
        .query::<String>("refresh", "Has no effect: queries are not run.")
        .query::<String>("filters_override", "Must be JSON. Has no effect: queries are not run.")
        .query::<String>("variables_override", "Must be JSON. Has no effect: queries are not run.")
        .returns::<AnyInsight<'_>>(200);
    routes
        .put(ONE, "insights_update", write, update)
        .summary("Update an insight, as PATCH does.")
        .id::<InsightRef>()
        .body::<InsightFields>()
        .example(r#"{"name": "Visitors by day"}"#)
        .returns::<InsightBody<'_>>(200);
    routes
        .patch(ONE, "insights_partial_update", write, update)
        .summary("Update an insight and its dashboards; delete or restore it with `deleted`.")
        .id::<InsightRef>()
        .body::<InsightFields>()
        .example(r#"{"description": "Who came this week", "favorited": true}"#)
        .returns::<InsightBody<'_>>(200);
    routes
        .delete(ONE, "insights_destroy", write, destroy)
        .summary("Not allowed: to delete an insight, PATCH `deleted` to true.")
        .id::<InsightRef>()
        .returns_empty(405);
}

async fn list(access: ReadAccess<InProject>, page: PageParams) -> ApiResult {
    let basic = is_true(page.parameter("basic"));
    page.respond(access, move |tx, at, page| {
        super::list(tx, &at.tenant, basic, page.window(Order::Ascending))
    })
    .await
}

async fn create(
    State(app): State<App>,
    access: WriteAccess<InProject>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (new, seed) = (ParsedBody::new(&sent), Seed::generate());
    app.post(&access, move |tx, _, tenant: &InProject, now| {
        let id = super::create(tx, tenant, &new, &mut seed.rng(), now)?;
        super::body(tx, tenant, id, ResponseOptions::default()).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve(
    State(app): State<App>,
    access: ReadAccess<InProject>,
    PathId(id): PathId<InsightRef>,
    query: QueryParams,
) -> ApiResult {
    let (id, options) = (id?, options(&query)?);
    let body = move |tx: &BoundedRead<'_>, at: &ReadAccess<InProject>| {
        let id = id.resolve_live(tx, &at.tenant)?.id;
        super::body(tx, &at.tenant, id, options)
    };
    app.long_reads().read(access, body).await.map(ApiResponse::Object)
}

async fn update(
    State(app): State<App>,
    access: WriteAccess<InProject>,
    PathId(id): PathId<InsightRef>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, patch) = (id?, ParsedBody::new(&sent));
    let expected = access.if_match.clone();
    app.change(&access, move |tx, _, tenant: &InProject, now| {
        let id = super::update(tx, tenant, &id, &patch, now)?;
        expected.require::<Insight>(tx, &(tenant.project.id, id))?;
        let show_deleted = patch.get()?.deleted == Some(true);
        super::body(tx, tenant, id, ResponseOptions { show_deleted, ..ResponseOptions::default() })
    })
    .await
    .map(ApiResponse::Object)
}

/// Answers 405 for every ID, as PostHog does: an insight is deleted by PATCH.
async fn destroy(_: ReadAccess<InProject>) -> Response {
    const ALLOW: HeaderValue = HeaderValue::from_static("GET, PUT, PATCH, HEAD, OPTIONS");
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, ALLOW)]).into_response()
}

fn is_true(parameter: Option<&str>) -> bool {
    parameter.is_some_and(|text| Flag::read(&text.trim().into()).unwrap_or(false))
}

/// Reads what the response to GET shows.
fn options(query: &QueryParams) -> Result<ResponseOptions> {
    for name in ["filters_override", "variables_override"] {
        if query.last(name).is_some_and(|text| !is_json(text)) {
            let detail = format!("Invalid JSON passed in {name} parameter");
            return Err(Error::field(name, "invalid_input", detail));
        }
    }
    let from = query.last("from_dashboard").and_then(|text| text.trim().parse().ok());
    Ok(ResponseOptions {
        show_deleted: false,
        basic: is_true(query.last("basic")),
        from_dashboard: from.map(DashboardId),
    })
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
