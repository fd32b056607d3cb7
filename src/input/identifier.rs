//! Ids of other objects.

use serde_json::Value;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use uuid::Uuid;

use super::number::parse_integer;
use super::{FieldType, Schema};
use crate::base::error::{Error, Result};

/// The integer id of an object, with the coercions of [`Integer`](super::Integer).
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
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(0_u64))
            .into()
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
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::Custom("uuid".to_owned())))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{assert_reads, assert_refused};
    use super::*;

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
        assert_refused::<UuidField>(
            wrong.map(|value| (value, "invalid_input", "Must be a valid UUID.")),
        );
    }
}
