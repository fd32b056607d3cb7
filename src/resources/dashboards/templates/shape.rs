//! Checks the structure of a template. PostHog checks it with Python's `jsonschema`, so the error texts,
//! and which of several errors is reported, follow that library.

use std::fmt::{self, Write};

use crate::resources::shared::prelude::*;

/// The expected structure of a value.
enum Shape {
    /// A value of one of these types.
    Types(&'static [&'static str]),
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A list of items of this structure; whether it may be empty.
    List(&'static Shape, bool),
    /// A value of this structure, or null.
    Nullable(&'static Shape),
    /// An object with these members. Other members are allowed.
    Object(&'static [Member]),
}

/// A member of an object: its name, whether it is required, and its structure.
type Member = (&'static str, bool, Shape);

const TEXT: Shape = Shape::Types(&["string"]);
const ANY_OBJECT: Shape = Shape::Object(&[]);

const TEMPLATE: Shape = Shape::Object(&[
    ("id", false, TEXT),
    ("template_name", true, TEXT),
    ("team_id", false, Shape::Types(&["number", "null"])),
    ("created_at", false, TEXT),
    ("image_url", false, Shape::Types(&["string", "null"])),
    ("dashboard_description", true, TEXT),
    ("dashboard_filters", true, ANY_OBJECT),
    ("tiles", true, Shape::List(&ANY_OBJECT, false)),
    ("variables", false, Shape::Nullable(&Shape::List(&VARIABLE, true))),
    ("tags", false, Shape::List(&TEXT, true)),
]);

const VARIABLE: Shape = Shape::Object(&[
    ("id", true, TEXT),
    ("name", true, TEXT),
    ("type", true, Shape::Choice(&["event"])),
    ("default", true, ANY_OBJECT),
    ("description", true, TEXT),
    ("required", true, Shape::Types(&["boolean"])),
]);

/// Refuses a value that does not have the structure of a template.
///
/// # Errors
/// 400 without `attr`. The detail says what is wrong, and where.
pub(super) fn require(template: &Value) -> Result<()> {
    let Some(Fault { value, rule, text, path }) = TEMPLATE.fault(template) else { return Ok(()) };
    let place: String = path.into_iter().rev().collect();
    let value = python(value, 1000);
    Err(Error::invalid(
        "invalid_input",
        format!(
            "{text}\n\nFailed validating '{rule}' in schema\n\nOn instance{place}:\n    {value}"
        ),
    ))
}

impl Shape {
    /// Returns the error with the shortest path in the value; of several, the first.
    fn fault<'v>(&self, value: &'v Value) -> Option<Fault<'v>> {
        match (self, value) {
            (Self::Nullable(_), Value::Null) => None,
            (Self::Nullable(shape), _) => match shape.fault(value)? {
                fault if fault.path.is_empty() => {
                    Some(Fault::of(value, "anyOf", "is not valid under any of the given schemas"))
                }
                fault => Some(fault),
            },
            (Self::Object(members), Value::Object(found)) => in_object(members, value, found),
            (Self::List(_, false), Value::Array(items)) if items.is_empty() => {
                Some(Fault::of(value, "minItems", "should be non-empty"))
            }
            (Self::List(shape, _), Value::Array(items)) => in_list(shape, items),
            (Self::Choice(words), _) => {
                let known = value.as_str().is_some_and(|word| words.contains(&word));
                let wrong = || format!("is not one of [{}]", quoted(words));
                (!known).then(|| Fault::of(value, "enum", &wrong()))
            }
            _ => {
                let types = self.types();
                let fits = types.iter().any(|name| is(value, name));
                let wrong = || format!("is not of type {}", quoted(types));
                (!fits).then(|| Fault::of(value, "type", &wrong()))
            }
        }
    }

    /// Returns the types that the value may have.
    const fn types(&self) -> &'static [&'static str] {
        match self {
            Self::Types(types) => types,
            Self::Object(_) => &["object"],
            Self::List(..) => &["array"],
            Self::Choice(_) | Self::Nullable(_) => &[],
        }
    }
}

fn in_object<'v>(members: &[Member], value: &'v Value, found: &'v JsonObject) -> Option<Fault<'v>> {
    let missing = members.iter().find(|(name, must, _)| *must && !found.contains_key(*name));
    if let Some((name, ..)) = missing {
        let text = format!("'{name}' is a required property");
        return Some(Fault { value, rule: "required", text, path: Vec::new() });
    }
    let faults = members.iter().filter_map(|(name, _, shape)| {
        Some(shape.fault(found.get(*name)?)?.within(format!("['{name}']")))
    });
    nearest(faults)
}

fn in_list<'v>(shape: &Shape, items: &'v [Value]) -> Option<Fault<'v>> {
    let faults = items.iter().enumerate();
    nearest(
        faults.filter_map(|(index, item)| Some(shape.fault(item)?.within(format!("[{index}]")))),
    )
}

/// Returns the fault with the shortest path; of several, the first.
fn nearest<'v>(faults: impl Iterator<Item = Fault<'v>>) -> Option<Fault<'v>> {
    let mut nearest: Option<Fault<'v>> = None;
    for fault in faults {
        // No path is shorter. A list may have many faults.
        if fault.path.len() == 1 {
            return Some(fault);
        }
        if nearest.as_ref().is_none_or(|known| fault.path.len() < known.path.len()) {
            nearest = Some(fault);
        }
    }
    nearest
}

/// Returns whether a value has the type of this name.
fn is(value: &Value, name: &str) -> bool {
    let own = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    own == name
}

/// An invalid value, and its place in the template.
struct Fault<'v> {
    value: &'v Value,
    /// The rule of JSON Schema that the value breaks.
    rule: &'static str,
    /// What is wrong.
    text: String,
    /// The path to the value in Python's syntax, the last step first.
    path: Vec<String>,
}

impl<'v> Fault<'v> {
    fn of(value: &'v Value, rule: &'static str, wrong: &str) -> Self {
        Self { value, rule, text: format!("{} {wrong}", python(value, 200)), path: Vec::new() }
    }

    fn within(mut self, step: String) -> Self {
        self.path.push(step);
        self
    }
}

/// Returns words in quotes, separated by commas.
fn quoted(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    quoted.join(", ")
}

/// Returns a value in Python's syntax, cut after about this many bytes.
fn python(value: &Value, limit: usize) -> String {
    let mut out = LimitedText { text: String::new(), limit };
    match write_python(&mut out, value) {
        Ok(()) => out.text,
        Err(_) => out.text + "...",
    }
}

/// A text that takes no more than `limit` bytes, so that a large value is not formatted as a whole.
struct LimitedText {
    text: String,
    limit: usize,
}

impl Write for LimitedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let left = self.limit.saturating_sub(self.text.len());
        let (fitting, rest) = more.split_at(more.floor_char_boundary(left));
        self.text.push_str(fitting);
        if rest.is_empty() { Ok(()) } else { Err(fmt::Error) }
    }
}

fn write_python(out: &mut impl Write, value: &Value) -> fmt::Result {
    match value {
        Value::Null => out.write_str("None"),
        Value::Bool(true) => out.write_str("True"),
        Value::Bool(false) => out.write_str("False"),
        Value::Number(number) => write!(out, "{number}"),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.write_char('[')?;
            for (index, item) in items.iter().enumerate() {
                out.write_str(if index == 0 { "" } else { ", " })?;
                write_python(out, item)?;
            }
            out.write_char(']')
        }
        Value::Object(members) => {
            out.write_char('{')?;
            for (index, (name, member)) in members.iter().enumerate() {
                out.write_str(if index == 0 { "" } else { ", " })?;
                write_text(out, name)?;
                out.write_str(": ")?;
                write_python(out, member)?;
            }
            out.write_char('}')
        }
    }
}

fn write_text(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('\'')?;
    for c in text.chars() {
        if c == '"' { out.write_char(c)? } else { write!(out, "{}", c.escape_debug())? }
    }
    out.write_char('\'')
}
