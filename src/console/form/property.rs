//! The properties of request bodies: how a value of the API becomes text in a form, and the text a value.

use serde_json::{Number, Value};

use crate::base::error::TextPosition;
use crate::base::json::{self, escape_invisible};

use super::input::{FieldKind, ItemKind, plain};

/// A property of a request body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Property {
    pub(super) kind: FieldKind,
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
            kind: FieldKind::of(schema, &types, is_nullable),
            is_nullable,
            max_length,
            description: description.unwrap_or_default().replace('\n', " "),
        }
    }

    /// Returns the text of a value.
    pub(super) fn show(&self, value: &Value) -> String {
        match (&self.kind, value) {
            (FieldKind::Secret | FieldKind::SecretArea, _) | (FieldKind::Json, Value::Null) => {
                String::new()
            }
            (FieldKind::Flag, value) => {
                if *value == Value::Bool(true) { "true" } else { "" }.to_owned()
            }
            (FieldKind::Lines { .. } | FieldKind::Boxes { .. }, Value::Array(items)) => {
                items.iter().map(plain).collect::<Vec<_>>().join("\n")
            }
            (FieldKind::Moment, Value::String(time)) => local_time(time),
            (FieldKind::Json, value) => {
                escape_invisible(serde_json::to_string_pretty(value).unwrap_or_default())
            }
            _ => plain(value),
        }
    }

    /// Returns the value of a text.
    ///
    /// # Errors
    /// The error of a text that is not JSON. The API checks everything else.
    pub(super) fn read(&self, text: &str) -> Result<Value, NotJson> {
        let is_empty = text.trim().is_empty();
        Ok(match &self.kind {
            FieldKind::Flag => Value::Bool(text == "true"),
            FieldKind::Choice(choices) => {
                let known = choices.iter().find(|choice| choice.text() == text);
                known.map_or_else(|| Value::from(text), |choice| choice.value.clone())
            }
            FieldKind::Lines { items } | FieldKind::Boxes { items, .. } => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                lines.map(|line| items.read(line)).collect()
            }
            _ if is_empty && self.is_nullable => Value::Null,
            FieldKind::Number { .. } => number(text.trim()),
            FieldKind::Moment => Value::from(universal_time(text.trim())),
            FieldKind::Json => {
                json::parse(text.as_bytes()).map_err(|error| NotJson::of(text, &error))?
            }
            FieldKind::Area | FieldKind::SecretArea => Value::from(text.replace("\r\n", "\n")),
            FieldKind::Text | FieldKind::Email | FieldKind::Secret => Value::from(text),
        })
    }
}

/// A text that is not JSON.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NotJson {
    pub(super) detail: &'static str,
    /// The place of the error in the text, unless the text is blank.
    pub(super) position: Option<TextPosition>,
}

impl NotJson {
    fn of(text: &str, error: &serde_json::Error) -> Self {
        if text.trim().is_empty() {
            return Self { detail: "Enter JSON, for example {}.", position: None };
        }
        let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
        // The parser counts bytes, and people count characters.
        let before = line.get(..error.column()).unwrap_or(line).chars().count();
        let (detail, column) = if error.is_eof() {
            ("This is not valid JSON, because its end is missing", before + 1)
        } else {
            ("This is not valid JSON", before.max(1))
        };
        Self { detail, position: Some(TextPosition { line: error.line(), column }) }
    }
}

impl ItemKind {
    /// Returns the value of a line. A line of another kind stays a text, which the API refuses.
    fn read(self, line: &str) -> Value {
        match self {
            Self::Text => Value::from(line),
            Self::Number => number(line),
            Self::Json => json::parse(line.as_bytes()).unwrap_or_else(|_| Value::from(line)),
        }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::console::form::input::Choice;

    fn property(schema: &Value) -> Property {
        Property::of(schema)
    }

    #[test]
    fn schemas_become_kinds_of_fields() {
        let kind = |schema: Value| property(&schema).kind;
        assert_eq!(kind(json!({"type": "string", "maxLength": 512})), FieldKind::Text);
        assert_eq!(kind(json!({"type": ["string", "null"], "maxLength": 513})), FieldKind::Area);
        let url = json!({"type": "string", "pattern": "^https?:", "maxLength": 2048});
        assert_eq!(kind(url), FieldKind::Text);
        let pem = json!({"type": ["string", "null"], "writeOnly": true, "maxLength": 16_384});
        assert_eq!(kind(pem), FieldKind::SecretArea);
        assert_eq!(kind(json!({"type": "string", "format": "email"})), FieldKind::Email);
        assert_eq!(kind(json!({"type": "string", "writeOnly": true})), FieldKind::Secret);
        assert_eq!(kind(json!({"type": "boolean"})), FieldKind::Flag);
        let number = kind(json!({"type": ["integer", "null"], "minimum": 0, "maximum": 9}));
        assert_eq!(number, FieldKind::Number { min: Some(0), max: Some(9) });
        let strings = json!({"type": "array", "items": {"type": ["string", "null"]}});
        assert_eq!(kind(strings), FieldKind::Lines { items: ItemKind::Text });
        let numbers = json!({"type": ["array", "null"], "items": {"type": "integer"}});
        assert_eq!(kind(numbers), FieldKind::Lines { items: ItemKind::Number });
        let mixed = json!({"type": "array", "items": {"type": ["integer", "string"]}});
        assert_eq!(kind(mixed), FieldKind::Json);
        assert_eq!(kind(json!({"type": "string", "format": "date-time"})), FieldKind::Moment);
        let anything = json!({"type": ["object", "array", "string", "null"], "items": {}});
        assert_eq!(kind(anything), FieldKind::Json);
        let choices = json!({"type": ["integer", "null"], "enum": [0, 1, null]});
        let labels = [(Value::Null, "Not set"), (json!(0), "0"), (json!(1), "1")];
        let labels = labels.map(|(value, label)| Choice::new(value, label));
        assert_eq!(kind(choices), FieldKind::Choice(labels.to_vec()));
    }

    #[test]
    fn values_that_are_not_json_are_refused_and_others_left_to_the_api() {
        let read = |schema: Value, text: &str| property(&schema).read(text);
        let json = json!({"type": "object"});
        for (text, detail, place) in [
            ("{x", "This is not valid JSON", Some((1, 2))),
            ("{", "This is not valid JSON, because its end is missing", Some((1, 2))),
            ("{\n\"é\": x", "This is not valid JSON", Some((2, 6))),
            ("[1,\n", "This is not valid JSON, because its end is missing", Some((2, 1))),
            (" ", "Enter JSON, for example {}.", None),
        ] {
            let position = place.map(|(line, column)| TextPosition { line, column });
            assert_eq!(read(json.clone(), text), Err(NotJson { detail, position }), "{text}");
        }
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
            let kind = FieldKind::Boxes { choices: Vec::new(), items: ItemKind::Json };
            let property = Property { kind, ..property(&json!({"type": "array"})) };
            let objects = json!([{ "id": number, "text": text }, number]);
            prop_assert_eq!(property.read(&property.show(&objects)), Ok(objects));
        }
    }
}
