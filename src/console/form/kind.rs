//! The kinds of fields: how a value of the API becomes text in a form, and the text a value.

use serde_json::{Number, Value};

/// Texts with a larger maximum get several lines.
const MAX_LINE: u64 = 512;
/// Texts that the API does not return get several lines above this maximum, because a browser removes the ends of lines
/// from a field for one line.
const MAX_SECRET_LINE: u64 = 4096;

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

/// How a field is shown and read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
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

impl ItemKind {
    /// Returns the value of a line. A line of another kind stays a text, which the API refuses.
    fn read(self, line: &str) -> Value {
        match self {
            Self::Text => Value::from(line),
            Self::Number => number(line),
            Self::Json => serde_json::from_str(line).unwrap_or_else(|_| Value::from(line)),
        }
    }
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
            (Kind::Secret | Kind::SecretArea, _) | (Kind::Json, Value::Null) => String::new(),
            (Kind::Flag, value) => if *value == Value::Bool(true) { "true" } else { "" }.to_owned(),
            (Kind::Lines { .. } | Kind::Boxes { .. }, Value::Array(items)) => {
                items.iter().map(plain).collect::<Vec<_>>().join("\n")
            }
            (Kind::Moment, Value::String(time)) => local_time(time),
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
            Kind::Lines { items } | Kind::Boxes { items, .. } => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                lines.map(|line| items.read(line)).collect()
            }
            _ if is_empty && self.is_nullable => Value::Null,
            Kind::Number { .. } => number(text.trim()),
            Kind::Moment => Value::from(universal_time(text.trim())),
            Kind::Json => serde_json::from_str(text)
                .map_err(|error| format!("This is not valid JSON: {error}."))?,
            Kind::Area | Kind::SecretArea => Value::from(text.replace("\r\n", "\n")),
            Kind::Text | Kind::Email | Kind::Secret => Value::from(text),
        })
    }
}

impl Kind {
    /// Offers these values: several of them if the values are a list, otherwise one.
    pub(super) fn offering(&self, choices: Vec<Choice>) -> Self {
        match self {
            Self::Lines { items } | Self::Boxes { items, .. } => {
                Self::Boxes { choices, items: *items }
            }
            _ => Self::Choice(choices),
        }
    }

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

/// Returns the number in a text, or the text itself, which the API refuses.
fn number(text: &str) -> Value {
    text.parse::<Number>().map_or_else(|_| Value::from(text), Value::Number)
}

/// Returns a time of the API as browsers write it: without zone and fraction, and without seconds if they are zero.
fn local_time(time: &str) -> String {
    let whole = time.split(['.', 'Z', '+']).next().unwrap_or_default();
    whole.strip_suffix(":00").filter(|short| short.len() == 16).unwrap_or(whole).to_owned()
}

/// Returns a time of a browser as the API writes it. Another text stays as it is.
fn universal_time(text: &str) -> String {
    match text.len() {
        16 => format!("{text}:00Z"),
        19 => format!("{text}Z"),
        _ => text.to_owned(),
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
        assert_eq!(kind(json!({"type": "string", "maxLength": 512})), Kind::Text);
        assert_eq!(kind(json!({"type": ["string", "null"], "maxLength": 513})), Kind::Area);
        let url = json!({"type": "string", "pattern": "^https?:", "maxLength": 2048});
        assert_eq!(kind(url), Kind::Text);
        let pem = json!({"type": ["string", "null"], "writeOnly": true, "maxLength": 16_384});
        assert_eq!(kind(pem), Kind::SecretArea);
        assert_eq!(kind(json!({"type": "string", "format": "email"})), Kind::Email);
        assert_eq!(kind(json!({"type": "string", "writeOnly": true})), Kind::Secret);
        assert_eq!(kind(json!({"type": "boolean"})), Kind::Flag);
        assert_eq!(
            kind(json!({"type": ["integer", "null"], "minimum": 0, "maximum": 9})),
            Kind::Number { min: Some(0), max: Some(9) }
        );
        let strings = json!({"type": "array", "items": {"type": ["string", "null"]}});
        assert_eq!(kind(strings), Kind::Lines { items: ItemKind::Text });
        let numbers = json!({"type": ["array", "null"], "items": {"type": "integer"}});
        assert_eq!(kind(numbers), Kind::Lines { items: ItemKind::Number });
        let mixed = json!({"type": "array", "items": {"type": ["integer", "string"]}});
        assert_eq!(kind(mixed), Kind::Json);
        assert_eq!(kind(json!({"type": "string", "format": "date-time"})), Kind::Moment);
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

    #[test]
    fn times_are_shown_and_read_in_utc() {
        let moment = property(&json!({"type": ["string", "null"], "format": "date-time"}));
        for (stored, shown, read) in [
            ("2030-01-02T03:04:00Z", "2030-01-02T03:04", "2030-01-02T03:04:00Z"),
            ("2030-01-02T00:00:00Z", "2030-01-02T00:00", "2030-01-02T00:00:00Z"),
            ("2030-01-02T03:04:05.678901Z", "2030-01-02T03:04:05", "2030-01-02T03:04:05Z"),
            ("soon", "soon", "soon"),
        ] {
            assert_eq!(moment.show(&json!(stored)), shown);
            assert_eq!(moment.read(shown), Ok(json!(read)));
        }
        assert_eq!(moment.read(""), Ok(Value::Null));
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
            same(json!({"type": "array", "items": {"type": "integer"}}), json!([number, 0]))?;
            same(json!({"type": "object"}), json!({ "a": [text, number, lines] }))?;
            let kind = Kind::Boxes { choices: Vec::new(), items: ItemKind::Json };
            let property = Property { kind, ..property(&json!({"type": "array"})) };
            let objects = json!([{ "id": number, "text": text }, number]);
            prop_assert_eq!(property.read(&property.show(&objects)), Ok(objects));
        }
    }
}
