//! Booleans.

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::{FieldType, JsonObject, Schema};
use crate::base::error::{Error, Result};

const TRUE: [&str; 14] =
    ["t", "T", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1"];
const FALSE: [&str; 14] =
    ["f", "F", "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0"];
const NULL: [&str; 4] = ["null", "Null", "NULL", ""];

/// A boolean. Accepts `true`, `1`, and words such as `"yes"`, `"on"` and `"0"`. See
/// `docs/spec/values.md`.
///
/// A [`Nullable`](super::Nullable) flag reads `"null"` and `""` as null. Fails with `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct Flag;

impl Flag {
    /// Reads the member `name` of a body of which other members may be invalid. Returns `None` if it is absent or no
    /// boolean.
    #[must_use]
    pub fn peek(body: &JsonObject, name: &str) -> Option<bool> {
        Self::read(body.get(name)?).ok()
    }
}

impl FieldType for Flag {
    type Value = bool;

    fn read(value: &Value) -> Result<bool> {
        let known = match value {
            Value::Bool(flag) => Some(*flag),
            Value::String(word) if TRUE.contains(&word.as_str()) => Some(true),
            Value::String(word) if FALSE.contains(&word.as_str()) => Some(false),
            Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
            Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
            _ => None,
        };
        known.ok_or_else(|| Error::invalid("invalid_input", "Must be a valid boolean."))
    }

    fn schema() -> Schema {
        ObjectBuilder::new().schema_type(Type::Boolean).into()
    }

    fn is_null(value: &Value) -> bool {
        value.is_null() || value.as_str().is_some_and(|word| NULL.contains(&word))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::Nullable;
    use super::super::testing::{any_json, assert_reads, assert_refused, read_field};
    use super::*;
    use crate::base::patch::Patch;

    #[test]
    fn all_boolean_spellings_are_accepted() {
        assert_reads::<Flag>(TRUE.map(|word| (json!(word), true)));
        assert_reads::<Flag>(FALSE.map(|word| (json!(word), false)));
        assert_reads::<Flag>([json!(true), json!(1), json!(1.0)].map(|value| (value, true)));
        assert_reads::<Flag>(
            [json!(false), json!(0), json!(0.0), json!(-0.0)].map(|value| (value, false)),
        );
    }

    #[test]
    fn other_boolean_values_are_rejected() {
        let other = ["maybe", "tRUE", " true ", "null", "", "2", "1.0", "Welwyn Garden City"];
        assert_refused::<Flag>(
            other.map(|word| (json!(word), "invalid_input", "Must be a valid boolean.")),
        );
        let other = [json!(2), json!(-1), json!(0.5), json!([]), json!({})];
        assert_refused::<Flag>(
            other.map(|value| (value, "invalid_input", "Must be a valid boolean.")),
        );
        assert_refused::<Flag>([(json!(null), "null", "This field may not be null.")]);
    }

    #[test]
    fn nullable_boolean_accepts_spellings_of_null() {
        for value in [json!(null), json!("null"), json!("Null"), json!("NULL"), json!("")] {
            assert_eq!(read_field::<Nullable<Flag>>(&value), Ok(Patch::Null));
        }
        assert_eq!(read_field::<Nullable<Flag>>(&json!("off")), Ok(Patch::Value(false)));
        assert!(read_field::<Nullable<Flag>>(&json!("maybe")).is_err());
    }

    proptest! {
        #[test]
        fn booleans_match_the_reference_model(value in any_json()) {
            let model = match value.to_string().as_str() {
                "true" | "1" | "1.0" | "\"ON\"" => Some(true),
                "false" | "0" | "0.0" | "-0.0" | "\"False\"" | "\"0\"" => Some(false),
                _ => None,
            };
            // The table test covers all other words.
            if model.is_some() || !value.is_string() {
                prop_assert_eq!(read_field::<Flag>(&value).ok().flatten(), model);
            }
        }
    }
}
