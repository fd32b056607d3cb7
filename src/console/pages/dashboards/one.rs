//! One dashboard: its tiles on the grid that their layouts describe, the forms of its description and tags, and the page that
//! arranges the tiles.

use crate::console::form::VERSION;
use crate::console::pages::prelude::*;
use crate::console::pages::shareable::DASHBOARD;
use crate::http;

use super::tile::{self, COLUMNS, Card, GridArea, LAST, MAX_HEIGHT};

const DESCRIPTION: &str = "/console/projects/{project_id}/dashboards/{id}/description/";
const TAGS: &str = "/console/projects/{project_id}/dashboards/{id}/tags/";

/// The forms on the page. Each has a path of its own, which ends with the id of the form.
const DESCRIPTION_FORM: FormSpec =
    FormSpec::change("Save", &[Input::new("description").label("Description").shape(Shape::Area)])
        .with_id("description");
const TAGS_FORM: FormSpec =
    FormSpec::change("Save", &[Input::new("tags").label("Tags")]).with_id("tags");

/// With more tiles than this, the page is rendered on a thread of its own.
const MAX_INLINE_TILES: usize = 16;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get("/console/projects/{project_id}/dashboards/{id}/", &|request| {
        show(request, Feedback::default())
    });
    pages.post("/console/projects/{project_id}/dashboards/{id}/tiles/", &change_tile);
    pages.post(DESCRIPTION, &|request| save(request, &DESCRIPTION_FORM));
    pages.post(TAGS, &|request| save(request, &TAGS_FORM));
}

/// The actions that the page offers.
#[expect(clippy::struct_excessive_bools, reason = "each is a control of its own")]
struct Offers {
    edit: bool,
    duplicate: bool,
    share: bool,
    access: bool,
    activity: bool,
    /// The pages of insights.
    insights: bool,
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/one.html")]
struct DashboardPage {
    object: ObjectPath,
    /// The dashboard without its tiles, which are the cards.
    dashboard: Dashboard,
    offers: Offers,
    /// Why the session may not edit, although its key may.
    reason: Option<String>,
    /// The forms of description and tags, if the session may edit.
    in_place: Option<(Form, Form)>,
    cards: Vec<Card>,
    version: Option<String>,
    /// Whether the dashboard has changed since the page was opened whose action was refused.
    is_stale: bool,
    command: Command,
}

/// Returns the form that restores the tile that was just removed.
fn undo(request: &SignedIn, object: &ObjectPath) -> Option<Undo> {
    let id = request.visit.query("undo").parse::<u64>().ok()?;
    let fields = vec![("only", format!("restore {id}"))];
    Some(Undo { action: object.page("tiles/"), fields })
}

/// Applies a button of one tile: `only` has its action and the id of the tile.
async fn change_tile(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let form = &request.visit.form;
    let (action, id) = form.value("only").split_once(' ').unwrap_or_default();
    let id: u64 = id.parse().map_err(|_| Error::not_found())?;
    let (body, notice) = match action {
        "remove" => (json!({ "tiles": [{ "id": id, "deleted": true }] }), "tile-removed"),
        "restore" => (json!({ "tiles": [{ "id": id, "deleted": false }] }), "tile-restored"),
        "duplicate" => (json!({ "duplicate_tiles": [{ "id": id }] }), "tile-duplicated"),
        _ => return Err(Error::not_found().into()),
    };
    let mut write = object.write(DASHBOARD.update).body(body);
    // With the version, a button that is pressed twice duplicates the tile once.
    let version = form.value(VERSION);
    write.version = (action == "duplicate" && !version.is_empty()).then(|| version.to_owned());
    let undo = if action == "remove" { format!("&undo={id}") } else { String::new() };
    match request.api.attempt(&write).await? {
        Ok(_) => Ok(see_other(&(with_notice(&object.page(""), notice) + &undo))?),
        Err(refusal) => show(request, refusal.into()).await,
    }
}

/// Shows the dashboard, and what became of a form.
async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let path = object.api("");
    let versioned = request.api.get_versioned(&path).await?;
    let mut dashboard: Dashboard = versioned.read()?;
    let (project, api) = (object.tenant.as_str(), &request.api);
    let offers = Offers {
        edit: DASHBOARD.may_write(&request, project).await? && dashboard.rights.may_edit(),
        duplicate: DASHBOARD.may_create(&request, project).await?,
        share: api.may(&object.operation("dashboards_sharing_retrieve")).await?,
        access: api.may(&object.operation("dashboards_access_list")).await?,
        activity: api.may(&Operation::new("activity_log_list", [project])).await?,
        insights: api.may(&Operation::new("insights_retrieve", [project, "0"])).await?,
    };
    let frame = Frame::load(&request).await?;
    let command = Command::get(&request.visit, &path);
    let name = dashboard.name().to_owned();
    let is_long = dashboard.tiles.len() > MAX_INLINE_TILES;
    let is_stale = feedback.refusal.take_if(|refusal| refusal.status() == 412).is_some();
    let is_editable = offers.edit || feedback.form.is_some();
    let mut shown = |form: &'static FormSpec| {
        let (update, action) = (object.operation(DASHBOARD.update), action(&object, form));
        form.shown(&request, &update, &action, &versioned, &mut feedback)
    };
    let in_place =
        if is_editable { Some((shown(&DESCRIPTION_FORM)?, shown(&TAGS_FORM)?)) } else { None };
    let frame = feedback.on(frame.titled(name).with_undo(undo(&request, &object)));
    let version = versioned.version;
    let render = move || {
        let style = tile::grid_style(&dashboard.tiles);
        let page = DashboardPage {
            cards: tile::cards(std::mem::take(&mut dashboard.tiles)),
            reason: DASHBOARD.reason(&dashboard.rights),
            dashboard,
            object,
            offers,
            in_place,
            version,
            is_stale,
            command,
        };
        layout::page_with_style(&frame, &page, &style)
    };
    let page = if is_long { run_low_priority(Priority::Answer, render).await? } else { render() };
    Ok(page?)
}

/// Returns the URL that the browser sends a form to.
fn action(object: &ObjectPath, form: &FormSpec) -> String {
    object.page(&format!("{}/", form.id))
}

async fn save(request: SignedIn, form: &'static FormSpec) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let update = object.operation(DASHBOARD.update);
    let sent = form.sent(&request, update, &action(&object, form))?;
    submit(request, sent, &object.page(""), "dashboard-saved", &show).await
}

/// The dashboard with the form that arranges its tiles: by numbers, or with the script by mouse and by keyboard.
#[derive(Template)]
#[template(path = "console/pages/dashboards/arrange.html")]
struct Arrangement {
    object: ObjectPath,
    name: String,
    version: Option<String>,
    tiles: Vec<Tile>,
    rows: Vec<Row>,
    /// Why the session cannot arrange them.
    refusal: Option<String>,
    error: Option<String>,
}

impl Arrangement {
    async fn load(request: &SignedIn) -> Result<Self> {
        let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
        let found = request.api.get_versioned(&object.api("")).await?;
        let dashboard: Dashboard = found.read()?;
        let refusal = DASHBOARD.refusal(request, &object.tenant, &dashboard.rights).await?;
        let rows = dashboard.tiles.iter().zip(tile::grid_areas(&dashboard.tiles));
        Ok(Self {
            name: dashboard.name().to_owned(),
            version: found.version,
            rows: rows.map(|(tile, area)| Row::of(tile, area)).collect(),
            tiles: dashboard.tiles,
            object,
            refusal,
            error: None,
        })
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
        let mut write = self.object.write(DASHBOARD.update);
        write.version = version.map(str::to_owned);
        (!changes.is_empty()).then(|| write.body(json!({ "tiles": changes })))
    }
}

pub(super) async fn arrange(request: SignedIn) -> PageResult {
    let mut page = Arrangement::load(&request).await?;
    let mut status = StatusCode::OK;
    if request.visit.sends_form() {
        let form = &request.visit.form;
        for row in &mut page.rows {
            row.read(form);
        }
        // Until the API refuses the version of the form, the page keeps it.
        let current = page.version.take();
        let sent = form.value(VERSION);
        page.version = (!sent.is_empty()).then(|| sent.to_owned());
        if page.rows.iter().any(Row::is_wrong) {
            status = StatusCode::BAD_REQUEST;
            page.error = Some("Some numbers are not valid. Nothing is saved yet.".to_owned());
        } else {
            let outcome = match page.write(page.version.as_deref()) {
                Some(write) => request.api.attempt(&write).await?.map(drop),
                None => Ok(()),
            };
            let Err(error) = outcome else {
                return finish(&page.object.page(""), "arrangement-saved");
            };
            status = status_of(&error);
            let detail = if error.status() == 412 {
                page.version = current;
                "Somebody has changed the dashboard since you opened the page. Your numbers stand \
                 below; nothing is saved yet. Save again to store them."
            } else {
                error.detail()
            };
            page.error = Some(detail.to_owned());
        }
    }
    let frame = Frame::load(&request).await?.titled("Arrange the tiles").with_status(status);
    let render = move || {
        let style = tile::grid_style_everywhere(&page.tiles);
        layout::page_with_style(&frame, &page, &style)
    };
    Ok(run_low_priority(Priority::Answer, render).await??)
}

/// A number in the form.
struct Number {
    /// The name of the field: that of the coordinate and the id of the tile.
    name: String,
    label: &'static str,
    /// The coordinate in the layout.
    key: &'static str,
    /// The coordinate counts from 0, the form from 1.
    base: usize,
    max: usize,
    text: String,
    /// The value that the page is filled with.
    filled: usize,
    value: usize,
    error: Option<String>,
}

/// A tile in the form.
struct Row {
    id: u64,
    name: String,
    numbers: [Number; 4],
}

impl Row {
    fn of(tile: &Tile, area: GridArea) -> Self {
        let number = |key, label, base, max, value: usize| Number {
            name: format!("{key}-{}", tile.id),
            label,
            key,
            base,
            max,
            text: (value + base).to_string(),
            filled: value,
            value,
            error: None,
        };
        let numbers = [
            number("x", "Column", 1, COLUMNS, area.x),
            number("y", "Row", 1, LAST, area.y),
            number("w", "Width", 0, COLUMNS, area.width),
            number("h", "Height", 0, MAX_HEIGHT, area.height),
        ];
        Self { id: tile.id, name: tile.name(), numbers }
    }

    /// Reads the numbers that the browser has sent. A tile that the form does not have keeps its area.
    fn read(&mut self, form: &http::form::Form) {
        for number in self.numbers.iter_mut().filter(|number| form.has(&number.name)) {
            form.value(&number.name).clone_into(&mut number.text);
            match number.text.trim().parse::<usize>() {
                Ok(value) if (1..=number.max).contains(&value) => {
                    number.value = value.saturating_sub(number.base);
                }
                _ => number.error = Some(format!("Enter a number from 1 to {}.", number.max)),
            }
        }
        let [x, _, width, _] = &mut self.numbers;
        if x.error.is_none() && width.error.is_none() && x.value + width.value > COLUMNS {
            let most = COLUMNS - x.value;
            width.error = Some(format!("At this column, the tile is at most {most} wide."));
        }
    }

    /// Whether a number is another one than the page is filled with.
    fn is_changed(&self) -> bool {
        self.numbers.iter().any(|number| number.value != number.filled)
    }

    fn is_wrong(&self) -> bool {
        self.numbers.iter().any(|number| number.error.is_some())
    }

    /// Returns the layouts of the tile with these numbers for wide screens. Keeps everything else in them.
    fn layouts(&self, before: &Value) -> Value {
        let mut layouts = before.as_object().cloned().unwrap_or_default();
        let wide = layouts.get("sm").and_then(Value::as_object);
        let mut wide = wide.cloned().unwrap_or_default();
        for number in &self.numbers {
            wide.insert(number.key.to_owned(), number.value.into());
        }
        layouts.insert("sm".to_owned(), wide.into());
        layouts.into()
    }
}
