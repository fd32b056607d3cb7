//! Patterns in which `*` stands for any text without a separator.

/// Returns whether a text is like a pattern.
pub(super) fn matches_pattern(pattern: &str, text: &str, separator: char) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(before) else { return false };
    let within = rest.find(separator).unwrap_or(rest.len());
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.take_while(|end| *end <= within)
        .any(|end| rest.get(end..).is_some_and(|rest| matches_pattern(after, rest, separator)))
}
