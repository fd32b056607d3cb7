//! Response objects: one declaration gives the writer of the JSON and its schema in the OpenAPI document.
//!
//! `output!` declares a struct that holds the values of a response. Each member takes one of these forms, after its doc
//! comment, and ends with a comma. Only the first form also takes a `#[schema(...)]` of utoipa:
//!
//! | declared as | in the struct | in the JSON | in the schema |
//! |---|---|---|---|
//! | `name: T` | `name: T` | the value | `name: T` |
//! | `name?: T` | `name: Option<T>` | the value, or no member if `None` | `name: T`, not required |
//! | `name: T = text` | nothing | `text`, one token of JSON | `name: T` |
//! | `..name: T` | `name: T` | the members of the value | the members of `T` |
//!
//! `T as S` instead of `T` shows `S` in the schema. The type of a member implements [`WriteJson`], which everything does
//! that serde can serialize. The type after `..` implements [`WriteMembers`]: [`JsonText`], or another output.
//!
//! ```text
//! output! {
//!     /// An invite to an organization.
//!     pub struct InviteBody<'a> as Invite {
//!         /// The stored fields of the invite.
//!         ..own: JsonText<'a, Fields> as Fields,
//!         /// Whether the invite has expired.
//!         is_expired: bool,
//!         /// Always null.
//!         role: Option<Uuid> = null,
//!     }
//! }
//! ```
//!
//! expands to
//!
//! ```text
//! /// An invite to an organization.
//! pub struct InviteBody<'a> {
//!     /// The stored fields of the invite.
//!     pub own: JsonText<'a, Fields>,
//!     /// Whether the invite has expired.
//!     pub is_expired: bool,
//! }
//!
//! impl<'a> WriteMembers for InviteBody<'a> {
//!     fn write_members(self, object: &mut Object<'_>) -> Result<()> {
//!         let Self { own, is_expired } = self;
//!         own.write_members(object)?;
//!         object.member(",\"is_expired\":", is_expired)?;
//!         object.constants(",\"role\":null");
//!         Ok(())
//!     }
//! }
//!
//! impl<'a> WriteJson for InviteBody<'a> { /* the members within braces */ }
//!
//! // `InviteBody` has the schema of `Declared`.
//! #[derive(ToSchema)]
//! #[schema(as = Invite)]
//! struct Declared {
//!     #[serde(flatten)]
//!     own: Fields,
//!     is_expired: bool,
//!     role: Option<Uuid>,
//! }
//! ```

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Object;
use crate::base::error::{Error, Result};

/// A value that is written as JSON.
pub trait WriteJson: Sized {
    /// Appends the JSON of the value.
    ///
    /// # Errors
    /// 500 if the value does not serialize, or the error of a part that reads the data file.
    fn write_json(self, out: &mut Vec<u8>) -> Result<()>;

    /// Returns the JSON of the value. `capacity` is its expected size in bytes.
    ///
    /// # Errors
    /// The errors of [`write_json`](Self::write_json).
    fn to_json(self, capacity: usize) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(capacity);
        self.write_json(&mut out)?;
        Ok(out)
    }
}

/// A value whose members can become members of another object.
pub trait WriteMembers {
    /// Adds the members of the value to `object`.
    ///
    /// # Errors
    /// The errors of [`WriteJson::write_json`].
    fn write_members(self, object: &mut Object<'_>) -> Result<()>;
}

impl<T: Serialize> WriteJson for T {
    fn write_json(self, out: &mut Vec<u8>) -> Result<()> {
        serde_json::to_writer(out, &self).map_err(Error::internal)
    }
}

/// The JSON text of a `T`. It is copied unparsed.
pub struct JsonText<'a, T> {
    text: &'a [u8],
    of: PhantomData<fn() -> T>,
}

impl<'a, T> JsonText<'a, T> {
    /// Wraps `text`, which must be the JSON of a `T`.
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, of: PhantomData }
    }
}

impl<T> JsonText<'_, Option<T>> {
    /// The text of `None`.
    pub const NULL: Self = Self { text: b"null", of: PhantomData };
}

impl<T: DeserializeOwned> JsonText<'_, T> {
    /// Parses the text.
    ///
    /// # Errors
    /// 500 if the text is not a `T`.
    pub fn parse(&self) -> Result<T> {
        serde_json::from_slice(self.text).map_err(Error::internal)
    }
}

impl<T> WriteJson for JsonText<'_, T> {
    fn write_json(self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.text);
        Ok(())
    }
}

impl<T> WriteMembers for JsonText<'_, T> {
    fn write_members(self, object: &mut Object<'_>) -> Result<()> {
        object.members(self.text);
        Ok(())
    }
}

/// A value that the function appends when its turn comes. A long list is written in place this way.
pub struct WrittenBy<'a>(pub &'a mut dyn FnMut(&mut Vec<u8>) -> Result<()>);

impl WriteJson for WrittenBy<'_> {
    fn write_json(self, out: &mut Vec<u8>) -> Result<()> {
        (self.0)(out)
    }
}

/// Declares a response object. See [`mod@crate::base::json::output`].
macro_rules! output {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis struct $name:ident $(<$life:lifetime>)? as $schema:ident { $($members:tt)* }
    ) => {
        $crate::base::json::output! {
            @members { [$(#[doc = $doc])*] $visibility $name [$($life)?] $schema } object [] [] [] [] [] $($members)*
        }
    };
    ($(#[doc = $doc:literal])* $visibility:vis struct $name:ident $(<$life:lifetime>)? { $($members:tt)* }) => {
        $crate::base::json::output! {
            @members { [$(#[doc = $doc])*] $visibility $name [$($life)?] $name } object [] [] [] [] [] $($members)*
        }
    };

    // Takes one member. The brackets hold what the members before it expand to: the fields of the struct, the fields of
    // the schema, the names of the values, the statements that write them, and the constant text that follows these.
    (
        @members $head:tt $object:ident
        [$($field:tt)*] [$($declared:tt)*] [$($value:ident)*] [$($write:tt)*] [$($constant:tt)*]
        $(#[doc = $doc:literal])* $(#[schema $option:tt])? $name:ident : $type:ty $(as $shown:ty)?, $($rest:tt)*
    ) => {
        $crate::base::json::output! {
            @members $head $object
            [$($field)* $(#[doc = $doc])* pub $name: $type,]
            [
                $($declared)* $(#[doc = $doc])* $(#[schema $option])? $(#[schema(value_type = $shown)])?
                $name: $type,
            ]
            [$($value)* $name]
            [$($write)* $object.member(concat!($($constant)* ",\"", stringify!($name), "\":"), $name)?;]
            []
            $($rest)*
        }
    };
    (
        @members $head:tt $object:ident
        [$($field:tt)*] [$($declared:tt)*] [$($value:ident)*] [$($write:tt)*] [$($constant:tt)*]
        $(#[doc = $doc:literal])* $name:ident ? : $type:ty $(as $shown:ty)?, $($rest:tt)*
    ) => {
        $crate::base::json::output! {
            @members $head $object
            [$($field)* $(#[doc = $doc])* pub $name: Option<$type>,]
            [
                $($declared)* $(#[doc = $doc])* #[schema(required = false)] $(#[schema(value_type = $shown)])?
                $name: $type,
            ]
            [$($value)* $name]
            [
                $($write)* $object.constants(concat!($($constant)*));
                if let Some($name) = $name {
                    $object.member(concat!(",\"", stringify!($name), "\":"), $name)?;
                }
            ]
            []
            $($rest)*
        }
    };
    (
        @members $head:tt $object:ident
        [$($field:tt)*] [$($declared:tt)*] [$($value:ident)*] [$($write:tt)*] [$($constant:tt)*]
        $(#[doc = $doc:literal])* $name:ident : $type:ty = $text:tt, $($rest:tt)*
    ) => {
        $crate::base::json::output! {
            @members $head $object
            [$($field)*]
            [$($declared)* $(#[doc = $doc])* $name: $type,]
            [$($value)*]
            [$($write)*]
            [$($constant)* ",\"", stringify!($name), "\":", stringify!($text),]
            $($rest)*
        }
    };
    (
        @members $head:tt $object:ident
        [$($field:tt)*] [$($declared:tt)*] [$($value:ident)*] [$($write:tt)*] [$($constant:tt)*]
        $(#[doc = $doc:literal])* .. $name:ident : $type:ty $(as $shown:ty)?, $($rest:tt)*
    ) => {
        $crate::base::json::output! {
            @members $head $object
            [$($field)* $(#[doc = $doc])* pub $name: $type,]
            [$($declared)* #[serde(flatten)] $(#[schema(value_type = $shown)])? $name: $type,]
            [$($value)* $name]
            [
                $($write)* $object.constants(concat!($($constant)*));
                $crate::base::json::WriteMembers::write_members($name, $object)?;
            ]
            []
            $($rest)*
        }
    };

    (
        @members
        { [$($doc:tt)*] $visibility:vis $name:ident [$($life:lifetime)?] $schema:ident } $object:ident
        [$($field:tt)*] [$($declared:tt)*] [$($value:ident)*] [$($write:tt)*] [$($constant:tt)*]
    ) => {
        $($doc)*
        $visibility struct $name $(<$life>)? { $($field)* }

        impl $(<$life>)? $crate::base::json::WriteMembers for $name $(<$life>)? {
            fn write_members(self, $object: &mut $crate::base::json::Object<'_>) -> $crate::base::error::Result<()> {
                let Self { $($value),* } = self;
                $($write)*
                $object.constants(concat!($($constant)*));
                Ok(())
            }
        }

        impl $(<$life>)? $crate::base::json::WriteJson for $name $(<$life>)? {
            fn write_json(self, out: &mut Vec<u8>) -> $crate::base::error::Result<()> {
                $crate::base::json::Object::write(self, out)
            }
        }

        const _: () = {
            $($doc)*
            #[derive(utoipa::ToSchema)]
            #[schema(as = $schema)]
            #[allow(dead_code, non_snake_case, clippy::struct_excessive_bools, reason = "only for its schema")]
            struct Declared $(<$life>)? { $($declared)* }

            impl $(<$life>)? utoipa::PartialSchema for $name $(<$life>)? {
                fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                    <Declared as utoipa::PartialSchema>::schema()
                }
            }

            impl $(<$life>)? utoipa::ToSchema for $name $(<$life>)? {
                fn name() -> std::borrow::Cow<'static, str> {
                    <Declared as utoipa::ToSchema>::name()
                }

                fn schemas(found: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
                    <Declared as utoipa::ToSchema>::schemas(found);
                }
            }
        };
    };
}
pub(crate) use output;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use utoipa::{PartialSchema, ToSchema};

    use super::*;

    output! {
        /// Constants alone.
        struct Constants {
            kind: String = "{}",
            tags: Vec<String> = [],
        }
    }

    output! {
        /// Every form of a member.
        struct Sample<'a> as Shown {
            /// Always null.
            first: Option<u64> = null,
            /// Stored.
            ..own: JsonText<'a, Value> as Constants,
            /// A name.
            #[schema(max_length = 5)]
            name: &'a str as Option<String>,
            /// Sometimes.
            removed?: bool,
            items: WrittenBy<'a> as Vec<u64>,
            ..nested: Constants,
        }
    }

    fn written(own: &str, removed: Option<bool>) -> Value {
        let sample = Sample {
            own: JsonText::new(own.as_bytes()),
            name: "a\"b",
            removed,
            items: WrittenBy(&mut |out| {
                out.extend_from_slice(b"[1]");
                Ok(())
            }),
            nested: Constants {},
        };
        let text = String::from_utf8(sample.to_json(0).unwrap()).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn members_are_written_in_declared_order() {
        let expected = json!({
            "first": null, "id": 1, "name": "a\"b", "removed": true, "items": [1], "kind": "{}", "tags": [],
        });
        assert_eq!(written(r#"{"id":1}"#, Some(true)).to_string(), expected.to_string());
    }

    #[test]
    fn absent_members_leave_no_comma() {
        let expected =
            json!({ "first": null, "name": "a\"b", "items": [1], "kind": "{}", "tags": [] });
        assert_eq!(written("{}", None).to_string(), expected.to_string());
        let empty = JsonText::<Value>::new(b"{}");
        let mut out = Vec::new();
        Object::write(empty, &mut out).unwrap();
        assert_eq!(out, b"{}");
    }

    #[test]
    fn schema_has_the_same_members() {
        assert_eq!((Sample::name(), Constants::name()), ("Shown".into(), "Constants".into()));
        let constants = json!({ "$ref": "#/components/schemas/Constants" });
        let own = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "first": {
                    "type": ["integer", "null"], "format": "int64", "minimum": 0, "description": "Always null.",
                },
                "name": { "type": ["string", "null"], "maxLength": 5, "description": "A name." },
                "removed": { "type": "boolean", "description": "Sometimes." },
                "items": { "type": "array", "items": { "type": "integer", "format": "int64", "minimum": 0 } },
            },
        });
        let parts = [&constants, &constants, &own];
        let expected = json!({ "allOf": parts, "description": "Every form of a member." });
        assert_eq!(json!(Sample::schema()), expected);
    }
}
