//! `/api/projects/:project_id/dashboards/`.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::access::{Admitted, Caller, Changing, InProject, Needs};
use crate::error::Result;
use crate::etag::Versioned;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::page::Page;
use crate::http::path::Id;
use crate::http::routes::Routes;
use crate::ids::DashboardId;
use crate::input::{Flag, Kind, Parsed, Tags};
use crate::secret::Seed;
use crate::state::{App, Created, LargeAnswer};
use crate::store::{BoundedRead, Order, Snapshot, WriteTx};

use super::body::{DashboardBody, DashboardSummary};
use super::templates::{self, FromTemplate};
use super::tiles::{self, TileMove};
use super::{CreationModes, Dashboard, DashboardPatch, Filter, Maker, NewDashboard, Once, Sent};

const LIST: &str = "/api/projects/{project_id}/dashboards/";
const FROM_TEMPLATE: &str = "/api/projects/{project_id}/dashboards/create_from_template_json/";
const ONE: &str = "/api/projects/{project_id}/dashboards/{id}/";
const MOVE: &str = "/api/projects/{project_id}/dashboards/{id}/move_tile/";

/// An example of a template.
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

/// The routes of dashboards.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("dashboard:read");
    let write = Needs::scope("dashboard:write");
    routes.noun("dashboards", "Dashboards of a project, with what stands on them.");
    routes
        .get(LIST, "dashboards_list", read, list)
        .summary("List the dashboards of a project: pinned first, then by name.")
        .query::<String>("search", "Only those whose name or description contains this.")
        .query::<Vec<String>>("tags", "Only dashboards with at least one of these tags.")
        .query::<bool>("pinned", "Only those that are pinned, or are not.")
        .query::<CreationModes>("creation_mode", "Only those made so.")
        .query::<String>("created_by", "Only those of this user: a number, a UUID, or `@me`.")
        .query::<bool>("deleted", "True for the removed ones, newest removal first.")
        .lists::<DashboardSummary>();
    routes
        .post(LIST, "dashboards_create", write, create)
        .summary("Make a dashboard: empty, from a template, or as a copy of another.")
        .takes::<NewDashboard>()
        .example(r#"{"name": "Sales", "tags": ["weekly"], "pinned": true}"#)
        .answers::<DashboardBody>(201);
    routes
        .post(
            FROM_TEMPLATE,
            "dashboards_create_from_template_json_create",
            write,
            create_from_template,
        )
        .summary("Make a dashboard from a template of your own.")
        .takes::<FromTemplate>()
        .example(TEMPLATE)
        .answers::<DashboardBody>(200);
    routes
        .get(ONE, "dashboards_retrieve", read, retrieve)
        .summary("Retrieve a dashboard with its tiles.")
        .id::<DashboardId>()
        .answers::<DashboardBody>(200);
    routes
        .patch(ONE, "dashboards_partial_update", write, update)
        .summary("Change a dashboard and its tiles; remove it with `deleted`, or bring it back.")
        .id::<DashboardId>()
        .takes::<DashboardPatch>()
        .example(r#"{"description": "What came in this week", "restriction_level": 37}"#)
        .answers::<DashboardBody>(200);
    routes
        .delete(ONE, "dashboards_destroy", write, destroy)
        .summary("Refused: a dashboard is removed by PATCH.")
        .id::<DashboardId>()
        .empty(405);
    routes
        .patch(MOVE, "dashboards_move_tile_partial_update", write, move_tile)
        .summary("Move a tile to another dashboard of the project.")
        .id::<DashboardId>()
        .takes::<TileMove>()
        .example(r#"{"tile": {"id": 3}, "toDashboard": 2}"#);
}

async fn list(at: Admitted<InProject>, page: Page) -> Answered {
    let filter = filter(&page);
    page.walking(filter.narrows())
        .answer(at, move |tx, at, page| {
            super::list(tx, &at.place, &filter, page.window(Order::Ascending))
        })
        .await
}

async fn create(State(app): State<App>, at: Changing<InProject>, Body(sent): Body) -> Answered {
    let new = Sent::<NewDashboard>::of(&sent);
    let seed = Seed::take();
    let rule = move |tx: &mut WriteTx<'_>,
                     caller: &Caller,
                     place: &InProject,
                     now,
                     large: &LargeAnswer| {
        if super::copies_heavy(tx, place, &new)? {
            large.require_slot()?;
        }
        let id = super::create(tx, caller, place, &new, &mut seed.draw(), now)?;
        created(tx, place, id, 201, large)
    };
    app.post_and_render(&at, rule, render).await
}

async fn create_from_template(
    State(app): State<App>,
    at: Changing<InProject>,
    Body(sent): Body,
) -> Answered {
    let sent = Parsed::<FromTemplate>::of(&sent);
    let seed = Seed::take();
    let rule = move |tx: &mut WriteTx<'_>,
                     caller: &Caller,
                     place: &InProject,
                     now,
                     large: &LargeAnswer| {
        large.require_slot()?;
        let id = templates::create(tx, caller, place, &sent, &mut seed.draw(), now)?;
        created(tx, place, id, 200, large)
    };
    app.post_and_render(&at, rule, render).await
}

/// A dashboard that was created, with its body unless that is large.
fn created(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    id: DashboardId,
    status: u16,
    large: &LargeAnswer,
) -> Result<Created> {
    let body = super::body_of_write(tx, place, id, Once::default())?;
    if body.is_none() {
        large.require_slot()?;
    }
    Ok(Created { status, id: id.0, body })
}

/// Renders a dashboard that was created from the state that the commit left.
fn render(tx: &Snapshot, place: &InProject, id: u64) -> Result<Versioned> {
    super::body(tx, place, DashboardId(id), Once::default())
}

async fn retrieve(
    State(app): State<App>,
    at: Admitted<InProject>,
    Id(id): Id<DashboardId>,
) -> Answered {
    let id = id?;
    let body = move |tx: &BoundedRead<'_>, at: &Admitted<InProject>| {
        super::body(tx, &at.place, id, Once::default())
    };
    app.long_reads().read(at, body).await.map(Answer::Shown)
}

async fn update(
    State(app): State<App>,
    at: Changing<InProject>,
    Id(id): Id<DashboardId>,
    Body(sent): Body,
) -> Answered {
    let (id, patch) = (id?, Sent::<DashboardPatch>::of(&sent));
    let (seed, expected) = (Seed::take(), at.expected.clone());
    let once = patch.get().map(Once::of).unwrap_or_default();
    let rule =
        move |tx: &mut WriteTx<'_>, _: &Caller, place: &InProject, now, large: &LargeAnswer| {
            if super::is_heavy(tx, place.project.id, id)? {
                large.require_slot()?;
            }
            super::update(tx, place, id, &patch, &mut seed.draw(), now)?;
            expected.require::<Dashboard>(tx, &(place.project.id, id))?;
            let body = super::body_of_write(tx, place, id, once)?;
            if body.is_none() {
                large.require_slot()?;
            }
            Ok(body)
        };
    let render =
        move |tx: &Snapshot, _: &Caller, place: &InProject| super::body(tx, place, id, once);
    app.change_and_render(&at, rule, render).await.map(Answer::Shown)
}

/// A dashboard is removed only by PATCH; a DELETE is refused whatever the id (API document, Errors).
async fn destroy(_: Admitted<InProject>) -> Response {
    const ALLOW: HeaderValue = HeaderValue::from_static("GET, PATCH, HEAD, OPTIONS");
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, ALLOW)]).into_response()
}

async fn move_tile(
    State(app): State<App>,
    at: Changing<InProject>,
    Id(id): Id<DashboardId>,
    Body(sent): Body,
) -> Answered {
    let (id, sent) = (id?, Parsed::<TileMove>::of(&sent));
    let expected = at.expected.clone();
    app.change(&at, move |tx, _, place: &InProject, _| {
        tiles::move_tile(tx, place, id, &sent)?;
        expected.require::<Dashboard>(tx, &(place.project.id, id))
    })
    .await?;
    Ok(Answer::Empty)
}

/// What the query asks for. A value that is none is passed over, as a limit is.
fn filter(page: &Page) -> Filter {
    let value = |name| page.parameter(name).map(str::trim).filter(|text| !text.is_empty());
    let flag = |name| value(name).and_then(|text| Flag::read(&text.into()).ok());
    let tags = page.parameters("tags").filter_map(|text| Tags::read(&vec![text].into()).ok());
    let tags: BTreeSet<String> = tags.flatten().collect();
    Filter {
        search: value("search").map(str::to_lowercase),
        tags: tags.into_iter().collect(),
        pinned: flag("pinned"),
        creation_mode: value("creation_mode").and_then(Filter::creation_mode),
        created_by: value("created_by").and_then(Maker::parse),
        deleted: flag("deleted") == Some(true),
    }
}
