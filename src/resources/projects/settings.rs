//! Project settings, their defaults, and the fields with a validation of their own, whose error texts are PostHog's. See
//! `docs/spec/projects.md`.

use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, SchemaType, Type,
};

use crate::input::FreeForm;
use crate::resources::members;
use crate::resources::shared::prelude::*;
use crate::resources::users::User;

use super::Project;

/// The settings of one project.
pub type Settings = RecordOf<(OrganizationId, ProjectId), Fields>;

/// The stored fields that only the detail view shows, in the order of the API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = ProjectSettings)]
#[allow(missing_docs, reason = "the names of the fields say what they hold")]
pub struct Fields {
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub product_description: Option<String>,
    pub app_urls: Vec<String>,
    pub slack_incoming_webhook: Option<String>,
    pub anonymize_ips: bool,
    pub test_account_filters: Value,
    pub test_account_filters_default_checked: Option<bool>,
    pub path_cleaning_filters: Option<Value>,
    pub data_attributes: Value,
    pub person_display_name_properties: Option<Vec<String>>,
    pub correlation_config: Option<Value>,
    pub autocapture_opt_out: Option<bool>,
    pub autocapture_exceptions_opt_in: Option<bool>,
    pub autocapture_web_vitals_opt_in: Option<bool>,
    pub autocapture_web_vitals_allowed_metrics: Option<Value>,
    pub autocapture_exceptions_errors_to_ignore: Option<Vec<String>>,
    pub capture_console_log_opt_in: Option<bool>,
    pub capture_performance_opt_in: Option<bool>,
    pub session_recording_opt_in: bool,
    pub session_recording_sample_rate: Option<String>,
    pub session_recording_minimum_duration_milliseconds: Option<i64>,
    pub session_recording_linked_flag: Option<Map<String, Value>>,
    pub session_recording_network_payload_capture_config: Option<Map<String, Value>>,
    pub session_replay_config: Option<Map<String, Value>>,
    pub survey_config: Option<Value>,
    pub week_start_day: Option<i64>,
    pub primary_dashboard: Option<u64>,
    pub live_events_columns: Option<Vec<String>>,
    pub recording_domains: Option<Vec<String>>,
    pub inject_web_apps: Option<bool>,
    pub extra_settings: Option<Value>,
    pub modifiers: Option<Value>,
    pub surveys_opt_in: Option<bool>,
    pub heatmaps_opt_in: Option<bool>,
    pub flags_persistence_default: Option<bool>,
    pub cookieless_server_hash_mode: Option<i64>,
}

impl_record!(Settings {
    table: ProjectSettings,
    key: |settings| -> (OrganizationId, ProjectId) { settings.meta },
    parts: meta: (OrganizationId, ProjectId), fields: Fields,
    owner: |settings, _| Ok(Some(settings.meta.0.owner())),
    references: |settings| [Reference::to::<Project>(&settings.meta)],
});

/// An export without secrets leaves out the webhook.
pub(super) const REDACTION: Redaction<Settings> =
    Redaction::Member { name: "slack_incoming_webhook", regenerate: |_| None };

impl Settings {
    /// Returns the settings of a new project with default values.
    pub fn new(
        organization: OrganizationId,
        project: ProjectId,
        test_account_filters: Value,
        now: Timestamp,
    ) -> Self {
        let fields = Fields {
            created_at: now,
            updated_at: now,
            test_account_filters,
            path_cleaning_filters: Some(json!([])),
            data_attributes: json!(["data-attr"]),
            correlation_config: Some(json!({})),
            capture_console_log_opt_in: Some(true),
            capture_performance_opt_in: Some(true),
            flags_persistence_default: Some(false),
            cookieless_server_hash_mode: Some(0),
            ..Fields::default()
        };
        Self { meta: (organization, project), fields }
    }
}

/// Public mail providers. An address there says nothing about its user's company.
const GENERIC_MAIL_DOMAINS: &str = "\
    aol.com fastmail.com gmail.com gmx.com gmx.de gmx.net googlemail.com hey.com hotmail.com \
    icloud.com live.com mac.com mail.com mail.ru me.com msn.com outlook.com pm.me proton.me \
    protonmail.com qq.com web.de yahoo.com yandex.com yandex.ru zoho.com 163.com 126.com";

/// Maximum number of members to search for an address outside these domains.
const MAX_MEMBERS_SCANNED: usize = 100;

/// Returns the default filters that leave out the team's own traffic: as in PostHog, users with the
/// company's e-mail domain, and events from localhost.
pub(super) fn default_test_account_filters(
    tx: &dyn Raw,
    organization: OrganizationId,
) -> Result<Value> {
    let mut domain = None;
    let first = Window { offset: 0, limit: MAX_MEMBERS_SCANNED, order: Order::Ascending };
    tx.walk(&members::BY_JOINING, &organization, first, |row| {
        if domain.is_none() {
            let user: User = tx.get(&row.meta.user)?;
            domain = own_domain(&user.fields.email).map(str::to_owned);
        }
        Ok(())
    })?;
    let person = domain.map(|domain| {
        json!({
            "key": "email",
            "operator": "not_icontains",
            "value": format!("@{domain}"),
            "type": "person",
        })
    });
    let event = json!({
        "key": "$host",
        "operator": "not_regex",
        "value": r"^(localhost|127\.0\.0\.1)($|:)",
        "type": "event",
    });
    Ok(person.into_iter().chain([event]).collect())
}

fn own_domain(email: &str) -> Option<&str> {
    let (_, domain) = email.rsplit_once('@')?;
    Some(domain).filter(|domain| GENERIC_MAIL_DOMAINS.split(' ').all(|known| known != *domain))
}

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
