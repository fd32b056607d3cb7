//! The declaration of a field: its type of value, and the meaning of absent and null.

use std::fmt::Debug;
use std::marker::PhantomData;

use serde_json::Value;
use utoipa::openapi::schema::{
    AnyOfBuilder, Object, ObjectBuilder, SchemaFormat, SchemaType, Type,
};

use super::{Input, JsonObject, Schema, missing, not_a_dictionary};
use crate::base::error::{Error, Result};
use crate::base::patch::Patch;

/// A type of value: how JSON is checked and converted.
///
/// Implemented by marker types such as `Text<400>`, which are used in a field's declaration.
pub trait FieldType {
    /// The value of a field of this type.
    type Value: Clone + Debug;

    /// Checks and converts `value`, which is never null.
    ///
    /// # Errors
    /// An [`Error::invalid`] with the type's code and message. If a nested value is invalid, `attr` is the
    /// path to it from here. The caller adds the field's name in front.
    fn read(value: &Value) -> Result<Self::Value>;

    /// Returns the schema of the value.
    fn schema() -> Schema;

    /// Whether a [`Nullable`] field reads `value` as null.
    #[must_use]
    fn is_null(value: &Value) -> bool {
        value.is_null()
    }
}

/// The declaration of a field: a [`FieldType`], [`Nullable`], [`Required`] or [`Untyped`].
pub trait Field {
    /// The type of the struct's field.
    type Output: Clone + Debug;

    /// Whether the schema lists the field as required.
    const REQUIRED: bool = false;

    /// Reads the member `name`. `value` is `None` if the member is absent.
    ///
    /// # Errors
    /// The error of the value, with `attr` set.
    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output>;

    /// Returns the schema of the property.
    fn property() -> Schema;
}

impl<K: FieldType> Field for K {
    type Output = Option<K::Value>;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        value.map(|value| read_non_null::<K>(name, value)).transpose()
    }

    fn property() -> Schema {
        K::schema()
    }
}

/// A field that may be null or absent. See [`Patch`].
#[derive(Debug, Clone, Copy)]
pub struct Nullable<K>(PhantomData<K>);

impl<K: FieldType> Field for Nullable<K> {
    type Output = Patch<K::Value>;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        match value {
            None => Ok(Patch::Absent),
            Some(value) if K::is_null(value) => Ok(Patch::Null),
            Some(value) => read_non_null::<K>(name, value).map(Patch::Value),
        }
    }

    fn property() -> Schema {
        nullable(K::schema())
    }
}

/// A field that must be present and not null. Fails with `required` or `null`.
#[derive(Debug, Clone, Copy)]
pub struct Required<K>(PhantomData<K>);

impl<K: FieldType> Field for Required<K> {
    type Output = K::Value;

    const REQUIRED: bool = true;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        read_non_null::<K>(name, value.ok_or_else(|| missing(name))?)
    }

    fn property() -> Schema {
        K::schema()
    }
}

/// A field that accepts anything and is ignored.
#[derive(Debug, Clone, Copy)]
pub struct Untyped;

impl Field for Untyped {
    type Output = ();

    fn parse(_: &str, _: Option<&Value>) -> Result<()> {
        Ok(())
    }

    fn property() -> Schema {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}

/// An object that is itself an input. Its errors are reported at `field__member`, or at
/// `field__non_field_errors` if the value is not an object.
#[derive(Debug, Clone, Copy)]
pub struct Nested<T>(PhantomData<T>);

impl<T: Input> FieldType for Nested<T> {
    type Value = T;

    fn read(value: &Value) -> Result<T> {
        match value {
            Value::Object(members) => T::parse(members),
            other => Err(not_a_dictionary(other).with_attr_prefix("non_field_errors")),
        }
    }

    fn schema() -> Schema {
        T::schema()
    }
}

/// Reads a value that is present and must not be null. Errors are reported at `name`.
pub(super) fn read_non_null<K: FieldType>(name: &str, value: &Value) -> Result<K::Value> {
    if value.is_null() {
        return Err(Error::field(name, "null", "This field may not be null."));
    }
    K::read(value).map_err(|error| error.with_attr_prefix(name))
}

/// Begins the schema of a string.
pub(super) fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// Begins the schema of a type in a format.
pub(super) fn formatted(schema_type: Type, format: &str) -> ObjectBuilder {
    let format = SchemaFormat::Custom(format.to_owned());
    ObjectBuilder::new().schema_type(schema_type).format(Some(format))
}

/// A property of an input's schema. Used only by [`input!`](crate::input!).
pub struct Property {
    identifier: &'static str,
    docs: &'static [&'static str],
    required: bool,
    schema: fn() -> Schema,
}

impl Property {
    /// Creates the property of the field `identifier` with its doc comment.
    #[must_use]
    pub const fn of<F: Field>(identifier: &'static str, docs: &'static [&'static str]) -> Self {
        Self { identifier, docs, required: F::REQUIRED, schema: F::property }
    }

    /// Creates the property of a member that is ignored.
    #[must_use]
    pub const fn ignored(identifier: &'static str) -> Self {
        Self::of::<Untyped>(identifier, &["Ignored."])
    }

    fn described(&self) -> Schema {
        let mut schema = (self.schema)();
        if let Some(text) = description(self.docs) {
            describe(&mut schema, text);
        }
        schema
    }
}

/// Reads the member of the field `identifier`. Used only by [`input!`](crate::input!).
///
/// # Errors
/// The errors of [`Field::parse`].
pub fn parse_field<F: Field>(identifier: &'static str, body: &JsonObject) -> Result<F::Output> {
    let name = member_name(identifier);
    F::parse(name, member(body, name))
}

/// Returns a member of an object. Comparing a few names takes less time than hashing one.
fn member<'b>(body: &'b JsonObject, name: &str) -> Option<&'b Value> {
    /// The largest object whose names are compared.
    const FEW: usize = 8;
    if body.len() > FEW {
        return body.get(name);
    }
    body.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Returns the schema of an object with these properties. Used only by [`input!`](crate::input!).
#[must_use]
pub fn object_schema(docs: &[&str], properties: &[Property]) -> Schema {
    let mut object = ObjectBuilder::new().description(description(docs));
    for property in properties {
        let name = member_name(property.identifier);
        if property.required {
            object = object.required(name);
        }
        object = object.property(name, property.described());
    }
    object.into()
}

/// Returns the JSON member name of a Rust identifier.
fn member_name(identifier: &'static str) -> &'static str {
    identifier.strip_prefix("r#").unwrap_or(identifier)
}

fn description(docs: &[&str]) -> Option<String> {
    let lines: Vec<_> = docs.iter().map(|line| line.trim()).collect();
    Some(lines.join("\n")).filter(|text| !text.is_empty())
}

fn describe(schema: &mut Schema, text: String) {
    let slot = match schema {
        Schema::Array(array) => &mut array.description,
        Schema::Object(object) => &mut object.description,
        Schema::OneOf(one_of) => &mut one_of.description,
        Schema::AllOf(all_of) => &mut all_of.description,
        Schema::AnyOf(any_of) => &mut any_of.description,
        _ => return,
    };
    *slot = Some(text);
}

/// Makes a schema nullable, as `OpenAPI` 3.1 writes it.
fn nullable(mut schema: Schema) -> Schema {
    match &mut schema {
        Schema::Object(object) => {
            object.schema_type = or_null(&object.schema_type);
            if let Some(values) = &mut object.enum_values {
                values.push(Value::Null);
            }
        }
        Schema::Array(array) => array.schema_type = or_null(&array.schema_type),
        _ => {
            let null = Object::with_type(Type::Null);
            return AnyOfBuilder::new().item(schema).item(null).into();
        }
    }
    schema
}

fn or_null(schema_type: &SchemaType) -> SchemaType {
    match schema_type {
        SchemaType::Type(one) => SchemaType::Array(vec![one.clone(), Type::Null]),
        SchemaType::Array(several) => several.iter().cloned().chain([Type::Null]).collect(),
        SchemaType::AnyValue => SchemaType::AnyValue,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use utoipa::openapi::schema::OneOfBuilder;

    use super::super::testing::error_parts;
    use super::super::{Choice, Choices, FreeForm, ListOf, Text};
    use super::*;

    struct Interval;
    impl Choices for Interval {
        type Value = &'static str;
        const ALL: &'static [&'static str] = &["hour", "day"];
    }

    /// A type whose schema has no `type`.
    #[derive(Debug)]
    struct Mixed;
    impl FieldType for Mixed {
        type Value = Value;
        fn read(value: &Value) -> Result<Value> {
            Ok(value.clone())
        }
        fn schema() -> Schema {
            OneOfBuilder::new().item(Text::<1>::schema()).into()
        }
    }

    #[test]
    fn absent_and_null_fields_follow_the_declared_type() {
        let null = json!(null);
        let code = |error: Error| error_parts(&error);
        let refused_null = ("null", "This field may not be null.".to_owned(), Some("f".to_owned()));

        assert_eq!(<Text<1> as Field>::parse("f", None).unwrap(), None);
        assert_eq!(code(<Text<1> as Field>::parse("f", Some(&null)).unwrap_err()), refused_null);
        assert_eq!(Nullable::<Text<1>>::parse("f", None).unwrap(), Patch::Absent);
        assert_eq!(Nullable::<Text<1>>::parse("f", Some(&null)).unwrap(), Patch::Null);
        assert_eq!(code(Required::<Text<1>>::parse("f", Some(&null)).unwrap_err()), refused_null);
        let absent = code(Required::<Text<1>>::parse("f", None).unwrap_err());
        let detail = "This field is required.".to_owned();
        assert_eq!(absent, ("required", detail, Some("f".to_owned())));
    }

    #[test]
    fn nullable_schemas_follow_openapi_3_1() {
        let schema = |schema: Schema| serde_json::to_value(schema).unwrap();
        assert_eq!(schema(Nullable::<Text<1>>::property())["type"], json!(["string", "null"]));
        let list = schema(Nullable::<ListOf<Text<1>, 3>>::property());
        assert_eq!(list["type"], json!(["array", "null"]));
        let types = json!(["object", "array", "string", "number", "boolean", "null"]);
        assert_eq!(schema(Nullable::<FreeForm>::property())["type"], types);
        let choice = schema(Nullable::<Choice<Interval>>::property());
        assert_eq!(choice, json!({"type": ["string", "null"], "enum": ["hour", "day", null]}));
        let mixed = json!({"anyOf": [{"oneOf": [schema(Text::<1>::schema())]}, {"type": "null"}]});
        assert_eq!(schema(Nullable::<Mixed>::property()), mixed);
        let mixed = schema(Property::of::<Mixed>("mixed", &[" Said."]).described());
        assert_eq!(mixed["description"], "Said.");
    }
}
