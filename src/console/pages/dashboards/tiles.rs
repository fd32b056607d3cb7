//! The pages that change the tiles of a dashboard.

use crate::console::pages::prelude::*;
use crate::console::pages::shareable::DASHBOARD;

use super::dashboard_choices;
use super::forms::{name_in, name_of, name_version_and_refusal};
use super::tile::COLORS;

const TEXT: Input =
    Input::new("tiles.0.text.body").label("Text").hint("Markdown.").shape(Shape::Markdown);
const COLOR: Input = Input::new("tiles.0.color").label("Color").choices(COLORS);

const NEW_FORM: FormSpec = FormSpec::create("Add the text", &[TEXT, COLOR]);

pub(super) async fn new(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let (update, action) = (object.operation(DASHBOARD.update), object.page("tiles/new/"));
    let (form, name) = if request.visit.sends_form() {
        // The form shows no tile that the dashboard has.
        let mut sent = NEW_FORM.sent(&request, update, &action)?.with_view(|_| Value::Null);
        if sent.text("tiles.0.text.body").trim().is_empty() {
            sent.set_error("tiles.0.text.body", "Enter a text.");
        }
        let text = sent.body.get("tiles").and_then(|tiles| tiles.pointer("/0/text/body")).cloned();
        let Err(form) = sent.send(&request).await? else {
            return finish(&object.page(""), "text-added");
        };
        let is_stale = form.status == StatusCode::PRECONDITION_FAILED;
        if is_stale && newest_text(&request, &object).await? == text {
            // The form was sent twice.
            return finish(&object.page(""), "text-added");
        }
        (*form, name_of(&request, &object).await?)
    } else {
        let (name, version, refusal) = name_version_and_refusal(&request, &object).await?;
        // With the version, a text that is sent twice is added once.
        let empty = Versioned { body: Value::Null, version };
        (NEW_FORM.filled(&request, &update, &action, &empty)?.refused_for(refusal), name)
    };
    FormPage::new("Add a text", form).of_dashboard(&object, name).show(&request).await
}

/// Returns the text of the newest tile, if it has one.
async fn newest_text(request: &SignedIn, object: &ObjectPath) -> Result<Option<Value>> {
    let dashboard: Value = request.api.get(&object.api("")).await.read()?;
    let tiles = dashboard.get("tiles").and_then(Value::as_array).into_iter().flatten();
    let newest = tiles.max_by_key(|tile| tile.get("id").and_then(Value::as_u64));
    Ok(newest.and_then(|tile| tile.pointer("/text/body")).cloned())
}

const TEXT_FORM: FormSpec = FormSpec::change("Save", &[TEXT, COLOR]);

const INSIGHT_FORM: FormSpec = FormSpec::change(
    "Save",
    &[COLOR, Input::new("tiles.0.show_description").label("Show the description of the insight")],
);

/// The ids in the path of the page.
struct TilePath {
    dashboard: ObjectPath,
    /// The id of the tile.
    tile: u64,
}

impl TilePath {
    fn of(request: &SignedIn) -> Result<Self> {
        let dashboard = ObjectPath::of(&request.visit, DASHBOARDS)?;
        let tile: u64 = request.visit.number("tile_id")?.parse().map_err(|_| Error::not_found())?;
        Ok(Self { dashboard, tile })
    }

    /// Returns the path of the tile's page, or of a page below it.
    fn page(&self, rest: &str) -> String {
        self.dashboard.page(&format!("tiles/{}/{rest}", self.tile))
    }

    /// Reads the dashboard, and returns it without its other tiles too.
    async fn load(&self, request: &SignedIn) -> Result<(Value, Versioned)> {
        let found = request.api.get_versioned(&self.dashboard.api("")).await?;
        let body = only_tile(&found.body, self.tile);
        if body.pointer("/tiles/0").is_none() {
            return Err(Error::not_found_as("The dashboard has no such tile."));
        }
        Ok((found.body, Versioned { body, ..found }))
    }
}

/// Returns a dashboard with this tile alone.
fn only_tile(dashboard: &Value, id: u64) -> Value {
    let tiles = dashboard.get("tiles").and_then(Value::as_array);
    let has_id = |tile: &&Value| tile.get("id").is_some_and(|known| *known == id);
    let found: Vec<_> = tiles.into_iter().flatten().filter(has_id).collect();
    json!({ "tiles": found })
}

fn form_of(dashboard: &Value) -> &'static FormSpec {
    let insight = dashboard.pointer("/tiles/0/insight");
    if insight.is_none_or(Value::is_null) { &TEXT_FORM } else { &INSIGHT_FORM }
}

pub(super) async fn edit(request: SignedIn) -> PageResult {
    let path = TilePath::of(&request)?;
    let (dashboard, tile) = path.load(&request).await?;
    let (update, action) = (path.dashboard.operation(DASHBOARD.update), path.page(""));
    let form = if request.visit.sends_form() {
        let id = path.tile;
        let sent = form_of(&tile.body).sent(&request, update, &action)?;
        let mut sent = sent.with_view(move |dashboard| only_tile(&dashboard, id));
        let tile = sent.body.get_mut("tiles").and_then(|all| all.get_mut(0));
        if let Some(Value::Object(tile)) = tile {
            tile.insert("id".to_owned(), id.into());
        }
        match sent.send(&request).await? {
            Ok(_) => return finish(&path.dashboard.page(""), "tile-saved"),
            Err(form) => *form,
        }
    } else {
        let form = form_of(&tile.body).filled(&request, &update, &action, &tile)?;
        form.refused_for(DASHBOARD.refusal_of(&request, &path.dashboard, &dashboard).await?)
    };
    let page = FormPage::new("Edit the tile", form);
    let page = page.of_dashboard(&path.dashboard, name_in(&dashboard));
    let action = Some((path.page("move/"), "Move to another dashboard"));
    FormPage { action, ..page }.show(&request).await
}

const MOVE_TILE: &str = "dashboards_move_tile_partial_update";

const MOVE_FORM: FormSpec = FormSpec::create(
    "Move the tile",
    &[Input::new("toDashboard").label("To the dashboard").hint("Dashboards that you may edit.")],
);

#[derive(Template)]
#[template(path = "console/pages/dashboards/move_tile.html")]
struct MovePage {
    object: ObjectPath,
    name: String,
    /// Why the session cannot move it.
    refusal: Option<String>,
    /// `None` if the session may edit no other dashboard.
    form: Option<Form>,
}

pub(super) async fn move_tile(request: SignedIn) -> PageResult {
    let path = TilePath::of(&request)?;
    let (operation, action) = (path.dashboard.operation(MOVE_TILE), path.page("move/"));
    let form = if request.visit.sends_form() {
        let mut sent = MOVE_FORM.sent(&request, operation, &action)?;
        sent.body.insert("tile".to_owned(), json!({ "id": path.tile }));
        let Err(form) = sent.send(&request).await? else {
            return finish(&path.dashboard.page(""), "tile-moved");
        };
        let is_lost = form.status == StatusCode::NOT_FOUND;
        if is_lost && is_moved(&request, &path).await? {
            // The form was sent twice.
            return finish(&path.dashboard.page(""), "tile-moved");
        }
        *form
    } else {
        MOVE_FORM.empty(&request, &operation, &action)?
    };
    let (object, status) = (path.dashboard, form.status);
    let (name, _, refusal) = name_version_and_refusal(&request, &object).await?;
    let form = offer_dashboards(&request, &object, form).await?;
    let page = MovePage { object, name, refusal, form };
    Feedback::from(status).show(&request, "Move the tile", &page).await
}

/// Whether the dashboard that the form names has the tile.
async fn is_moved(request: &SignedIn, path: &TilePath) -> Result<bool> {
    let Ok(target) = request.visit.form.value("toDashboard").parse::<u64>() else {
        return Ok(false);
    };
    let target = format!("/api/projects/{}/dashboards/{target}/", path.dashboard.tenant);
    let found: Option<Value> = request.api.get(&target).await.read_if_allowed()?;
    let mut tiles = found.iter().filter_map(|found| found["tiles"].as_array()).flatten();
    Ok(tiles.any(|one| one["id"] == path.tile))
}

/// Offers the other dashboards that the session may edit. Returns `None` if there are none. With too many dashboards, the
/// field takes the id of one.
async fn offer_dashboards(
    request: &SignedIn,
    object: &ObjectPath,
    form: Form,
) -> Result<Option<Form>> {
    let found = dashboard_choices(request, &object.tenant).await?.unwrap_or_default();
    if !found.is_complete() {
        return Ok(Some(form.with_hint("toDashboard", "The ID of a dashboard that you may edit.")));
    }
    let others = found.results.iter().filter(|one| one.id.to_string() != object.id);
    let choices =
        others.filter(|one| one.rights.may_edit()).map(|one| Choice::new(one.id, one.name()));
    let choices: Vec<_> = choices.collect();
    Ok((!choices.is_empty()).then(|| form.with_choices("toDashboard", choices)))
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/deleted_tiles.html")]
struct TrashPage {
    object: ObjectPath,
    name: String,
    list: ListPage<Tile>,
    may_write: bool,
}

pub(super) async fn trash_page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let list = ListSpec::new(object.api("deleted_tiles/"), &object.page("tiles/trash/"));
    let list = list_page(&request, list).await.read()?;
    let page = TrashPage {
        name: name_of(&request, &object).await?,
        may_write: DASHBOARD.may_write(&request, &object.tenant).await?,
        list,
        object,
    };
    Feedback::default().show(&request, "Deleted tiles", &page).await
}
