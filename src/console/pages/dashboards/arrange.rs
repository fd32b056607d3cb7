//! Arranges the tiles of a dashboard: by numbers in a form, or with the script by mouse and by keyboard.

use crate::console::form::VERSION;
use crate::console::pages::prelude::*;
use crate::console::pages::shareable::DASHBOARD;
use crate::http::form::Form;

use super::tile::{self, COLUMNS, GridArea, LAST, MAX_HEIGHT};

/// The dashboard with the form.
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
    fn read(&mut self, form: &Form) {
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
        let wide = layouts.entry("sm").or_insert_with(|| Value::Object(Map::new()));
        if !wide.is_object() {
            *wide = Value::Object(Map::new());
        }
        if let Value::Object(wide) = wide {
            for number in &self.numbers {
                wide.insert(number.key.to_owned(), number.value.into());
            }
        }
        Value::Object(layouts)
    }
}
