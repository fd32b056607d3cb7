//! Checks the structure of a template. PostHog checks it with Python's `jsonschema`, so the error texts,
//! and which of several errors is reported, follow that library.

use std::fmt::{self, Display, Write};

use serde_json::Value;

use crate::base::error::{Error, Result};
use crate::input::JsonObject;

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
    match TEMPLATE.fault(template) {
        None => Ok(()),
        Some(fault) => Err(Error::invalid("invalid_input", fault.to_string())),
    }
}

impl Shape {
    /// Returns the error with the shortest path in the value; of several, the first.
    fn fault<'v>(&self, value: &'v Value) -> Option<Fault<'v>> {
        match (self, value) {
            (Self::Nullable(_), Value::Null) => None,
            (Self::Nullable(shape), _) => match shape.fault(value)? {
                fault if fault.path.is_empty() => Some(Fault::at(value, FaultKind::NoAlternative)),
                fault => Some(fault),
            },
            (Self::Object(members), Value::Object(found)) => in_object(members, value, found),
            (Self::List(_, false), Value::Array(items)) if items.is_empty() => {
                Some(Fault::at(value, FaultKind::Empty))
            }
            (Self::List(shape, _), Value::Array(items)) => in_list(shape, items),
            (Self::Choice(words), _) => {
                let known = value.as_str().is_some_and(|word| words.contains(&word));
                (!known).then(|| Fault::at(value, FaultKind::Choice(words)))
            }
            _ => {
                let types = self.types();
                let fits = types.iter().any(|name| is(value, name));
                (!fits).then(|| Fault::at(value, FaultKind::Type(types)))
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
        return Some(Fault::at(value, FaultKind::Missing(name)));
    }
    let faults = members.iter().filter_map(|(name, _, shape)| {
        Some(shape.fault(found.get(*name)?)?.within(PathStep::Member(name)))
    });
    faults.min_by_key(|fault| fault.path.len())
}

fn in_list<'v>(shape: &Shape, items: &'v [Value]) -> Option<Fault<'v>> {
    let faults = items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| Some(shape.fault(item)?.within(PathStep::Item(index))));
    faults.min_by_key(|fault| fault.path.len())
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

/// The rule that a value breaks.
enum FaultKind {
    /// A required member is missing.
    Missing(&'static str),
    /// The value has none of these types.
    Type(&'static [&'static str]),
    /// The value is none of these strings.
    Choice(&'static [&'static str]),
    /// The list is empty.
    Empty,
    /// The value is neither null nor of the expected structure.
    NoAlternative,
}

/// An invalid value, and its place in the template.
struct Fault<'v> {
    value: &'v Value,
    wrong: FaultKind,
    /// The path to the value, the last step first.
    path: Vec<PathStep>,
}

/// A step of a path, into an object or a list.
enum PathStep {
    Member(&'static str),
    Item(usize),
}

impl<'v> Fault<'v> {
    const fn at(value: &'v Value, wrong: FaultKind) -> Self {
        Self { value, wrong, path: Vec::new() }
    }

    fn within(mut self, step: PathStep) -> Self {
        self.path.push(step);
        self
    }
}

impl Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHORT: usize = 200;
        const LONG: usize = 1000;
        let value = Truncated(self.value, SHORT);
        let rule = match self.wrong {
            FaultKind::Missing(name) => {
                write!(f, "'{name}' is a required property")?;
                "required"
            }
            FaultKind::Type(types) => {
                write!(f, "{value} is not of type {}", Quoted(types))?;
                "type"
            }
            FaultKind::Choice(words) => {
                write!(f, "{value} is not one of [{}]", Quoted(words))?;
                "enum"
            }
            FaultKind::Empty => {
                write!(f, "{value} should be non-empty")?;
                "minItems"
            }
            FaultKind::NoAlternative => {
                write!(f, "{value} is not valid under any of the given schemas")?;
                "anyOf"
            }
        };
        write!(f, "\n\nFailed validating '{rule}' in schema\n\nOn instance")?;
        for step in self.path.iter().rev() {
            match step {
                PathStep::Member(name) => write!(f, "['{name}']")?,
                PathStep::Item(index) => write!(f, "[{index}]")?,
            }
        }
        write!(f, ":\n    {}", Truncated(self.value, LONG))
    }
}

/// Displays words in quotes, separated by commas.
struct Quoted(&'static [&'static str]);

impl Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}'{word}'")?;
        }
        Ok(())
    }
}

/// Displays a value in Python's syntax, cut after about this many bytes.
struct Truncated<'v>(&'v Value, usize);

impl Display for Truncated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limited = LimitedWriter { out: f, left: self.1 };
        match write_python(&mut limited, self.0) {
            Err(_) if limited.left == 0 => f.write_str("..."),
            written => written,
        }
    }
}

/// A writer that fails after `left` bytes, so that a large value is not formatted as a whole.
struct LimitedWriter<'f, 'g> {
    out: &'f mut fmt::Formatter<'g>,
    left: usize,
}

impl Write for LimitedWriter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = text.floor_char_boundary(self.left);
        let (fields, rest) = text.split_at(fits);
        self.out.write_str(fields)?;
        self.left = if rest.is_empty() { self.left - fits } else { 0 };
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
