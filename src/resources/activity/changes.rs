//! Lists the changed fields of an entry. Long values are replaced by a summary, secret values by null.

use serde_json::{Map, Value};

use super::FieldChange;

/// The maximum length of a value that an entry repeats, in bytes of JSON. A longer value is summarized.
const MAX_VALUE_SIZE: usize = 2048;
/// The maximum length of all values that an entry repeats, in bytes of JSON. Values beyond it are summarized.
const MAX_TOTAL_SIZE: usize = 32 * 1024;
/// The number of characters of a long text that its summary shows.
const MAX_PREVIEW: usize = 100;
/// The maximum number of changes in an entry: a dashboard may have a thousand tiles.
const MAX_CHANGES: usize = 200;

/// Fields that every update changes, so entries leave them out.
const IMPLIED_FIELDS: [&str; 3] = ["updated_at", "last_modified_at", "last_updated_at"];

/// Returns the fields that differ between `before` and `after`. Values of `hidden` fields are null.
pub(super) fn changes(
    scope: &str,
    hidden: &[&str],
    mut before: Map<String, Value>,
    after: &Map<String, Value>,
) -> Vec<FieldChange> {
    for field in after.keys() {
        before.entry(field).or_insert(Value::Null);
    }
    let mut left = MAX_TOTAL_SIZE;
    let mut shown = |field: &str, value: &Value| {
        if hidden.contains(&field) { Value::Null } else { summarize(value, &mut left) }
    };
    before
        .into_iter()
        .filter(|(field, value)| {
            let after = after.get(field).unwrap_or(&Value::Null);
            !IMPLIED_FIELDS.contains(&field.as_str()) && after != value
        })
        .take(MAX_CHANGES)
        .map(|(field, value)| FieldChange {
            r#type: scope.to_owned(),
            action: "changed".to_owned(),
            before: shown(&field, &value),
            after: shown(&field, after.get(&field).unwrap_or(&Value::Null)),
            field,
        })
        .collect()
}

/// Removes the fields of a part that do not differ, and summarizes long lists and objects.
///
/// An entry may cover a thousand parts, and parsed JSON takes a hundred times the memory of its text.
pub(super) fn keep_changed(before: &mut Map<String, Value>, after: &mut Map<String, Value>) {
    before.retain(|field, value| {
        let Some(other) = after.get_mut(field) else {
            shorten(value);
            return true;
        };
        if value == other {
            after.shift_remove(field);
            return false;
        }
        let is_shorter = [shorten(value), shorten(other)].contains(&true);
        if is_shorter && value == other {
            *other = format!(
                "{}, other values)",
                value.as_str().unwrap_or_default().trim_end_matches(')')
            )
            .into();
        }
        true
    });
    for value in after.values_mut() {
        shorten(value);
    }
}

/// Replaces a long list or object by its summary. Returns whether it did.
fn shorten(value: &mut Value) -> bool {
    let word = match value {
        Value::Array(items) => pluralize(items.len(), "item"),
        Value::Object(members) => pluralize(members.len(), "member"),
        _ => return false,
    };
    let is_long = value.to_string().len() > MAX_VALUE_SIZE;
    if is_long {
        *value = word.into();
    }
    is_long
}

/// Returns the value itself if it fits in `left` bytes, or a summary of it.
fn summarize(value: &Value, left: &mut usize) -> Value {
    let length = value.to_string().len();
    if length <= MAX_VALUE_SIZE.min(*left) {
        *left -= length;
        return value.clone();
    }
    let in_a_word = match value {
        Value::String(text) => {
            let count = text.chars().count();
            let beginning: String = text.chars().take(MAX_PREVIEW).collect();
            let word = format!("({count} characters)");
            if count > MAX_PREVIEW && beginning.len() <= *left {
                *left -= beginning.len();
                format!("{beginning}\u{2026} {word}")
            } else {
                word
            }
        }
        Value::Array(items) => pluralize(items.len(), "item"),
        Value::Object(members) => pluralize(members.len(), "member"),
        // Numbers, booleans and null are never long.
        value => return value.clone(),
    };
    in_a_word.into()
}

fn pluralize(count: usize, what: &str) -> String {
    format!("({count} {what}{})", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        Map::from_iter([("field".to_owned(), value)])
    }

    fn summaries(before: Value, after: Value) -> (Value, Value) {
        let mut changed = changes("Thing", &[], fields(before), &fields(after));
        assert_eq!(changed.len(), 1);
        let change = changed.remove(0);
        (change.before, change.after)
    }

    #[test]
    fn long_values_are_summarized() {
        let text = "\u{e9}".repeat(2000);
        let items = json!(vec![1; 1500]);
        let members = json!({ "a": text, "b": 2 });
        let one = json!([text]);
        let beginning = "\u{e9}".repeat(100);
        let shown = json!(format!("{beginning}\u{2026} (2000 characters)"));
        assert_eq!(summaries(text.into(), items), (shown, json!("(1500 items)")));
        assert_eq!(summaries(members, one), (json!("(2 members)"), json!("(1 item)")));
    }

    #[test]
    fn only_changed_members_are_kept_and_long_ones_summarized() {
        let long = |last: u8| json!({ "a": vec![1; 2000], "last": last });
        let (mut before, mut after) = (Map::new(), Map::new());
        for (name, old, new) in [
            ("same", long(1), long(1)),
            ("other", long(1), long(2)),
            ("shrunk", long(1), json!({})),
            ("short", json!([1]), json!([2])),
        ] {
            before.insert(name.to_owned(), old);
            after.insert(name.to_owned(), new);
        }
        after.insert("new".to_owned(), long(1));
        keep_changed(&mut before, &mut after);
        let expected = json!({ "other": "(2 members)", "shrunk": "(2 members)", "short": [1] });
        assert_eq!(Value::from(before), expected);
        let expected = json!({
            "other": "(2 members, other values)", "shrunk": {}, "short": [2], "new": "(2 members)",
        });
        assert_eq!(Value::from(after), expected);
    }

    #[test]
    fn short_values_are_kept_unchanged() {
        let text = json!("x".repeat(MAX_VALUE_SIZE - 2));
        assert_eq!(summaries(json!(null), text.clone()), (json!(null), text));
        let value = json!({ "a": [1, 2.5, "x", null] });
        assert_eq!(summaries(value.clone(), json!(-1)), (value, json!(-1)));
    }

    #[test]
    fn secret_values_are_hidden_with_their_length() {
        let after = fields(json!("s".repeat(5000)));
        let changed = changes("Thing", &["field"], fields(json!("secret")), &after);
        assert_eq!((&changed[0].before, &changed[0].after), (&json!(null), &json!(null)));
    }

    #[test]
    fn total_size_of_changes_is_limited() {
        let value = |at: usize| (format!("f{at:03}"), json!("v".repeat(900)));
        let after: Map<_, _> = (0..500).map(value).collect();
        let changed = changes("Thing", &[], Map::new(), &after);
        assert_eq!(changed.len(), MAX_CHANGES);
        assert_eq!(changed[0].after, json!("v".repeat(900)));
        assert_eq!(changed[MAX_CHANGES - 1].after, json!("(900 characters)"));
        let values: usize = changed.iter().map(|change| change.after.to_string().len()).sum();
        assert!(values < MAX_TOTAL_SIZE + MAX_CHANGES * 24, "{values}");
    }
}
