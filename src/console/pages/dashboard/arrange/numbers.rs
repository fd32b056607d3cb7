//! The numbers of a tile in the form: column, row, width and height.

use serde_json::{Map, Value};

use crate::console::pages::dashboard::grid::{COLUMNS, GridArea, LAST, MAX_HEIGHT};
use crate::console::pages::dashboard::tile::Tile;
use crate::http::form::Form;

/// A number in the form.
pub(super) struct Number {
    /// The name of the field: that of the coordinate and the id of the tile.
    pub(super) name: String,
    pub(super) label: &'static str,
    /// The coordinate in the layout.
    key: &'static str,
    /// The coordinate counts from 0, the form from 1.
    base: usize,
    pub(super) max: usize,
    pub(super) text: String,
    /// The value that the page is filled with.
    filled: usize,
    value: usize,
    pub(super) error: Option<String>,
}

/// A tile in the form.
pub(super) struct Row {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) numbers: [Number; 4],
}

impl Row {
    pub(super) fn of(tile: &Tile, area: GridArea) -> Self {
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
    pub(super) fn read(&mut self, form: &Form) {
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
    pub(super) fn is_changed(&self) -> bool {
        self.numbers.iter().any(|number| number.value != number.filled)
    }

    pub(super) fn is_wrong(&self) -> bool {
        self.numbers.iter().any(|number| number.error.is_some())
    }

    /// Returns the layouts of the tile with these numbers for wide screens. Keeps everything else in them.
    pub(super) fn layouts(&self, before: &Value) -> Value {
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
