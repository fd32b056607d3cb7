//! What is sent to make or change a project (facts-org §5.4, §5.6).

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::input;
use crate::input::{
    Choice, Choices, Decimal, Flag, FreeForm, Identifier, Integer, JsonObject, Kind, ListOf, Name,
    Nullable, Parsed, Text, TimeZoneName, UrlList,
};
use crate::patch::{Patch, set};

use super::kinds::{ErrorsToIgnore, LinkedFlag, NetworkPayloadCapture, SessionReplay};
use super::{Project, Settings, settings};

/// What `week_start_day` takes: Sunday or Monday.
pub struct WeekStart;

impl Choices for WeekStart {
    type Value = i64;
    const ALL: &'static [i64] = &[0, 1];
}

/// How many items the lists of texts take.
const ITEMS: usize = 1000;

input! {
    /// The request fields of a project, in the document's order.
    pub struct ProjectFields {
        /// Its name.
        name: Name<200>,
        /// What the product is.
        product_description: Nullable<Text<1000>>,
        /// Where the product runs.
        app_urls: UrlList<ITEMS>,
        /// Where notifications go.
        slack_incoming_webhook: Nullable<Text<500>>,
        /// Whether addresses are dropped from events.
        anonymize_ips: Flag,
        /// Whether the snippet was set up.
        completed_snippet_onboarding: Flag,
        /// Which traffic is the team's own.
        test_account_filters: FreeForm,
        /// Whether that traffic is left out by default.
        test_account_filters_default_checked: Nullable<Flag>,
        /// How paths are grouped.
        path_cleaning_filters: Nullable<FreeForm>,
        /// Whether it holds demonstration data.
        is_demo: Flag,
        /// Its time zone: a name of the IANA database, the older ones too, in its exact case.
        timezone: TimeZoneName,
        /// Which attributes name elements.
        data_attributes: FreeForm,
        /// Which properties name persons.
        person_display_name_properties: Nullable<ListOf<Text<400>, ITEMS>>,
        /// What correlation leaves out.
        correlation_config: Nullable<FreeForm>,
        /// Whether autocapture is off.
        autocapture_opt_out: Nullable<Flag>,
        /// Whether exceptions are captured.
        autocapture_exceptions_opt_in: Nullable<Flag>,
        /// Whether web vitals are captured.
        autocapture_web_vitals_opt_in: Nullable<Flag>,
        /// Which web vitals are captured.
        autocapture_web_vitals_allowed_metrics: Nullable<FreeForm>,
        /// Which exceptions are not captured.
        autocapture_exceptions_errors_to_ignore: ErrorsToIgnore,
        /// Whether console logs are recorded.
        capture_console_log_opt_in: Nullable<Flag>,
        /// Whether performance is recorded.
        capture_performance_opt_in: Nullable<Flag>,
        /// Whether sessions are recorded.
        session_recording_opt_in: Flag,
        /// Which share of sessions is recorded.
        session_recording_sample_rate: Nullable<Decimal<3, 2, 0, 1>>,
        /// Shorter sessions are dropped, in milliseconds.
        session_recording_minimum_duration_milliseconds: Nullable<Integer<0, 30_000>>,
        /// The flag that turns recording on.
        session_recording_linked_flag: Nullable<LinkedFlag>,
        /// What of requests is recorded.
        session_recording_network_payload_capture_config: Nullable<NetworkPayloadCapture>,
        /// How sessions are replayed. Merged into what is there.
        session_replay_config: Nullable<SessionReplay>,
        /// How surveys look. Merged into what is there.
        survey_config: Nullable<FreeForm>,
        /// Whether plain members need a grant to see it. For admins.
        access_control: Flag,
        /// 0 for Sunday, 1 for Monday.
        week_start_day: Nullable<Choice<WeekStart>>,
        /// The dashboard shown first. Not on create.
        primary_dashboard: Nullable<Identifier>,
        /// Columns of the live events.
        live_events_columns: Nullable<ListOf<Text<400>, ITEMS>>,
        /// Where sessions are recorded.
        recording_domains: Nullable<UrlList<ITEMS>>,
        /// Whether site apps run.
        inject_web_apps: Nullable<Flag>,
        /// More settings.
        extra_settings: Nullable<FreeForm>,
        /// How queries run.
        modifiers: Nullable<FreeForm>,
        /// Which products were set up.
        has_completed_onboarding_for: Nullable<FreeForm>,
        /// Whether surveys run.
        surveys_opt_in: Nullable<Flag>,
        /// Whether heat maps are captured.
        heatmaps_opt_in: Nullable<Flag>,
        /// Whether flags persist by default.
        flags_persistence_default: Nullable<Flag>,
    }
}

/// A project to make.
#[derive(Debug, Clone)]
pub struct NewProject {
    /// Its fields.
    pub fields: Parsed<ProjectFields>,
    /// Whether it was called a demonstration, which decides who may make it even where another field is
    /// bad: the level is checked first.
    pub is_demo: bool,
}

impl NewProject {
    /// Reads what was sent.
    #[must_use]
    pub fn of(sent: &JsonObject) -> Self {
        let is_demo = sent.get("is_demo").map(Flag::read);
        Self { fields: Parsed::of(sent), is_demo: matches!(is_demo, Some(Ok(true))) }
    }
}

/// A new project has no dashboard yet that could be its primary one (decisions, top).
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

/// Writes what was sent into the project and its settings.
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
    } = fields;

    let summary = &mut project.shown;
    set(&mut summary.name, name);
    set(&mut summary.completed_snippet_onboarding, completed_snippet_onboarding);
    set(&mut summary.is_demo, is_demo);
    set(&mut summary.timezone, timezone);
    set(&mut summary.access_control, access_control);
    has_completed_onboarding_for.apply(&mut summary.has_completed_onboarding_for);
    project.head.access_control = summary.access_control;

    let full: &mut settings::Shown = &mut settings.shown;
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
    if let Some(errors) = autocapture_exceptions_errors_to_ignore {
        full.autocapture_exceptions_errors_to_ignore = Some(errors);
    }
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
    Ok(())
}

/// Merges the members of what was sent into what is there, and one level deeper where both are
/// objects (facts-org §5.7). Null clears.
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

/// Merges the top level of what was sent into what is there, where both are objects (facts-org §5.7).
/// Null clears.
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

/// What grows by merging keeps to the bounds of a free-form field.
fn require_bounded(attr: &str, value: &Value) -> Result<()> {
    FreeForm::read(value).map(drop).map_err(|error| error.within(attr))
}
