//! The words of a field: the label, the hint and the value.

use crate::console::words::{capitalized, words};

use super::field::Field;

/// Returns whether a sentence says hardly more than a label: it has the words of the label, and few others.
fn restates(sentence: &str, label: &str) -> bool {
    const MAX_OTHERS: usize = 4;
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|one: char| !one.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let (said, of_label) = (words(sentence), words(label));
    of_label.iter().all(|word| said.contains(word)) && said.len() <= of_label.len() + MAX_OTHERS
}

impl Field {
    /// Returns the label: that of the page, the first sentence of the description, or the name in words.
    pub(super) fn label(&self) -> String {
        if let Some(label) = self.input.label {
            return label.to_owned();
        }
        let (first, _) = self.sentences();
        let statement = first.strip_prefix("Whether ").unwrap_or(first);
        match statement.trim_end_matches('.') {
            "" => words(self.input.name.rsplit('.').next().unwrap_or_default()),
            text => capitalized(text),
        }
    }

    /// Returns the text below the field.
    pub(super) fn hint(&self) -> String {
        let (first, rest) = self.sentences();
        let hint = match self.input.hint {
            Some(hint) => hint,
            None if self.input.label.is_some_and(|label| restates(first, label)) => "",
            None if self.input.label.is_some() => first,
            None => rest,
        };
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

    /// Splits the description after its first sentence.
    fn sentences(&self) -> (&str, &str) {
        let text = self.property.description.trim();
        let end = text.find(". ").map_or(text.len(), |at| at + 1);
        let (first, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        (first, rest.trim())
    }

    /// Returns the ids of the hint and the error, for `aria-describedby`.
    pub(super) fn described_by(&self, id: &str) -> String {
        let error = self.error.as_ref().map(|_| format!("{id}-error"));
        let hint = (!self.hint().is_empty()).then(|| format!("{id}-hint"));
        error.into_iter().chain(hint).collect::<Vec<_>>().join(" ")
    }
}
