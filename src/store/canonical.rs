//! The canonical form of an export's lines: the members of all objects sorted by name, no spaces, integers instead of
//! 1.0, and a line end. A line that passed through another program has the same canonical form.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

use crate::error::{Error, Result};

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
            Value::Number(number) => match as_integer(number) {
                Some(integer) => to.serialize_i64(integer),
                None => number.serialize(to),
            },
            Value::Array(items) => to.collect_seq(items.iter().map(Canonical)),
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| (name, Canonical(value)));
                to.collect_map(members.collect::<BTreeMap<_, _>>())
            }
            other => other.serialize(to),
        }
    }
}

/// Returns a floating-point number that is an integer as one, since some programs write 1.0 as 1. Integers above 2^53
/// stay: not every one of them is a floating-point number.
fn as_integer(number: &Number) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    #[expect(clippy::cast_possible_truncation, reason = "integers up to 2^53 fit")]
    (float.fract() == 0.0 && float.abs() <= LIMIT).then_some(float as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_content_has_one_canonical_form() {
        let canonical = r#"{"a":[1,0.5,-3,9007199254740993,1e+300],"b":{"c":null,"d":"x"}}"#;
        for text in [
            r#"{"b": {"d": "x", "c": null}, "a": [1.0, 0.5, -3.0, 9007199254740993, 1e300]}"#,
            r#"{"a":[1,5e-1,-3,9007199254740993,1e300],"b":{"c":null,"d":"\u0078"}}"#,
        ] {
            let line = serde_json::from_str(text).unwrap();
            let text = String::from_utf8(canonical_line(&line).unwrap()).unwrap();
            assert_eq!(text, format!("{canonical}\n"));
        }
        assert_ne!(
            canonical_line(&json!([1, 2])).unwrap(),
            canonical_line(&json!([2, 1])).unwrap()
        );
    }
}
