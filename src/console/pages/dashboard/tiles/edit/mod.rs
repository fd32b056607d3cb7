//! The text, the color and the description of a tile.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::console::api::Versioned;
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, with_notice};
use crate::console::pages::dashboard::rights::name_in;
use crate::console::pages::dashboard::tile::COLORS;
use crate::console::pages::number;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::pages::shareable::{DASHBOARD, Rights};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::UPDATE;

const TILE: &str = "/console/projects/{project_id}/dashboards/{id}/tiles/{tile_id}/";

const COLOR: Input = Input::new("tiles.0.color").label("Color").choices(COLORS);

const TEXT: FormSpec = FormSpec::change(
    "Save",
    &[Input::new("tiles.0.text.body").label("Text").hint("Markdown.").markdown(), COLOR],
);

const INSIGHT: FormSpec = FormSpec::change(
    "Save",
    &[COLOR, Input::new("tiles.0.show_description").label("Show the description of the insight")],
);

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, TILE, page);
    pages.signed_in(Method::POST, TILE, save);
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/tiles/edit/page.html")]
struct TilePage {
    object: ObjectPath,
    name: String,
    tile: String,
    form: Form,
}

/// The ids in the path of the page.
struct TilePath {
    dashboard: ObjectPath,
    /// The id of the tile.
    tile: String,
}

impl TilePath {
    fn of(request: &SignedIn) -> Result<Self> {
        let dashboard = ObjectPath::of(&request.visit, DASHBOARDS)?;
        Ok(Self { dashboard, tile: number(&request.visit, "tile_id")? })
    }

    fn page(&self) -> String {
        self.dashboard.page(&format!("tiles/{}/", self.tile))
    }

    /// Reads the dashboard without its other tiles, the rights on it, and its name.
    async fn load(&self, request: &SignedIn) -> Result<(Versioned, Rights, String)> {
        let mut found = request.api.get_versioned(&self.dashboard.api("")).await?;
        let rights = Rights::deserialize(&found.body).map_err(Error::internal)?;
        let name = name_in(&found.body);
        found.body = only_tile(&found.body, &self.tile);
        if found.body.pointer("/tiles/0").is_none() {
            return Err(Error::not_found_as("The dashboard has no such tile."));
        }
        Ok((found, rights, name))
    }
}

/// Returns a dashboard with this tile alone.
fn only_tile(dashboard: &Value, id: &str) -> Value {
    let tiles = dashboard.get("tiles").and_then(Value::as_array);
    let id = id.parse::<u64>().ok();
    let has_id = |tile: &&Value| tile.get("id").is_some_and(|known| known.as_u64() == id);
    let found: Vec<_> = tiles.into_iter().flatten().filter(has_id).collect();
    json!({ "tiles": found })
}

fn form_of(dashboard: &Value) -> &'static FormSpec {
    let insight = dashboard.pointer("/tiles/0/insight");
    if insight.is_none_or(Value::is_null) { &TEXT } else { &INSIGHT }
}

async fn page(request: SignedIn) -> PageResult {
    let path = TilePath::of(&request)?;
    let (found, rights, name) = path.load(&request).await?;
    let operation = path.dashboard.operation(UPDATE);
    let form = form_of(&found.body).filled(&request, &operation, &path.page(), &found)?;
    let refusal = DASHBOARD.refusal(&request, &path.dashboard.tenant, &rights).await?;
    show(&request, path, name, form.refused_for(refusal)).await
}

async fn save(request: SignedIn) -> PageResult {
    let path = TilePath::of(&request)?;
    let (found, _, name) = path.load(&request).await?;
    let spec = form_of(&found.body);
    let id = path.tile.clone();
    let sent = spec.sent(&request, path.dashboard.operation(UPDATE), &path.page())?;
    let mut sent = sent.with_view(move |dashboard| only_tile(&dashboard, &id));
    if let Some(Value::Object(tile)) = sent.body.get_mut("tiles").and_then(|all| all.get_mut(0)) {
        tile.insert("id".to_owned(), path.tile.parse::<u64>().unwrap_or_default().into());
    }
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&path.dashboard.page(""), "tile-saved"))?),
        Outcome::Again(form) => show(&request, path, name, *form).await,
    }
}

async fn show(request: &SignedIn, path: TilePath, name: String, form: Form) -> PageResult {
    let TilePath { dashboard: object, tile } = path;
    let frame = object.frame(request).await?.titled("Edit the tile");
    let status = form.status();
    Ok(layout::page_with_status(&frame, &TilePage { object, name, tile, form }, status)?)
}
