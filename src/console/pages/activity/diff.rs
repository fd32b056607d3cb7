//! The differences between two values: words of a text, items of a list, or lines of JSON.

use serde_json::Value;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag};

use crate::base::json::escape_invisible;

/// The longest indented JSON, in bytes. Longer JSON stays on one line.
const MAX_INDENTED: usize = 8 * 1024;
/// A text of at most this length is not compared by words.
const MAX_SHORT_TEXT: usize = 24;

/// The difference between two values.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Diff {
    /// The values are secret.
    Hidden,
    /// Values, or the parts of a text.
    Text(Vec<DiffPart>),
    /// Lines of JSON.
    Json(Vec<DiffPart>),
}

impl Diff {
    /// Returns about how many lines the difference has on the page.
    pub(super) fn lines(&self) -> usize {
        const WIDTH: usize = 100;
        let of_text = |text: &str| -> usize {
            text.lines().map(|line| line.chars().count().div_ceil(WIDTH).max(1)).sum()
        };
        match self {
            Self::Hidden => 1,
            Self::Json(parts) => parts.iter().map(|part| of_text(part.text())).sum(),
            Self::Text(parts) => of_text(&parts.iter().map(DiffPart::text).collect::<String>()),
        }
    }

    /// Compares two values. Null is no value. `word` returns a word for values that are shown by one.
    pub(super) fn between(
        before: &Value,
        after: &Value,
        word: impl Fn(&Value) -> Option<String>,
        budget: &mut DiffBudget,
    ) -> Self {
        if before.is_null() && after.is_null() {
            return Self::Hidden;
        }
        if let (Some(before), Some(after)) = (items(before), items(after)) {
            return list(before, after, budget);
        }
        if is_nested(before) || is_nested(after) {
            return json(before, after, budget);
        }
        if let (Value::String(before), Value::String(after)) = (before, after)
            && before.len().max(after.len()) > MAX_SHORT_TEXT
            && let Some(parts) = compared(&tokens(before), &tokens(after), budget)
            && is_alike(&parts)
        {
            return Self::Text(parts);
        }
        let shown = |value: &Value| {
            let text = || word(value).unwrap_or_else(|| plain(value));
            (!value.is_null()).then(text)
        };
        let removed = shown(before).map(DiffPart::Removed);
        Self::Text(removed.into_iter().chain(shown(after).map(DiffPart::Added)).collect())
    }
}

/// Returns the value as a text without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.trim().is_empty() => "empty".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns the items of a list without objects and lists in it. Null is an empty list.
fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Null => Some(&[]),
        Value::Array(items) => {
            items.iter().all(|item| !is_nested(item)).then_some(items.as_slice())
        }
        _ => None,
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// Shows the items that one list has and the other lacks. Lists with the same items in another order are shown whole.
fn list(before: &[Value], after: &[Value], budget: &mut DiffBudget) -> Diff {
    let missing = |from: &[Value], other: &[Value]| -> Vec<String> {
        from.iter().filter(|item| !other.contains(item)).map(plain).collect()
    };
    let (mut removed, mut added) = if budget.take(before.len(), after.len()) {
        (missing(before, after), missing(after, before))
    } else {
        (Vec::new(), Vec::new())
    };
    if removed.is_empty() && added.is_empty() {
        let whole = |items: &[Value]| match items {
            [] => vec!["empty".to_owned()],
            items => vec![items.iter().map(plain).collect::<Vec<_>>().join(", ")],
        };
        (removed, added) = (whole(before), whole(after));
    }
    let removed = removed.into_iter().map(DiffPart::Removed);
    Diff::Text(removed.chain(added.into_iter().map(DiffPart::Added)).collect())
}

/// Compares the lines of indented JSON.
fn json(before: &Value, after: &Value, budget: &mut DiffBudget) -> Diff {
    let (before, after) = (indented(before), indented(after));
    let lines = |text: &str| text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>();
    let (old, new) = (lines(&before), lines(&after));
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    Diff::Json(compared(&old, &new, budget).unwrap_or_else(|| {
        let whole = [DiffPart::Removed(old.concat()), DiffPart::Added(new.concat())];
        whole.into_iter().filter(|part| !part.text().is_empty()).collect()
    }))
}

/// Returns indented JSON, or JSON on one line if the former is long. Null is an empty text.
fn indented(value: &Value) -> String {
    if value.is_null() {
        return String::new();
    }
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let is_long = text.is_empty() || text.len() > MAX_INDENTED;
    escape_invisible(if is_long { value.to_string() } else { text })
}

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
    fn take(&mut self, before: usize, after: usize) -> bool {
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
fn tokens(text: &str) -> Vec<&str> {
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
fn compared(before: &[&str], after: &[&str], budget: &mut DiffBudget) -> Option<Vec<DiffPart>> {
    if !budget.take(before.len(), after.len()) {
        return None;
    }
    let parts = operations(before, after).into_iter().flat_map(|operation| {
        let (tag, old, new) = operation.as_tag_tuple();
        let old = before.get(old).unwrap_or_default().concat();
        let new = after.get(new).unwrap_or_default().concat();
        if tag == DiffTag::Equal {
            [DiffPart::Same(old), DiffPart::Same(String::new())]
        } else {
            [DiffPart::Removed(old), DiffPart::Added(new)]
        }
    });
    Some(parts.filter(|part| !part.text().is_empty()).collect())
}

/// Compares two lists as [`similar::capture_diff_slices`] does, which compiles all algorithms.
fn operations(before: &[&str], after: &[&str]) -> Vec<DiffOp> {
    let mut found = Compact::new(Replace::new(Capture::new()), before, after);
    let Ok(()) = myers::diff(&mut found, before, 0..before.len(), after, 0..after.len());
    found.into_inner().into_inner().into_ops()
}

/// Returns whether enough of two texts is the same for their parts to be readable.
fn is_alike(parts: &[DiffPart]) -> bool {
    let length = |is_counted: fn(&DiffPart) -> bool| -> usize {
        parts.iter().filter(|part| is_counted(part)).map(|part| part.text().len()).sum()
    };
    2 * length(|part| matches!(part, DiffPart::Same(_)))
        >= length(|part| !matches!(part, DiffPart::Same(_)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn between(before: &Value, after: &Value) -> Diff {
        Diff::between(before, after, |_| None, &mut DiffBudget::of_page())
    }

    fn removed(text: &str) -> DiffPart {
        DiffPart::Removed(text.to_owned())
    }

    fn added(text: &str) -> DiffPart {
        DiffPart::Added(text.to_owned())
    }

    fn same(text: &str) -> DiffPart {
        DiffPart::Same(text.to_owned())
    }

    #[test]
    fn long_texts_are_compared_by_words() {
        let (before, after) =
            (json!("How many people come here"), json!("How many people come here, and who stays"));
        let expected = vec![same("How many people come here"), added(", and who stays")];
        assert_eq!(between(&before, &after), Diff::Text(expected));
        let (before, after) = (json!("Short text"), json!("Short words"));
        let expected = vec![removed("Short text"), added("Short words")];
        assert_eq!(between(&before, &after), Diff::Text(expected));
        let (before, after) =
            (json!("nothing of this stays there"), json!("a wholly different sentence!!"));
        let expected =
            vec![removed("nothing of this stays there"), added("a wholly different sentence!!")];
        assert_eq!(between(&before, &after), Diff::Text(expected));
    }

    #[test]
    fn lists_show_the_items_that_differ() {
        for (before, after, expected) in [
            (json!(["a", "b"]), json!(["b", "c"]), vec![removed("a"), added("c")]),
            (json!(["a", "b"]), json!(["b", "a"]), vec![removed("a, b"), added("b, a")]),
            (json!(null), json!([1]), vec![added("1")]),
            (json!([1]), json!([]), vec![removed("1")]),
        ] {
            assert_eq!(between(&before, &after), Diff::Text(expected));
        }
    }

    #[test]
    fn objects_are_compared_by_lines() {
        let parts = between(&json!({ "a": 1, "b": 2 }), &json!({ "a": 1, "b": 3 }));
        let expected = vec![
            same("{\n  \"a\": 1,\n"),
            removed("  \"b\": 2\n"),
            added("  \"b\": 3\n"),
            same("}\n"),
        ];
        assert_eq!(parts, Diff::Json(expected));
        assert_eq!(between(&json!({}), &Value::Null), Diff::Json(vec![removed("{}\n")]));
    }

    #[test]
    fn values_without_parts_stand_side_by_side() {
        for (before, after, expected) in [
            (json!(null), json!("x"), vec![added("x")]),
            (json!(7), json!(null), vec![removed("7")]),
            (json!(""), json!("x"), vec![removed("empty"), added("x")]),
            (json!(1), json!(2.5), vec![removed("1"), added("2.5")]),
        ] {
            assert_eq!(between(&before, &after), Diff::Text(expected));
        }
        assert_eq!(between(&Value::Null, &Value::Null), Diff::Hidden);
    }

    #[test]
    fn differences_beyond_the_budget_are_shown_whole() {
        let text = |word: &str| json!(format!("{} end", format!("{word} ").repeat(2000)));
        let Diff::Text(parts) = between(&text("a"), &text("b")) else { panic!("a text") };
        assert_eq!(parts.len(), 2);
        let deep = (0..100).fold(json!(vec![1; 300]), |inner, _| json!([inner]));
        assert_eq!(indented(&deep), deep.to_string());
    }

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
