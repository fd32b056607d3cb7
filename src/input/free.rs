//! Free-form JSON with limits.

use std::io::{self, Write};

use serde_json::Value;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, SchemaType, Type,
};

use super::{FieldType, JsonObject, Schema, python_type};
use crate::base::error::{Error, Result};
use crate::base::json::{RESERVED_NAME, has_reserved_name};

const MAX_BYTES: usize = 32 * 1024;
const MAX_DEPTH: usize = 32;

/// Any JSON of at most 32 KiB in compact form and at most 32 levels of nesting. Fails with
/// `max_length`, or with `invalid_input` for the [reserved name](RESERVED_NAME) of a member.
#[derive(Debug, Clone, Copy)]
pub struct FreeForm;

impl FieldType for FreeForm {
    type Value = Value;

    fn read(value: &Value) -> Result<Value> {
        require_bounded(value)?;
        Ok(value.clone())
    }

    fn schema() -> Schema {
        use Type::{Array, Boolean, Number, Object, String};
        let any_but_null = SchemaType::Array(vec![Object, Array, String, Number, Boolean]);
        let anything = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
        ArrayBuilder::new().schema_type(any_but_null).items(anything).into()
    }
}

/// A [`FreeForm`] object. Fails with `not_a_dict` for any other type.
#[derive(Debug, Clone, Copy)]
pub struct FreeObject;

impl FieldType for FreeObject {
    type Value = JsonObject;

    fn read(value: &Value) -> Result<JsonObject> {
        let Value::Object(members) = value else {
            let name = python_type(value);
            return Err(Error::invalid(
                "not_a_dict",
                format!("Expected a dictionary of items but got type \"{name}\"."),
            ));
        };
        require_bounded(value)?;
        Ok(members.clone())
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}

/// Checks the limits. The depth comes first, so that serializing needs no deep stack.
fn require_bounded(value: &Value) -> Result<()> {
    if !is_within_depth(value, MAX_DEPTH) {
        return Err(Error::invalid(
            "max_length",
            format!("Ensure this field has no more than {MAX_DEPTH} nested containers."),
        ));
    }
    if serde_json::to_writer(ByteCounter(MAX_BYTES), value).is_err() {
        return Err(Error::invalid(
            "max_length",
            format!("Ensure this field has no more than {MAX_BYTES} bytes of JSON."),
        ));
    }
    if has_reserved_name(value) {
        let detail = format!("No object may have a member \"{RESERVED_NAME}\".");
        return Err(Error::invalid("invalid_input", detail));
    }
    Ok(())
}

fn is_within_depth(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => {
            depth > 0 && items.iter().all(|item| is_within_depth(item, depth - 1))
        }
        Value::Object(members) => {
            depth > 0 && members.values().all(|member| is_within_depth(member, depth - 1))
        }
        _ => true,
    }
}

/// A writer that discards its input and fails after this many bytes.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{any_json, assert_reads, assert_refused, read_field};
    use super::*;

    const BYTES: &str = "Ensure this field has no more than 32768 bytes of JSON.";
    const DEPTH: &str = "Ensure this field has no more than 32 nested containers.";

    fn nested(depth: usize) -> Value {
        (1..depth).fold(json!([]), |inner, level| {
            if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) }
        })
    }

    #[test]
    fn free_form_values_are_kept_unchanged() {
        for value in
            [json!(1), json!("x\u{0}"), json!([1, null]), json!({"b": 1, "a": [true]}), nested(32)]
        {
            assert_reads::<FreeForm>([(value.clone(), value)]);
        }
        let object = json!({"b": 1, "a": 2});
        let kept = FreeObject::read(&object).unwrap();
        assert_eq!(serde_json::to_string(&kept).unwrap(), r#"{"b":1,"a":2}"#);
    }

    #[test]
    fn free_form_values_have_limited_size_and_depth() {
        let text = "a".repeat(MAX_BYTES - 2);
        assert_reads::<FreeForm>([(json!(text), json!(text))]);
        assert_refused::<FreeForm>([
            (json!("a".repeat(MAX_BYTES - 1)), "max_length", BYTES),
            (json!("ä".repeat(MAX_BYTES / 2)), "max_length", BYTES),
            (json!({"k": "a".repeat(MAX_BYTES)}), "max_length", BYTES),
            (nested(33), "max_length", DEPTH),
            (json!(null), "null", "This field may not be null."),
        ]);
        assert_refused::<FreeObject>([(json!({"a": nested(32)}), "max_length", DEPTH)]);
    }

    #[test]
    fn reserved_name_of_a_member_is_refused() {
        let refused = "No object may have a member \"$serde_json::private::Number\".";
        for value in [json!({RESERVED_NAME: "5"}), json!({"a": [{"b": 1, RESERVED_NAME: null}]})] {
            assert_refused::<FreeForm>([(value.clone(), "invalid_input", refused)]);
            assert_refused::<FreeObject>([(value, "invalid_input", refused)]);
        }
    }

    #[test]
    fn free_object_must_be_an_object() {
        for (value, name) in
            [(json!([1]), "list"), (json!("s"), "str"), (json!(1), "int"), (json!(false), "bool")]
        {
            let (code, detail, attr) = read_field::<FreeObject>(&value).unwrap_err();
            assert_eq!((code, attr.as_deref()), ("not_a_dict", Some("f")));
            assert_eq!(detail, format!("Expected a dictionary of items but got type \"{name}\"."));
        }
    }

    proptest! {
        #[test]
        fn small_json_values_are_kept_unchanged(value in any_json()) {
            if !value.is_null() && value.to_string().len() <= MAX_BYTES {
                prop_assert_eq!(read_field::<FreeForm>(&value), Ok(Some(value.clone())));
            }
            prop_assert_eq!(read_field::<FreeObject>(&value).is_ok(), value.is_object());
        }
    }
}
