//! The request that reverts an entry.

use crate::console::pages::prelude::*;

use super::log::{Change, Entry};

/// Objects that an update replaces, unless the new one is empty: the API then ignores it.
const EMPTY_IGNORED: &[(&str, &str)] = &[("Dashboard", "filters"), ("Dashboard", "variables")];
/// Objects that an update merges with the stored one.
const MERGED: &[(&str, &str)] = &[("BatchExport", "destination")];

/// The changes that revert an entry.
#[derive(Debug, PartialEq)]
pub(super) struct Reversal {
    /// Whether the object was deleted and is restored.
    pub(super) is_restore: bool,
    /// The changes that are set back.
    pub(super) changes: Vec<Change>,
    /// The fields that stay as they are.
    pub(super) kept: Vec<String>,
}

impl Reversal {
    /// Returns the changes that revert an entry, or `None` if it cannot be reverted. `schema` is that of the body of an update.
    pub(super) fn of(entry: &Entry, schema: &Value) -> Option<Self> {
        let is_restore = entry.activity == "deleted";
        let restorable = matches!(entry.scope.as_str(), "Dashboard" | "Insight");
        let (mut changes, mut kept) = (Vec::new(), Vec::new());
        match entry.activity.as_str() {
            "deleted" if restorable => {}
            "updated" | "paused" | "unpaused" => {
                let all = &entry.detail.changes;
                let (can, cannot): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|change| {
                    let (before, after) = (&change.before, &change.after);
                    let is_known = !(before.is_null() && after.is_null() || is_summary(before));
                    is_known
                        && match PartField::of(&change.field) {
                            Some(part) => part.is_settable(before, all),
                            None => is_settable(&entry.scope, change, schema),
                        }
                });
                changes = can;
                kept = cannot.into_iter().map(|change| change.field).collect();
            }
            _ => return None,
        }
        (is_restore || !changes.is_empty()).then_some(Self { is_restore, changes, kept })
    }

    /// Leaves the parts as they are that the object does not show any more.
    pub(super) fn keep_lost(&mut self, now: &Value) {
        self.changes.retain(|change| {
            let is_shown = value_of(now, &change.field).is_some();
            if !is_shown {
                self.kept.push(change.field.clone());
            }
            is_shown
        });
    }

    /// Returns the body of the request. `now` is the object as it is, or as it was deleted.
    pub(super) fn body(&self, scope: &str, now: &Value) -> Value {
        let (mut body, mut tiles) = (Map::new(), Vec::new());
        if self.is_restore {
            body.insert("deleted".to_owned(), false.into());
        }
        for Change { field, before, .. } in &self.changes {
            match PartField::of(field) {
                Some(part) => part.set(now, before, &mut tiles),
                None => {
                    body.insert(field.clone(), before.clone());
                }
            }
        }
        if !tiles.is_empty() {
            body.insert("tiles".to_owned(), tiles.into());
        }
        // An update of an insight without this field sets it to true.
        if let Some(saved) = now.get("saved").filter(|_| scope == "Insight") {
            body.entry("saved").or_insert_with(|| saved.clone());
        }
        Value::Object(body)
    }
}

/// Returns the value of a field as it is now. A field that the object lacks is null, and a part that it does not show is `None`.
pub(super) fn value_of(object: &Value, field: &str) -> Option<Value> {
    match PartField::of(field) {
        Some(part) => part.value(object),
        None => Some(object.get(field).cloned().unwrap_or_default()),
    }
}

/// Returns whether an update can set the field to its former value.
fn is_settable(scope: &str, change: &Change, schema: &Value) -> bool {
    let Some(property) = schema.get("properties").and_then(|all| all.get(&change.field)) else {
        return false;
    };
    let field = (scope, change.field.as_str());
    let is_ignored = EMPTY_IGNORED.contains(&field) && is_empty(&change.before);
    let leaves_members = MERGED.contains(&field) && !has_members_of(&change.after, &change.before);
    let is_null_refused = change.before.is_null() && !is_nullable(property);
    !(is_ignored || leaves_members || is_null_refused)
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_none_or(Map::is_empty)
}

/// Returns whether every member of an object, and of the objects in it, is also in the other. Otherwise a merge would leave
/// members behind.
fn has_members_of(object: &Value, other: &Value) -> bool {
    match (object, other) {
        (Value::Object(object), Value::Object(other)) => object
            .iter()
            .all(|(name, value)| other.get(name).is_some_and(|other| has_members_of(value, other))),
        (object, _) => !object.is_object(),
    }
}

fn is_nullable(property: &Value) -> bool {
    let allows = |schema: &Value| match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "null"),
        one => one.is_some_and(|one| one == "null"),
    };
    let variants = ["anyOf", "oneOf"].into_iter().filter_map(|name| property.get(name)?.as_array());
    allows(property) || variants.flatten().any(allows)
}

/// A field of a part of a dashboard in its entries: `tiles__3__color`, `texts__4__body`. An update sets it in its list of
/// tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PartField<'f> {
    list: &'f str,
    id: u64,
    name: &'f str,
}

impl<'f> PartField<'f> {
    /// Reads the name of a field. Returns `None` for a field of the object itself.
    fn of(field: &'f str) -> Option<Self> {
        let mut parts = field.splitn(3, "__");
        let (list, id, name) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { list, id: id.parse().ok()?, name })
    }

    /// Returns whether an update can set the field to its former value. `changes` are those of the entry.
    fn is_settable(self, before: &Value, changes: &[Change]) -> bool {
        match (self.list, self.name) {
            ("tiles", "deleted" | "layouts") | ("texts", "body") => !before.is_null(),
            (
                "tiles",
                "color" | "show_description" | "transparent_background" | "filters_overrides",
            ) => {
                let of_new_tile = |name: &str| {
                    let part = PartField { name, ..self };
                    changes.iter().any(|change| PartField::of(&change.field) == Some(part))
                };
                !(of_new_tile("insight") || of_new_tile("text"))
            }
            _ => false,
        }
    }

    /// Returns the value in a dashboard, or `None` if the dashboard does not show the part.
    fn value(self, dashboard: &Value) -> Option<Value> {
        match (self.list, self.name) {
            ("tiles", "deleted") => Some(self.tile(dashboard).is_none().into()),
            ("texts", name) => self.tile(dashboard)?.get("text")?.get(name).cloned(),
            (_, name) => self.tile(dashboard)?.get(name).cloned(),
        }
    }

    /// Adds the field with a value to the list of tiles in the body of an update.
    fn set(self, dashboard: &Value, value: &Value, tiles: &mut Vec<Value>) {
        let tile = match self.list {
            "texts" => self.tile(dashboard).map_or(Value::Null, |tile| tile["id"].clone()),
            _ => self.id.into(),
        };
        let at = tiles.iter().position(|known| known["id"] == tile).unwrap_or_else(|| {
            tiles.push(json!({ "id": tile }));
            tiles.len() - 1
        });
        let Some(Value::Object(patch)) = tiles.get_mut(at) else { return };
        if self.list == "texts" {
            patch.insert("text".to_owned(), json!({ "id": self.id, (self.name): value }));
        } else {
            patch.insert(self.name.to_owned(), value.clone());
        }
    }

    /// Returns the tile that is the part, or that shows it.
    fn tile(self, dashboard: &Value) -> Option<&Value> {
        let tiles = dashboard.get("tiles")?.as_array()?;
        tiles.iter().find(|tile| {
            let id = if self.list == "texts" { tile.pointer("/text/id") } else { tile.get("id") };
            id.is_some_and(|id| *id == self.id)
        })
    }
}

/// Returns whether a value may be a summary, by which the log replaces a long value: `Lorem… (5000 characters)`, `(12 items)`.
fn is_summary(value: &Value) -> bool {
    let Some((head, summary)) = value.as_str().and_then(|text| text.rsplit_once('(')) else {
        return false;
    };
    let summary = summary.strip_suffix(')').unwrap_or_default();
    let summary = summary.strip_suffix(", other values").unwrap_or(summary);
    let words = summary.split_once(' ');
    (head.is_empty() || head.ends_with("… "))
        && words.is_some_and(|(count, noun)| {
            let noun = noun.trim_end_matches('s');
            count.parse::<u64>().is_ok() && matches!(noun, "character" | "item" | "member")
        })
}

/// Returns whether an object still has a value of the log, which may be a summary.
pub(super) fn is_unchanged(now: &Value, after: &Value) -> bool {
    if now == after {
        return true;
    }
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let Some(text) = after.as_str().filter(|_| is_summary(after)) else { return false };
    match now {
        Value::String(now) => {
            let count = now.chars().count();
            let beginning = text.rsplit_once("… ").map_or("", |(beginning, _)| beginning);
            now.starts_with(beginning) && text.ends_with(&format!("({count} characters)"))
        }
        Value::Array(items) => {
            text.starts_with(&format!("({} item{}", items.len(), plural(items.len())))
        }
        Value::Object(all) => {
            text.starts_with(&format!("({} member{}", all.len(), plural(all.len())))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settable(field: &str, before: &Value, after: &Value) -> bool {
        let schema = json!({ "properties": {
            "name": { "type": "string" }, "start": { "type": ["string", "null"] }, "filters": { "type": "object" },
            "choice": { "anyOf": [{ "type": "integer" }, { "type": "null" }] }, "destination": { "type": "object" },
        } });
        let scope = if field == "destination" { "BatchExport" } else { "Dashboard" };
        let change = json!({ "field": field, "before": before, "after": after });
        let entry = json!({
            "id": "", "user": null, "scope": scope, "item_id": "1", "activity": "updated", "created_at": "",
            "detail": { "name": null, "changes": [change] },
        });
        let entry: Entry = serde_json::from_value(entry).expect("an entry");
        Reversal::of(&entry, &schema).is_some()
    }

    #[test]
    fn only_values_that_an_update_takes_are_set_back() {
        for (field, before, after, expected) in [
            ("name", json!("A"), json!("B"), true),
            ("name", json!(null), json!("B"), false),
            ("name", json!("Lorem… (5000 characters)"), json!("B"), false),
            ("start", json!(null), json!("2026"), true),
            ("start", json!(null), json!(null), false),
            ("choice", json!(null), json!(1), true),
            ("filters", json!({}), json!({ "a": 1 }), false),
            ("filters", json!({ "a": 1 }), json!({ "b": 2 }), true),
            ("destination", json!({ "config": { "a": 1 } }), json!({ "config": { "a": 2 } }), true),
            (
                "destination",
                json!({ "config": { "a": 1 } }),
                json!({ "config": { "b": 2 } }),
                false,
            ),
            ("updated_by", json!("A"), json!("B"), false),
            ("tiles__3__color", json!(null), json!("blue"), true),
            ("tiles__3__deleted", json!(false), json!(true), true),
            ("tiles__3__insight", json!(1), json!(2), false),
            ("insights__3__deleted", json!(false), json!(true), false),
        ] {
            assert_eq!(settable(field, &before, &after), expected, "{field}: {before}");
        }
    }

    #[test]
    fn parts_are_read_from_names_of_fields() {
        let field = PartField { list: "tiles", id: 3, name: "show_description" };
        assert_eq!(PartField::of("tiles__3__show_description"), Some(field));
        for other in ["name", "destination__secrets", "tiles__x__color", "tiles__3"] {
            assert_eq!(PartField::of(other), None, "{other}");
        }
    }

    #[test]
    fn values_of_parts_are_found_and_set_in_tiles() {
        let dashboard = json!({ "tiles": [
            { "id": 3, "color": "blue", "text": null },
            { "id": 5, "color": null, "text": { "id": 4, "body": "Hello" } },
        ] });
        let part = |field| PartField::of(field).expect("a part");
        let mut tiles = Vec::new();
        for (field, now) in [
            ("tiles__3__color", Some(json!("blue"))),
            ("tiles__3__deleted", Some(json!(false))),
            ("tiles__9__deleted", Some(json!(true))),
            ("texts__4__body", Some(json!("Hello"))),
            ("texts__6__body", None),
        ] {
            assert_eq!(part(field).value(&dashboard), now, "{field}");
            if now.is_some() {
                part(field).set(&dashboard, &json!("x"), &mut tiles);
            }
        }
        let expected = json!([
            { "id": 3, "color": "x", "deleted": "x" },
            { "id": 9, "deleted": "x" },
            { "id": 5, "text": { "id": 4, "body": "x" } },
        ]);
        assert_eq!(json!(tiles), expected);
    }

    #[test]
    fn summaries_of_the_log_are_recognized() {
        for summary in
            ["(12 items)", "(1 member)", "Lorem… (5000 characters)", "(3 members, other values)"]
        {
            assert!(is_summary(&json!(summary)), "{summary}");
        }
        for text in ["Lorem (5000 characters)", "(items)", "(12 apples)", "12 items", ""] {
            assert!(!is_summary(&json!(text)), "{text}");
        }
    }

    #[test]
    fn long_values_are_compared_with_their_summary() {
        let long = "é".repeat(2000);
        let summary = json!(format!("{}… (2000 characters)", "é".repeat(100)));
        assert!(is_unchanged(&json!(long), &summary));
        assert!(!is_unchanged(&json!(format!("{long}é")), &summary));
        assert!(!is_unchanged(&json!(format!("e{}", &long[2..])), &summary));
        assert!(is_unchanged(&json!([1, 2]), &json!("(2 items)")));
        assert!(!is_unchanged(&json!([1]), &json!("(2 items)")));
        assert!(is_unchanged(&json!({ "a": 1 }), &json!("(1 member)")));
        assert!(is_unchanged(&json!(1), &json!(1)) && !is_unchanged(&json!(1), &json!(2)));
    }
}
