//! Ids of other objects.

use serde_json::Value;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use uuid::Uuid;

use super::number::integer;
use super::{Kind, Schema};
use crate::error::{Error, Result};

/// The integer id of an object, with the coercions of [`Integer`](super::Integer).
///
/// Whether there is such an object is for the rule to say, and there is none for a number that no id can
/// have: a negative or too large one reads as `u64::MAX`, which is never issued. Zero stays zero, because
/// facts-dashboards §5 takes it for "none". Refused with `invalid_input`, `max_string_length`.
#[derive(Debug, Clone, Copy)]
pub struct Identifier;

impl Kind for Identifier {
    type Value = u64;

    fn read(value: &Value) -> Result<u64> {
        Ok(u64::try_from(integer(value)?).unwrap_or(u64::MAX))
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(0_u64))
            .into()
    }
}

/// A UUID: hyphenated, bare, braced or as a URN, or a whole number that stands for one
/// (facts-crosscutting §b). Refused with `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct UuidField;

impl Kind for UuidField {
    type Value = Uuid;

    fn read(value: &Value) -> Result<Uuid> {
        let uuid = match value {
            Value::String(text) => Uuid::try_parse(text).ok(),
            Value::Number(number) => number.as_u64().map(|number| Uuid::from_u128(number.into())),
            _ => None,
        };
        uuid.ok_or_else(|| Error::invalid("invalid_input", "Must be a valid UUID."))
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::Custom("uuid".to_owned())))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{any_json, read, reads, refuses};
    use super::*;

    #[test]
    fn identifiers_that_cannot_be_match_nothing() {
        reads::<Identifier>([
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
        refuses::<Identifier>([
            (json!(""), "invalid_input", "A valid integer is required."),
            (json!(true), "invalid_input", "A valid integer is required."),
            (json!("9".repeat(1001)), "max_string_length", "String value too large."),
        ]);
    }

    #[test]
    fn uuids_are_read_in_every_form() {
        let uuid = Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057);
        reads::<UuidField>([
            (json!(uuid.to_string()), uuid),
            (json!(uuid.to_string().to_uppercase()), uuid),
            (json!(uuid.simple().to_string()), uuid),
            (json!(uuid.braced().to_string()), uuid),
            (json!(uuid.urn().to_string()), uuid),
            (json!(5), Uuid::from_u128(5)),
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
        refuses::<UuidField>(wrong.map(|value| (value, "invalid_input", "Must be a valid UUID.")));
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(value in any_json()) {
            let _ = read::<Identifier>(&value);
            if let Ok(Some(uuid)) = read::<UuidField>(&value) {
                prop_assert_eq!(read::<UuidField>(&json!(uuid.to_string())), Ok(Some(uuid)));
            }
        }
    }
}
