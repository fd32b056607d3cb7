//! Project settings and their defaults. See `docs/spec/projects.md`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::base::error::Result;
use crate::base::time::Timestamp;
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::members;
use crate::resources::users::User;
use crate::store::{Order, Redaction, Reference, Tx, Window, impl_record};

use super::Project;

/// The settings of one project.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The key of the project.
    pub key: (OrganizationId, ProjectId),
    /// Fields as the API returns them.
    pub fields: Fields,
}

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
    key: |settings| -> (OrganizationId, ProjectId) { settings.key },
    parts: key: (OrganizationId, ProjectId), fields: Fields,
    owner: |settings, _| Ok(Some(settings.key.0.owner())),
    references: |settings| [Reference::to::<Project>(&settings.key)],
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
        Self { key: (organization, project), fields }
    }
}

/// Public mail providers. An address there says nothing about its user's company.
const GENERIC_MAIL_DOMAINS: &[&str] = &[
    "aol.com",
    "fastmail.com",
    "gmail.com",
    "gmx.com",
    "gmx.de",
    "gmx.net",
    "googlemail.com",
    "hey.com",
    "hotmail.com",
    "icloud.com",
    "live.com",
    "mac.com",
    "mail.com",
    "mail.ru",
    "me.com",
    "msn.com",
    "outlook.com",
    "pm.me",
    "proton.me",
    "protonmail.com",
    "qq.com",
    "web.de",
    "yahoo.com",
    "yandex.com",
    "yandex.ru",
    "zoho.com",
    "163.com",
    "126.com",
];

/// Maximum number of members to search for an address outside these domains.
const MAX_MEMBERS_SCANNED: usize = 100;

/// Returns the default filters that leave out the team's own traffic: as in PostHog, users with the
/// company's e-mail domain, and events from localhost.
pub(super) fn default_test_account_filters(
    tx: &impl Tx,
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
    (!GENERIC_MAIL_DOMAINS.contains(&domain)).then_some(domain)
}
