//! The canonical form of an export's lines: the members of all objects sorted by name, no spaces, integers instead of
//! 1.0, and a line end. A line that passed through another program has the same canonical form.

use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

use crate::base::error::{Error, Result};

/// Returns the canonical form of a line.
pub fn canonical_line(line: &Value) -> Result<Vec<u8>> {
    with_line_end(&Canonical(line))
}

/// Returns the JSON of `line` with a line end.
pub(super) fn with_line_end(line: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line).map_err(Error::internal)?;
    text.push(b'\n');
    Ok(text)
}

/// Serializes a member of a line in canonical form.
pub(super) fn serialize_canonical<'v, S: Serializer>(
    value: impl Into<Option<&'v Value>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    value.into().map(Canonical).serialize(to)
}

/// A value that serializes in canonical form.
struct Canonical<'v>(&'v Value);

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => serialize_number(number, to),
            Value::Array(items) => to.collect_seq(items.iter().map(Canonical)),
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| (name, Canonical(value)));
                let mut members: Vec<_> = members.collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                to.collect_map(members)
            }
            other => other.serialize(to),
        }
    }
}

/// Serializes a number in its shortest spelling: programs write 1.0 as 1, and 5e-1 as 0.5. A number with more digits than a
/// floating-point number has keeps its digits.
fn serialize_number<S: Serializer>(number: &Number, to: S) -> Result<S::Ok, S::Error> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    if let Some(integer) = number.as_i64() {
        return to.serialize_i64(integer);
    }
    match number.as_f64().filter(|float| is_exact(*float, number.as_str())) {
        #[expect(clippy::cast_possible_truncation, reason = "integers up to 2^53 fit")]
        Some(float) if float.fract() == 0.0 && float.abs() <= LIMIT => {
            to.serialize_i64(float as i64)
        }
        Some(float) => to.serialize_f64(float),
        None => number.serialize(to),
    }
}

/// Returns whether the shortest text of `float` has the digits of `text`.
fn is_exact(float: f64, text: &str) -> bool {
    digits_and_exponent(&float.to_string()) == digits_and_exponent(text)
}

/// Returns the digits of a JSON number without zeros at either end, and the power of ten of the last one.
fn digits_and_exponent(text: &str) -> Option<(String, i64)> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{}{fraction}", whole.trim_start_matches('-'));
    let digits = all.trim_end_matches('0');
    let zeros = i64::try_from(all.len() - digits.len()).ok()?;
    let places = i64::try_from(fraction.len()).ok()?;
    let exponent = exponent.parse::<i64>().ok()?.checked_add(zeros)?.checked_sub(places)?;
    let digits = digits.trim_start_matches('0');
    Some((digits.to_owned(), if digits.is_empty() { 0 } else { exponent }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_content_has_one_canonical_form() {
        let canonical = r#"{"a":[1,0.5,-3,9007199254740993,1e+300,0,12345678901234567890123,0.10000000000000000001],"b":{"c":null,"d":"x"}}"#;
        for text in [
            r#"{"b": {"d": "x", "c": null}, "a": [1.0, 0.5, -3.0, 9007199254740993, 1e300, -0.0, 12345678901234567890123, 0.10000000000000000001]}"#,
            r#"{"a":[1,5e-1,-3,9007199254740993,1e300,0,12345678901234567890123,0.10000000000000000001],"b":{"c":null,"d":"\u0078"}}"#,
        ] {
            let line = serde_json::from_str(text).unwrap();
            let text = String::from_utf8(canonical_line(&line).unwrap()).unwrap();
            assert_eq!(text, format!("{canonical}\n"));
        }
        let [one, other] = [json!([1, 2]), json!([2, 1])].map(|it| canonical_line(&it).unwrap());
        assert_ne!(one, other);
    }
}
