//! How a field is shown and read: what its page says, what its schema says, and the values that it offers.

use serde_json::Value;

use crate::console::words::words;

/// How a field is shown, if not as its schema says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::console) enum Shape {
    /// As the schema says.
    Plain,
    /// A text on one line, however long it may be.
    Line,
    /// A text with several lines.
    Area,
    /// A text with several lines and, on demand, what its Markdown becomes.
    Markdown,
    /// A text of a formal language, with several lines.
    Code,
    /// Checkboxes for a list of objects, whose values the page offers. Lists of texts and numbers need this only if nothing is
    /// offered.
    Several,
}

/// A field of a form, by the name of its property in the request body. A dot leads into a nested object,
/// and a number into an array: `tiles.0.color`.
#[derive(Debug, Clone, Copy)]
pub(in crate::console) struct Input {
    pub(super) name: &'static str,
    pub(super) label: Option<&'static str>,
    pub(super) hint: &'static str,
    pub(super) choices: &'static [(&'static str, &'static str)],
    pub(super) heading: Option<&'static str>,
    pub(super) shape: Shape,
    /// Whether the page requires a value where the API does not.
    pub(super) is_required: bool,
}

impl Input {
    /// Shows the property as its schema describes it.
    pub(in crate::console) const fn new(name: &'static str) -> Self {
        Self {
            name,
            label: None,
            hint: "",
            choices: &[],
            heading: None,
            shape: Shape::Plain,
            is_required: false,
        }
    }

    /// Sets the label. Otherwise it is the first sentence of the property's description.
    pub(in crate::console) const fn label(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    /// Sets the text below the field. The description of the property never stands there: it speaks to clients of the API.
    pub(in crate::console) const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    /// Offers these values, each with its label. The form reads them by the schema.
    pub(in crate::console) const fn choices(
        mut self,
        choices: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.choices = choices;
        self
    }

    /// Requires a value in a form that creates something, although the API does not.
    pub(in crate::console) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Begins a group with this heading.
    pub(in crate::console) const fn heading(mut self, heading: &'static str) -> Self {
        self.heading = Some(heading);
        self
    }

    /// Shows the field in this way.
    pub(in crate::console) const fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }
}

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
