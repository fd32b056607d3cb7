//! The checkboxes of a field with several values.

use std::collections::HashSet;

use super::field::Field;
use super::kind::FieldKind;

/// A checkbox of a field.
pub(super) struct Checkbox {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) is_checked: bool,
}

impl Field {
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
}
