//! What dashboards declare about their records. Tiles and texts are parts: the dashboard's entry in the activity log
//! includes their changes. So it does for insights that change with a dashboard; other changes of insights have entries of
//! their own.

use crate::resources::projects;
use crate::resources::shared::loggable::{FieldAction, SHARING_ACTIONS, public_fields};
use crate::resources::shared::prelude::*;

use super::deletions::Deletion;
use super::insights::{Insight, InsightNames};
use super::texts::Text;
use super::tiles::{Content, Tile};
use super::{Dashboard, Details, DetailsFields};

/// The records of dashboards.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<Dashboard>()
        .logged()
        .deleted_with_project()
        .numbered(|dashboard| dashboard.meta.id.0)
        .names_users(|dashboard, visit| dashboard.meta.created_by.iter_mut().for_each(visit)),
    &record::<Details>().logged().deleted_with_project(),
    &record::<Insight>()
        .logged()
        .deleted_with_project()
        .numbered(|insight| insight.meta.id.0)
        .names_users(|Insight { meta, .. }, visit| {
            meta.created_by.iter_mut().chain(&mut meta.last_modified_by).for_each(visit);
        }),
    &record::<Deletion>()
        .deleted_with_project()
        .names_users(|deletion, visit| visit(&mut deletion.removed_by)),
    &record::<Text>().logged().deleted_with_project().numbered(|text| text.meta.id.0).names_users(
        |Text { meta, .. }, visit| {
            meta.created_by.iter_mut().chain(&mut meta.last_modified_by).for_each(visit);
        },
    ),
    &record::<Tile>().logged().deleted_with_project().numbered(|tile| tile.meta.id.0),
];

impl Loggable for Dashboard {
    const SCOPE: &'static str = "Dashboard";
    const ACTIONS: &'static [FieldAction] = SHARING_ACTIONS;

    fn object_of(item_id: &str) -> Option<Object> {
        item_id.parse().ok().map(Object::Dashboard)
    }

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.id, Some(meta.organization), Some(meta.project)))
    }
}

impl Loggable for Details {
    const SCOPE: &'static str = Dashboard::SCOPE;

    fn entity(meta: &Self::Meta, tx: &impl Tx) -> Result<LogEntity> {
        let organization = projects::organization_of(tx, meta.0)?;
        Ok(LogEntity::new(meta.1, organization, Some(meta.0)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        Some(Reference::to::<Dashboard>(meta))
    }

    fn blank() -> Result<Option<Map<String, Value>>> {
        let fields = serde_json::to_value(DetailsFields::default()).map_err(Error::internal)?;
        Ok(fields.as_object().cloned())
    }
}

/// Prefixes the names of the fields with the name of the part.
fn part<const N: usize>(part: &str, fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (format!("{part}__{name}"), value)).collect()
}

impl Loggable for Insight {
    const SCOPE: &'static str = "Insight";
    const ACTIONS: &'static [FieldAction] = SHARING_ACTIONS;
    const PARENT: Option<&'static str> = Some(Dashboard::SCOPE);

    fn object_of(item_id: &str) -> Option<Object> {
        item_id.parse().ok().map(Object::Insight)
    }

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.id, Some(meta.organization), Some(meta.project)))
    }

    fn name(row: &Row<'_, Self>) -> Result<Option<String>> {
        let InsightNames { name, derived_name, .. } = parse_fields(row)?;
        Ok(name.filter(|name| !name.is_empty()).or(derived_name))
    }

    fn short_id(row: &Row<'_, Self>) -> Result<Option<String>> {
        parse_fields(row).map(|names: InsightNames| Some(names.short_id))
    }

    fn part_fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        // Not the name: a reader of the entry may see the dashboard and not the insight.
        Ok(part(&format!("insights__{}", row.meta.id), [("deleted", json!(row.meta.deleted))]))
    }
}

impl Loggable for Text {
    const SCOPE: &'static str = Dashboard::SCOPE;
    const PARENT: Option<&'static str> = Some(Dashboard::SCOPE);

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new("", Some(meta.organization), Some(meta.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let body = public_fields(row)?.remove("body").unwrap_or_default();
        Ok(part(&format!("texts__{}", row.meta.id), [("body", body)]))
    }
}

/// Returns an object, or null if it is empty.
fn filled(object: Value) -> Value {
    if object == json!({}) { Value::Null } else { object }
}

impl Loggable for Tile {
    const SCOPE: &'static str = Dashboard::SCOPE;
    const PARENT: Option<&'static str> = Some(Dashboard::SCOPE);

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.dashboard, Some(meta.organization), Some(meta.project)))
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
            ("show_description", take("show_description")),
            ("transparent_background", take("transparent_background")),
            ("filters_overrides", filled(take("filters_overrides"))),
            ("deleted", json!(row.meta.deleted)),
        ];
        Ok(part(&format!("tiles__{}", row.meta.id), fields))
    }
}
