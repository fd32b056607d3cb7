//! The format of templates, both built-in ones and those in requests. See `docs/spec/templates.md`.

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, ObjectBuilder, Type};

use crate::error::{Error, Result};
use crate::input;
use crate::input::{
    Field, FieldType, FreeObject, Input, ListOf, Nested, Nullable, Required, Schema, Tags, Text,
};
use crate::resources::dashboards::tiles::MAX_TILES;

use super::shape;

input! {
    /// A request that creates a dashboard from a template.
    pub struct FromTemplate {
        /// The template.
        template: Template,
    }
    ignored: [
        name, description, pinned, deleted, use_template, use_dashboard, delete_insights, tags,
        restriction_level,
    ]
}

input! {
    /// A template of a dashboard and its tiles. Unknown fields are ignored.
    pub struct Template {
        /// Name of the dashboard.
        template_name: Required<Text<400>>,
        /// Description of the dashboard.
        dashboard_description: Required<Text<16_384>>,
        /// Filters that apply to every tile.
        dashboard_filters: Required<FreeObject>,
        /// Tiles in their order: from 1 to 1,000.
        tiles: Required<ListOf<Tile, MAX_TILES>>,
        /// Tags of the dashboard.
        tags: Tags,
    }
}

impl Template {
    /// Reads a template from JSON.
    ///
    /// # Errors
    /// 400 if the value does not have the format of a template, or exceeds a limit.
    pub(super) fn read(value: &Value) -> Result<Self> {
        shape::require(value)?;
        Nested::<Self>::read(value).map_err(|error| error.with_attr_prefix("template"))
    }
}

impl Field for Template {
    type Output = Self;

    const REQUIRED: bool = true;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self> {
        let missing = || Error::field(name, "required", "This field is required.");
        Self::read(value.ok_or_else(missing)?)
    }

    fn property() -> Schema {
        let mut schema = <Self as Input>::schema();
        if let Schema::Object(template) = &mut schema
            && let Some(RefOr::T(Schema::Array(tiles))) = template.properties.get_mut("tiles")
        {
            tiles.min_items = Some(1);
        }
        schema
    }
}

/// A tile of a template.
#[derive(Debug, Clone)]
pub enum Tile {
    /// A tile that shows an insight.
    Insight(InsightTile),
    /// A tile that shows a text.
    Text(TextTile),
    /// A tile of an unknown type, which is ignored.
    Other,
}

input! {
    /// The type of a tile.
    struct TileType {
        /// `INSIGHT` or `TEXT`. A tile of another type is ignored.
        r#type: Required<Text<400>>,
    }
}

input! {
    /// A tile that shows an insight.
    pub struct InsightTile {
        /// Name of the insight.
        name: Nullable<Text<400>>,
        /// Description of the insight.
        description: Nullable<Text<16_384>>,
        /// The query.
        query: Nullable<FreeObject>,
        /// The query in the legacy format. Ignored if `query` is set.
        filters: Nullable<FreeObject>,
        /// Positions of the tile: any object.
        layouts: Nullable<FreeObject>,
        /// Color of the tile.
        color: Nullable<Text<400>>,
    }
}

input! {
    /// A tile that shows a text.
    pub struct TextTile {
        /// The Markdown.
        body: Nullable<Text<4000>>,
        /// Positions of the tile: any object.
        layouts: Nullable<FreeObject>,
        /// Color of the tile.
        color: Nullable<Text<400>>,
    }
}

impl FieldType for Tile {
    type Value = Self;

    fn read(value: &Value) -> Result<Self> {
        let TileType { r#type } = Nested::read(value)?;
        match r#type.as_str() {
            "INSIGHT" => Nested::read(value).map(Self::Insight),
            "TEXT" => Nested::read(value).map(Self::Text),
            _ => Ok(Self::Other),
        }
    }

    /// Lists the known types only, although tiles of other types are accepted and ignored.
    fn schema() -> Schema {
        let of = |name: &str, schema: Schema| {
            let named = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([name]));
            let sort = ObjectBuilder::new().property("type", named).required("type");
            AllOfBuilder::new().item(sort).item(schema)
        };
        AnyOfBuilder::new()
            .item(of("INSIGHT", InsightTile::schema()))
            .item(of("TEXT", TextTile::schema()))
            .into()
    }
}
