//! Decimal numbers, stored as the string that responses show.

use serde_json::Value;
use utoipa::openapi::schema::Type;

use super::number::{require_numeric_length, too_large, too_small};
use super::spec::formatted;
use super::text::strip;
use super::{FieldType, Schema};
use crate::base::error::{Error, Result};

/// The maximum number of digits.
const DIGITS: u64 = 3;
/// The maximum number of digits after the decimal point.
const PLACES: u64 = 2;
/// The pattern of a valid fraction. The number 1 allows only zeros after the point.
const PATTERN: &str = r"^((0)(\.[0-9]{1,2})?|1(\.0{1,2})?)$";

/// A decimal from 0 to 1 with at most three digits, of which two follow the decimal point. The value is a string with
/// exactly two decimal places, such as `"0.40"`.
///
/// The limits apply to the digits as they were sent: `"0.400"` has three decimal places. A
/// [`Nullable`](super::Nullable) fraction reads a blank string as null. Fails, in this order, with
/// `max_string_length`, `invalid_input`, `max_digits`, `max_decimal_places`, `max_whole_digits`,
/// `max_value` or `min_value`.
#[derive(Debug, Clone, Copy)]
pub struct Fraction;

impl FieldType for Fraction {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = match value {
            Value::String(text) => text.as_str(),
            Value::Number(number) => number.as_str(),
            _ => "",
        };
        require_numeric_length(text)?;
        let sent = SentDecimal::parse(strip(text))
            .ok_or_else(|| Error::invalid("invalid_input", "A valid number is required."))?;
        let hundredths = sent.hundredths()?;
        match (sent.negative, hundredths) {
            (true, 1..) => Err(too_small(0)),
            (false, 101..) => Err(too_large(1)),
            _ => Ok(format!("{}.{:02}", hundredths / 100, hundredths % 100)),
        }
    }

    fn schema() -> Schema {
        formatted(Type::String, "decimal").pattern(Some(PATTERN)).into()
    }

    fn is_null(value: &Value) -> bool {
        value.is_null() || value.as_str().is_some_and(|text| strip(text).is_empty())
    }
}

/// A decimal as sent: `digits * 10^exponent`. It is parsed by hand because the limits count the digits
/// sent, which a decimal type would round away.
struct SentDecimal {
    negative: bool,
    /// Without leading zeros; `0` for zero.
    digits: String,
    exponent: i64,
}

impl SentDecimal {
    fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
            None => (text, 0_i64),
        };
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let significant = digits.trim_start_matches('0');
        Some(Self {
            negative,
            digits: if significant.is_empty() { "0" } else { significant }.to_owned(),
            exponent: exponent.saturating_sub_unsigned(fraction.len() as u64),
        })
    }

    /// Checks the numbers of digits, and returns the number in hundredths without its sign.
    fn hundredths(&self) -> Result<u64> {
        let written = self.digits.len() as u64;
        let places = if self.exponent < 0 { self.exponent.unsigned_abs() } else { 0 };
        let total = match u64::try_from(self.exponent) {
            Ok(zeros) => written.saturating_add(zeros),
            Err(_) => written.max(places),
        };
        let (code, most) = if total > DIGITS {
            ("max_digits", format!("{DIGITS} digits in total"))
        } else if places > PLACES {
            ("max_decimal_places", format!("{PLACES} decimal places"))
        } else if total - places > DIGITS - PLACES {
            let whole = DIGITS - PLACES;
            ("max_whole_digits", format!("{whole} digits before the decimal point"))
        } else {
            let zeros = u32::try_from(self.exponent + 2).unwrap_or_default();
            return Ok(self.digits.parse::<u64>().unwrap_or(0) * 10_u64.pow(zeros));
        };
        Err(Error::invalid(code, format!("Ensure that there are no more than {most}.")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;
    use serde_json::json;

    use super::super::Nullable;
    use super::super::testing::{assert_invalid, assert_reads, assert_refused, read_field};
    use super::*;
    use crate::base::patch::Patch;

    #[test]
    fn decimals_are_returned_with_all_decimal_places() {
        let cases = [
            (json!("0.4"), "0.40"),
            (json!(0.4), "0.40"),
            (json!(" .5 "), "0.50"),
            (json!("1."), "1.00"),
            (json!(1), "1.00"),
            (json!("1.00"), "1.00"),
            (json!("+000.25"), "0.25"),
            (json!("1e-2"), "0.01"),
            (json!("0"), "0.00"),
            (json!(-0.0), "0.00"),
        ];
        assert_reads::<Fraction>(cases.map(|(value, text)| (value, text.to_owned())));
    }

    #[test]
    fn decimal_schema_pattern_matches_the_allowed_range() {
        let pattern = Regex::new(PATTERN).unwrap();
        for text in ["0", "0.5", "0.25", "1", "1.0", "1.00"] {
            assert!(pattern.is_match(text), "{text}");
            assert!(Fraction::read(&json!(text)).is_ok(), "{text}");
        }
        for text in ["2", "1.1", "1.01", "0.123", "-0.1", "", ".", "1."] {
            assert!(!pattern.is_match(text), "{text}");
        }
    }

    #[test]
    fn decimals_are_checked_for_format_then_digits_then_range() {
        let form = "A valid number is required.";
        let texts = [
            "",
            " ",
            "abc",
            ".",
            "-",
            "1,5",
            "1.2.3",
            "nan",
            "Infinity",
            "e5",
            "1e",
            "1e5.0",
            "1e99999999999999999999",
            "--1",
        ];
        assert_invalid::<Fraction>(texts, form);
        assert_invalid::<Fraction>([json!(true), json!([1]), json!({})], form);
        let digits = "Ensure that there are no more than 3 digits in total.";
        let places = "Ensure that there are no more than 2 decimal places.";
        let whole = "Ensure that there are no more than 1 digits before the decimal point.";
        let max = "Ensure this value is less than or equal to 1.";
        assert_refused::<Fraction>([
            (json!("1.234"), "max_digits", digits),
            (json!("1e9999"), "max_digits", digits),
            (json!("1e-9223372036854775808"), "max_digits", digits),
            (json!("9".repeat(1000)), "max_digits", digits),
            (json!("9".repeat(1001)), "max_string_length", "String value too large."),
            (json!(0.534), "max_decimal_places", places),
            (json!("0.500"), "max_decimal_places", places),
            (json!(10), "max_whole_digits", whole),
            (json!("1e2"), "max_whole_digits", whole),
            (json!(1.5), "max_value", max),
            (json!("1.01"), "max_value", max),
            (json!(-1), "min_value", "Ensure this value is greater than or equal to 0."),
            (json!("-.01"), "min_value", "Ensure this value is greater than or equal to 0."),
        ]);
    }

    #[test]
    fn blank_nullable_decimal_is_null() {
        assert_eq!(read_field::<Nullable<Fraction>>(&json!(" ")), Ok(Patch::Null));
        let value = read_field::<Nullable<Fraction>>(&json!("0.1"));
        assert_eq!(value, Ok(Patch::Value("0.10".to_owned())));
    }

    proptest! {
        #[test]
        fn decimals_keep_hundredths(hundredths in 0_u32..=100) {
            let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            prop_assert_eq!(read_field::<Fraction>(&json!(f64::from(hundredths) / 100.0)), Ok(Some(text.clone())));
            prop_assert_eq!(read_field::<Fraction>(&json!(text)), Ok(Some(text)));
        }
    }
}
