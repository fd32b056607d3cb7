//! `/api/projects/:project_id/insights/`.

use std::collections::BTreeSet;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::schema::ArrayBuilder;

use crate::base::json;
use crate::http::prelude::*;
use crate::input::{DateTime, Flag, Identifier, Integer};
use crate::resources::access_controls::shared::Shared;
use crate::resources::dashboards::insights::{Insight, InsightBody, InsightRef};
use crate::resources::shared::prelude::*;

use super::api::{AnyInsight, ListedInsight};
use super::filter::{Filter, QueryType, TimeRange};
use super::list::ListOptions;
use super::order::ListOrder;
use super::{InsightFields, ResponseOptions};

const LIST: &str = "/api/projects/{project_id}/insights/";
const ONE: &str = "/api/projects/{project_id}/insights/{id}/";
/// Maximum length of `search`, in characters.
const MAX_SEARCH: usize = 200;

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

async fn list(at: ReadAccess<InProject>, page: PageParams) -> ApiResult {
    let options = list_options(page.query(), at.app.now())?;
    page.with_scan(options.scans())
        .respond(at, move |tx, at, page| {
            super::list(tx, &at.tenant, &options, page.window(Order::Ascending))
        })
        .await
}

async fn create(at: WriteAccess<InProject>, JsonBody(sent): JsonBody) -> ApiResult {
    let (new, seed) = (super::parse(&sent), at.app.seed());
    at.post(move |tx, _, tenant: &InProject, now| {
        let id = super::create(tx, tenant, &new, &mut seed.rng(), now)?;
        super::body(tx, tenant, id, ResponseOptions::default()).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve(
    at: ReadAccess<InProject>,
    PathId(id): PathId<InsightRef>,
    query: QueryParams,
) -> ApiResult {
    let (named, options) = (id?, options(&query)?);
    let read = at.read(move |tx, at| {
        let id = Insight::get_live(tx, at.tenant.project.id, &named)?.id;
        super::body(tx, &at.tenant, id, options)
    });
    read.await.map(ApiResponse::Object)
}

async fn update(
    at: WriteAccess<InProject>,
    PathId(id): PathId<InsightRef>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, patch, deleted) = (id?, super::parse(&sent), Flag::peek(&sent, "deleted"));
    at.update::<Insight>(move |tx, _, tenant: &InProject, now| {
        let id = super::update(tx, tenant, &id, &patch, deleted, now)?;
        let show_deleted = deleted == Some(true);
        let options = ResponseOptions { show_deleted, ..ResponseOptions::default() };
        Ok(((tenant.project.id, id), super::body(tx, tenant, id, options)?))
    })
    .await
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

/// Reads what a list shows.
///
/// # Errors
/// 400 with the name of the first parameter that has an invalid value.
fn list_options(query: &QueryParams, now: Timestamp) -> Result<ListOptions> {
    let range = |from, until| {
        Ok::<_, Error>(TimeRange {
            from: moment(query, from, now)?,
            until: moment(query, until, now)?,
        })
    };
    let filter = Filter {
        search: search(query.text("search"))?,
        tags: query.tags("tags")?,
        short_id: query.text("short_id").map(str::to_owned),
        saved: query.read::<Flag>("saved")?,
        favorited: is_present(query, "favorited")?,
        mine: query.text("user") == Some("@me") || is_present(query, "user")?,
        created_by: query
            .read::<Numbers>("created_by")?
            .map(|ids| ids.into_iter().map(UserId).collect()),
        dashboards: query
            .read::<Numbers>("dashboards")?
            .map(|ids| ids.into_iter().map(DashboardId).collect())
            .unwrap_or_default(),
        query: query.read::<QueryType>("insight")?,
        modified: range("date_from", "date_to")?,
        created: range("created_date_from", "created_date_to")?,
        deleted: query.read::<Flag>("deleted")?.unwrap_or(false),
    };
    let order = query.read::<ListOrder>("order")?.unwrap_or_default();
    Ok(ListOptions { filter, order, basic: query.read::<Flag>("basic")?.unwrap_or(false) })
}

/// Returns whether a parameter is in the query, with either boolean.
fn is_present(query: &QueryParams, name: &str) -> Result<bool> {
    query.read::<Flag>(name)?;
    Ok(query.last(name).is_some())
}

fn search(text: Option<&str>) -> Result<Option<String>> {
    if text.is_some_and(|text| text.chars().count() > MAX_SEARCH) {
        let detail = "Search query must be 200 characters or fewer.";
        return Err(Error::field("search", "invalid_input", detail));
    }
    Ok(text.map(str::to_lowercase))
}

/// A JSON array of numbers, or a number, in a text.
struct Numbers;

impl FieldType for Numbers {
    type Value = BTreeSet<u64>;

    fn read(value: &Value) -> Result<BTreeSet<u64>> {
        let sent = value.as_str().and_then(|text| json::parse(text.as_bytes()).ok());
        let items = match sent {
            Some(Value::Array(items)) => items,
            Some(number @ Value::Number(_)) => vec![number],
            _ => vec![Value::Null],
        };
        let numbers =
            items.iter().map(|item| Ok(Integer::<0, { i64::MAX }>::read(item)?.unsigned_abs()));
        numbers
            .collect::<Result<_>>()
            .map_err(|_| Error::invalid("invalid_input", "Must be a JSON array of numbers."))
    }

    fn schema() -> Schema {
        ArrayBuilder::new().items(RefOr::T(Integer::<0, { i64::MAX }>::schema())).into()
    }
}

/// Reads a time: an absolute one, `dStart` for the beginning of the day, or a time before now such as `-7d`.
fn moment(query: &QueryParams, name: &str, now: Timestamp) -> Result<Option<Timestamp>> {
    let relative = match query.text(name) {
        Some("dStart") => Timestamp::parse(&now.day()),
        Some(text) => text.strip_prefix('-').and_then(|ago| now.before(ago)),
        None => None,
    };
    if relative.is_some() { Ok(relative) } else { query.read::<DateTime>(name) }
}
