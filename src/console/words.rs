//! Names as words for people.

/// Returns a text with a capital first letter.
pub(super) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Returns the name of a field, a value or a kind in words: `start_at` becomes `Start at`.
pub(super) fn words(name: &str) -> String {
    capitalized(&name.replace(['_', '-'], " "))
}
