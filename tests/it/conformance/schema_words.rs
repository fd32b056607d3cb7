//! Types and bounds of the `OpenAPI` document in words.

use crate::support::prelude::*;

/// Describes a schema without a type.
const ANYTHING: &str = "any JSON";

/// Returns the name of the schema that a reference names.
pub fn referred(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/components/schemas/")
}

/// Describes a schema, such as `string of up to 400 characters or null`. Patterns are left out.
pub fn describe(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(referred) {
        return format!("`{name}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        return join(values.iter().map(literal));
    }
    let alternatives = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array());
    if let Some(alternatives) = alternatives {
        return join(alternatives.iter().map(describe));
    }
    match &schema["type"] {
        Value::String(kind) => describe_kind(kind, schema),
        Value::Array(kinds) => {
            join(kinds.iter().filter_map(Value::as_str).map(|kind| describe_kind(kind, schema)))
        }
        _ => ANYTHING.to_owned(),
    }
}

/// Describes one type of a schema with its bounds.
fn describe_kind(kind: &str, schema: &Value) -> String {
    let range = |least, most| range(&schema[least], &schema[most]);
    let bounds = match kind {
        "string" => {
            let format = schema["format"].as_str().map(|format| format!(" ({format})"));
            let length = range("minLength", "maxLength");
            let length = length.map(|length| format!(" of {length} characters"));
            format.unwrap_or_default() + &length.unwrap_or_default()
        }
        "array" => {
            let length = range("minItems", "maxItems").map(|length| format!("{length} "));
            match items(&schema["items"]) {
                None if length.is_none() => String::new(),
                items => {
                    let items = items.as_deref().unwrap_or("items");
                    format!(" of {}{items}", length.unwrap_or_default())
                }
            }
        }
        "object" => keys(schema),
        "integer" | "number" => {
            range("minimum", "maximum").map(|range| format!(" of {range}")).unwrap_or_default()
        }
        _ => String::new(),
    };
    kind.to_owned() + &bounds
}

/// Describes the items of an array, in parentheses if it takes several words. Returns nothing if they may be anything.
fn items(schema: &Value) -> Option<String> {
    match describe(schema) {
        words if words == ANYTHING => None,
        words if words.contains(' ') => Some(format!("({words})")),
        word => Some(word),
    }
}

/// Returns the members that an object declares in place.
fn keys(schema: &Value) -> String {
    let names = schema["properties"].as_object().into_iter().flatten();
    let names: Vec<_> = names.map(|(name, _)| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!(" with {}", names.join(", ")) }
}

fn range(least: &Value, most: &Value) -> Option<String> {
    match (least.as_u64(), most.as_u64()) {
        (None, None) => None,
        (None, Some(most)) => Some(format!("up to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) if text.is_empty() => "empty".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}

/// Joins alternatives: `a, b or c`.
fn join(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<_> = words.collect();
    match words.pop() {
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} or {last}", words.join(", ")),
        None => String::new(),
    }
}
