//! What is only told with a dashboard: its tiles, and what they show.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::resources::dashboards::tiles::{Content, Tile};
use crate::store::{Row, Tx};

use super::subject::{Loggable, Place, shown_fields, shown_name};

/// The fields of a part, under its own name.
fn part<const N: usize>(part: &str, fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (format!("{part}__{name}"), value)).collect()
}

impl Loggable for Tile {
    const SCOPE: &'static str = "Dashboard";
    const IS_PART: bool = true;

    fn item_id(head: &Self::Head) -> String {
        head.dashboard.to_string()
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.organization), Some(head.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let mut shown = shown_fields(row)?;
        let mut take = |name: &str| shown.remove(name).unwrap_or_default();
        let content = match row.head.content {
            Content::Insight(id) => ("insight", json!(id)),
            Content::Text(id) => ("text", json!(id)),
        };
        let fields = [
            content,
            ("layouts", take("layouts")),
            ("color", take("color")),
            ("deleted", json!(row.head.deleted)),
        ];
        Ok(part(&format!("tiles__{}", row.head.id), fields))
    }
}

impl Loggable for Insight {
    const SCOPE: &'static str = "Dashboard";
    const IS_PART: bool = true;

    fn item_id(_: &Self::Head) -> String {
        String::new()
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.organization), Some(head.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let fields = [("name", json!(shown_name(row)?)), ("deleted", json!(row.head.deleted))];
        Ok(part(&format!("insights__{}", row.head.id), fields))
    }
}

impl Loggable for Text {
    const SCOPE: &'static str = "Dashboard";
    const IS_PART: bool = true;

    fn item_id(_: &Self::Head) -> String {
        String::new()
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.organization), Some(head.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let body = shown_fields(row)?.remove("body").unwrap_or_default();
        Ok(part(&format!("texts__{}", row.head.id), [("body", body)]))
    }
}
