//! Templates of dashboards, built in or sent in a request: their format, and the dashboards that they create. See
//! `docs/spec/templates.md`.

mod shape;

use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, ObjectBuilder, Type};

use crate::auth::{Caller, InProject};
use crate::input::{FreeObject, Input, ListOf, Nested, Nullable, Required, Tags, Text};
use crate::resources::access_controls::shared::require_can_create;
use crate::resources::dashboards::tiles::MAX_TILES;
use crate::resources::shared::prelude::*;

use super::{Dashboard, DetailsFields, blank};
use super::{insights, tiles};

/// The built-in templates as JSON, each with the names that `use_template` accepts for it.
const BUILT_IN: [(&[&str], &str); 2] = [
    (&["DEFAULT_APP", "Product analytics"], include_str!("product_analytics.json")),
    (&["WEBSITE_TRAFFIC"], include_str!("website_traffic.json")),
];

/// What a built-in template creates.
#[derive(Debug)]
pub struct BuiltIn {
    /// The value of `use_template`.
    pub key: &'static str,
    /// The name of the dashboard, unless the request has another.
    pub name: String,
    /// The description of the dashboard.
    pub description: String,
    /// The tags of the dashboard.
    pub tags: Vec<String>,
    /// The names of the insights on the tiles, in their order.
    pub tiles: Vec<String>,
}

/// Returns the built-in templates.
///
/// # Errors
/// 500 if one of them is invalid, which a test excludes.
pub fn built_in() -> Result<Vec<BuiltIn>> {
    let keys = BUILT_IN.iter().filter_map(|(names, _)| names.first().copied());
    keys.map(|key| {
        let Template { template_name, dashboard_description, tags, tiles, .. } =
            Template::built_in(key)?;
        let names = tiles.into_iter().filter_map(|tile| match tile {
            Tile::Insight(tile) => tile.name.value(),
            Tile::Text(_) | Tile::Other => None,
        });
        Ok(BuiltIn {
            key,
            name: template_name,
            description: dashboard_description,
            tags: tags.unwrap_or_default(),
            tiles: names.collect(),
        })
    })
    .collect()
}

impl Template {
    /// Returns the built-in template with this name.
    ///
    /// # Errors
    /// 400 if there is no such template.
    pub(super) fn built_in(name: &str) -> Result<Self> {
        let Some((_, text)) = BUILT_IN.iter().find(|(names, _)| names.contains(&name)) else {
            let detail = format!("Invalid template provided: {name}");
            return Err(Error::field("use_template", "invalid_input", detail));
        };
        let template: Value = serde_json::from_str(text).map_err(Error::internal)?;
        Self::read(&template).map_err(Error::internal)
    }

    /// Applies the template to a new dashboard: sets the name if the dashboard has none, replaces
    /// description and filters, and adds tags.
    ///
    /// # Errors
    /// 400 if there are too many tags.
    pub(super) fn fill(
        &self,
        dashboard: &mut Dashboard,
        details: &mut DetailsFields,
    ) -> Result<()> {
        let fields = &mut dashboard.fields;
        if fields.name.as_deref().unwrap_or_default().is_empty() {
            fields.name = Some(self.template_name.clone());
        }
        fields.description.clone_from(&self.dashboard_description);
        fields.tags.extend(self.tags.iter().flatten().cloned());
        fields.tags.sort();
        fields.tags.dedup();
        // The request and the template are within the limits, but not together.
        fields.tags = Tags::read(&fields.tags.clone().into())
            .map_err(|error| error.with_attr_prefix("tags"))?;
        details.filters.clone_from(&self.dashboard_filters);
        Ok(())
    }

    /// Adds the template's tiles to a new dashboard, in their order.
    pub(super) fn add_tiles(
        &self,
        tx: &mut WriteTx<'_>,
        tenant: &InProject,
        dashboard: DashboardId,
        rng: &mut SeededRng,
        now: Timestamp,
    ) -> Result<()> {
        for tile in &self.tiles {
            match tile.clone() {
                Tile::Insight(tile) => {
                    let (insight, style) = insight(tile);
                    tiles::add_insight(tx, tenant, dashboard, insight, style, rng, now)?;
                }
                Tile::Text(TextTile { body, layouts, color }) => {
                    let style = style(layouts, color);
                    tiles::add_text(tx, tenant, dashboard, body.value(), style, now)?;
                }
                Tile::Other => {}
            }
        }
        Ok(())
    }
}

/// Returns the insight of a tile and the style of the tile. With a query, legacy filters are dropped. As in
/// PostHog, legacy filters leave out test accounts unless they set `filter_test_accounts`.
fn insight(tile: InsightTile) -> (insights::Fields, tiles::Fields) {
    let InsightTile { name, description, query, filters, layouts, color } = tile;
    let query = query.value().filter(|query| !query.is_empty());
    let mut filters = filters.value().unwrap_or_default();
    if query.is_some() {
        filters.clear();
    } else {
        filters.entry("filter_test_accounts").or_insert(Value::Bool(true));
    }
    let insight = insights::Fields {
        name: name.value(),
        description: description.value(),
        filters,
        query,
        is_sample: true,
        saved: true,
        ..insights::Fields::default()
    };
    (insight, style(layouts, color))
}

fn style(layouts: Patch<JsonObject>, color: Patch<String>) -> tiles::Fields {
    tiles::Fields {
        layouts: layouts.value().unwrap_or_default(),
        color: color.value(),
        ..tiles::Fields::default()
    }
}

/// Creates a dashboard from a template in the request.
///
/// # Errors
/// 403 if the caller may not create dashboards; 400 if the template is invalid.
pub fn create(
    tx: &mut WriteTx<'_>,
    caller: &Caller,
    tenant: &InProject,
    sent: &Parsed<FromTemplate>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<DashboardId> {
    require_can_create::<Dashboard>(tx, tenant)?;
    let template = &sent.get()?.template;
    let mut dashboard = blank(tx, caller, tenant, now)?;
    let mut details = DetailsFields::default();
    template.fill(&mut dashboard, &mut details)?;
    let id = dashboard.meta.id;
    tx.log_about::<Dashboard>(&(tenant.project.id, id));
    super::put(tx, dashboard, details)?;
    template.add_tiles(tx, tenant, id, rng, now)?;
    Ok(id)
}

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
    fn read(value: &Value) -> Result<Self> {
        shape::require(value)?;
        Nested::<Self>::read(value).map_err(|error| error.with_attr_prefix("template"))
    }
}

impl Field for Template {
    type Output = Self;

    const REQUIRED: bool = true;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self> {
        Self::read(value.ok_or_else(|| missing(name))?)
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
