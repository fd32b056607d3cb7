//! What the API reads and shows of projects, and what projects declare about their records.

use std::mem;

use crate::base::patch::Apply;
use crate::input::{
    Choice, Flag, Fraction, FreeForm, Identifier, Integer, ListOf, Name, Nullable, Text,
    TimeZoneName, UrlList, choices,
};
use crate::resources::members::Level;
use crate::resources::shared::prelude::*;

use super::grants::{self, Grant};
use super::settings::{self, ErrorsToIgnore, LinkedFlag, NetworkPayloadCapture, SessionReplay};
use super::{Fields, Project, REDACTION, Settings};

choices! {
    /// The values of `week_start_day`.
    pub struct WeekStart: i64 = [0, 1];
    /// The values of `cookieless_server_hash_mode`.
    pub struct HashMode: i64 = [0, 1, 2];
}

/// Maximum number of items of a list of strings.
const MAX_ITEMS: usize = 1000;

input! {
    /// The fields of a project that can be created and updated, in the order of the API.
    pub struct ProjectFields {
        /// Display name.
        name: Name<200> => project,
        /// What the product is about.
        product_description: Nullable<Text<1000>> => settings,
        /// URLs of the product.
        app_urls: UrlList<MAX_ITEMS> => settings,
        /// Slack webhook for notifications.
        slack_incoming_webhook: Nullable<Text<500>> => settings,
        /// Whether IP addresses are removed from events.
        anonymize_ips: Flag => settings,
        /// Whether the snippet was installed.
        completed_snippet_onboarding: Flag => project,
        /// Filters that leave out the team's own traffic.
        test_account_filters: FreeForm => settings,
        /// Whether these filters are on by default.
        test_account_filters_default_checked: Nullable<Flag> => settings,
        /// Rules that group paths.
        path_cleaning_filters: Nullable<FreeForm> => settings,
        /// Whether the project holds demo data. Every member may create a demo project.
        is_demo: Flag => project,
        /// Name of a time zone in the IANA database. Case-sensitive; older names are accepted.
        timezone: TimeZoneName => project,
        /// HTML attributes that identify elements.
        data_attributes: FreeForm => settings,
        /// Properties to show as the name of a person, in order of preference.
        person_display_name_properties: Nullable<ListOf<Text<400>, MAX_ITEMS>> => settings,
        /// What correlation analysis leaves out.
        correlation_config: Nullable<FreeForm> => settings,
        /// Whether autocapture is disabled.
        autocapture_opt_out: Nullable<Flag> => settings,
        /// Whether exceptions are captured.
        autocapture_exceptions_opt_in: Nullable<Flag> => settings,
        /// Whether web vitals are captured.
        autocapture_web_vitals_opt_in: Nullable<Flag> => settings,
        /// The web vitals to capture.
        autocapture_web_vitals_allowed_metrics: Nullable<FreeForm> => settings,
        /// Exceptions that are not captured.
        autocapture_exceptions_errors_to_ignore: ErrorsToIgnore => settings,
        /// Whether recordings include console logs.
        capture_console_log_opt_in: Nullable<Flag> => settings,
        /// Whether recordings include network performance.
        capture_performance_opt_in: Nullable<Flag> => settings,
        /// Whether sessions are recorded.
        session_recording_opt_in: Flag => settings,
        /// Share of sessions to record, from 0 to 1.
        session_recording_sample_rate: Nullable<Fraction> => settings,
        /// Minimum duration of a recorded session, in milliseconds.
        session_recording_minimum_duration_milliseconds: Nullable<Integer<0, 30_000>> => settings,
        /// The feature flag that enables recording.
        session_recording_linked_flag: Nullable<LinkedFlag> => settings,
        /// Parts of network requests to record.
        session_recording_network_payload_capture_config: Nullable<NetworkPayloadCapture> => settings,
        /// Replay settings. Merged into the stored object.
        session_replay_config: Nullable<SessionReplay> => _,
        /// Survey appearance. Merged into the stored object.
        survey_config: Nullable<FreeForm> => _,
        /// Whether the project is private: other than admins, only members with access may see it. Only
        /// admins may set this.
        access_control: Flag => project,
        /// First day of the week: 0 for Sunday, 1 for Monday.
        week_start_day: Nullable<Choice<WeekStart>> => settings,
        /// The dashboard to show first. Cannot be set on create.
        primary_dashboard: Nullable<Identifier> => settings,
        /// Columns of the live events view.
        live_events_columns: Nullable<ListOf<Text<400>, MAX_ITEMS>> => settings,
        /// URLs of the sites to record sessions on.
        recording_domains: Nullable<UrlList<MAX_ITEMS>> => settings,
        /// Whether site apps are loaded.
        inject_web_apps: Nullable<Flag> => settings,
        /// Additional settings.
        extra_settings: Nullable<FreeForm> => settings,
        /// Query modifiers.
        modifiers: Nullable<FreeForm> => settings,
        /// Products whose onboarding is complete.
        has_completed_onboarding_for: Nullable<FreeForm> => project,
        /// Whether surveys are enabled.
        surveys_opt_in: Nullable<Flag> => settings,
        /// Whether heatmaps are captured.
        heatmaps_opt_in: Nullable<Flag> => settings,
        /// Whether feature flags persist across authentication by default.
        flags_persistence_default: Nullable<Flag> => settings,
        /// How visitors without cookies are distinguished: 0 not at all, 1 by a stateless hash, 2 by a stateful one.
        cookieless_server_hash_mode: Nullable<Choice<HashMode>> => settings,
    }
    fn apply_to(project: &mut Fields, settings: &mut settings::Fields);
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
    pub fn of(sent: &JsonObject) -> Self {
        Self { fields: Parsed::new(sent), is_demo: Flag::peek(sent, "is_demo") == Some(true) }
    }
}

/// Applies the request's fields to the project and its settings.
pub(super) fn apply(
    mut sent: ProjectFields,
    project: &mut Fields,
    settings: &mut settings::Fields,
) -> Result<()> {
    merge_replay(mem::take(&mut sent.session_replay_config), &mut settings.session_replay_config)?;
    merge_survey(mem::take(&mut sent.survey_config), &mut settings.survey_config)?;
    sent.apply_to(project, settings);
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
    store("session_replay_config", merged, slot)
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
    store("survey_config", merged, slot)
}

/// Stores the result of a merge, if it is within the limits of free-form fields.
fn store<T: Clone + Into<Value>>(attr: &str, merged: Patch<T>, slot: &mut Option<T>) -> Result<()> {
    if let Patch::Value(whole) = &merged {
        FreeForm::read(&whole.clone().into()).map_err(|error| error.with_attr_prefix(attr))?;
    }
    Apply::<Option<T>>::apply(merged, slot);
    Ok(())
}

output! {
    /// A project in a list.
    pub struct ProjectSummary<'a> {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// Always false: this service does not ingest events.
        ingested_event: bool = false,
    }
}

output! {
    /// A project with all its settings.
    pub struct ProjectBody<'a> as Project {
        /// The fields that list items show.
        ..own: JsonText<'a, Fields> as Fields,
        /// The settings.
        ..settings: JsonText<'a, settings::Fields> as settings::Fields,
        /// The caller's level in the project: 1 for member, 8 for admin, 15 for owner; null for no access.
        effective_membership_level: Option<i64> as Option<Level>,
        /// Always false: groups are not supported.
        has_group_types: bool = false,
        /// A signed token for the stream of live events, valid for 7 days. Null in the replay of an idempotent
        /// request.
        live_events_token: &'a str as Option<String>,
        /// Always `false`, as JSON text.
        person_on_events_querying_enabled: String = "false",
        /// Always an empty object, as JSON text.
        default_modifiers: String = "{}",
        /// Always an empty array, as JSON text.
        product_intents: String = "[]",
    }
}

/// The records of projects. `cascade_delete` deletes the projects of a deleted organization one by one.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<Project>()
        .redacted(REDACTION)
        .logged()
        .parent(|(organization, project)| PendingDeletion::Project(organization, project))
        .numbered(|project| project.meta.id.0),
    &record::<Settings>().redacted(settings::REDACTION).logged(),
    &record::<Grant>()
        .logged()
        .names_users(|grant, visit| grant.subject.visit_user(visit))
        .deleted_with_project_of_organization()
        .deleted_with_member(|tx, member, limit| {
            tx.remove_indexed(&grants::BY_USER, &member, limit)
        })
        .deleted_with_role(|tx, role, limit| tx.remove_indexed(&grants::BY_ROLE, &role, limit)),
];

impl Loggable for Project {
    const SCOPE: &'static str = "Project";
    const HIDDEN: &'static [&'static str] = &["api_token"];

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.id, Some(meta.organization), Some(meta.id)))
    }
}

impl Loggable for Settings {
    const SCOPE: &'static str = Project::SCOPE;
    const HIDDEN: &'static [&'static str] = &["slack_incoming_webhook"];

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.1, Some(meta.0), Some(meta.1)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        Some(Reference::to::<Project>(meta))
    }
}

/// An access control on a project: the item is the project and the subject.
impl Loggable for Grant {
    const SCOPE: &'static str = "AccessControl";
    const LOG_ALL_FIELDS: bool = true;

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(
            format!("{}:{}", meta.project, meta.subject),
            Some(meta.organization),
            Some(meta.project),
        ))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        Some(Reference::to::<Project>(&(meta.organization, meta.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_level".to_owned(), row.meta.level.as_str().into())]))
    }
}
