//! Parses a JSON object into a typed input. A single list of fields declares the struct, its checks, their order and
//! its schema.
//!
//! [`input!`](crate::input!) declares an input. Each field has a type that implements [`Field`]:
//!
//! | declared as | absent | null | type of the field |
//! |---|---|---|---|
//! | `K` | `None` | error | `Option<K::Value>` |
//! | [`Nullable<K>`] | `Patch::Absent` | `Patch::Null` | [`Patch<K::Value>`](crate::patch::Patch) |
//! | [`Required<K>`] | error | error | `K::Value` |
//! | [`Untyped`] | ignored | ignored | `()` |
//!
//! `K` is a [`FieldType`]: [`Text`], [`Name`], [`Flag`], [`Integer`], [`Identifier`], [`Decimal`], [`Choice`],
//! [`TimeZoneName`], [`DateTime`], [`Email`], [`UuidField`], [`FreeForm`], [`FreeObject`], [`ListOf`], [`UrlList`],
//! [`Tags`], [`Nested`], [`WebUrl`]. Fields are read in the order of declaration, and the first invalid one is the
//! error. Undeclared members are ignored. Codes, messages and coercions are PostHog's: see `docs/spec/values.md`.
//!
//! ```ignore
//! use serde_json::json;
//! use crate::input;
//! use crate::input::{Email, Flag, Input, Name, Nullable, Required, Tags, Text, require_object};
//! use crate::patch::Patch;
//!
//! input! {
//!     /// The changes to a report.
//!     pub struct ReportPatch {
//!         /// The title.
//!         title: Nullable<Text<400>>,
//!         /// Whether the report is pinned to the top of the list.
//!         pinned: Flag,
//!         /// Words to find the report by.
//!         tags: Tags,
//!         /// The recipient.
//!         target_email: Required<Email>,
//!     }
//! }
//!
//! let body = json!({"title": null, "pinned": "yes", "tags": ["B", "a "], "target_email": "Ann@Example.com"});
//! let patch = ReportPatch::parse(&require_object(body)?)?;
//! assert_eq!(patch.title, Patch::Null);
//! assert_eq!(patch.pinned, Some(true));
//! assert_eq!(patch.tags, Some(vec!["a".to_owned(), "b".to_owned()]));
//! assert_eq!(patch.target_email, "Ann@example.com");
//!
//! let error = ReportPatch::parse(&require_object(json!({"pinned": "maybe"}))?).unwrap_err();
//! assert_eq!((error.attr(), error.detail()), (Some("pinned"), "Must be a valid boolean."));
//! ```
//!
//! # Custom field types
//!
//! A resource that needs other messages implements its own [`FieldType`]. Create errors with [`Error::invalid`]; the
//! caller adds the field's name.
//!
//! ```ignore
//! use serde_json::{Value, json};
//! use crate::error::{Error, Result};
//! use crate::input::{FieldType, FreeForm, FreeObject, JsonObject, Schema};
//!
//! /// The headers that a proxy adds.
//! pub struct Headers;
//!
//! impl FieldType for Headers {
//!     type Value = JsonObject;
//!     fn read(value: &Value) -> Result<JsonObject> {
//!         match FreeForm::read(value)? {
//!             Value::Object(headers) if headers.values().all(Value::is_string) => Ok(headers),
//!             _ => Err(Error::invalid("invalid_input", "Must provide a dictionary of strings or None.")),
//!         }
//!     }
//!     fn schema() -> Schema { FreeObject::schema() }
//! }
//!
//! assert!(Headers::read(&json!({"x-team": "a"})).is_ok());
//! assert_eq!(Headers::read(&json!([])).unwrap_err().code(), "invalid_input");
//! ```
//!
//! A resource that treats absent or null fields differently, or needs errors without `attr`, implements [`Field`]
//! itself. Rules across several fields run after parsing, in the resource.
//!
//! This module depends on JSON, errors and schemas, but not on HTTP, storage or any resource.

mod choice;
mod date_time;
mod decimal;
mod email;
mod flag;
mod free;
mod identifier;
mod list;
mod number;
mod parsed;
mod spec;
mod text;
mod web_url;

#[cfg(test)]
mod testing;

pub use choice::{Choice, Choices, TimeZoneName};
pub(crate) use choice::{choices_schema, invalid_choice};
pub use date_time::DateTime;
pub use decimal::Decimal;
pub use email::Email;
pub use flag::Flag;
pub use free::{FreeForm, FreeObject};
pub use identifier::{Identifier, UuidField};
pub use list::{ListOf, Tags, UrlList};
pub use number::Integer;
pub use parsed::{Parsed, ParsedWithKept};
pub use spec::{Field, FieldType, Nested, Nullable, Required, Untyped};
pub use text::{Name, Text};
pub use utoipa::openapi::Schema;
pub use web_url::WebUrl;

#[doc(hidden)]
pub use spec::{Property, object_schema, parse_field};

use std::fmt::Debug;

use serde_json::Value;

use crate::error::{Error, Result};

/// A JSON object that keeps the order of its members.
pub type JsonObject = serde_json::Map<String, Value>;

/// A struct declared by [`input!`](crate::input!).
pub trait Input: Clone + Debug + Sized {
    /// The struct's name in the schema.
    const NAME: &'static str;

    /// Reads the declared fields of `body` in order. Ignores other members.
    ///
    /// # Errors
    /// The error of the first invalid field, with `attr` set.
    fn parse(body: &JsonObject) -> Result<Self>;

    /// Returns the schema of the object: its properties, and which of them are required.
    fn schema() -> Schema;
}

/// Returns the members of a body, which must be an object.
///
/// # Errors
/// `null` for JSON null, `invalid_input` for any other type.
pub fn require_object(value: Value) -> Result<JsonObject> {
    match value {
        Value::Object(members) => Ok(members),
        Value::Null => Err(Error::invalid("null", "No data provided")),
        other => Err(not_a_dictionary(&other)),
    }
}

fn not_a_dictionary(value: &Value) -> Error {
    let name = python_type(value);
    Error::invalid("invalid_input", format!("Invalid data. Expected a dictionary, but got {name}."))
}

/// Returns the Python name of a JSON type, which PostHog's messages contain.
pub fn python_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.as_str().contains(['.', 'e', 'E']) => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// Declares an input: its fields, their checks, their order and their schema. See [`mod@crate::input`].
///
/// The struct derives `Debug` and `Clone` and implements [`Input`]. Doc comments become descriptions in the schema.
macro_rules! input {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis struct $name:ident {
            $( $(#[doc = $field_doc:literal])* $field:ident : $spec:ty ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone)]
        #[allow(dead_code, clippy::struct_field_names, reason = "the API names the fields; some are only checked")]
        $visibility struct $name {
            $( $(#[doc = $field_doc])* pub $field: <$spec as $crate::input::Field>::Output, )*
        }

        impl $crate::input::Input for $name {
            const NAME: &'static str = stringify!($name);

            fn parse(body: &$crate::input::JsonObject) -> $crate::error::Result<Self> {
                Ok(Self { $( $field: $crate::input::parse_field::<$spec>(stringify!($field), body)?, )* })
            }

            fn schema() -> $crate::input::Schema {
                $crate::input::object_schema(
                    &[$($doc),*],
                    vec![$( $crate::input::Property::of::<$spec>(stringify!($field), &[$($field_doc),*]), )*],
                )
            }
        }
    };
}

pub(crate) use input;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::testing::{any_json, error_parts};
    use super::*;
    use crate::patch::Patch;

    crate::input! {
        /// Where to.
        struct Target {
            r#type: Required<Name<8>>,
            port: Integer<1, 65535>,
        }
    }

    crate::input! {
        /// Every way to declare a field.
        /// On two lines.
        struct Sample {
            /// A title.
            title: Nullable<Text<5>>,
            pinned: Flag,
            tags: Tags,
            owner: Required<Email>,
            target: Nested<Target>,
            targets: ListOf<Nested<Target>, 2>,
        }
    }

    fn refusal(body: Value) -> (&'static str, String, Option<String>) {
        error_parts(&Sample::parse(&require_object(body).unwrap()).unwrap_err())
    }

    #[test]
    fn first_invalid_field_in_declaration_order_is_reported() {
        let cases = [
            (
                json!({"pinned": "maybe", "title": "longer"}),
                ("max_length", "Ensure this field has no more than 5 characters.", "title"),
            ),
            (
                json!({"tags": null, "pinned": null}),
                ("null", "This field may not be null.", "pinned"),
            ),
            (json!({"tags": ["a", true]}), ("invalid_input", "Not a valid string.", "tags__1")),
            (json!({}), ("required", "This field is required.", "owner")),
            (json!({"owner": null}), ("null", "This field may not be null.", "owner")),
            (
                json!({"owner": "a@b.io", "target": 5}),
                (
                    "invalid_input",
                    "Invalid data. Expected a dictionary, but got int.",
                    "target__non_field_errors",
                ),
            ),
            (
                json!({"owner": "a@b.io", "target": {"port": 1}}),
                ("required", "This field is required.", "target__type"),
            ),
            (
                json!({"owner": "a@b.io", "targets": [{"type": "S3"}, {"type": "S3", "port": 0}]}),
                (
                    "min_value",
                    "Ensure this value is greater than or equal to 1.",
                    "targets__1__port",
                ),
            ),
        ];
        for (body, (code, detail, attr)) in cases {
            assert_eq!(refusal(body), (code, detail.to_owned(), Some(attr.to_owned())));
        }
    }

    #[test]
    fn absent_null_and_set_fields_are_distinguished() {
        let parse = |body| Sample::parse(&require_object(body).unwrap()).unwrap();
        let absent = parse(json!({"owner": "a@b.io", "unknown": 1}));
        assert_eq!((absent.title, absent.pinned, absent.tags), (Patch::Absent, None, None));
        assert!(absent.target.is_none() && absent.targets.is_none());
        assert_eq!(absent.owner, "a@b.io");
        let sent = parse(json!({
            "owner": "a@b.io", "title": null, "pinned": "on",
            "target": {"type": "S3", "port": "80"}, "targets": [],
        }));
        assert_eq!((sent.title, sent.pinned), (Patch::Null, Some(true)));
        let target = sent.target.unwrap();
        assert_eq!((target.r#type.as_str(), target.port), ("S3", Some(80)));
        assert_eq!(
            parse(json!({"owner": "a@b.io", "title": " x "})).title,
            Patch::Value("x".to_owned())
        );
    }

    #[test]
    fn input_schema_matches_the_declared_fields() {
        assert_eq!(Sample::NAME, "Sample");
        let (plain, filled) = (r"^[^\x00]*$", r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$");
        let target = json!({
            "type": "object", "description": "Where to.",
            "required": ["type"],
            "properties": {
                "type": {"type": "string", "minLength": 1, "maxLength": 8, "pattern": filled},
                "port": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 65535},
            },
        });
        let expected = json!({
            "type": "object",
            "description": "Every way to declare a field.\nOn two lines.",
            "required": ["owner"],
            "properties": {
                "title": {"type": ["string", "null"], "description": "A title.", "maxLength": 5, "pattern": plain},
                "pinned": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 255, "pattern": plain}, "maxItems": 200},
                "owner": {"type": "string", "format": "idn-email", "maxLength": 254},
                "target": target,
                "targets": {"type": "array", "items": target, "maxItems": 2},
            },
        });
        let schema = serde_json::to_value(Sample::schema()).unwrap();
        assert_eq!(schema, expected);
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["title", "pinned", "tags", "owner", "target", "targets"]);
    }

    #[test]
    fn parsed_keeps_its_error_until_get_is_called() {
        let parsed = Parsed::<Target>::new(&require_object(json!({"port": 0})).unwrap());
        let again = parsed.clone();
        for parsed in [&parsed, &parsed, &again] {
            assert_eq!(parsed.get().unwrap_err().attr(), Some("type"));
        }
        let parsed = Parsed::<Target>::new(&require_object(json!({"type": "S3"})).unwrap());
        assert_eq!(parsed.get().unwrap().r#type, "S3");
    }

    #[test]
    fn require_object_rejects_other_json_types() {
        let dictionary = |name| format!("Invalid data. Expected a dictionary, but got {name}.");
        for (body, code, detail) in [
            (json!(null), "null", "No data provided".to_owned()),
            (json!([1]), "invalid_input", dictionary("list")),
            (json!("x"), "invalid_input", dictionary("str")),
            (json!(1), "invalid_input", dictionary("int")),
            (json!(1.5), "invalid_input", dictionary("float")),
            (json!(true), "invalid_input", dictionary("bool")),
        ] {
            assert_eq!(error_parts(&require_object(body).unwrap_err()), (code, detail, None));
        }
        assert!(require_object(json!({})).unwrap().is_empty());
        assert_eq!(python_type(&json!(null)), "NoneType");
        assert_eq!(python_type(&json!({})), "dict");
    }

    proptest! {
        #[test]
        fn any_request_body_is_parsed_or_rejected_with_a_field_name(
            title in any_json(), pinned in any_json(), tags in any_json(),
            owner in any_json(), target in any_json(), targets in any_json(),
        ) {
            let body = json!({
                "title": title, "pinned": pinned, "tags": tags,
                "owner": owner, "target": target, "targets": targets,
            });
            if let Err(error) = Sample::parse(&require_object(body).unwrap()) {
                prop_assert_eq!(error.status(), 400);
                prop_assert!(error.attr().is_some());
            }
        }
    }
}
