//! `/api/projects/:project_id/insights/`.

mod parameters;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::auth::{InProject, ReadAccess, Requirements, WriteAccess};
use crate::error::{Error, Result};
use crate::http::body::JsonBody;
use crate::http::paging::PageParams;
use crate::http::path::PathId;
use crate::http::query::QueryParams;
use crate::http::routes::Routes;
use crate::ids::DashboardId;
use crate::input::{Flag, Identifier};
use crate::resources::access_controls::shared::Shared;
use crate::resources::dashboards::insights::body::InsightBody;
use crate::resources::dashboards::insights::{Insight, InsightRef};
use crate::response::{ApiResponse, ApiResult};
use crate::secret::Seed;
use crate::state::App;
use crate::store::{BoundedRead, Order};

use super::body::{AnyInsight, ListedInsight};
use super::filter::QueryType;
use super::order::ListOrder;
use super::{InsightFields, ParsedBody, ResponseOptions};

const LIST: &str = "/api/projects/{project_id}/insights/";
const ONE: &str = "/api/projects/{project_id}/insights/{id}/";

/// Adds the routes of insights.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("insight:read");
    let write = Requirements::scope("insight:write");
    routes.resource("insights", "Stored queries of a project, which dashboards can show.");
    routes
        .get(LIST, "insights_list", read, list)
        .summary("List the insights of a project by ID.")
        .query::<bool>("basic", "True for the basic form, without results.")
        .query::<String>(
            "search",
            "Only insights whose name, description or tags contain this text.",
        )
        .query::<String>("short_id", "Only the insight with this short ID.")
        .query::<Vec<String>>(
            "tags",
            "Only insights with at least one of these tags: names, or a JSON array.",
        )
        .query::<String>(
            "created_by",
            "Only insights of these users: a JSON array of IDs, or one ID.",
        )
        .query::<String>(
            "dashboards",
            "Only insights on all these dashboards: a JSON array of IDs.",
        )
        .query::<bool>(
            "saved",
            "Insights that were saved or are on a dashboard, or those not saved.",
        )
        .query::<bool>("favorited", "Only favorites, whatever the value.")
        .query::<bool>("user", "Only insights of the caller, whatever the value.")
        .query_as::<QueryType>("insight", "Only queries of this type. JSON stands for all others.")
        .query::<String>(
            "date_from",
            "Only insights last modified after this time, such as 2025-01-02, -7d or dStart.",
        )
        .query::<String>("date_to", "Only insights last modified before this time.")
        .query::<String>("created_date_from", "Only insights created after this time.")
        .query::<String>("created_date_to", "Only insights created before this time.")
        .query_as::<ListOrder>("order", "Column to sort by, with - in front for descending.")
        .query::<bool>("deleted", "True to list deleted insights, the last deleted first.")
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

async fn list(
    State(app): State<App>,
    access: ReadAccess<InProject>,
    page: PageParams,
) -> ApiResult {
    let options = parameters::list_options(page.query(), app.now())?;
    page.with_scan(options.scans())
        .respond(access, move |tx, at, page| {
            super::list(tx, &at.tenant, &options, page.window(Order::Ascending))
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
    let (named, options) = (id?, options(&query)?);
    let body = move |tx: &BoundedRead<'_>, at: &ReadAccess<InProject>| {
        let id = Insight::get_live(tx, at.tenant.project.id, &named)?.id;
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
        let show_deleted = patch.deletes();
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

/// Reads what the response to GET shows.
fn options(query: &QueryParams) -> Result<ResponseOptions> {
    for name in ["filters_override", "variables_override"] {
        if query.last(name).is_some_and(|text| !is_json(text)) {
            let detail = format!("Invalid JSON passed in {name} parameter");
            return Err(Error::field(name, "invalid_input", detail));
        }
    }
    Ok(ResponseOptions {
        show_deleted: false,
        basic: query.read::<Flag>("basic")?.unwrap_or(false),
        from_dashboard: query.read::<Identifier>("from_dashboard")?.map(DashboardId),
    })
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
