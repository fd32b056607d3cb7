//! The differences between two lists of words or lines.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The most comparisons that the differences of one page may take: the sum of the products of the lengths.
const MAX_COMPARISONS: usize = 8_000_000;
/// The most comparisons for two lists.
const MAX_COMPARISONS_OF_PAIR: usize = 1_000_000;

/// The work that the differences of a page may still take. Beyond it, values are shown whole.
pub(super) struct DiffBudget(usize);

impl DiffBudget {
    /// Returns the budget of a page.
    pub(super) fn of_page() -> Self {
        Self(MAX_COMPARISONS)
    }

    /// Takes what a comparison of two lists of these lengths needs, if it is left.
    pub(super) fn take(&mut self, before: usize, after: usize) -> bool {
        let needed = before.saturating_mul(after);
        let rest = self.0.checked_sub(needed).filter(|_| needed <= MAX_COMPARISONS_OF_PAIR);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

/// A part of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DiffPart {
    Same(String),
    Removed(String),
    Added(String),
}

impl DiffPart {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Same(text) | Self::Removed(text) | Self::Added(text) => text,
        }
    }
}

/// Splits a text into words and what stands between them.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = first.is_alphanumeric();
        let end = match rest.find(|one: char| one.is_alphanumeric() != is_word) {
            Some(end) if is_word => end,
            None if is_word => rest.len(),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// Compares two lists, or returns `None` if that takes too long.
pub(super) fn compared(
    before: &[&str],
    after: &[&str],
    budget: &mut DiffBudget,
) -> Option<Vec<DiffPart>> {
    if !budget.take(before.len(), after.len()) {
        return None;
    }
    let text = |list: &[&str], from: usize, length: usize| {
        list.iter().skip(from).take(length).copied().collect::<String>()
    };
    let operations = capture_diff_slices(Algorithm::Myers, before, after);
    let parts = operations.into_iter().flat_map(|operation| match operation {
        DiffOp::Equal { old_index, len, .. } => {
            [Some(DiffPart::Same(text(before, old_index, len))), None]
        }
        DiffOp::Delete { old_index, old_len, .. } => {
            [Some(DiffPart::Removed(text(before, old_index, old_len))), None]
        }
        DiffOp::Insert { new_index, new_len, .. } => {
            [Some(DiffPart::Added(text(after, new_index, new_len))), None]
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => [
            Some(DiffPart::Removed(text(before, old_index, old_len))),
            Some(DiffPart::Added(text(after, new_index, new_len))),
        ],
    });
    Some(parts.flatten().collect())
}

/// Returns whether enough of two texts is the same for their parts to be readable.
pub(super) fn is_alike(parts: &[DiffPart]) -> bool {
    let length = |is_counted: fn(&DiffPart) -> bool| -> usize {
        parts.iter().filter(|part| is_counted(part)).map(|part| part.text().len()).sum()
    };
    2 * length(|part| matches!(part, DiffPart::Same(_)))
        >= length(|part| !matches!(part, DiffPart::Same(_)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn budget_admits_comparisons_until_it_is_used_up() {
        let mut budget = DiffBudget(10);
        assert!(!budget.take(4, 3) && budget.take(3, 3) && !budget.take(2, 1) && budget.take(1, 1));
    }

    proptest! {
        #[test]
        fn parts_give_both_texts_back(before in "[ab ,é]{0,40}", after in "[ab ,é]{0,40}") {
            let parts = compared(&tokens(&before), &tokens(&after), &mut DiffBudget::of_page()).expect("parts");
            let only = |is_left_out: fn(&DiffPart) -> bool| -> String {
                parts.iter().filter(|part| !is_left_out(part)).map(DiffPart::text).collect()
            };
            prop_assert_eq!(only(|part| matches!(part, DiffPart::Added(_))), before);
            prop_assert_eq!(only(|part| matches!(part, DiffPart::Removed(_))), after);
        }
    }
}
