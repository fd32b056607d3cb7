//! `/api/projects/:project_id/dashboards/`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;

use crate::app::LargeResponse;
use crate::http::prelude::*;
use crate::ids::DashboardId;
use crate::input::{Choice, Flag, Schema};
use crate::store::WriteTx;

use super::api::{DashboardBody, DashboardSummary};
use super::templates::{self, FromTemplate};
use super::tiles::{self, DeletedTileBody, TileMove};
use super::{
    CreatedByFilter, CreationModes, Dashboard, DashboardPatch, Filter, NewDashboard,
    ResponseOptions,
};

const LIST: &str = "/api/projects/{project_id}/dashboards/";
const FROM_TEMPLATE: &str = "/api/projects/{project_id}/dashboards/create_from_template_json/";
const ONE: &str = "/api/projects/{project_id}/dashboards/{id}/";
const DELETED_TILES: &str = "/api/projects/{project_id}/dashboards/{id}/deleted_tiles/";
const MOVE: &str = "/api/projects/{project_id}/dashboards/{id}/move_tile/";

/// Example of a template in a request.
const TEMPLATE: &str = r##"{
    "template": {
        "template_name": "Traffic",
        "dashboard_description": "Who came",
        "dashboard_filters": {"date_from": "-30d"},
        "tiles": [
            {"type": "TEXT", "body": "# This week", "layouts": {"sm": {"x": 0, "y": 0, "w": 6, "h": 5}}},
            {"type": "INSIGHT", "name": "Visitors", "query": {"kind": "TrendsQuery"}, "color": "blue"}
        ]
    }
}"##;

/// Adds the routes of dashboards.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("dashboard:read");
    let write = Requirements::scope("dashboard:write");
    routes.resource("dashboards", "Dashboards of a project, with their tiles.");
    routes
        .get(LIST, "dashboards_list", read, list)
        .summary("List the dashboards of a project: pinned first, then by name.")
        .query::<String>("search", "Only dashboards whose name or description contains this text.")
        .query::<Vec<String>>("tags", "Only dashboards with at least one of these tags.")
        .query::<bool>("pinned", "Only pinned dashboards, or only those that are not pinned.")
        .query::<CreationModes>("creation_mode", "Only dashboards created in this way.")
        .query::<String>(
            "created_by",
            "Only dashboards that this user created: an ID, a UUID, or `@me`.",
        )
        .query::<bool>("deleted", "True to list deleted dashboards, the last deleted first.")
        .returns_page::<DashboardSummary>();
    routes
        .post(LIST, "dashboards_create", write, create)
        .summary("Create a dashboard: empty, from a template, or as a copy of another dashboard.")
        .body::<NewDashboard>()
        .example(r#"{"name": "Sales", "tags": ["weekly"], "pinned": true}"#)
        .returns::<DashboardBody>(201);
    let operation = "dashboards_create_from_template_json_create";
    routes
        .post(FROM_TEMPLATE, operation, write, create_from_template)
        .summary("Create a dashboard from a template in the request.")
        .body::<FromTemplate>()
        .example(TEMPLATE)
        .returns::<DashboardBody>(200);
    routes
        .get(ONE, "dashboards_retrieve", read, retrieve)
        .summary("Retrieve a dashboard with its tiles.")
        .id::<DashboardId>()
        .returns::<DashboardBody>(200);
    routes
        .patch(ONE, "dashboards_partial_update", write, update)
        .summary("Update a dashboard and its tiles; delete or restore it with `deleted`.")
        .id::<DashboardId>()
        .body::<DashboardPatch>()
        .example(r#"{"description": "What came in this week", "restriction_level": 37}"#)
        .returns::<DashboardBody>(200);
    routes
        .delete(ONE, "dashboards_destroy", write, destroy)
        .summary("Not allowed: to delete a dashboard, PATCH `deleted` to true.")
        .id::<DashboardId>()
        .returns_empty(405);
    routes
        .get(DELETED_TILES, "dashboards_deleted_tiles_list", read, list_deleted_tiles)
        .summary("List the deleted tiles of a dashboard that you may edit, the newest tile first.")
        .id::<DashboardId>()
        .returns_page::<DeletedTileBody>();
    routes
        .patch(MOVE, "dashboards_move_tile_partial_update", write, move_tile)
        .summary("Move a tile to another dashboard of the project.")
        .id::<DashboardId>()
        .body::<TileMove>()
        .example(r#"{"tile": {"id": 3}, "toDashboard": 2}"#);
}

async fn list(at: ReadAccess<InProject>, page: PageParams) -> ApiResult {
    let filter = filter(page.query())?;
    page.with_scan(filter.narrows())
        .respond(at, move |tx, at, page| {
            super::list(tx, &at.tenant, &filter, page.window(Order::Ascending))
        })
        .await
}

async fn create(at: WriteAccess<InProject>, JsonBody(sent): JsonBody) -> ApiResult {
    let (new, seed) = (Parsed::<NewDashboard>::new(&sent), at.app.seed());
    at.post_and_render(
        201,
        move |tx, caller, tenant: &InProject, now, large| {
            large.require_reserved(super::large_copy(tx, tenant, &new)?)?;
            let id = super::create(tx, caller, tenant, &new, &mut seed.rng(), now)?;
            created(tx, tenant, id, large)
        },
        render,
    )
    .await
}

async fn create_from_template(at: WriteAccess<InProject>, JsonBody(sent): JsonBody) -> ApiResult {
    let (sent, seed) = (Parsed::<FromTemplate>::new(&sent), at.app.seed());
    at.post_and_render(
        200,
        move |tx, caller, tenant: &InProject, now, large| {
            large.require_reserved(Some(0))?;
            let id = templates::create(tx, caller, tenant, &sent, &mut seed.rng(), now)?;
            created(tx, tenant, id, large)
        },
        render,
    )
    .await
}

/// Returns the id of a created dashboard, and whether its response is large, after the checks of [`is_large`].
fn created(
    tx: &WriteTx<'_>,
    tenant: &InProject,
    id: DashboardId,
    large: &LargeResponse,
) -> Result<(u64, bool)> {
    Ok((id.0, is_large(tx, tenant, id, ResponseOptions::default(), large)?))
}

/// Returns whether the response to a write is large, after a check that it can be rendered later.
fn is_large(
    tx: &WriteTx<'_>,
    tenant: &InProject,
    id: DashboardId,
    options: ResponseOptions,
    large: &LargeResponse,
) -> Result<bool> {
    let size = super::large_answer(tx, tenant.project.id, id)?;
    large.require_reserved(size)?;
    if size.is_some() {
        super::require_shown(tx, tenant, id, options)?;
    }
    Ok(size.is_some())
}

/// Renders a created dashboard.
fn render(tx: &dyn Raw, _: &Caller, tenant: &InProject, id: u64) -> Result<Versioned> {
    super::body(tx, tenant, DashboardId(id), ResponseOptions::default())
}

async fn retrieve(at: ReadAccess<InProject>, PathId(id): PathId<DashboardId>) -> ApiResult {
    let (id, options) = (id?, ResponseOptions::default());
    at.read(move |tx, at| super::body(tx, &at.tenant, id, options)).await.map(ApiResponse::Object)
}

async fn update(
    at: WriteAccess<InProject>,
    PathId(id): PathId<DashboardId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, seed, deleted) = (id?, at.app.seed(), Flag::peek(&sent, "deleted"));
    let patch = Parsed::<DashboardPatch>::new(&sent);
    let once = patch.get().map(ResponseOptions::of).unwrap_or_default();
    at.update_and_render::<Dashboard>(
        move |tx, _, tenant: &InProject, now, large| {
            large.require_reserved(super::large_answer(tx, tenant.project.id, id)?)?;
            super::update(tx, tenant, id, &patch, deleted, &mut seed.rng(), now)?;
            Ok(((tenant.project.id, id), is_large(tx, tenant, id, once, large)?))
        },
        move |tx, _, tenant| super::body(tx, tenant, id, once),
    )
    .await
}

/// Answers 405 for every ID, as PostHog does: a dashboard is deleted by PATCH.
async fn destroy(_: ReadAccess<InProject>) -> Response {
    const ALLOW: HeaderValue = HeaderValue::from_static("GET, PATCH, HEAD, OPTIONS");
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, ALLOW)]).into_response()
}

async fn list_deleted_tiles(
    at: ReadAccess<InProject>,
    PathId(id): PathId<DashboardId>,
    page: PageParams,
) -> ApiResult {
    let id = id?;
    page.respond(at, move |tx, at, page| {
        tiles::list_deleted(tx, &at.tenant, id, page.window(Order::Descending))
    })
    .await
}

async fn move_tile(
    at: WriteAccess<InProject>,
    PathId(id): PathId<DashboardId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, sent) = (id?, Parsed::<TileMove>::new(&sent));
    let expected = at.if_match.clone();
    at.change(move |tx, _, tenant: &InProject, _| {
        tiles::move_tile(tx, tenant, id, &sent)?;
        expected.require::<Dashboard>(tx, &(tenant.project.id, id))
    })
    .await?;
    Ok(ApiResponse::Empty)
}

/// Reads the filter from the query.
fn filter(query: &QueryParams) -> Result<Filter> {
    Ok(Filter {
        search: query.text("search").map(str::to_lowercase),
        tags: query.tags("tags")?,
        pinned: query.read::<Flag>("pinned")?,
        creation_mode: query.read::<Choice<CreationModes>>("creation_mode")?,
        created_by: query.read::<CreatedByFilter>("created_by")?,
        deleted: query.read::<Flag>("deleted")?.unwrap_or(false),
    })
}

impl PathParameter for DashboardId {
    const NAME: &'static str = "dashboard_id";
    const DESCRIPTION: &'static str = "The id of the dashboard.";

    fn schema() -> RefOr<Schema> {
        <Self as PartialSchema>::schema()
    }

    /// The 404 has the message of these routes.
    fn parse(text: &str) -> Result<Self> {
        text.parse().map_err(|_| Error::not_found_as("Dashboard not found."))
    }
}
