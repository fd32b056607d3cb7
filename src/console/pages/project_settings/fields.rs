//! The settings in the groups and with the words of the page.

use crate::console::form::{FormSpec, Input};

/// All settings except who sees the project.
pub(super) const FORM: FormSpec = FormSpec::change(
    "Save",
    &[
        Input::new("name").label("Name").heading("General"),
        Input::new("product_description"),
        Input::new("app_urls"),
        Input::new("timezone")
            .label("Time zone")
            .hint("A name of the IANA database, for example Europe/Berlin."),
        Input::new("week_start_day").label("First day of the week").choices(&[
            ("", "Not set"),
            ("0", "Sunday"),
            ("1", "Monday"),
        ]),
        Input::new("primary_dashboard"),
        Input::new("slack_incoming_webhook"),
        Input::new("is_demo"),
        Input::new("autocapture_opt_out").heading("Autocapture"),
        Input::new("data_attributes"),
        Input::new("heatmaps_opt_in"),
        Input::new("autocapture_web_vitals_opt_in"),
        Input::new("autocapture_web_vitals_allowed_metrics"),
        Input::new("autocapture_exceptions_opt_in"),
        Input::new("autocapture_exceptions_errors_to_ignore"),
        Input::new("session_recording_opt_in").heading("Recordings"),
        Input::new("recording_domains"),
        Input::new("session_recording_sample_rate"),
        Input::new("session_recording_minimum_duration_milliseconds"),
        Input::new("capture_console_log_opt_in"),
        Input::new("capture_performance_opt_in"),
        Input::new("session_recording_linked_flag"),
        Input::new("session_recording_network_payload_capture_config"),
        Input::new("session_replay_config").hint(
            "Members that you remove keep their values: the service merges the object. To clear all of it, leave it empty.",
        ),
        Input::new("path_cleaning_filters").heading("Web"),
        Input::new("cookieless_server_hash_mode")
            .label("Visitors without cookies")
            .choices(&[
                ("", "Not set"),
                ("0", "Are not distinguished"),
                ("1", "Are distinguished by a stateless hash"),
                ("2", "Are distinguished by a stateful hash"),
            ]),
        Input::new("inject_web_apps"),
        Input::new("flags_persistence_default"),
        Input::new("surveys_opt_in").heading("Surveys"),
        Input::new("survey_config").hint(
            "Members that you remove keep their values: the service merges the object. To clear all of it, leave it empty.",
        ),
        Input::new("anonymize_ips").heading("Data"),
        Input::new("test_account_filters"),
        Input::new("test_account_filters_default_checked")
            .label("The filters of the team's own traffic are on by default"),
        Input::new("person_display_name_properties"),
        Input::new("correlation_config"),
        Input::new("live_events_columns"),
        Input::new("modifiers"),
        Input::new("completed_snippet_onboarding").heading("Onboarding and others"),
        Input::new("has_completed_onboarding_for"),
        Input::new("extra_settings"),
    ],
);

/// The setting that decides who sees the project.
pub(super) const ACCESS_FORM: FormSpec = FormSpec::change(
    "Save access",
    &[Input::new("access_control")
        .label("Private project")
        .hint("Other than admins, only members with access see a private project.")],
);
