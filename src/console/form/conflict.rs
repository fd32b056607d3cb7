//! Two changes of the same object: the form is merged with what is stored now.

use serde_json::{Map, Value};

use super::field::Field;

/// A field that somebody else has changed since the form was filled.
pub(super) struct Difference {
    pub(super) label: String,
    before: String,
    now: String,
    /// The value in the form, or a dash if it was not changed there.
    yours: String,
}

/// A value with more bytes is folded.
pub(super) const MAX_OPEN_VALUE: usize = 600;

impl Difference {
    /// Returns the value before, the value now, and that of the form.
    pub(super) fn values(&self) -> [&str; 3] {
        [&self.before, &self.now, &self.yours]
    }
}

/// Fills the fields that the form has not changed with what is stored now. Returns what others have changed.
pub(super) fn merge(
    fields: &mut [Field],
    before: &Map<String, Value>,
    now: &Map<String, Value>,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    for field in fields.iter_mut() {
        let value = |of: &Map<String, Value>| {
            of.get(field.input.name).map_or(String::new(), |value| field.property.show(value))
        };
        let (old, new) = (value(before), value(now));
        if old != new {
            differences.push(Difference {
                label: field.label(),
                before: or_dash(&old),
                now: or_dash(&new),
                yours: if field.is_changed { or_dash(&field.text) } else { "–".to_owned() },
            });
        }
        if !field.is_changed {
            field.text = new;
        }
    }
    differences
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "–".to_owned() } else { text.to_owned() }
}
