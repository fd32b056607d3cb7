//! Project fields with their own validation. Error texts are PostHog's. See `docs/spec/projects.md`.

use serde_json::Value;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, SchemaType, Type,
};

use crate::base::error::Result;
use crate::base::patch::Patch;
use crate::input::{Field, FieldType, FreeForm, JsonObject, Schema, invalid};

/// Reads an object within the limits of free-form fields.
fn dictionary(value: &Value) -> Result<JsonObject> {
    match FreeForm::read(value)? {
        Value::Object(members) => Ok(members),
        _ => Err(invalid("Must provide a dictionary or None.")),
    }
}

/// Returns the schema of an object that has only these members, with any values.
fn closed(members: &[&str]) -> ObjectBuilder {
    let object =
        ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
    let anything = || ObjectBuilder::new().schema_type(SchemaType::AnyValue);
    members.iter().fold(object, |object, name| object.property(*name, anything()))
}

fn only(members: &JsonObject, allowed: &[&str]) -> bool {
    members.keys().all(|name| allowed.contains(&name.as_str()))
}

/// `session_recording_linked_flag`: an object with `id`, `key` and optionally `variant`.
pub struct LinkedFlag;

impl FieldType for LinkedFlag {
    type Value = JsonObject;

    fn read(value: &Value) -> Result<JsonObject> {
        let members = dictionary(value)?;
        let wanted: &[&str] =
            if members.len() == 3 { &["id", "key", "variant"] } else { &["id", "key"] };
        if members.len() == wanted.len() && only(&members, wanted) {
            return Ok(members);
        }
        Err(invalid(
            "Must provide a dictionary with only 'id' and 'key' keys. _or_ only 'id', 'key', and 'variant' keys.",
        ))
    }

    fn schema() -> Schema {
        closed(&["id", "key", "variant"]).required("id").required("key").into()
    }
}

/// `session_recording_network_payload_capture_config`: an object with `recordHeaders`, `recordBody` or
/// both.
pub struct NetworkPayloadCapture;

impl FieldType for NetworkPayloadCapture {
    type Value = JsonObject;

    fn read(value: &Value) -> Result<JsonObject> {
        let members = dictionary(value)?;
        if only(&members, &["recordHeaders", "recordBody"]) {
            return Ok(members);
        }
        Err(invalid(
            "Must provide a dictionary with only 'recordHeaders' and/or 'recordBody' keys.",
        ))
    }

    fn schema() -> Schema {
        closed(&["recordHeaders", "recordBody"]).into()
    }
}

/// `session_replay_config`: an object with `record_canvas`, `ai_config` or both.
pub struct SessionReplay;

impl FieldType for SessionReplay {
    type Value = JsonObject;

    fn read(value: &Value) -> Result<JsonObject> {
        let members = dictionary(value)?;
        if !only(&members, &["record_canvas", "ai_config"]) {
            return Err(invalid(
                "Must provide a dictionary with only known keys. One or more of record_canvas, ai_config.",
            ));
        }
        match members.get("ai_config") {
            None | Some(Value::Null) => {}
            Some(Value::Object(config)) if only(config, AI_CONFIG) => {}
            Some(Value::Object(_)) => {
                return Err(invalid(
                    "Must provide a dictionary with only allowed keys: included_event_properties, opt_in, preferred_events, excluded_events, important_user_properties.",
                ));
            }
            Some(_) => return Err(invalid("Must provide a dictionary or None.")),
        }
        Ok(members)
    }

    fn schema() -> Schema {
        let ai_config =
            closed(AI_CONFIG).schema_type(SchemaType::Array(vec![Type::Object, Type::Null]));
        closed(&["record_canvas"]).property("ai_config", ai_config).into()
    }
}

const AI_CONFIG: &[&str] = &[
    "included_event_properties",
    "opt_in",
    "preferred_events",
    "excluded_events",
    "important_user_properties",
];

/// `autocapture_exceptions_errors_to_ignore`: a list of strings, at most 300 characters as JSON, or null. As in PostHog,
/// errors do not name the field.
pub struct ErrorsToIgnore;

impl Field for ErrorsToIgnore {
    type Output = Patch<Vec<String>>;

    fn parse(_: &str, value: Option<&Value>) -> Result<Self::Output> {
        let (value, items) = match value {
            None => return Ok(Patch::Absent),
            Some(Value::Null) => return Ok(Patch::Null),
            Some(value @ Value::Array(items)) => (value, items),
            Some(_) => {
                return Err(invalid(
                    "Must provide a list for field: autocapture_exceptions_errors_to_ignore.",
                ));
            }
        };
        let texts: Option<Vec<String>> =
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        let texts = texts.ok_or_else(|| {
            invalid(
                "Must provide a list of strings to field: autocapture_exceptions_errors_to_ignore.",
            )
        })?;
        if value.to_string().chars().count() > 300 {
            return Err(invalid(
                "Field autocapture_exceptions_errors_to_ignore must be less than 300 characters. Complex config should be provided in posthog-js initialization.",
            ));
        }
        Ok(Patch::Value(texts))
    }

    fn property() -> Schema {
        let text = ObjectBuilder::new().schema_type(Type::String).max_length(Some(296));
        let list = SchemaType::Array(vec![Type::Array, Type::Null]);
        ArrayBuilder::new().schema_type(list).items(text).max_items(Some(99)).into()
    }
}
