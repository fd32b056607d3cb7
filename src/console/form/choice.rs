//! The values that a field offers.

use serde_json::Value;

/// A value of a choice with its label.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::console) struct Choice {
    pub(in crate::console) value: Value,
    pub(in crate::console) label: String,
    /// The heading of the row of checkboxes that the choice stands in. Otherwise it has a row of its own.
    pub(in crate::console) group: Option<String>,
}

impl Choice {
    pub(in crate::console) fn new(value: impl Into<Value>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into(), group: None }
    }

    /// Puts the checkbox into a row with this heading, beside those before it with the same heading.
    pub(in crate::console) fn in_group(mut self, heading: impl Into<String>) -> Self {
        self.group = Some(heading.into());
        self
    }

    /// Returns the value as the form sends it.
    pub(in crate::console) fn text(&self) -> String {
        plain(&self.value)
    }
}

/// Returns the text of a plain value: a text itself, an empty text for null, JSON for others.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
