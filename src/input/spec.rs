//! What a field is: the kind of value it takes, and what absent and null mean.

use std::fmt::Debug;
use std::marker::PhantomData;

use serde_json::Value;
use utoipa::openapi::schema::{AnyOfBuilder, Object, ObjectBuilder, SchemaType, Type};

use super::{Input, JsonObject, Schema, not_a_dictionary};
use crate::error::{Error, Result};
use crate::patch::Patch;

/// A kind of value: how JSON is checked and turned into it.
///
/// Implemented by types without a value of their own (`Text<400>`), which stand in a field's declaration.
pub trait Kind {
    /// What a field of this kind holds.
    type Value: Clone + Debug;

    /// Checks and converts `value`, which is never null.
    ///
    /// # Errors
    /// An [`Error::invalid`] with the kind's code and text. The attr, if the fault lies further in, is the
    /// path from here; whoever called puts the field's name before it.
    fn read(value: &Value) -> Result<Self::Value>;

    /// The schema of the value.
    fn schema() -> Schema;

    /// Whether a [`Nullable`] field takes `value` for null.
    #[must_use]
    fn reads_as_null(value: &Value) -> bool {
        value.is_null()
    }
}

/// A field of an input, as it is declared: a [`Kind`], [`Nullable`], [`Required`] or [`Untyped`].
pub trait Field {
    /// The type of the struct's field.
    type Out: Clone + Debug;

    /// Whether the schema lists the field as required.
    const REQUIRED: bool = false;

    /// Reads the member `name`; `value` is none where it is absent.
    ///
    /// # Errors
    /// The refusal, with `attr` set.
    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out>;

    /// The schema of the property.
    fn property() -> Schema;
}

impl<K: Kind> Field for K {
    type Out = Option<K::Value>;

    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out> {
        value.map(|value| read_present::<K>(name, value)).transpose()
    }

    fn property() -> Schema {
        K::schema()
    }
}

/// A field that may be null, or absent: see [`Patch`].
#[derive(Debug, Clone, Copy)]
pub struct Nullable<K>(PhantomData<K>);

impl<K: Kind> Field for Nullable<K> {
    type Out = Patch<K::Value>;

    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out> {
        match value {
            None => Ok(Patch::Absent),
            Some(value) if K::reads_as_null(value) => Ok(Patch::Null),
            Some(value) => read_present::<K>(name, value).map(Patch::Value),
        }
    }

    fn property() -> Schema {
        nullable(K::schema())
    }
}

/// A field that must be sent, and not as null: `required` otherwise (facts-crosscutting §b).
#[derive(Debug, Clone, Copy)]
pub struct Required<K>(PhantomData<K>);

impl<K: Kind> Field for Required<K> {
    type Out = K::Value;

    const REQUIRED: bool = true;

    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out> {
        let value =
            value.ok_or_else(|| Error::field(name, "required", "This field is required."))?;
        read_present::<K>(name, value)
    }

    fn property() -> Schema {
        K::schema()
    }
}

/// A field that may hold anything, is not looked at and has no effect.
#[derive(Debug, Clone, Copy)]
pub struct Untyped;

impl Field for Untyped {
    type Out = ();

    fn take(_: &str, _: Option<&Value>) -> Result<()> {
        Ok(())
    }

    fn property() -> Schema {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}

/// An object that is an input itself: its faults are reported at `field__member`, and one that is no
/// object at `field__non_field_errors` (facts-crosscutting §b).
#[derive(Debug, Clone, Copy)]
pub struct Nested<T>(PhantomData<T>);

impl<T: Input> Kind for Nested<T> {
    type Value = T;

    fn read(value: &Value) -> Result<T> {
        match value {
            Value::Object(members) => T::parse(members),
            other => Err(not_a_dictionary(other).within("non_field_errors")),
        }
    }

    fn schema() -> Schema {
        T::schema()
    }
}

/// Reads a value that was sent and may not be null, and reports a fault at `name`.
pub(super) fn read_present<K: Kind>(name: &str, value: &Value) -> Result<K::Value> {
    if value.is_null() {
        return Err(Error::field(name, "null", "This field may not be null."));
    }
    K::read(value).map_err(|error| error.within(name))
}

/// One property of an input's schema. Made by [`input!`](crate::input!) only.
pub struct Property {
    name: &'static str,
    required: bool,
    schema: Schema,
}

impl Property {
    /// The property of the field `identifier`, with its doc comment.
    #[must_use]
    pub fn of<F: Field>(identifier: &'static str, docs: &[&str]) -> Self {
        let mut schema = F::property();
        if let Some(text) = description(docs) {
            describe(&mut schema, text);
        }
        Self { name: member(identifier), required: F::REQUIRED, schema }
    }
}

/// Reads the member that the field `identifier` stands for. Called by [`input!`](crate::input!) only.
///
/// # Errors
/// Those of [`Field::take`].
pub fn take<F: Field>(identifier: &'static str, body: &JsonObject) -> Result<F::Out> {
    let name = member(identifier);
    F::take(name, body.get(name))
}

/// The schema of an object with these properties. Called by [`input!`](crate::input!) only.
#[must_use]
pub fn object_schema(docs: &[&str], properties: impl IntoIterator<Item = Property>) -> Schema {
    let mut object = ObjectBuilder::new().description(description(docs));
    for property in properties {
        if property.required {
            object = object.required(property.name);
        }
        object = object.property(property.name, property.schema);
    }
    object.into()
}

/// The JSON member that a Rust identifier stands for.
fn member(identifier: &'static str) -> &'static str {
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

/// `schema` or null, in the words of `OpenAPI` 3.1.
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

    use super::super::testing::parts;
    use super::super::{Choice, Choices, FreeForm, ListOf, Text};
    use super::*;

    struct Interval;
    impl Choices for Interval {
        type Value = &'static str;
        const ALL: &'static [&'static str] = &["hour", "day"];
    }

    /// A kind whose schema has no type to extend.
    #[derive(Debug)]
    struct Mixed;
    impl Kind for Mixed {
        type Value = Value;
        fn read(value: &Value) -> Result<Value> {
            Ok(value.clone())
        }
        fn schema() -> Schema {
            OneOfBuilder::new().item(Text::<1>::schema()).into()
        }
    }

    #[test]
    fn absent_and_null_mean_what_the_declaration_says() {
        let null = json!(null);
        let code = |error: Error| parts(&error);
        let refused_null = ("null", "This field may not be null.".to_owned(), Some("f".to_owned()));

        assert_eq!(<Text<1> as Field>::take("f", None).unwrap(), None);
        assert_eq!(code(<Text<1> as Field>::take("f", Some(&null)).unwrap_err()), refused_null);
        assert_eq!(Nullable::<Text<1>>::take("f", None).unwrap(), Patch::Absent);
        assert_eq!(Nullable::<Text<1>>::take("f", Some(&null)).unwrap(), Patch::Null);
        assert_eq!(code(Required::<Text<1>>::take("f", Some(&null)).unwrap_err()), refused_null);
        assert_eq!(
            code(Required::<Text<1>>::take("f", None).unwrap_err()),
            ("required", "This field is required.".to_owned(), Some("f".to_owned()))
        );
    }

    #[test]
    fn nullable_schemas_follow_openapi_3_1() {
        let schema = |schema: Schema| serde_json::to_value(schema).unwrap();
        assert_eq!(schema(Nullable::<Text<1>>::property())["type"], json!(["string", "null"]));
        assert_eq!(
            schema(Nullable::<ListOf<Text<1>, 3>>::property())["type"],
            json!(["array", "null"])
        );
        let types = json!(["object", "array", "string", "number", "boolean", "null"]);
        assert_eq!(schema(Nullable::<FreeForm>::property())["type"], types);
        assert_eq!(
            schema(Nullable::<Choice<Interval>>::property()),
            json!({"type": ["string", "null"], "enum": ["hour", "day", null]})
        );
        assert_eq!(
            schema(Nullable::<Mixed>::property()),
            json!({"anyOf": [{"oneOf": [schema(Text::<1>::schema())]}, {"type": "null"}]})
        );
        assert_eq!(
            schema(Property::of::<Mixed>("mixed", &[" Said."]).schema)["description"],
            json!("Said.")
        );
    }
}
