//! What the tests of this room share.

use proptest::prelude::*;
use serde_json::Value;

use super::{Field, Kind};
use crate::error::Error;

/// Code, detail and attr of a refusal.
pub(super) type Parts = (&'static str, String, Option<String>);

pub(super) fn parts(error: &Error) -> Parts {
    (error.code(), error.detail().to_owned(), error.attr().map(str::to_owned))
}

/// Reads `value` as the field `f`.
pub(super) fn read<F: Field>(value: &Value) -> Result<F::Out, Parts> {
    F::take("f", Some(value)).map_err(|error| parts(&error))
}

/// Asserts that each value is refused, as the field `f`, with its code and text.
pub(super) fn refuses<K: Kind>(
    cases: impl IntoIterator<Item = (Value, &'static str, &'static str)>,
) {
    for (value, code, detail) in cases {
        let refusal = read::<K>(&value).err();
        assert_eq!(refusal, Some((code, detail.to_owned(), Some("f".to_owned()))), "{value}");
    }
}

/// Asserts that each value is read as what stands beside it.
pub(super) fn reads<K: Kind>(cases: impl IntoIterator<Item = (Value, K::Value)>)
where
    K::Value: PartialEq,
{
    for (value, expected) in cases {
        assert_eq!(read::<K>(&value), Ok(Some(expected)), "{value}");
    }
}

/// Any JSON, with the texts that coercions look at among its strings.
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
