//! Arranges the tiles of a dashboard: by numbers in a form, or with the script by mouse and by keyboard.

mod numbers;

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::console::assets::icon;
use crate::console::form::VERSION;
use crate::console::layout::{self, with_notice};
use crate::console::operation::Write;
use crate::console::pages::dashboard_name;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::pages::shareable::{DASHBOARD, Rights};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};
use crate::low_priority::{Priority, run_low_priority};

use super::grid;
use super::tile::Tile;
use numbers::Row;

const ARRANGE: &str = "/console/projects/{project_id}/dashboards/{id}/arrange/";

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, ARRANGE, page);
    pages.signed_in(Method::POST, ARRANGE, save);
}

#[derive(Deserialize)]
struct Dashboard {
    name: Option<String>,
    tiles: Vec<Tile>,
    #[serde(flatten)]
    rights: Rights,
}

/// The dashboard with the form.
struct Arrangement {
    object: ObjectPath,
    name: String,
    version: Option<String>,
    tiles: Vec<Tile>,
    rights: Rights,
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/arrange/page.html")]
struct ArrangePage {
    object: ObjectPath,
    name: String,
    version: Option<String>,
    rows: Vec<Row>,
    /// Why the session cannot arrange them.
    refusal: Option<String>,
    error: Option<String>,
}

impl Arrangement {
    async fn load(request: &SignedIn) -> Result<Self> {
        let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
        let found = request.api.get_versioned(&object.api("")).await?;
        let Dashboard { name, tiles, rights } = found.read()?;
        let name = dashboard_name(name.as_deref()).to_owned();
        let areas = grid::areas(&tiles);
        let rows = tiles.iter().zip(areas);
        let rows = rows.map(|(tile, area)| Row::of(tile, area)).collect();
        Ok(Self { object, name, version: found.version, tiles, rights, rows })
    }

    /// Returns the request that stores the numbers of the form, or `None` if the form has the numbers that the page is
    /// filled with. A change of one tile stores all areas that differ, because the page shows tiles moved up.
    fn write(&self, version: Option<&str>) -> Option<Write> {
        if !self.rows.iter().any(Row::is_changed) {
            return None;
        }
        let tiles = self.tiles.iter().zip(&self.rows);
        let changes = tiles.filter_map(|(tile, row)| {
            let layouts = row.layouts(&tile.layouts);
            (layouts != tile.layouts).then(|| json!({ "id": tile.id, "layouts": layouts }))
        });
        let changes: Vec<Value> = changes.collect();
        let mut write = self.object.write("dashboards_partial_update");
        write.version = version.map(str::to_owned);
        (!changes.is_empty()).then(|| write.body(json!({ "tiles": changes })))
    }
}

async fn page(request: SignedIn) -> PageResult {
    let arrangement = Arrangement::load(&request).await?;
    show(&request, arrangement, StatusCode::OK, None).await
}

async fn save(request: SignedIn) -> PageResult {
    let mut arrangement = Arrangement::load(&request).await?;
    let form = &request.visit.form;
    for row in &mut arrangement.rows {
        row.read(form);
    }
    // Until the API refuses the version of the form, the page keeps it.
    let current = arrangement.version.take();
    let sent = form.value(VERSION);
    arrangement.version = (!sent.is_empty()).then(|| sent.to_owned());
    if arrangement.rows.iter().any(Row::is_wrong) {
        let error = "Some numbers are not valid. Nothing is saved yet.".to_owned();
        return show(&request, arrangement, StatusCode::BAD_REQUEST, Some(error)).await;
    }
    let write = arrangement.write(arrangement.version.as_deref());
    let done = with_notice(&arrangement.object.page(""), "arrangement-saved");
    let Some(write) = write else { return Ok(see_other(&done)?) };
    match request.api.attempt(&write).await? {
        Ok(_) => Ok(see_other(&done)?),
        Err(error) => {
            let status = StatusCode::from_u16(error.status()).unwrap_or_default();
            let detail = if error.status() == 412 {
                arrangement.version = current;
                "Somebody has changed the dashboard since you opened the page. Your numbers stand \
                 below; nothing is saved yet. Save again to store them."
            } else {
                error.detail()
            };
            show(&request, arrangement, status, Some(detail.to_owned())).await
        }
    }
}

async fn show(
    request: &SignedIn,
    arrangement: Arrangement,
    status: StatusCode,
    error: Option<String>,
) -> PageResult {
    let Arrangement { object, name, version, tiles, rights, rows } = arrangement;
    let frame = object.frame(request).await?;
    let frame = frame.titled("Arrange the tiles");
    let refusal = DASHBOARD.refusal(request, &object.tenant, &rights).await?;
    let render = move || {
        let style = grid::style_everywhere(&tiles);
        let page = ArrangePage { object, name, version, rows, refusal, error };
        let mut page = layout::page_with_style(&frame, &page, &style)?;
        *page.status_mut() = status;
        Ok::<_, Error>(page)
    };
    Ok(run_low_priority(Priority::Answer, render).await??)
}
