//! One dashboard, read-only: its tiles on the grid that their layouts describe.

mod grid;
mod tile;

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::console::layout::{self, Command, Frame, In, Section};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;
use crate::low_priority::{Priority, run_low_priority};

use tile::{Card, Tile};

const DASHBOARD: &str = "/console/projects/{project_id}/dashboards/{id}/";

/// With more tiles than this, the page is rendered on a thread of its own.
const MAX_INLINE_TILES: usize = 16;

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, DASHBOARD, page);
}

#[derive(Deserialize)]
struct Dashboard {
    name: Option<String>,
    description: String,
    is_shared: bool,
    tags: Vec<String>,
    restriction_level: u8,
    tiles: Vec<Tile>,
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/page.html")]
struct DashboardPage {
    title: String,
    base: String,
    description: String,
    tags: Vec<String>,
    is_restricted: bool,
    is_shared: bool,
    cards: Vec<Card>,
    command: Command,
}

async fn page(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    let id = request.visit.parameter("id").parse::<u64>().map_err(|_| Error::not_found())?;
    let path = format!("/api/projects/{project}/dashboards/{id}/");
    let found: Dashboard = request.api.get(&path).await?;
    let frame = Frame::load(&request, Section::Dashboards, In::Project(&project)).await?;
    let command = Command::get(&request.visit, &path);
    let name = super::name_or(found.name.as_deref(), "Untitled dashboard").to_owned();
    let is_long = found.tiles.len() > MAX_INLINE_TILES;
    let frame = frame.titled(name);
    let render = move || {
        let style = grid::style(&found.tiles);
        let page = DashboardPage {
            title: frame.title.clone(),
            base: format!("/console/projects/{project}/dashboards/"),
            description: found.description.trim().to_owned(),
            tags: found.tags,
            is_restricted: found.restriction_level == 37,
            is_shared: found.is_shared,
            cards: tile::cards(found.tiles),
            command,
        };
        layout::page_with_style(&frame, &page, &style)
    };
    let page = if is_long { run_low_priority(Priority::Answer, render).await? } else { render() };
    Ok(page?)
}
