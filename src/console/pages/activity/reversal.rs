//! The request that reverts an entry.

use serde_json::{Map, Value};

use super::entry::{Change, Entry};
use super::parts::PartField;
use super::summary::is_summary;

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
}
