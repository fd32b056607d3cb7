//! Strings.

use std::borrow::Cow;

use serde_json::Value;

use super::spec::string;
use super::{FieldType, Schema};
use crate::base::error::{Error, Result};

/// A string without null characters.
const TEXT_PATTERN: &str = r"^[^\x00]*$";
/// A string without null characters that is not blank.
const NON_BLANK_PATTERN: &str = r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$";

/// A string of at most `MAX` characters, which may be blank.
///
/// A number is the string of its digits as they were sent. Surrounding whitespace is removed before the checks. Fails with
/// `invalid_input`, `null_characters_not_allowed` or `max_length`.
#[derive(Debug, Clone, Copy)]
pub struct Text<const MAX: usize>;

impl<const MAX: usize> FieldType for Text<MAX> {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = read_stripped(value)?;
        require_length(text, MAX)
    }

    fn schema() -> Schema {
        string().max_length(Some(MAX)).pattern(Some(TEXT_PATTERN)).into()
    }
}

/// A [`Text`] that must not be blank. Fails with `blank`.
#[derive(Debug, Clone, Copy)]
pub struct Name<const MAX: usize>;

impl<const MAX: usize> FieldType for Name<MAX> {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = read_stripped(value)?;
        if text.is_empty() {
            return Err(Error::invalid("blank", "This field may not be blank."));
        }
        require_length(text, MAX)
    }

    fn schema() -> Schema {
        string().min_length(Some(1)).max_length(Some(MAX)).pattern(Some(NON_BLANK_PATTERN)).into()
    }
}

/// A [`Text`] whose surrounding whitespace is kept, because it may be a password. A number is not accepted.
#[derive(Debug, Clone, Copy)]
pub struct Exact<const MAX: usize>;

impl<const MAX: usize> FieldType for Exact<MAX> {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = value.as_str().ok_or_else(not_text)?;
        require_length(text.into(), MAX)
    }

    fn schema() -> Schema {
        Text::<MAX>::schema()
    }
}

/// Removes surrounding whitespace as Python defines it. That includes the separators U+001C to U+001F,
/// which Unicode's `White_Space` property lacks.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

fn read_stripped(value: &Value) -> Result<Cow<'_, str>> {
    match value {
        Value::String(text) => Ok(Cow::Borrowed(strip(text))),
        Value::Number(number) => Ok(Cow::Borrowed(number.as_str())),
        _ => Err(not_text()),
    }
}

fn not_text() -> Error {
    Error::invalid("invalid_input", "Not a valid string.")
}

fn require_length(text: Cow<'_, str>, max: usize) -> Result<String> {
    if text.contains('\0') {
        return Err(Error::invalid(
            "null_characters_not_allowed",
            "Null characters are not allowed.",
        ));
    }
    if text.chars().count() > max {
        return Err(too_long(max));
    }
    Ok(text.into_owned())
}

pub(super) fn too_long(max: usize) -> Error {
    Error::invalid("max_length", format!("Ensure this field has no more than {max} characters."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{any_json, assert_reads, assert_refused, read_field};
    use super::*;

    #[test]
    fn strings_are_trimmed_and_numbers_become_strings() {
        let text = |value: &str| value.to_owned();
        assert_reads::<Text<4>>([
            (json!(""), text("")),
            (json!(" \u{1f}\u{a0} "), text("")),
            (json!("  a b  "), text("a b")),
            (json!("  äöüß  "), text("äöüß")),
            (json!(5), text("5")),
            (json!(1.5), text("1.5")),
            (json!(5.0), text("5.0")),
            (serde_json::from_str("1.50").unwrap(), text("1.50")),
            (serde_json::from_str("1E2").unwrap(), text("1e+2")),
            (json!(-12), text("-12")),
            (json!("null"), text("null")),
        ]);
        assert_reads::<Name<2>>([(json!(" ab "), text("ab")), (json!(0), text("0"))]);
    }

    #[test]
    fn strings_are_checked_for_type_then_nul_then_length() {
        let four = "Ensure this field has no more than 4 characters.";
        let nul = "Null characters are not allowed.";
        assert_refused::<Text<4>>([
            (json!(true), "invalid_input", "Not a valid string."),
            (json!([1]), "invalid_input", "Not a valid string."),
            (json!({}), "invalid_input", "Not a valid string."),
            (json!(null), "null", "This field may not be null."),
            (json!("a\u{0}"), "null_characters_not_allowed", nul),
            (json!("abcd\u{0}"), "null_characters_not_allowed", nul),
            (json!("abcde"), "max_length", four),
            (json!(12345), "max_length", four),
        ]);
        assert_refused::<Name<4>>([
            (json!(""), "blank", "This field may not be blank."),
            (json!(" \n "), "blank", "This field may not be blank."),
            (json!(false), "invalid_input", "Not a valid string."),
            (json!(" abcde "), "max_length", four),
        ]);
    }

    proptest! {
        #[test]
        fn parsing_a_parsed_value_again_changes_nothing(value in any_json()) {
            if let Ok(Some(text)) = read_field::<Text<50>>(&value) {
                prop_assert!(text.chars().count() <= 50);
                prop_assert_eq!(read_field::<Text<50>>(&json!(text)), Ok(Some(text)));
            }
            let not_blank = read_field::<Text<50>>(&value).is_ok_and(|text| text != Some(String::new()));
            prop_assert_eq!(read_field::<Name<50>>(&value).is_ok(), not_blank);
        }
    }
}
