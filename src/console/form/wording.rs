//! The words of a field: the label, the hint and the value.

use crate::console::words::{capitalized, words};

use super::field::Field;

impl Field {
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
