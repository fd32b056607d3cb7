//! What is sent to change tiles (facts-dashboards §7, Writing tiles).

use serde_json::{Map, Value};
use utoipa::openapi::schema::ObjectBuilder;

use crate::error::{Error, Result};
use crate::input;
use crate::input::{
    Field, Flag, FreeObject, Identifier, Integer, Kind, ListOf, Nested, Nullable, Required, Schema,
    Text,
};
use crate::patch::Patch;

use super::MOST;

/// The longest body of a text, in characters.
const LONGEST_BODY: usize = 4_000;
/// How far a tile may reach on the grid of a dashboard, in cells.
const GRID: i64 = 100_000;
/// What of a place is looked at.
const PLACE: [&str; 4] = ["x", "y", "w", "h"];

/// The places of a tile: an object of grids, in which `x`, `y`, `w` and `h` are whole numbers from 0 to
/// 100,000 where they are present. The rest is free.
#[derive(Debug, Clone, Copy)]
pub struct Layouts;

impl Kind for Layouts {
    type Value = Map<String, Value>;

    fn read(value: &Value) -> Result<Self::Value> {
        let layouts = FreeObject::read(value)?;
        for (grid, place) in &layouts {
            require_place(place).map_err(|error| error.within(grid))?;
        }
        Ok(layouts)
    }

    fn schema() -> Schema {
        let place = PLACE.iter().fold(ObjectBuilder::new(), |place, name| {
            place.property(*name, Integer::<0, GRID>::schema())
        });
        ObjectBuilder::new().additional_properties(Some(Schema::from(place))).into()
    }
}

fn require_place(place: &Value) -> Result<()> {
    let place = FreeObject::read(place)?;
    for name in PLACE {
        match place.get(name) {
            None => {}
            Some(number @ Value::Number(_)) => {
                Integer::<0, GRID>::read(number).map_err(|error| error.within(name))?;
            }
            Some(_) => {
                return Err(Error::field(name, "invalid_input", "A valid integer is required."));
            }
        }
    }
    Ok(())
}

/// The body of a text. Its length is looked at by [`Tiles`].
#[derive(Debug, Clone, Copy)]
pub struct Markdown;

impl Kind for Markdown {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        Text::<{ usize::MAX }>::read(value)
    }

    fn schema() -> Schema {
        Text::<LONGEST_BODY>::schema()
    }
}

input! {
    /// The text of a tile.
    pub struct TextPatch {
        /// Its number; a new text has none.
        id: Nullable<Identifier>,
        /// The Markdown, at most 4,000 characters.
        body: Nullable<Markdown>,
    }
}

/// `text`: an object; what is empty or null is passed over.
#[derive(Debug, Clone, Copy)]
pub struct TextField;

impl Field for TextField {
    type Out = Option<TextPatch>;

    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out> {
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(members)) if members.is_empty() => Ok(None),
            value => Nested::<TextPatch>::take(name, value),
        }
    }

    fn property() -> Schema {
        Nullable::<Nested<TextPatch>>::property()
    }
}

input! {
    /// What to do with one tile.
    pub struct TilePatch {
        /// Its number; a new text's tile has none.
        id: Nullable<Identifier>,
        /// The text on it.
        text: TextField,
        /// True removes it; false brings it back.
        deleted: Nullable<Flag>,
        /// Its colour.
        color: Nullable<Text<400>>,
        /// Its place for each width of the screen.
        layouts: Layouts,
    }
}

input! {
    /// A tile, by its number.
    pub struct TileRef {
        /// Its number.
        id: Required<Identifier>,
    }
}

/// `tiles`: what to do with each of them, in this order.
#[derive(Debug, Clone, Copy)]
pub struct Tiles;

impl Field for Tiles {
    type Out = Option<Vec<TilePatch>>;

    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out> {
        let tiles = ListOf::<Nested<TilePatch>, MOST>::take(name, value)?;
        tiles.iter().flatten().try_for_each(require_short)?;
        Ok(tiles)
    }

    fn property() -> Schema {
        ListOf::<Nested<TilePatch>, MOST>::property()
    }
}

/// A text that is too long is reported at `text__body`, whichever tile it is of.
fn require_short(tile: &TilePatch) -> Result<()> {
    let body = tile.text.as_ref().and_then(|text| text.body.clone().value());
    if body.is_some_and(|body| body.chars().count() > LONGEST_BODY) {
        let detail = format!("Text body cannot exceed {LONGEST_BODY} characters");
        return Err(Error::field("text__body", "max_length", detail));
    }
    Ok(())
}

impl TilePatch {
    /// Whether it says anything of the tile itself. What says nothing is passed over.
    pub(super) fn says_something(&self) -> bool {
        let Self { id: _, text: _, deleted, color, layouts } = self;
        *deleted != Patch::Absent || *color != Patch::Absent || layouts.is_some()
    }
}
