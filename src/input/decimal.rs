//! Decimal numbers, stored as the string that responses show.

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};

use super::number::{require_numeric_length, too_large, too_small};
use super::text::strip;
use super::{FieldType, Schema};
use crate::base::error::{Error, Result};

/// A decimal from `MIN` to `MAX` with at most `DIGITS` digits, of which `PLACES` follow the decimal point.
/// The value is a string with exactly `PLACES` decimal places, such as `"0.40"`.
///
/// The limits apply to the digits as they were sent: `"0.400"` has three decimal places. A
/// [`Nullable`](super::Nullable) decimal reads a blank string as null. Fails, in this order, with
/// `max_string_length`, `invalid_input`, `max_digits`, `max_decimal_places`, `max_whole_digits`,
/// `max_value` or `min_value`.
#[derive(Debug, Clone, Copy)]
pub struct Decimal<const DIGITS: u32, const PLACES: u32, const MIN: i64, const MAX: i64>;

impl<const DIGITS: u32, const PLACES: u32, const MIN: i64, const MAX: i64> FieldType
    for Decimal<DIGITS, PLACES, MIN, MAX>
{
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        const { assert!(PLACES <= DIGITS && DIGITS <= 18, "the scaled value must fit in 128 bits") };
        let written = match value {
            Value::String(text) => {
                require_numeric_length(text)?;
                ParsedDecimal::parse(strip(text))
            }
            Value::Number(number) => {
                require_numeric_length(number.as_str())?;
                ParsedDecimal::parse(number.as_str())
            }
            _ => None,
        };
        let written = written
            .ok_or_else(|| Error::invalid("invalid_input", "A valid number is required."))?;
        written.require_precision(DIGITS.into(), PLACES.into())?;

        let one = 10_i128.pow(PLACES);
        let scaled = written.scaled(PLACES);
        if scaled > i128::from(MAX) * one {
            return Err(too_large(MAX));
        }
        if scaled < i128::from(MIN) * one {
            return Err(too_small(MIN));
        }
        Ok(format_scaled(scaled, PLACES))
    }

    fn schema() -> Schema {
        const { assert!(0 <= MIN && MAX <= 9, "the pattern lists every whole number") };
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::Custom("decimal".to_owned())))
            .pattern(Some(pattern(PLACES, MIN, MAX)))
            .into()
    }

    fn is_null(value: &Value) -> bool {
        value.is_null() || value.as_str().is_some_and(|text| strip(text).is_empty())
    }
}

/// The pattern of a valid decimal. The largest whole number allows only zeros after the point.
fn pattern(places: u32, min: i64, max: i64) -> String {
    let smaller: Vec<String> = (min..max).map(|whole| whole.to_string()).collect();
    let smaller = smaller.join("|");
    format!(r"^(({smaller})(\.[0-9]{{1,{places}}})?|{max}(\.0{{1,{places}}})?)$")
}

/// A decimal as sent: `digits * 10^exponent`. It is parsed by hand because the limits count the digits
/// sent, which a decimal type would round away.
struct ParsedDecimal {
    negative: bool,
    /// Without leading zeros; `0` for zero.
    digits: String,
    exponent: i64,
}

impl ParsedDecimal {
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

    fn require_precision(&self, max_digits: u64, max_places: u64) -> Result<()> {
        let written = self.digits.len() as u64;
        let places = if self.exponent < 0 { self.exponent.unsigned_abs() } else { 0 };
        let total = match u64::try_from(self.exponent) {
            Ok(zeros) => written.saturating_add(zeros),
            Err(_) => written.max(places),
        };
        let refuse = |code, rest: String| {
            Err(Error::invalid(code, format!("Ensure that there are no more than {rest}")))
        };
        if total > max_digits {
            return refuse("max_digits", format!("{max_digits} digits in total."));
        }
        if places > max_places {
            return refuse("max_decimal_places", format!("{max_places} decimal places."));
        }
        let max_whole = max_digits - max_places;
        if total - places > max_whole {
            return refuse(
                "max_whole_digits",
                format!("{max_whole} digits before the decimal point."),
            );
        }
        Ok(())
    }

    /// Returns the value times `10^places`. Call it only after
    /// [`require_precision`](Self::require_precision).
    fn scaled(&self, places: u32) -> i128 {
        let zeros = u32::try_from(self.exponent.saturating_add(places.into())).unwrap_or_default();
        let magnitude = self.digits.bytes().fold(0_i128, |number, digit| {
            number.saturating_mul(10).saturating_add((digit - b'0').into())
        });
        let magnitude = magnitude.saturating_mul(10_i128.saturating_pow(zeros));
        if self.negative { -magnitude } else { magnitude }
    }
}

fn format_scaled(scaled: i128, places: u32) -> String {
    let one = 10_i128.pow(places);
    let sign = if scaled < 0 { "-" } else { "" };
    let (whole, fraction) = (scaled.abs() / one, scaled.abs() % one);
    if places == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{fraction:0width$}", width = places as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;
    use serde_json::json;

    use super::super::Nullable;
    use super::super::testing::{assert_reads, assert_refused, read_field};
    use super::*;
    use crate::base::patch::Patch;

    type Rate = Decimal<3, 2, 0, 1>;

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
        assert_reads::<Rate>(cases.map(|(value, text)| (value, text.to_owned())));
        assert_reads::<Decimal<4, 2, -99, 99>>([
            (json!("-1.5"), "-1.50".to_owned()),
            (json!("1e1"), "10.00".to_owned()),
        ]);
        assert_reads::<Decimal<2, 0, 0, 99>>([(json!("12"), "12".to_owned())]);
    }

    #[test]
    fn decimal_schema_pattern_matches_the_allowed_range() {
        let pattern = Regex::new(&pattern(2, 0, 1)).unwrap();
        for text in ["0", "0.5", "0.25", "1", "1.0", "1.00"] {
            assert!(pattern.is_match(text), "{text}");
            assert!(Decimal::<3, 2, 0, 1>::read(&json!(text)).is_ok(), "{text}");
        }
        for text in ["2", "1.1", "1.01", "0.123", "-0.1", "", ".", "1."] {
            assert!(!pattern.is_match(text), "{text}");
        }
    }

    #[test]
    fn decimals_are_checked_for_format_then_digits_then_range() {
        let form = ("invalid_input", "A valid number is required.");
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
        assert_refused::<Rate>(texts.map(|text| (json!(text), form.0, form.1)));
        assert_refused::<Rate>(
            [json!(true), json!([1]), json!({})].map(|value| (value, form.0, form.1)),
        );
        let digits = "Ensure that there are no more than 3 digits in total.";
        let places = "Ensure that there are no more than 2 decimal places.";
        let whole = "Ensure that there are no more than 1 digits before the decimal point.";
        let max = "Ensure this value is less than or equal to 1.";
        assert_refused::<Rate>([
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
        assert_eq!(read_field::<Nullable<Rate>>(&json!(" ")), Ok(Patch::Null));
        assert_eq!(
            read_field::<Nullable<Rate>>(&json!("0.1")),
            Ok(Patch::Value("0.10".to_owned()))
        );
    }

    proptest! {
        #[test]
        fn decimals_keep_hundredths(hundredths in 0_u32..=100) {
            let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            prop_assert_eq!(read_field::<Rate>(&json!(f64::from(hundredths) / 100.0)), Ok(Some(text.clone())));
            prop_assert_eq!(read_field::<Rate>(&json!(text)), Ok(Some(text)));
        }
    }
}
