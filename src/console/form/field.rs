//! A field of a form on a page.

use crate::error::TextPosition;
use crate::resources::sharing::page::text_html;

use super::choice::Choice;
use super::input::{Input, Shape};
use super::kind::{FieldKind, ItemKind};
use super::property::Property;

/// The preview of a Markdown text.
pub(super) enum Preview {
    /// Sanitized HTML.
    Html(String),
    /// The text as it is, because it cannot be rendered.
    Plain,
}

/// A field with what is typed in it.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Field {
    pub(super) input: Input,
    pub(super) property: Property,
    pub(super) is_required: bool,
    /// Whether the form changes a stored value.
    pub(super) is_change: bool,
    pub(super) text: String,
    /// Whether the request contains the field.
    pub(super) is_changed: bool,
    pub(super) error: Option<String>,
    /// The preview, if the user asked for it.
    pub(super) preview: Option<Preview>,
    /// The line of the text that the error is about, with a mark below the place.
    pub(super) excerpt: Option<String>,
    /// Whether the page puts the cursor here.
    pub(super) has_focus: bool,
}

/// How the `attr` of an API error names a field, the most exact first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    Exactly,
    /// Something inside of the field.
    Below,
    /// Without the path to the field.
    ByItsEnd,
    /// An object that the field is in.
    Above,
}

impl Field {
    pub(super) fn of(
        input: Input,
        mut property: Property,
        is_required: bool,
        is_change: bool,
    ) -> Self {
        property.kind = match (input.shape, property.kind) {
            (Shape::Area | Shape::Markdown | Shape::Code, FieldKind::Text | FieldKind::Email) => {
                FieldKind::Area
            }
            (Shape::Line, FieldKind::Area) => FieldKind::Text,
            (Shape::Several, FieldKind::Lines { items }) => {
                FieldKind::Boxes { choices: Vec::new(), items }
            }
            (Shape::Several, _) => FieldKind::Boxes { choices: Vec::new(), items: ItemKind::Json },
            (_, kind) => kind,
        };
        if !input.choices.is_empty() {
            let choices = input.choices.iter().map(|(value, label)| {
                let value = property.read(value).unwrap_or_default();
                // A list of one value.
                let value = value.as_array().and_then(|items| items.first()).unwrap_or(&value);
                Choice::new(value.clone(), *label)
            });
            property.kind = property.kind.offering(choices.collect());
        }
        Self {
            input,
            property,
            is_required,
            is_change,
            text: String::new(),
            is_changed: false,
            error: None,
            preview: None,
            excerpt: None,
            has_focus: false,
        }
    }

    /// Shows an error, and its place in the text.
    pub(super) fn refuse(&mut self, detail: String, position: Option<TextPosition>) {
        self.error = Some(match position {
            None => detail,
            Some(TextPosition { line, column }) => {
                format!("{detail}: line {line}, column {column}.")
            }
        });
        self.excerpt = position.map(|position| excerpt(&self.text, position));
    }

    /// Offers these values.
    pub(super) fn offer(&mut self, choices: Vec<Choice>) {
        self.property.kind = self.property.kind.offering(choices);
    }

    pub(super) fn choices(&self) -> &[Choice] {
        match &self.property.kind {
            FieldKind::Choice(choices) => choices,
            _ => &[],
        }
    }

    /// Returns whether the text is not among the choices, so that it needs an option of its own.
    pub(super) fn is_other_choice(&self) -> bool {
        let choices = self.choices();
        !choices.is_empty() && choices.iter().all(|choice| choice.text() != self.text)
    }

    pub(super) const fn is_flag(&self) -> bool {
        matches!(self.property.kind, FieldKind::Flag)
    }

    pub(super) const fn is_area(&self) -> bool {
        matches!(
            self.property.kind,
            FieldKind::Area | FieldKind::SecretArea | FieldKind::Lines { .. } | FieldKind::Json
        )
    }

    pub(super) const fn is_code(&self) -> bool {
        matches!(self.input.shape, Shape::Code)
            || matches!(self.property.kind, FieldKind::Json | FieldKind::SecretArea)
    }

    /// Renders the Markdown.
    pub(super) fn fill_preview(&mut self) {
        if self.is_markdown() {
            self.preview = Some(text_html(&self.text).map_or(Preview::Plain, Preview::Html));
        }
    }

    pub(super) const fn is_markdown(&self) -> bool {
        matches!(self.input.shape, Shape::Markdown)
    }

    /// Returns the text as browsers send it back: they replace line breaks, and remove them from a single line.
    pub(super) fn as_sent(&self, text: &str) -> String {
        let text = text.replace("\r\n", "\n");
        if self.is_area() || self.is_boxes() || !self.choices().is_empty() {
            text
        } else {
            text.replace(['\n', '\r'], "")
        }
    }

    pub(super) const fn is_secret(&self) -> bool {
        matches!(self.property.kind, FieldKind::Secret | FieldKind::SecretArea)
    }

    pub(super) const fn is_lines(&self) -> bool {
        matches!(self.property.kind, FieldKind::Lines { .. })
    }

    pub(super) const fn is_boxes(&self) -> bool {
        matches!(self.property.kind, FieldKind::Boxes { .. })
    }

    pub(super) const fn is_moment(&self) -> bool {
        matches!(self.property.kind, FieldKind::Moment)
    }

    /// Returns the type of the input element.
    pub(super) const fn input_type(&self) -> &'static str {
        match self.property.kind {
            FieldKind::Email => "email",
            FieldKind::Secret => "password",
            FieldKind::Number { .. } => "number",
            FieldKind::Moment => "datetime-local",
            _ => "text",
        }
    }

    /// Returns the limits of a number.
    pub(super) const fn range(&self) -> (Option<i64>, Option<i64>) {
        match self.property.kind {
            FieldKind::Number { min, max } => (min, max),
            _ => (None, None),
        }
    }

    /// Returns the id of the input element.
    pub(super) fn id(&self, form: &str) -> String {
        format!("{form}-{}", self.input.name.replace('.', "-"))
    }

    /// Returns how exactly the `attr` of an API error names the field, or `None` if it does not.
    pub(super) fn is_named(&self, attr: &str) -> Option<Named> {
        let attr = attr.replace("__", ".");
        let name = self.input.name;
        let is_below = |long: &str, short: &str| {
            long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        // Some errors of nested objects do not name the path to them.
        let is_end = name.strip_suffix(&attr).is_some_and(|start| start.ends_with('.'));
        match () {
            () if attr == name => Some(Named::Exactly),
            () if is_below(&attr, name) => Some(Named::Below),
            () if is_end => Some(Named::ByItsEnd),
            () if is_below(name, &attr) => Some(Named::Above),
            () => None,
        }
    }
}

/// Returns the part of a line around a position, with a mark below the position.
fn excerpt(text: &str, TextPosition { line, column }: TextPosition) -> String {
    const CONTEXT: usize = 40;
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let start = column.saturating_sub(1 + CONTEXT);
    let part = line.chars().skip(start).take(2 * CONTEXT);
    let part: String = part.map(|one| if one == '\t' { ' ' } else { one }).collect();
    format!("{part}\n{}^", " ".repeat(column.saturating_sub(1 + start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_shows_the_place_in_its_line() {
        let at = |text: &str, line, column| excerpt(text, TextPosition { line, column });
        assert_eq!(at("SELECT\n\tx ; y\nz", 2, 4), " x ; y\n   ^");
        assert_eq!(at("SELECT", 1, 7), "SELECT\n      ^");
        assert_eq!(at("", 1, 1), "\n^");
        let long = format!("{}é{}", "a".repeat(99), "b".repeat(99));
        let expected = format!("{}é{}\n{}^", "a".repeat(40), "b".repeat(39), " ".repeat(40));
        assert_eq!(at(&long, 1, 100), expected);
    }
}
