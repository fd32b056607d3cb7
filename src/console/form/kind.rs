//! The kinds of fields: how a value of the API becomes text in a form, and the text a value.

use serde_json::{Number, Value};

/// Texts with a larger maximum get several lines.
const MAX_LINE: u64 = 400;

/// A value of a choice with its label.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::console) struct Choice {
    pub(in crate::console) value: Value,
    pub(in crate::console) label: String,
}

impl Choice {
    pub(in crate::console) fn new(value: impl Into<Value>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into() }
    }

    /// Returns the value as the form sends it.
    pub(in crate::console) fn text(&self) -> String {
        plain(&self.value)
    }
}

/// How a field is shown and read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Text,
    /// A text of several lines.
    Area,
    Email,
    /// A text that the API does not return.
    Secret,
    Number {
        min: Option<i64>,
        max: Option<i64>,
    },
    Flag,
    Choice(Vec<Choice>),
    /// Texts, one on each line.
    Lines,
    Json,
}

/// A property of a request body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Property {
    pub(super) kind: Kind,
    pub(super) is_nullable: bool,
    pub(super) max_length: Option<u64>,
    pub(super) description: String,
}

impl Property {
    /// Reads the schema of a property.
    pub(super) fn of(schema: &Value) -> Self {
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let is_nullable = types.contains(&"null");
        let types: Vec<_> = types.into_iter().filter(|name| *name != "null").collect();
        let max_length = schema.get("maxLength").and_then(Value::as_u64);
        let description = schema.get("description").and_then(Value::as_str);
        Self {
            kind: Kind::of(schema, &types, is_nullable),
            is_nullable,
            max_length,
            description: description.unwrap_or_default().replace('\n', " "),
        }
    }

    /// Returns the text of a value.
    pub(super) fn show(&self, value: &Value) -> String {
        match (&self.kind, value) {
            (Kind::Secret, _) => String::new(),
            (Kind::Flag, value) => if *value == Value::Bool(true) { "true" } else { "" }.to_owned(),
            (Kind::Lines, Value::Array(items)) => {
                items.iter().map(plain).collect::<Vec<_>>().join("\n")
            }
            (Kind::Json, Value::Null) if self.is_nullable => String::new(),
            (Kind::Json, value) => serde_json::to_string_pretty(value).unwrap_or_default(),
            _ => plain(value),
        }
    }

    /// Returns the value of a text.
    ///
    /// # Errors
    /// What is wrong with the text, if it is not JSON. The API checks everything else.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        let is_empty = text.trim().is_empty();
        Ok(match &self.kind {
            Kind::Flag => Value::Bool(text == "true"),
            Kind::Choice(choices) => {
                let known = choices.iter().find(|choice| choice.text() == text);
                known.map_or_else(|| Value::from(text), |choice| choice.value.clone())
            }
            Kind::Lines => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                lines.map(Value::from).collect()
            }
            _ if is_empty && self.is_nullable => Value::Null,
            Kind::Number { .. } => {
                let number = text.trim().parse::<Number>();
                number.map_or_else(|_| Value::from(text), Value::Number)
            }
            Kind::Json => serde_json::from_str(text)
                .map_err(|error| format!("This is not valid JSON: {error}."))?,
            Kind::Area => Value::from(text.replace("\r\n", "\n")),
            Kind::Text | Kind::Email | Kind::Secret => Value::from(text),
        })
    }
}

impl Kind {
    fn of(schema: &Value, types: &[&str], is_nullable: bool) -> Self {
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
            ["string"] if is_secret || format == Some("password") => Self::Secret,
            ["string"] if format == Some("email") => Self::Email,
            ["string"] if max_length.is_some_and(|most| most > MAX_LINE) => Self::Area,
            ["string"] => Self::Text,
            ["array"] if is_list_of_texts(schema) => Self::Lines,
            _ => Self::Json,
        }
    }
}

fn not_set(is_nullable: bool) -> impl Iterator<Item = Choice> {
    is_nullable.then(|| Choice::new(Value::Null, "Not set")).into_iter()
}

fn is_list_of_texts(schema: &Value) -> bool {
    match schema.pointer("/items/type") {
        Some(Value::String(one)) => one == "string",
        Some(Value::Array(all)) => all.contains(&Value::from("string")) && all.len() <= 2,
        _ => false,
    }
}

/// Returns the text of a plain value: a text itself, an empty text for null, JSON for others.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Turns the name of a field or value into words.
pub(super) fn words(name: &str) -> String {
    let text = name.replace(['_', '-'], " ");
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn property(schema: &Value) -> Property {
        Property::of(schema)
    }

    #[test]
    fn schemas_become_kinds_of_fields() {
        let kind = |schema: Value| property(&schema).kind;
        assert_eq!(kind(json!({"type": "string", "maxLength": 400})), Kind::Text);
        assert_eq!(kind(json!({"type": ["string", "null"], "maxLength": 401})), Kind::Area);
        assert_eq!(kind(json!({"type": "string", "format": "email"})), Kind::Email);
        assert_eq!(kind(json!({"type": "string", "writeOnly": true})), Kind::Secret);
        assert_eq!(kind(json!({"type": "boolean"})), Kind::Flag);
        assert_eq!(
            kind(json!({"type": ["integer", "null"], "minimum": 0, "maximum": 9})),
            Kind::Number { min: Some(0), max: Some(9) }
        );
        let strings = json!({"type": "array", "items": {"type": ["string", "null"]}});
        assert_eq!(kind(strings), Kind::Lines);
        let anything = json!({"type": ["object", "array", "string", "null"], "items": {}});
        assert_eq!(kind(anything), Kind::Json);
        let choices = json!({"type": ["integer", "null"], "enum": [0, 1, null]});
        let labels = [(Value::Null, "Not set"), (json!(0), "0"), (json!(1), "1")];
        let labels = labels.map(|(value, label)| Choice::new(value, label));
        assert_eq!(kind(choices), Kind::Choice(labels.to_vec()));
    }

    #[test]
    fn values_that_are_not_json_are_refused_and_others_left_to_the_api() {
        let read = |schema: Value, text: &str| property(&schema).read(text);
        let json = json!({"type": "object"});
        let refused = "This is not valid JSON: key must be a string at line 1 column 2.";
        assert_eq!(read(json, "{x"), Err(refused.to_owned()));
        let number = json!({"type": ["integer", "null"]});
        assert_eq!(read(number.clone(), "7"), Ok(json!(7)));
        assert_eq!(read(number.clone(), "x"), Ok(json!("x")));
        assert_eq!(read(number, " "), Ok(Value::Null));
        assert_eq!(read(json!({"type": "string"}), ""), Ok(json!("")));
        assert_eq!(read(json!({"type": "string", "enum": ["a"]}), "b"), Ok(json!("b")));
        assert_eq!(read(json!({"type": "boolean"}), ""), Ok(json!(false)));
    }

    proptest! {
        #[test]
        fn shown_values_are_read_back(
            text in "[^\0\r]{0,30}",
            lines in proptest::collection::vec("[a-z]{1,5}( [a-z]{1,5})?", 0..4),
            number in any::<i64>(),
        ) {
            let same = |schema: Value, value: Value| {
                let property = property(&schema);
                prop_assert_eq!(property.read(&property.show(&value)), Ok(value));
                Ok(())
            };
            same(json!({"type": "string"}), json!(text))?;
            same(json!({"type": "string", "maxLength": 500}), json!(text))?;
            same(json!({"type": "array", "items": {"type": "string"}}), json!(lines))?;
            same(json!({"type": "integer"}), json!(number))?;
            same(json!({"type": "object"}), json!({ "a": [text, number, lines] }))?;
        }
    }
}
