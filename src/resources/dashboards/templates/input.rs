//! What a template is made of, as it is sent and as the built-in ones are kept (facts-dashboards §6).

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, ObjectBuilder, Type};

use crate::error::{Error, Result};
use crate::input;
use crate::input::{
    Field, FreeObject, Input, Kind, ListOf, Nested, Nullable, Required, Schema, Tags, Text, Untyped,
};
use crate::resources::dashboards::tiles::{Layouts, MOST};

use super::shape;

input! {
    /// What to make a dashboard from.
    pub struct FromTemplate {
        /// The template.
        template: Template,
        /// Without effect.
        name: Untyped,
        /// Without effect.
        description: Untyped,
        /// Without effect.
        pinned: Untyped,
        /// Without effect.
        deleted: Untyped,
        /// Without effect.
        use_template: Untyped,
        /// Without effect.
        use_dashboard: Untyped,
        /// Without effect.
        delete_insights: Untyped,
        /// Without effect.
        tags: Untyped,
        /// Without effect.
        restriction_level: Untyped,
    }
}

input! {
    /// A template for a dashboard and what stands on it. Other members are passed over.
    pub struct Template {
        /// The dashboard's name.
        template_name: Required<Text<400>>,
        /// What the dashboard is for.
        dashboard_description: Required<Text<16_384>>,
        /// What its tiles are filtered by.
        dashboard_filters: Required<FreeObject>,
        /// Its tiles: as many as a dashboard may have, and at least one.
        tiles: Required<ListOf<Tile, MOST>>,
        /// Words to find it by.
        tags: Tags,
    }
}

impl Template {
    /// The template that a value is.
    ///
    /// # Errors
    /// 400 for what does not look like one, or passes a limit.
    pub(super) fn read(value: &Value) -> Result<Self> {
        shape::require(value)?;
        Nested::<Self>::read(value).map_err(|error| error.within("template"))
    }
}

impl Field for Template {
    type Out = Self;

    const REQUIRED: bool = true;

    fn take(name: &str, value: Option<&Value>) -> Result<Self> {
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
    /// Shows an insight.
    Insight(InsightTile),
    /// Shows a text.
    Text(TextTile),
    /// Of a kind that is not known, and passed over.
    Other,
}

input! {
    /// What kind of tile it is.
    struct Sort {
        /// `INSIGHT`, `TEXT`, or something that is passed over.
        r#type: Required<Text<400>>,
    }
}

input! {
    /// A tile that shows an insight.
    pub struct InsightTile {
        /// The insight's name.
        name: Nullable<Text<400>>,
        /// What the insight is for.
        description: Nullable<Text<16_384>>,
        /// What it asks.
        query: Nullable<FreeObject>,
        /// What it asks, in the old form; without effect beside a query.
        filters: Nullable<FreeObject>,
        /// Where the tile stands.
        layouts: Nullable<Layouts>,
        /// The tile's colour.
        color: Nullable<Text<400>>,
    }
}

input! {
    /// A tile that shows a text.
    pub struct TextTile {
        /// The text.
        body: Nullable<Text<4000>>,
        /// Where the tile stands.
        layouts: Nullable<Layouts>,
        /// The tile's colour.
        color: Nullable<Text<400>>,
    }
}

impl Kind for Tile {
    type Value = Self;

    fn read(value: &Value) -> Result<Self> {
        let Sort { r#type } = Nested::read(value)?;
        match r#type.as_str() {
            "INSIGHT" => Nested::read(value).map(Self::Insight),
            "TEXT" => Nested::read(value).map(Self::Text),
            _ => Ok(Self::Other),
        }
    }

    /// A tile of another type is passed over.
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
