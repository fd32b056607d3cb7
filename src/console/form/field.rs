//! A field of a form on a page, with what is typed in it.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::base::error::TextPosition;
use crate::console::words::{capitalized, words};
use crate::resources::sharing::page::text_html;

use super::input::{Choice, FieldKind, Input, ItemKind, Shape};
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

    /// Returns the rows of checkboxes, each with its heading. Values that are not among the choices stand at the end.
    pub(super) fn boxes(&self) -> Vec<(Option<&str>, Vec<Checkbox>)> {
        let FieldKind::Boxes { choices, .. } = &self.property.kind else { return Vec::new() };
        let mut others: Vec<&str> = self.text.lines().collect();
        let typed: HashSet<&str> = others.iter().copied().collect();
        let mut rows: Vec<(Option<&str>, Vec<Checkbox>)> = Vec::new();
        let mut known = HashSet::new();
        for choice in choices {
            let (value, group) = (choice.text(), choice.group.as_deref());
            let is_checked = typed.contains(value.as_str());
            known.insert(value.clone());
            let checkbox = Checkbox { value, label: choice.label.clone(), is_checked };
            match rows.last_mut() {
                Some((last, row)) if group.is_some() && *last == group => row.push(checkbox),
                _ => rows.push((group, vec![checkbox])),
            }
        }
        others.retain(|line| !known.contains(*line));
        let other = |line: &&str| {
            let (value, label) = ((*line).to_owned(), (*line).to_owned());
            (None, vec![Checkbox { value, label, is_checked: true }])
        };
        rows.extend(others.iter().map(other));
        rows
    }

    /// Returns the label: that of the page, the first sentence of the description, or the name in words.
    pub(super) fn label(&self) -> String {
        if let Some(label) = self.input.label {
            return label.to_owned();
        }
        let description = self.property.description.trim();
        let first = description.split_once(". ").map_or(description, |(first, _)| first);
        let statement = first.strip_prefix("Whether ").unwrap_or(first);
        match statement.trim_end_matches('.') {
            "" => words(self.input.name.rsplit('.').next().unwrap_or_default()),
            text => capitalized(text),
        }
    }

    /// Returns the text below the field.
    pub(super) fn hint(&self) -> String {
        let hint = self.input.hint;
        let kept = "Leave it empty to keep the stored value.";
        let parts = [
            (!hint.is_empty()).then_some(hint),
            self.is_lines().then_some("One on each line."),
            self.is_moment().then_some("In UTC."),
            (self.is_secret() && self.is_change).then_some(kept),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns the value in words.
    pub(super) fn words(&self) -> String {
        let choice = self.choices().iter().find(|choice| choice.text() == self.text);
        if self.is_boxes() {
            let boxes = self.boxes().into_iter().flat_map(|(_, row)| row);
            let checked = boxes.filter(|checkbox| checkbox.is_checked);
            return checked.map(|checkbox| checkbox.label).collect::<Vec<_>>().join(", ");
        }
        match choice {
            Some(choice) => choice.label.clone(),
            None if self.is_flag() => if self.text == "true" { "Yes" } else { "No" }.to_owned(),
            None if self.is_secret() => "Not shown".to_owned(),
            None if self.text.trim().is_empty() => "–".to_owned(),
            None => self.text.clone(),
        }
    }

    /// Returns the ids of the hint and the error, for `aria-describedby`.
    pub(super) fn described_by(&self, id: &str) -> String {
        let error = self.error.as_ref().map(|_| format!("{id}-error"));
        let hint = (!self.hint().is_empty()).then(|| format!("{id}-hint"));
        error.into_iter().chain(hint).collect::<Vec<_>>().join(" ")
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

/// A checkbox of a field.
pub(super) struct Checkbox {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) is_checked: bool,
}

/// A field that somebody else has changed since the form was filled.
pub(super) struct Difference {
    pub(super) label: String,
    /// The value before, the value now, and that of the form, each of which may be a dash.
    pub(super) values: [String; 3],
}

/// A value with more bytes is folded.
pub(super) const MAX_OPEN_VALUE: usize = 600;

/// Fills the fields that the form has not changed with what is stored now. Returns what others have changed.
pub(super) fn merge_fields(
    fields: &mut [Field],
    before: &Map<String, Value>,
    now: &Map<String, Value>,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    for field in fields.iter_mut() {
        let value = |of: &Map<String, Value>| {
            of.get(field.input.name).map_or(String::new(), |value| field.property.show(value))
        };
        let (old, new) = (value(before), value(now));
        if old != new {
            let yours = if field.is_changed { field.text.as_str() } else { "" };
            let values = [old.as_str(), new.as_str(), yours].map(or_dash);
            differences.push(Difference { label: field.label(), values });
        }
        if !field.is_changed {
            field.text = new;
        }
    }
    differences
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "–".to_owned() } else { text.to_owned() }
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
