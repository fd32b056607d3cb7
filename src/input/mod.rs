//! Parses a JSON object into a typed input. A single list of fields declares the struct, its checks, their order and
//! its schema.
//!
//! [`input!`](crate::input!) declares an input. Each field has a type that implements [`Field`]:
//!
//! | declared as | absent | null | type of the field |
//! |---|---|---|---|
//! | `K` | `None` | error | `Option<K::Value>` |
//! | [`Nullable<K>`] | `Patch::Absent` | `Patch::Null` | [`Patch<K::Value>`](crate::base::patch::Patch) |
//! | [`Required<K>`] | error | error | `K::Value` |
//! | [`Untyped`] | ignored | ignored | `()` |
//!
//! `K` is a [`FieldType`]: [`Text`], [`Exact`], [`Name`], [`Flag`], [`Integer`], [`Identifier`], [`Fraction`], [`Choice`],
//! [`TimeZoneName`], [`DateTime`], [`Email`], [`UuidField`], [`FreeForm`], [`FreeObject`], [`ListOf`], [`UrlList`],
//! [`Tags`], [`Nested`], [`WebUrl`]. Fields are read in the order of declaration, and the first invalid one is the
//! error. Undeclared members are ignored. Codes, messages and coercions are PostHog's: see `docs/spec/values.md`.
//!
//! ```ignore
//! use serde_json::json;
//! use crate::input;
//! use crate::input::{Email, Flag, Input, Name, Nullable, Required, Tags, Text, require_object};
//! use crate::base::patch::Patch;
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
//! # Applying an input
//!
//! After its fields, an input may declare the function that applies them to stored fields. Each field then says where it is
//! stored, under its own name: `=> _` if it is not, or if a rule applies it.
//!
//! ```ignore
//! input! {
//!     /// The changes to a report.
//!     pub struct ReportPatch {
//!         /// The title.
//!         title: Nullable<Text<400>> => report,
//!         /// The dashboard that the report moves to.
//!         dashboard: Identifier => _,
//!     }
//!     fn apply_to(report: &mut ReportFields);
//! }
//!
//! patch.apply_to(&mut report.fields);
//! ```
//!
//! `ignored: [name, description]` after the fields declares [`Untyped`] members at the end of the schema, which the struct
//! does not have.
//!
//! # Custom field types
//!
//! A resource that needs other messages implements its own [`FieldType`]. Create errors with [`Error::invalid`]; the
//! caller adds the field's name.
//!
//! ```ignore
//! use serde_json::{Value, json};
//! use crate::base::error::{Error, Result};
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

mod address;
mod choice;
mod date_time;
mod decimal;
mod free;
mod list;
mod number;
mod spec;
mod text;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use address::{Email, WebUrl};
pub use choice::{Choice, Choices, Flag, TimeZoneName};
pub(crate) use choice::{choices, choices_schema, invalid_choice, named_values};
pub use date_time::DateTime;
pub use decimal::Fraction;
pub use free::{FreeForm, FreeObject};
pub use list::{ListOf, Tags, UrlList};
pub use number::{Identifier, Integer, UuidField, python_integer};
pub use spec::{Field, FieldType, Nested, Nullable, Required, Untyped};
pub use text::{Exact, Name, Text};
pub use utoipa::openapi::Schema;

#[doc(hidden)]
pub use spec::{Property, object_schema, parse_field};

use std::fmt::{Debug, Display};

use serde_json::Value;

use crate::base::error::{Error, Result};

/// Returns the error of a value that no other code describes, without `attr`.
pub fn invalid(detail: &'static str) -> Error {
    Error::invalid("invalid_input", detail)
}

/// Returns the error of a required field that is missing.
pub fn missing(attr: &str) -> Error {
    Error::field(attr, "required", "This field is required.")
}

/// Returns the error of a field with the id of an object that does not exist.
pub fn does_not_exist(attr: impl Into<String>, id: impl Display) -> Error {
    Error::field(attr, "does_not_exist", format!("Invalid pk \"{id}\" - object does not exist."))
}

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

/// A parsed body whose error is reported later.
///
/// PostHog reports a missing object or missing rights before an invalid field. The body is therefore parsed once,
/// ahead of the rule. The rule asks for the result at its own point, and may run twice.
#[derive(Debug, Clone)]
pub struct Parsed<T>(Result<T>);

impl<T: Input> Parsed<T> {
    /// Parses `body` and stores the result.
    #[must_use]
    pub fn new(body: &JsonObject) -> Self {
        Self(T::parse(body))
    }

    /// Returns the input.
    ///
    /// # Errors
    /// The error of [`Input::parse`], on every call.
    pub fn get(&self) -> Result<&T> {
        self.0.as_ref().map_err(Clone::clone)
    }
}

/// A parsed body, one text of which may stay as it is although no request may set it: a template or a signup has set it.
#[derive(Debug, Clone)]
pub struct ParsedWithKept<T> {
    parsed: Parsed<T>,
    /// The text, and the body without it. `None` if the body is valid.
    kept: Option<(String, Parsed<T>)>,
}

impl<T: Input> ParsedWithKept<T> {
    /// Parses `body`. The text that may stay is its member `name`.
    #[must_use]
    pub fn new(body: &JsonObject, name: &str) -> Self {
        let parsed = Parsed::<T>::new(body);
        let text = body.get(name).and_then(Value::as_str).filter(|_| parsed.get().is_err());
        let kept = text.map(|text| {
            let mut rest = body.clone();
            rest.shift_remove(name);
            (text.to_owned(), Parsed::new(&rest))
        });
        Self { parsed, kept }
    }

    /// Returns the input for an object with this text.
    ///
    /// # Errors
    /// The error of [`Input::parse`], on every call.
    pub fn get(&self, stored: Option<&str>) -> Result<&T> {
        match &self.kept {
            Some((sent, rest)) if stored == Some(sent.as_str()) => rest.get(),
            _ => self.parsed.get(),
        }
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

/// Declares an input: its fields, their checks, their order, their schema, and where they are stored. See
/// [`mod@crate::input`].
///
/// The struct derives `Debug` and `Clone` and implements [`Input`]. Doc comments become descriptions in the schema.
macro_rules! input {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis struct $name:ident {
            $( $(#[doc = $field_doc:literal])* $field:ident : $spec:ty $(=> $place:tt)? ),* $(,)?
        }
        $( fn apply_to($($stored:ident : &mut $type:ty),+ $(,)?); )?
        $( ignored: [$($ignored:ident),+ $(,)?] )?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone)]
        #[allow(dead_code, clippy::struct_field_names, reason = "the API names the fields; some are only checked")]
        $visibility struct $name {
            $( $(#[doc = $field_doc])* pub $field: <$spec as $crate::input::Field>::Output, )*
        }

        impl $crate::input::Input for $name {
            const NAME: &'static str = stringify!($name);

            #[allow(unused_variables, reason = "an input may have nothing but ignored members")]
            fn parse(body: &$crate::input::JsonObject) -> $crate::base::error::Result<Self> {
                Ok(Self { $( $field: $crate::input::parse_field::<$spec>(stringify!($field), body)?, )* })
            }

            fn schema() -> $crate::input::Schema {
                $crate::input::object_schema(
                    &[$($doc),*],
                    const { &[
                        $( $crate::input::Property::of::<$spec>(stringify!($field), &[$($field_doc),*]), )*
                        $( $( $crate::input::Property::ignored(stringify!($ignored)), )+ )?
                    ] },
                )
            }
        }

        $crate::input::input! { @apply_to $name [$( $($stored: $type,)+ )?] [$( $field $(=> $place)?, )*] }
    };

    // Takes what the input is applied to, and the place of each field.
    (@apply_to $name:ident [] $fields:tt) => {};
    (@apply_to $name:ident [$($stored:ident : $type:ty,)+] [$( $field:ident => $place:tt, )*]) => {
        impl $name {
            /// Writes the fields that were sent into the stored ones.
            pub fn apply_to(self, $($stored: &mut $type),+) {
                $( $crate::input::input!(@apply self.$field => $place.$field); )*
            }
        }
    };
    (@apply $sent:expr => _ . $field:ident) => {};
    (@apply $sent:expr => $stored:ident . $field:ident) => {
        $crate::base::patch::Apply::apply($sent, &mut $stored.$field)
    };
}

pub(crate) use input;
