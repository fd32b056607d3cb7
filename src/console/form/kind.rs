//! The kinds of fields, which follow from the schemas of the API.

use serde_json::Value;

use crate::console::words::words;

use super::choice::{Choice, plain};

/// Texts with a larger maximum get several lines.
const MAX_LINE: u64 = 512;
/// Texts that the API does not return get several lines above this maximum, because a browser removes the ends of lines
/// from a field for one line.
const MAX_SECRET_LINE: u64 = 4096;

/// How a field is shown and read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FieldKind {
    Text,
    /// A text of several lines.
    Area,
    Email,
    /// A text that the API does not return.
    Secret,
    /// A text of several lines that the API does not return, such as a private key.
    SecretArea,
    Number {
        min: Option<i64>,
        max: Option<i64>,
    },
    Flag,
    Choice(Vec<Choice>),
    /// A time in UTC.
    Moment,
    /// Texts or numbers, one on each line.
    Lines {
        items: ItemKind,
    },
    /// Several of these values, each with a checkbox.
    Boxes {
        choices: Vec<Choice>,
        items: ItemKind,
    },
    Json,
}

/// The values of a list that is shown as lines or checkboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Text,
    Number,
    /// Other values, as JSON on a line.
    Json,
}

impl FieldKind {
    /// Offers these values: several of them if the values are a list, otherwise one.
    pub(super) fn offering(&self, choices: Vec<Choice>) -> Self {
        match self {
            Self::Lines { items } | Self::Boxes { items, .. } => {
                Self::Boxes { choices, items: *items }
            }
            _ => Self::Choice(choices),
        }
    }

    /// Returns the kind of a property with this schema.
    pub(super) fn of(schema: &Value, types: &[&str], is_nullable: bool) -> Self {
        let number = |name| schema.get(name).and_then(Value::as_i64);
        let format = schema.get("format").and_then(Value::as_str);
        let max_length = schema.get("maxLength").and_then(Value::as_u64);
        let is_secret = schema.get("writeOnly") == Some(&Value::Bool(true));
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let named = values.iter().filter(|value| !value.is_null());
            let named = named.map(|value| Choice::new(value.clone(), words(&plain(value))));
            return Self::Choice(not_set(is_nullable).chain(named).collect());
        }
        match types {
            ["boolean"] if is_nullable => {
                let named = [Choice::new(true, "Yes"), Choice::new(false, "No")];
                Self::Choice(not_set(true).chain(named).collect())
            }
            ["boolean"] => Self::Flag,
            ["integer" | "number"] => {
                Self::Number { min: number("minimum"), max: number("maximum") }
            }
            ["string"] if is_secret && max_length.is_some_and(|most| most > MAX_SECRET_LINE) => {
                Self::SecretArea
            }
            ["string"] if is_secret || format == Some("password") => Self::Secret,
            ["string"] if matches!(format, Some("email" | "idn-email")) => Self::Email,
            ["string"] if format == Some("date-time") => Self::Moment,
            ["string"] if schema.get("pattern").is_some() => Self::Text,
            ["string"] if max_length.is_some_and(|most| most > MAX_LINE) => Self::Area,
            ["string"] => Self::Text,
            ["array"] if is_list_of(schema, "string") => Self::Lines { items: ItemKind::Text },
            ["array"] if is_list_of(schema, "integer") => Self::Lines { items: ItemKind::Number },
            _ => Self::Json,
        }
    }
}

fn not_set(is_nullable: bool) -> impl Iterator<Item = Choice> {
    is_nullable.then(|| Choice::new(Value::Null, "Not set")).into_iter()
}

/// Whether a schema is a list of plain values of a type. The values may be null.
fn is_list_of(schema: &Value, name: &str) -> bool {
    match schema.pointer("/items/type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(all)) => {
            all.contains(&Value::from(name))
                && all.iter().all(|known| known == name || known == "null")
        }
        _ => false,
    }
}
