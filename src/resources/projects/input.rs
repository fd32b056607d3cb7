//! Request bodies that create or update a project. See `docs/spec/projects.md`.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::input;
use crate::input::{
    Choice, Choices, Decimal, FieldType, Flag, FreeForm, Identifier, Integer, JsonObject, ListOf,
    Name, Nullable, Parsed, Text, TimeZoneName, UrlList,
};
use crate::patch::{Patch, set};

use super::field_types::{ErrorsToIgnore, LinkedFlag, NetworkPayloadCapture, SessionReplay};
use super::{Project, Settings, settings};

/// The values of `week_start_day`.
pub struct WeekStart;

impl Choices for WeekStart {
    type Value = i64;
    const ALL: &'static [i64] = &[0, 1];
}

/// The values of `cookieless_server_hash_mode`.
pub struct HashMode;

impl Choices for HashMode {
    type Value = i64;
    const ALL: &'static [i64] = &[0, 1, 2];
}

/// Maximum number of items of a list of strings.
const MAX_ITEMS: usize = 1000;

input! {
    /// The fields of a project that can be created and updated, in the order of the API.
    pub struct ProjectFields {
        /// Display name.
        name: Name<200>,
        /// What the product is about.
        product_description: Nullable<Text<1000>>,
        /// URLs of the product.
        app_urls: UrlList<MAX_ITEMS>,
        /// Slack webhook for notifications.
        slack_incoming_webhook: Nullable<Text<500>>,
        /// Whether IP addresses are removed from events.
        anonymize_ips: Flag,
        /// Whether the snippet was installed.
        completed_snippet_onboarding: Flag,
        /// Filters that leave out the team's own traffic.
        test_account_filters: FreeForm,
        /// Whether these filters are on by default.
        test_account_filters_default_checked: Nullable<Flag>,
        /// Rules that group paths.
        path_cleaning_filters: Nullable<FreeForm>,
        /// Whether the project holds demo data. Every member may create a demo project.
        is_demo: Flag,
        /// Name of a time zone in the IANA database. Case-sensitive; older names are accepted.
        timezone: TimeZoneName,
        /// HTML attributes that identify elements.
        data_attributes: FreeForm,
        /// Properties to show as the name of a person, in order of preference.
        person_display_name_properties: Nullable<ListOf<Text<400>, MAX_ITEMS>>,
        /// What correlation analysis leaves out.
        correlation_config: Nullable<FreeForm>,
        /// Whether autocapture is disabled.
        autocapture_opt_out: Nullable<Flag>,
        /// Whether exceptions are captured.
        autocapture_exceptions_opt_in: Nullable<Flag>,
        /// Whether web vitals are captured.
        autocapture_web_vitals_opt_in: Nullable<Flag>,
        /// The web vitals to capture.
        autocapture_web_vitals_allowed_metrics: Nullable<FreeForm>,
        /// Exceptions that are not captured.
        autocapture_exceptions_errors_to_ignore: ErrorsToIgnore,
        /// Whether recordings include console logs.
        capture_console_log_opt_in: Nullable<Flag>,
        /// Whether recordings include network performance.
        capture_performance_opt_in: Nullable<Flag>,
        /// Whether sessions are recorded.
        session_recording_opt_in: Flag,
        /// Share of sessions to record, from 0 to 1.
        session_recording_sample_rate: Nullable<Decimal<3, 2, 0, 1>>,
        /// Minimum duration of a recorded session, in milliseconds.
        session_recording_minimum_duration_milliseconds: Nullable<Integer<0, 30_000>>,
        /// The feature flag that enables recording.
        session_recording_linked_flag: Nullable<LinkedFlag>,
        /// Parts of network requests to record.
        session_recording_network_payload_capture_config: Nullable<NetworkPayloadCapture>,
        /// Replay settings. Merged into the stored object.
        session_replay_config: Nullable<SessionReplay>,
        /// Survey appearance. Merged into the stored object.
        survey_config: Nullable<FreeForm>,
        /// Whether the project is private: other than admins, only members with access may see it. Only
        /// admins may set this.
        access_control: Flag,
        /// First day of the week: 0 for Sunday, 1 for Monday.
        week_start_day: Nullable<Choice<WeekStart>>,
        /// The dashboard to show first. Cannot be set on create.
        primary_dashboard: Nullable<Identifier>,
        /// Columns of the live events view.
        live_events_columns: Nullable<ListOf<Text<400>, MAX_ITEMS>>,
        /// URLs of the sites to record sessions on.
        recording_domains: Nullable<UrlList<MAX_ITEMS>>,
        /// Whether site apps are loaded.
        inject_web_apps: Nullable<Flag>,
        /// Additional settings.
        extra_settings: Nullable<FreeForm>,
        /// Query modifiers.
        modifiers: Nullable<FreeForm>,
        /// Products whose onboarding is complete.
        has_completed_onboarding_for: Nullable<FreeForm>,
        /// Whether surveys are enabled.
        surveys_opt_in: Nullable<Flag>,
        /// Whether heatmaps are captured.
        heatmaps_opt_in: Nullable<Flag>,
        /// Whether feature flags persist across authentication by default.
        flags_persistence_default: Nullable<Flag>,
        /// How visitors without cookies are distinguished: 0 not at all, 1 by a stateless hash, 2 by a stateful one.
        cookieless_server_hash_mode: Nullable<Choice<HashMode>>,
    }
}

/// A request to create a project.
#[derive(Debug, Clone)]
pub struct NewProject {
    /// The parsed fields.
    pub fields: Parsed<ProjectFields>,
    /// Whether `is_demo` is true. Read apart from `fields`, because the caller's level is checked before
    /// other fields are validated.
    pub is_demo: bool,
}

impl NewProject {
    /// Parses the request body, and keeps the fields or the error.
    #[must_use]
    pub fn of(sent: &JsonObject) -> Self {
        let is_demo = sent.get("is_demo").map(Flag::read);
        Self { fields: Parsed::new(sent), is_demo: matches!(is_demo, Some(Ok(true))) }
    }
}

/// Refuses `primary_dashboard` on create, because a new project has no dashboards.
pub(super) fn require_creatable(fields: &ProjectFields) -> Result<()> {
    match fields.primary_dashboard {
        Patch::Value(_) => Err(Error::field(
            "primary_dashboard",
            "invalid_input",
            "Primary dashboard cannot be set on project creation.",
        )),
        Patch::Absent | Patch::Null => Ok(()),
    }
}

/// Writes the request's fields into the project and its settings.
pub(super) fn apply(
    fields: ProjectFields,
    project: &mut Project,
    settings: &mut Settings,
) -> Result<()> {
    let ProjectFields {
        name,
        product_description,
        app_urls,
        slack_incoming_webhook,
        anonymize_ips,
        completed_snippet_onboarding,
        test_account_filters,
        test_account_filters_default_checked,
        path_cleaning_filters,
        is_demo,
        timezone,
        data_attributes,
        person_display_name_properties,
        correlation_config,
        autocapture_opt_out,
        autocapture_exceptions_opt_in,
        autocapture_web_vitals_opt_in,
        autocapture_web_vitals_allowed_metrics,
        autocapture_exceptions_errors_to_ignore,
        capture_console_log_opt_in,
        capture_performance_opt_in,
        session_recording_opt_in,
        session_recording_sample_rate,
        session_recording_minimum_duration_milliseconds,
        session_recording_linked_flag,
        session_recording_network_payload_capture_config,
        session_replay_config,
        survey_config,
        access_control,
        week_start_day,
        primary_dashboard,
        live_events_columns,
        recording_domains,
        inject_web_apps,
        extra_settings,
        modifiers,
        has_completed_onboarding_for,
        surveys_opt_in,
        heatmaps_opt_in,
        flags_persistence_default,
        cookieless_server_hash_mode,
    } = fields;

    let summary = &mut project.fields;
    set(&mut summary.name, name);
    set(&mut summary.completed_snippet_onboarding, completed_snippet_onboarding);
    set(&mut summary.is_demo, is_demo);
    set(&mut summary.timezone, timezone);
    set(&mut summary.access_control, access_control);
    has_completed_onboarding_for.apply(&mut summary.has_completed_onboarding_for);

    let full: &mut settings::Fields = &mut settings.fields;
    product_description.apply(&mut full.product_description);
    set(&mut full.app_urls, app_urls);
    slack_incoming_webhook.apply(&mut full.slack_incoming_webhook);
    set(&mut full.anonymize_ips, anonymize_ips);
    set(&mut full.test_account_filters, test_account_filters);
    test_account_filters_default_checked.apply(&mut full.test_account_filters_default_checked);
    path_cleaning_filters.apply(&mut full.path_cleaning_filters);
    set(&mut full.data_attributes, data_attributes);
    person_display_name_properties.apply(&mut full.person_display_name_properties);
    correlation_config.apply(&mut full.correlation_config);
    autocapture_opt_out.apply(&mut full.autocapture_opt_out);
    autocapture_exceptions_opt_in.apply(&mut full.autocapture_exceptions_opt_in);
    autocapture_web_vitals_opt_in.apply(&mut full.autocapture_web_vitals_opt_in);
    autocapture_web_vitals_allowed_metrics.apply(&mut full.autocapture_web_vitals_allowed_metrics);
    autocapture_exceptions_errors_to_ignore
        .apply(&mut full.autocapture_exceptions_errors_to_ignore);
    capture_console_log_opt_in.apply(&mut full.capture_console_log_opt_in);
    capture_performance_opt_in.apply(&mut full.capture_performance_opt_in);
    set(&mut full.session_recording_opt_in, session_recording_opt_in);
    session_recording_sample_rate.apply(&mut full.session_recording_sample_rate);
    session_recording_minimum_duration_milliseconds
        .apply(&mut full.session_recording_minimum_duration_milliseconds);
    session_recording_linked_flag.apply(&mut full.session_recording_linked_flag);
    session_recording_network_payload_capture_config
        .apply(&mut full.session_recording_network_payload_capture_config);
    merge_replay(session_replay_config, &mut full.session_replay_config)?;
    merge_survey(survey_config, &mut full.survey_config)?;
    week_start_day.apply(&mut full.week_start_day);
    primary_dashboard.apply(&mut full.primary_dashboard);
    live_events_columns.apply(&mut full.live_events_columns);
    recording_domains.apply(&mut full.recording_domains);
    inject_web_apps.apply(&mut full.inject_web_apps);
    extra_settings.apply(&mut full.extra_settings);
    modifiers.apply(&mut full.modifiers);
    surveys_opt_in.apply(&mut full.surveys_opt_in);
    heatmaps_opt_in.apply(&mut full.heatmaps_opt_in);
    flags_persistence_default.apply(&mut full.flags_persistence_default);
    cookieless_server_hash_mode.apply(&mut full.cookieless_server_hash_mode);
    Ok(())
}

/// Merges an object into the stored one, and nested objects one level deep. Null clears the field.
fn merge_replay(
    sent: Patch<Map<String, Value>>,
    slot: &mut Option<Map<String, Value>>,
) -> Result<()> {
    let merged = sent.map(|sent| {
        let mut whole = slot.take().unwrap_or_default();
        for (name, value) in sent {
            match (whole.get_mut(&name), value) {
                (Some(Value::Object(inner)), Value::Object(more)) => inner.extend(more),
                (_, value) => drop(whole.insert(name, value)),
            }
        }
        whole
    });
    if let Patch::Value(whole) = &merged {
        require_bounded("session_replay_config", &Value::Object(whole.clone()))?;
    }
    merged.apply(slot);
    Ok(())
}

/// Merges the top level of an object into the stored one. Any other value replaces it, and null clears the
/// field.
fn merge_survey(sent: Patch<Value>, slot: &mut Option<Value>) -> Result<()> {
    let merged = sent.map(|sent| match (slot.take(), sent) {
        (Some(Value::Object(mut whole)), Value::Object(more)) => {
            whole.extend(more);
            Value::Object(whole)
        }
        (_, sent) => sent,
    });
    if let Patch::Value(whole) = &merged {
        require_bounded("survey_config", whole)?;
    }
    merged.apply(slot);
    Ok(())
}

/// Applies the limits of free-form fields to the result of a merge.
fn require_bounded(attr: &str, value: &Value) -> Result<()> {
    FreeForm::read(value).map(drop).map_err(|error| error.with_attr_prefix(attr))
}
