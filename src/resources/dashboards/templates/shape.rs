//! The shape that a template has, and what is said of one that has another: the words, and which of several
//! faults is told, are those of the validator whose texts clients know (facts-dashboards §6).

use std::fmt::{self, Display, Write};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::input::JsonObject;

/// What a value looks like.
enum Shape {
    /// Of one of these types.
    Of(&'static [&'static str]),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of what looks alike; whether it may be empty.
    List(&'static Shape, bool),
    /// What looks so, or null.
    Nullable(&'static Shape),
    /// An object with these members, and any others.
    Object(&'static [Member]),
}

/// A member of an object: its name, whether the object must have it, and how it looks.
type Member = (&'static str, bool, Shape);

const TEXT: Shape = Shape::Of(&["string"]);
const ANY_OBJECT: Shape = Shape::Object(&[]);

const TEMPLATE: Shape = Shape::Object(&[
    ("id", false, TEXT),
    ("template_name", true, TEXT),
    ("team_id", false, Shape::Of(&["number", "null"])),
    ("created_at", false, TEXT),
    ("image_url", false, Shape::Of(&["string", "null"])),
    ("dashboard_description", true, TEXT),
    ("dashboard_filters", true, ANY_OBJECT),
    ("tiles", true, Shape::List(&ANY_OBJECT, false)),
    ("variables", false, Shape::Nullable(&Shape::List(&VARIABLE, true))),
    ("tags", false, Shape::List(&TEXT, true)),
]);

const VARIABLE: Shape = Shape::Object(&[
    ("id", true, TEXT),
    ("name", true, TEXT),
    ("type", true, Shape::Word(&["event"])),
    ("default", true, ANY_OBJECT),
    ("description", true, TEXT),
    ("required", true, Shape::Of(&["boolean"])),
]);

/// Refuses what does not look like a template.
///
/// # Errors
/// 400, which names no field: the text tells what is wrong and where.
pub(super) fn require(template: &Value) -> Result<()> {
    match TEMPLATE.fault(template) {
        None => Ok(()),
        Some(fault) => Err(Error::invalid("invalid_input", fault.to_string())),
    }
}

impl Shape {
    /// What is wrong with a value: of several faults the one that lies least deep, and of those the first.
    fn fault<'v>(&self, value: &'v Value) -> Option<Fault<'v>> {
        match (self, value) {
            (Self::Nullable(_), Value::Null) => None,
            (Self::Nullable(shape), _) => match shape.fault(value)? {
                fault if fault.path.is_empty() => Some(Fault::at(value, Wrong::Either)),
                fault => Some(fault),
            },
            (Self::Object(members), Value::Object(found)) => in_object(members, value, found),
            (Self::List(_, false), Value::Array(items)) if items.is_empty() => {
                Some(Fault::at(value, Wrong::Empty))
            }
            (Self::List(shape, _), Value::Array(items)) => in_list(shape, items),
            (Self::Word(words), _) => {
                let known = value.as_str().is_some_and(|word| words.contains(&word));
                (!known).then(|| Fault::at(value, Wrong::Word(words)))
            }
            _ => {
                let types = self.types();
                let fits = types.iter().any(|name| is(value, name));
                (!fits).then(|| Fault::at(value, Wrong::Type(types)))
            }
        }
    }

    /// The types that such a value may have.
    const fn types(&self) -> &'static [&'static str] {
        match self {
            Self::Of(types) => types,
            Self::Object(_) => &["object"],
            Self::List(..) => &["array"],
            Self::Word(_) | Self::Nullable(_) => &[],
        }
    }
}

fn in_object<'v>(members: &[Member], value: &'v Value, found: &'v JsonObject) -> Option<Fault<'v>> {
    let missing = members.iter().find(|(name, must, _)| *must && !found.contains_key(*name));
    if let Some((name, ..)) = missing {
        return Some(Fault::at(value, Wrong::Missing(name)));
    }
    let faults = members.iter().filter_map(|(name, _, shape)| {
        Some(shape.fault(found.get(*name)?)?.within(Step::Member(name)))
    });
    faults.min_by_key(|fault| fault.path.len())
}

fn in_list<'v>(shape: &Shape, items: &'v [Value]) -> Option<Fault<'v>> {
    let faults = items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| Some(shape.fault(item)?.within(Step::Item(index))));
    faults.min_by_key(|fault| fault.path.len())
}

/// Whether a value has the type of this name.
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

/// What is wrong with a value.
enum Wrong {
    /// It lacks this member.
    Missing(&'static str),
    /// It has none of these types.
    Type(&'static [&'static str]),
    /// It is none of these words.
    Word(&'static [&'static str]),
    /// It is empty.
    Empty,
    /// It is neither null nor what it should be otherwise.
    Either,
}

/// A value at fault, and where it stands.
struct Fault<'v> {
    value: &'v Value,
    wrong: Wrong,
    /// The way to it, the last step first.
    path: Vec<Step>,
}

/// A step into an object or a list.
enum Step {
    Member(&'static str),
    Item(usize),
}

impl<'v> Fault<'v> {
    const fn at(value: &'v Value, wrong: Wrong) -> Self {
        Self { value, wrong, path: Vec::new() }
    }

    fn within(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }
}

impl Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHORT: usize = 200;
        const LONG: usize = 1000;
        let value = Cut(self.value, SHORT);
        let rule = match self.wrong {
            Wrong::Missing(name) => {
                write!(f, "'{name}' is a required property")?;
                "required"
            }
            Wrong::Type(types) => {
                write!(f, "{value} is not of type {}", Quoted(types))?;
                "type"
            }
            Wrong::Word(words) => {
                write!(f, "{value} is not one of [{}]", Quoted(words))?;
                "enum"
            }
            Wrong::Empty => {
                write!(f, "{value} should be non-empty")?;
                "minItems"
            }
            Wrong::Either => {
                write!(f, "{value} is not valid under any of the given schemas")?;
                "anyOf"
            }
        };
        write!(f, "\n\nFailed validating '{rule}' in schema\n\nOn instance")?;
        for step in self.path.iter().rev() {
            match step {
                Step::Member(name) => write!(f, "['{name}']")?,
                Step::Item(index) => write!(f, "[{index}]")?,
            }
        }
        write!(f, ":\n    {}", Cut(self.value, LONG))
    }
}

/// Words in quotes, with commas between.
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

/// A value as Python writes it, cut to about so many bytes.
struct Cut<'v>(&'v Value, usize);

impl Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut room = Room { out: f, left: self.1 };
        match write_python(&mut room, self.0) {
            Err(_) if room.left == 0 => f.write_str("..."),
            written => written,
        }
    }
}

/// Fails once so many bytes are written, so that no more of a value is looked at than is shown.
struct Room<'f, 'g> {
    out: &'f mut fmt::Formatter<'g>,
    left: usize,
}

impl Write for Room<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = text.floor_char_boundary(self.left);
        let (shown, rest) = text.split_at(fits);
        self.out.write_str(shown)?;
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
