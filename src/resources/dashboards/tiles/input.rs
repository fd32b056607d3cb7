//! Request fields that change tiles. See `docs/spec/tiles.md`.

use crate::input::{Flag, FreeObject, Identifier, ListOf, Nested, Nullable, Required, Text};
use crate::resources::shared::prelude::*;

use super::{Fields, MAX_TILES};

/// Maximum length of a text, in characters.
const MAX_BODY_LENGTH: usize = 4_000;

/// Markdown. [`Tiles`] checks its length, because the error names another field.
pub struct Markdown;

impl FieldType for Markdown {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        Text::<{ usize::MAX }>::read(value)
    }

    fn schema() -> Schema {
        Text::<MAX_BODY_LENGTH>::schema()
    }
}

input! {
    /// The text of a tile.
    pub struct TextPatch {
        /// Numeric ID. Absent for a new text.
        id: Nullable<Identifier>,
        /// Markdown, at most 4,000 characters.
        body: Nullable<Markdown>,
    }
}

/// `text`: an object. Null and an empty object are ignored.
pub struct TextField;

impl Field for TextField {
    type Output = Option<TextPatch>;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(members)) if members.is_empty() => Ok(None),
            value => Nested::<TextPatch>::parse(name, value),
        }
    }

    fn property() -> Schema {
        Nullable::<Nested<TextPatch>>::property()
    }
}

input! {
    /// Changes of one tile.
    pub struct TilePatch {
        /// Numeric ID. Absent for the tile of a new text.
        id: Nullable<Identifier> => _,
        /// The text to update or create.
        text: TextField => _,
        /// True deletes the tile; false restores it.
        deleted: Nullable<Flag> => _,
        /// Color.
        color: Nullable<Text<400>> => tile,
        /// Layout for each screen width, for example `{"sm": {"x": 0, "y": 0, "w": 6, "h": 5}}`. Any object is stored and
        /// returned as sent. Tiles are sorted by `sm.y`, then `sm.x`. Values that are not numbers or numeric strings
        /// count as 100.
        layouts: FreeObject => tile,
        /// Whether the tile shows the description of its insight. Null leaves that to the client.
        show_description: Nullable<Flag> => tile,
        /// Whether the tile has no background of its own. Null leaves that to the client.
        transparent_background: Nullable<Flag> => tile,
        /// Filters of this tile alone. Null clears them. They have no effect, because queries are not run.
        filters_overrides: Nullable<FreeObject> => tile,
    }
    fn apply_to(tile: &mut Fields);
}

input! {
    /// A tile to duplicate. The copy has the fields of the request, no layouts without them, and otherwise those of the tile.
    pub struct DuplicateTile {
        /// Numeric ID.
        id: Required<Identifier> => _,
        /// Color of the copy.
        color: Nullable<Text<400>> => tile,
        /// Layout of the copy for each screen width.
        layouts: FreeObject => tile,
        /// Whether the copy shows the description of its insight.
        show_description: Nullable<Flag> => tile,
        /// Whether the copy has no background of its own.
        transparent_background: Nullable<Flag> => tile,
        /// Filters of the copy alone.
        filters_overrides: Nullable<FreeObject> => tile,
    }
    fn apply_to(tile: &mut Fields);
}

input! {
    /// A reference to a tile.
    pub struct TileRef {
        /// Numeric ID.
        id: Required<Identifier>,
    }
}

/// `tiles`: a list of changes, in the order in which they are applied.
pub struct Tiles;

impl Field for Tiles {
    type Output = Option<Vec<TilePatch>>;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        let tiles = ListOf::<Nested<TilePatch>, MAX_TILES>::parse(name, value)?;
        tiles.iter().flatten().try_for_each(require_short)?;
        Ok(tiles)
    }

    fn property() -> Schema {
        ListOf::<Nested<TilePatch>, MAX_TILES>::property()
    }
}

/// Refuses a text that is too long. As in PostHog, `attr` is `text__body`, without the index of the tile.
fn require_short(tile: &TilePatch) -> Result<()> {
    let body = tile.text.as_ref().and_then(|text| text.body.clone().value());
    if body.is_some_and(|body| body.chars().count() > MAX_BODY_LENGTH) {
        let detail = format!("Text body cannot exceed {MAX_BODY_LENGTH} characters");
        return Err(Error::field("text__body", "max_length", detail));
    }
    Ok(())
}

impl TilePatch {
    /// Returns whether the tile itself changes. Otherwise the element is ignored, unless it has a text.
    pub(super) fn says_something(&self) -> bool {
        self.deleted != Patch::Absent
            || self.color != Patch::Absent
            || self.layouts.is_some()
            || self.sets_options()
    }

    /// Returns whether the element has nothing but the place and the color of a tile.
    pub(super) fn only_arranges(&self) -> bool {
        self.text.is_none() && self.deleted == Patch::Absent && !self.sets_options()
    }

    fn sets_options(&self) -> bool {
        self.show_description != Patch::Absent
            || self.transparent_background != Patch::Absent
            || self.filters_overrides != Patch::Absent
    }
}
