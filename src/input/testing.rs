//! Helpers for the tests of this module.

use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Field, FieldType};
use crate::base::error::Error;

/// The code, detail and attr of an error.
pub(super) type ErrorParts = (&'static str, String, Option<String>);

pub(super) fn error_parts(error: &Error) -> ErrorParts {
    (error.code(), error.detail().to_owned(), error.attr().map(str::to_owned))
}

/// Reads `value` as the field `f`.
pub(super) fn read_field<F: Field>(value: &Value) -> Result<F::Output, ErrorParts> {
    F::parse("f", Some(value)).map_err(|error| error_parts(&error))
}

/// Asserts that reading each value as the field `f` fails with this code and message.
pub(super) fn assert_refused<K: FieldType>(
    cases: impl IntoIterator<Item = (Value, &'static str, &'static str)>,
) {
    for (value, code, detail) in cases {
        let refusal = read_field::<K>(&value).err();
        assert_eq!(refusal, Some((code, detail.to_owned(), Some("f".to_owned()))), "{value}");
    }
}

/// Asserts that reading each value as the field `f` fails with `invalid_input` and this message.
pub(super) fn assert_invalid<K: FieldType>(
    values: impl IntoIterator<Item = impl Into<Value>>,
    detail: &'static str,
) {
    assert_refused::<K>(values.into_iter().map(|value| (value.into(), "invalid_input", detail)));
}

/// Asserts that each value reads as the expected value.
pub(super) fn assert_reads<K: FieldType>(cases: impl IntoIterator<Item = (Value, K::Value)>)
where
    K::Value: PartialEq,
{
    for (value, expected) in cases {
        assert_eq!(read_field::<K>(&value), Ok(Some(expected)), "{value}");
    }
}

/// Asserts that reading a value that was read gives the same value.
pub(super) fn assert_read_again<K: FieldType>(value: &Value)
where
    K::Value: PartialEq + Serialize,
{
    if let Ok(Some(read)) = read_field::<K>(value) {
        assert_eq!(read_field::<K>(&json!(read)), Ok(Some(read)), "{value}");
    }
}

/// Generates any JSON, with strings that the coercions treat specially.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[ \t]*[+-]?[0-9]{0,22}[._]?[0-9]{0,4}(e[+-]?[0-9]{1,20})?[ \n]*",
        "(true|False|ON|null|nan|inf|0)",
        "[0-9]{1,5}-[0-9]{1,2}-[0-9]{1,2}",
        "[0-9]{4}-0[1-9]-[01][0-9][T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,10})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?",
        "[\"a-zA-Z. <]{0,6}@[a-z.<> -]{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
