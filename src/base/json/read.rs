//! Reads JSON that was written outside of the service.
//!
//! `serde_json` passes a number with its digits as an object with one member of a [reserved name](RESERVED_NAME), and takes
//! an object that begins with this member for a number. Here such an object stays an object.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The name of the member that `serde_json` takes for a number.
pub const RESERVED_NAME: &str = "$serde_json::private::Number";

/// Parses a JSON text.
///
/// # Errors
/// The error of `serde_json`, if the text is not JSON in UTF-8 or nested deeper than 128 levels.
pub fn parse(text: &[u8]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Reader(None).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Deserializes a member that may be absent or null, and contains no object with the reserved name. Such an object cannot
/// be stored, because it would be a number when it is parsed again.
///
/// # Errors
/// The error of the deserializer, or an error for the reserved name.
pub fn deserialize_storable<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    let value = Reader(None).deserialize(from)?;
    if has_reserved_name(&value) {
        return Err(D::Error::custom("an object has a reserved member"));
    }
    Ok(Some(value).filter(|value| !value.is_null()))
}

/// Returns whether an object in `value` has a member with the [reserved name](RESERVED_NAME).
pub fn has_reserved_name(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_reserved_name),
        Value::Object(members) => {
            members.iter().any(|(name, member)| name == RESERVED_NAME || has_reserved_name(member))
        }
        _ => false,
    }
}

/// Reads one value of a text. Sets the cell if the value is the digits of a number.
struct Reader<'c>(Option<&'c Cell<bool>>);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    /// Reads the digits of a number. A text calls `visit_str` for its strings.
    fn visit_string<E: Error>(self, digits: String) -> Result<Value, E> {
        if let Some(is_number) = self.0 {
            is_number.set(true);
        }
        digits.parse::<Number>().map(Value::Number).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Reader(None))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            let is_number = Cell::new(false);
            let value = object.next_value_seed(Reader(Some(&is_number)))?;
            if is_number.get() {
                return Ok(value);
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Line {
        #[serde(default, deserialize_with = "deserialize_storable")]
        fields: Option<Value>,
    }

    #[test]
    fn object_with_the_reserved_name_stays_an_object() {
        let plain = r#"{"$serde_json::private::Number":"5"}"#;
        for text in [
            plain,
            r#"{"$serde_json::private::Number":5}"#,
            r#"{"$serde_json::private::Number":5.50}"#,
            r#"{"$serde_json::private::Number":"x","b":1}"#,
            r#"[{"a":1,"$serde_json::private::Number":null}]"#,
            r#"{"a":[{"$serde_json::private::Number":{"$serde_json::private::Number":"1"}}]}"#,
        ] {
            let value = parse(text.as_bytes()).unwrap();
            assert_eq!(value.to_string(), text);
            assert!(has_reserved_name(&value), "{text}");
            let line = format!("{{\"fields\":{text}}}");
            assert!(serde_json::from_str::<Line>(&line).is_err(), "{text}");
        }
        let escaped = parse(br#"{"\u0024serde_json::private::Number":"5"}"#).unwrap();
        assert_eq!(escaped.to_string(), plain);
    }

    #[test]
    fn storable_member_may_be_absent_or_null() {
        for (text, fields) in [
            ("{}", None),
            (r#"{"fields":null}"#, None),
            (r#"{"fields":{"a":[1.50]}}"#, Some(r#"{"a":[1.50]}"#)),
        ] {
            let line: Line = serde_json::from_str(text).unwrap();
            assert_eq!(line.fields.map(|fields| fields.to_string()).as_deref(), fields);
        }
    }

    #[test]
    fn other_texts_are_parsed_as_serde_json_does() {
        for text in [
            "null",
            r#" [true, false, null, "a\u00e4\n", {}, [], {"b": 1, "a": -2, "b": 3}] "#,
            "[0, -0, -1, 1.50, 1e400, -2.5E-7, 18446744073709551615, -9223372036854775808]",
            "[18446744073709551616, 0.00001, 12345678901234567890123.10]",
            "",
            "[1,]",
            "01",
            "{\"a\":1} x",
            "{\"a\":1e}",
            "\"\u{1}\"",
        ] {
            let (own, other) = (parse(text.as_bytes()), serde_json::from_str::<Value>(text));
            let message = |error: serde_json::Error| error.to_string();
            assert_eq!(own.map_err(message), other.map_err(message), "{text}");
        }
        assert!(parse(b"\"\xff\"").is_err());
        let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
        assert!(parse(deep.as_bytes()).unwrap_err().to_string().contains("recursion limit"));
    }

    proptest! {
        #[test]
        fn parsing_any_text_does_not_panic(text in ".{0,60}", near in r#"[\[\]{}",:0-9.eE+-]{0,40}"#) {
            let _ = (parse(text.as_bytes()), parse(near.as_bytes()));
        }
    }
}
