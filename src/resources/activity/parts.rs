//! Activity entries for tiles, insights and texts. They are parts: the dashboard's entry includes their changes.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::resources::dashboards::tiles::{Content, Tile};
use crate::store::{Row, Tx};

use super::log_target::{Location, Loggable, public_fields, public_name};

/// Prefixes the names of the fields with the name of the part.
fn part<const N: usize>(part: &str, fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (format!("{part}__{name}"), value)).collect()
}

impl Loggable for Tile {
    const SCOPE: &'static str = "Dashboard";
    const IS_PART: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        meta.dashboard.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let mut shown = public_fields(row)?;
        let mut take = |name: &str| shown.remove(name).unwrap_or_default();
        let content = match row.meta.content {
            Content::Insight(id) => ("insight", json!(id)),
            Content::Text(id) => ("text", json!(id)),
        };
        let fields = [
            content,
            ("layouts", take("layouts")),
            ("color", take("color")),
            ("deleted", json!(row.meta.deleted)),
        ];
        Ok(part(&format!("tiles__{}", row.meta.id), fields))
    }
}

impl Loggable for Insight {
    const SCOPE: &'static str = "Dashboard";
    const IS_PART: bool = true;

    fn item_id(_: &Self::Meta) -> String {
        String::new()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let fields = [("name", json!(public_name(row)?)), ("deleted", json!(row.meta.deleted))];
        Ok(part(&format!("insights__{}", row.meta.id), fields))
    }
}

impl Loggable for Text {
    const SCOPE: &'static str = "Dashboard";
    const IS_PART: bool = true;

    fn item_id(_: &Self::Meta) -> String {
        String::new()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let body = public_fields(row)?.remove("body").unwrap_or_default();
        Ok(part(&format!("texts__{}", row.meta.id), [("body", body)]))
    }
}
