//! Integers, and the ids of other objects.

use serde_json::{Number, Value};
use utoipa::openapi::schema::Type;
use uuid::Uuid;

use super::spec::formatted;
use super::text::strip;
use super::{FieldType, Schema};
use crate::base::error::{Error, Result};

/// An integer from `MIN` to `MAX`.
///
/// Accepts strings (`"5"`, `" 5 "`, `"5.0"`) and numbers without a fraction. Fails with `invalid_input`,
/// `max_string_length`, `max_value` or `min_value`.
#[derive(Debug, Clone, Copy)]
pub struct Integer<const MIN: i64, const MAX: i64>;

impl<const MIN: i64, const MAX: i64> FieldType for Integer<MIN, MAX> {
    type Value = i64;

    fn read(value: &Value) -> Result<i64> {
        let number = parse_integer(value)?;
        if number > i128::from(MAX) {
            return Err(too_large(MAX));
        }
        match i64::try_from(number) {
            Ok(number) if number >= MIN => Ok(number),
            _ => Err(too_small(MIN)),
        }
    }

    fn schema() -> Schema {
        formatted(Type::Integer, "int64").minimum(Some(MIN)).maximum(Some(MAX)).into()
    }
}

/// Reads an integer of any size. Values beyond 128 bits are clamped, and every range rejects them.
pub(super) fn parse_integer(value: &Value) -> Result<i128> {
    let number = match value {
        Value::String(text) => {
            require_numeric_length(text)?;
            from_text(text)
        }
        Value::Number(number) => from_number(number),
        _ => None,
    };
    number.ok_or_else(|| Error::invalid("invalid_input", "A valid integer is required."))
}

/// Rejects an overlong text before it is parsed.
pub(super) fn require_numeric_length(text: &str) -> Result<()> {
    if text.chars().count() > 1000 {
        return Err(Error::invalid("max_string_length", "String value too large."));
    }
    Ok(())
}

pub(super) fn too_large(max: i64) -> Error {
    Error::invalid("max_value", format!("Ensure this value is less than or equal to {max}."))
}

pub(super) fn too_small(min: i64) -> Error {
    Error::invalid("min_value", format!("Ensure this value is greater than or equal to {min}."))
}

/// Parses an integer as [`python_integer`] does, after removing outer whitespace and a fraction of zeros.
fn from_text(text: &str) -> Option<i128> {
    let text = strip(text);
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    python_integer(whole)
}

/// Parses an integer as Python's `int` does: a sign, leading zeros and single underscores between digits are valid. Values
/// beyond 128 bits are clamped.
pub fn python_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut number: i128 = 0;
    for group in digits.split('_') {
        if group.is_empty() {
            return None;
        }
        for digit in group.chars() {
            number = number.saturating_mul(10).saturating_add(digit.to_digit(10)?.into());
        }
    }
    Some(if negative { -number } else { number })
}

/// Accepts numbers without a fraction: `5.0` and `5e0` are 5.
fn from_number(number: &Number) -> Option<i128> {
    let text = number.as_str();
    if !text.contains(['e', 'E']) {
        return from_text(text);
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and bounds refuse the ends"
    )]
    number.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i128)
}

/// The integer id of an object, with the coercions of [`Integer`].
///
/// The rule checks whether the object exists. A negative number or one that is too large reads as
/// `u64::MAX`, which is never assigned. Zero stays zero, because PostHog reads a zero as "no object" in
/// some fields. Fails with `invalid_input` or `max_string_length`.
#[derive(Debug, Clone, Copy)]
pub struct Identifier;

impl FieldType for Identifier {
    type Value = u64;

    fn read(value: &Value) -> Result<u64> {
        Ok(u64::try_from(parse_integer(value)?).unwrap_or(u64::MAX))
    }

    fn schema() -> Schema {
        formatted(Type::Integer, "int64").minimum(Some(0_u64)).into()
    }
}

/// A UUID: hyphenated, without hyphens, in braces, as a URN, or as an unsigned integer. Fails with
/// `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct UuidField;

impl FieldType for UuidField {
    type Value = Uuid;

    fn read(value: &Value) -> Result<Uuid> {
        let uuid = match value {
            Value::String(text) => Uuid::try_parse(text).ok(),
            Value::Number(_) => parse_integer(value)
                .ok()
                .and_then(|number| u128::try_from(number).ok())
                .map(Uuid::from_u128),
            _ => None,
        };
        uuid.ok_or_else(|| Error::invalid("invalid_input", "Must be a valid UUID."))
    }

    fn schema() -> Schema {
        formatted(Type::String, "uuid").into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{
        any_json, assert_invalid, assert_reads, assert_refused, read_field,
    };
    use super::*;

    const WRONG: &str = "A valid integer is required.";

    #[test]
    fn integers_are_read_from_numbers_and_strings() {
        let five = [
            json!(5),
            json!("5"),
            json!(" 5 "),
            json!("5.0"),
            json!(5.0),
            json!("5."),
            json!("+5"),
            json!("005.00\n"),
        ];
        assert_reads::<Integer<0, 9>>(five.map(|value| (value, 5)));
        let others = [(json!("-5"), -5), (json!("1_0"), 10), (json!(-0.0), 0), (json!("-0.0"), 0)];
        assert_reads::<Integer<-9, 99>>(others);
        let ends = [(json!(i64::MIN), i64::MIN), (json!(i64::MAX.to_string()), i64::MAX)];
        assert_reads::<Integer<{ i64::MIN }, { i64::MAX }>>(ends);
    }

    #[test]
    fn invalid_integers_are_rejected() {
        let texts = [
            "abc", "", " ", ".", ".0", "-", "+-5", "- 5", "5.5", "5.0.0", "1__0", "_1", "1_",
            "1e2", "0x1", "0.5",
        ];
        assert_invalid::<Integer<0, 9>>(texts, WRONG);
        assert_invalid::<Integer<0, 9>>([json!(5.5), json!(true), json!([1]), json!({})], WRONG);
        let long = (json!("1".repeat(1001)), "max_string_length", "String value too large.");
        assert_refused::<Integer<0, 9>>([long]);
    }

    #[test]
    fn integer_bounds_apply_to_numbers_of_any_size() {
        let max = "Ensure this value is less than or equal to 9.";
        let min = "Ensure this value is greater than or equal to 2.";
        assert_refused::<Integer<2, 9>>([
            (json!(10), "max_value", max),
            (json!("1".repeat(1000)), "max_value", max),
            (json!(u64::MAX), "max_value", max),
            (json!(1e300), "max_value", max),
            (json!(1), "min_value", min),
            (json!(i64::MIN), "min_value", min),
            (json!(format!("-{}", "1".repeat(999))), "min_value", min),
            (json!(-1e300), "min_value", min),
        ]);
        let larger = read_field::<Integer<{ i64::MIN }, { i64::MAX }>>(&json!(u64::MAX));
        assert_eq!(larger.unwrap_err().0, "max_value");
    }

    proptest! {
        #[test]
        fn integers_match_the_reference_model(number in any::<i64>(), pad in "[ \t]{0,3}", zeros in "(\\.0{0,3})?") {
            let text = format!("{pad}{number}{zeros}{pad}");
            let model = if (-1000..=1000).contains(&number) { Some(number) } else { None };
            prop_assert_eq!(read_field::<Integer<-1000, 1000>>(&json!(number)).ok().flatten(), model);
            prop_assert_eq!(read_field::<Integer<{ i64::MIN }, { i64::MAX }>>(&json!(text)), Ok(Some(number)));
        }

        #[test]
        fn reading_arbitrary_json_does_not_panic(value in any_json()) {
            if let Ok(Some(number)) = read_field::<Integer<-5, 1_000_000>>(&value) {
                prop_assert!((-5..=1_000_000).contains(&number));
            }
        }
    }

    #[test]
    fn impossible_ids_match_nothing() {
        assert_reads::<Identifier>([
            (json!(7), 7),
            (json!(" 7.0"), 7),
            (json!(0), 0),
            (json!(u64::MAX - 1), u64::MAX - 1),
            (json!(-1), u64::MAX),
            (json!("-7"), u64::MAX),
            (json!("9".repeat(1000)), u64::MAX),
            (json!(1e300), u64::MAX),
            (json!(-1e300), u64::MAX),
        ]);
        assert_refused::<Identifier>([
            (json!(""), "invalid_input", "A valid integer is required."),
            (json!(true), "invalid_input", "A valid integer is required."),
            (json!("9".repeat(1001)), "max_string_length", "String value too large."),
        ]);
    }

    #[test]
    fn uuids_are_accepted_in_every_format() {
        let uuid = Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057);
        assert_reads::<UuidField>([
            (json!(uuid.to_string()), uuid),
            (json!(uuid.to_string().to_uppercase()), uuid),
            (json!(uuid.simple().to_string()), uuid),
            (json!(uuid.braced().to_string()), uuid),
            (json!(uuid.urn().to_string()), uuid),
            (json!(5), Uuid::from_u128(5)),
            (json!(5.0), Uuid::from_u128(5)),
        ]);
        let wrong = [
            json!("bad"),
            json!(""),
            json!(-1),
            json!(1.5),
            json!(true),
            json!([]),
            json!(format!(" {uuid}")),
        ];
        assert_invalid::<UuidField>(wrong, "Must be a valid UUID.");
    }
}
