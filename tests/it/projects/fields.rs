//! Each field of a project: the values that it accepts, how they are stored, and the values that it
//! refuses.

use crate::support::prelude::*;

/// The first project of a workspace.
pub struct Project {
    pub workspace: Workspace,
    pub path: String,
}

impl Project {
    pub async fn new() -> Self {
        let workspace = Workspace::new().await;
        let path = workspace.project("");
        Self { workspace, path }
    }

    pub async fn now(&self) -> Value {
        self.workspace.owner.get(&self.path).await.ok()
    }

    /// Sends `sent` as `field`, and asserts that only this field changes, to `shown`.
    pub async fn takes(&self, field: &str, sent: Value, shown: Value) {
        let mut expected = self.now().await;
        let after = self.workspace.owner.patch(&self.path, json!({ field: sent })).await;
        assert_eq!(after.status, 200, "{field} = {sent}: {}", after.body);
        expected[field] = shown;
        expected["updated_at"] = after.body["updated_at"].clone();
        assert_eq!(after.body, expected, "{field} = {sent}");
    }

    /// Sends each element of `values` as `field`, and asserts that it is stored as it is.
    pub async fn keeps(&self, field: &str, values: Value) {
        for sent in each(values) {
            self.takes(field, sent.clone(), sent).await;
        }
    }

    /// Sends each value as `field` in a PATCH and in a POST, and asserts the refusal, and that nothing changes.
    pub async fn refuses(&self, field: &str, cases: impl IntoIterator<Item = (Value, Refusal)>) {
        let before = self.now().await;
        let cases = cases.into_iter().map(|(sent, refusal)| (json!({ field: sent }), refusal));
        let cases: Vec<_> = cases.collect();
        let (owner, list) = (&self.workspace.owner, self.workspace.organization("projects/"));
        owner.assert_refusals(Method::PATCH, &self.path, cases.clone()).await;
        owner.assert_refusals(Method::POST, &list, cases).await;
        assert_eq!(self.now().await, before);
        assert_eq!(owner.get("/api/projects/").await.ok()["count"], 1);
    }

    /// Asserts that each element of `values` is refused as `field` with one error.
    pub async fn refuses_each(&self, field: &str, values: Value, refusal: &Refusal) {
        self.refuses(field, each(values).into_iter().map(|sent| (sent, refusal.clone()))).await;
    }
}

fn not_boolean(field: &str) -> Refusal {
    Refusal::invalid(field, "Must be a valid boolean.")
}

fn null_character(attr: &str) -> Refusal {
    Refusal::new(attr, "null_characters_not_allowed", "Null characters are not allowed.")
}

#[tokio::test]
async fn boolean_project_fields_accept_every_boolean_spelling() {
    let project = Project::new().await;
    let plain = [
        "anonymize_ips",
        "completed_snippet_onboarding",
        "is_demo",
        "session_recording_opt_in",
        "access_control",
    ];
    let nullable = [
        "test_account_filters_default_checked",
        "autocapture_opt_out",
        "autocapture_exceptions_opt_in",
        "autocapture_web_vitals_opt_in",
        "capture_console_log_opt_in",
        "capture_performance_opt_in",
        "inject_web_apps",
        "surveys_opt_in",
        "heatmaps_opt_in",
        "flags_persistence_default",
    ];
    for field in plain.into_iter().chain(nullable) {
        project.takes(field, json!("no"), json!(false)).await;
        project.takes(field, json!(1), json!(true)).await;
        project.refuses_each(field, json!(["Welwyn Garden City", 2]), &not_boolean(field)).await;
    }
    for field in nullable {
        project.takes(field, json!(""), Value::Null).await;
        project.keeps(field, json!([true, null])).await;
    }
    for field in plain {
        let refused = [(json!(null), Refusal::null(field)), (json!(""), not_boolean(field))];
        project.refuses(field, refused).await;
    }
}

#[tokio::test]
async fn project_lists_accept_strings_and_report_the_invalid_index() {
    let project = Project::new().await;
    let urls = ["app_urls", "recording_domains"];
    let texts = ["person_display_name_properties", "live_events_columns"];
    for (field, max) in
        urls.map(|field| (field, 200)).into_iter().chain(texts.map(|field| (field, 400)))
    {
        let longest = "ä".repeat(max);
        let (sent, shown) = (json!([" b ", longest, 5, "b"]), json!(["b", longest, "5", "b"]));
        project.takes(field, sent, shown).await;
        project.keeps(field, json!([[], vec!["a"; 1000], ["a"]])).await;
        let second = format!("{field}__1");
        let long = Refusal::at_most(&second, &format!("{max} characters"));
        let no_list = "Expected a list of items but got type \"str\".";
        let cases = [
            (json!(["a", "a".repeat(max + 1)]), long),
            (json!(["a", "a\0"]), null_character(&second)),
            (json!(["a", true]), Refusal::not_text(&second)),
            (json!(vec!["a"; 1001]), Refusal::at_most(field, "1000 elements")),
            (json!("a"), Refusal::new(field, "not_a_list", no_list)),
        ];
        project.refuses(field, cases).await;
    }
    for field in urls {
        project.takes(field, json!([null, "", " ", "a", null]), json!(["a"])).await;
    }
    for field in texts {
        project.refuses(field, [(json!(["a", null]), Refusal::null(&format!("{field}__1")))]).await;
    }
    for field in ["recording_domains", "person_display_name_properties", "live_events_columns"] {
        project.keeps(field, json!([null])).await;
    }
    project.refuses("app_urls", [(json!(null), Refusal::null("app_urls"))]).await;
}

#[tokio::test]
async fn free_form_project_fields_accept_any_json_within_limits() {
    let project = Project::new().await;
    let plain = ["test_account_filters", "data_attributes"];
    let nullable = [
        "path_cleaning_filters",
        "correlation_config",
        "autocapture_web_vitals_allowed_metrics",
        "extra_settings",
        "modifiers",
        "has_completed_onboarding_for",
    ];
    let nested = |depth: usize| (1..depth).fold(json!([]), |inner, _| json!([inner]));
    let wide = |bytes: usize| json!("a".repeat(bytes - 2));
    for field in plain.into_iter().chain(nullable) {
        project.keeps(field, json!([{ "a": [1, 2.5, null, "x"] }, [], "x", 0, true, {}])).await;
        project.keeps(field, json!([nested(32), wide(32 * 1024)])).await;
    }
    for field in nullable {
        project.keeps(field, json!([null])).await;
    }
    for field in plain.into_iter().chain(nullable).chain(["survey_config"]) {
        let cases = [
            (nested(33), Refusal::at_most(field, "32 nested containers")),
            (wide(32 * 1024 + 1), Refusal::at_most(field, "32768 bytes of JSON")),
        ];
        project.refuses(field, cases).await;
    }
    for field in plain {
        project.refuses(field, [(json!(null), Refusal::null(field))]).await;
    }
}

#[tokio::test]
async fn choices_are_limited_to_their_values() {
    let project = Project::new().await;
    project.refuses("timezone", [(json!(null), Refusal::null("timezone"))]).await;
    for (field, kept, refused) in [
        ("timezone", json!(["US/Pacific", "Etc/GMT+5", "UTC"]), json!(["utc", "", "CEST+1"])),
        ("week_start_day", json!([0, 1, null]), json!(["2", "-1", "monday"])),
        ("cookieless_server_hash_mode", json!([2, 1, null, 0]), json!(["3", "-1", ""])),
    ] {
        project.keeps(field, kept).await;
        for sent in each(refused) {
            let detail = format!("\"{}\" is not a valid choice.", sent.as_str().expect("a text"));
            project.refuses(field, [(sent, Refusal::new(field, "invalid_choice", detail))]).await;
        }
    }
}

#[tokio::test]
async fn recording_sample_rate_and_minimum_duration_have_ranges() {
    let project = Project::new().await;
    let rate = "session_recording_sample_rate";
    let least = "session_recording_minimum_duration_milliseconds";
    for (field, sent, shown) in [
        (rate, json!(0), json!("0.00")),
        (rate, json!("1.00"), json!("1.00")),
        (rate, json!(0.25), json!("0.25")),
        (rate, json!(null), json!(null)),
        (least, json!(0), json!(0)),
        (least, json!("30000"), json!(30_000)),
        (least, json!(null), json!(null)),
    ] {
        project.takes(field, sent, shown).await;
    }
    let below = "Ensure this value is greater than or equal to 0.";
    let above_most = "Ensure this value is less than or equal to 30000.";
    let places = "Ensure that there are no more than 2 decimal places.";
    let digits = "Ensure that there are no more than 3 digits in total.";
    for (field, sent, code, detail) in [
        (rate, json!(["Welwyn Garden City"]), "invalid_input", "A valid number is required."),
        (rate, json!([-1]), "min_value", below),
        (rate, json!([1.5, "1.01"]), "max_value", "Ensure this value is less than or equal to 1."),
        (rate, json!([0.534]), "max_decimal_places", places),
        (rate, json!(["1.234"]), "max_digits", digits),
        (least, json!(["trombone"]), "invalid_input", "A valid integer is required."),
        (least, json!([-1]), "min_value", below),
        (least, json!([30_001, u64::MAX]), "max_value", above_most),
    ] {
        project.refuses_each(field, sent, &Refusal::new(field, code, detail)).await;
    }
}

#[tokio::test]
async fn first_of_several_invalid_project_fields_in_documented_order_is_reported() {
    let project = Project::new().await;
    let sent = json!({ "week_start_day": 9, "anonymize_ips": "x", "timezone": "x", "name": "ok" });
    let refused = project.workspace.owner.patch(&project.path, sent).await;
    refused.assert_bad("anonymize_ips", "Must be a valid boolean.");
}

#[tokio::test]
async fn project_create_accepts_every_field() {
    let project = Project::new().await;
    let sent = json!({
        "name": "All", "product_description": "d", "app_urls": ["a"], "slack_incoming_webhook": "s",
        "anonymize_ips": true, "completed_snippet_onboarding": true, "test_account_filters": {},
        "test_account_filters_default_checked": true, "path_cleaning_filters": null, "is_demo": true,
        "timezone": "GB", "data_attributes": [], "person_display_name_properties": ["p"],
        "correlation_config": null, "autocapture_opt_out": true, "autocapture_exceptions_opt_in": true,
        "autocapture_web_vitals_opt_in": true, "autocapture_web_vitals_allowed_metrics": ["CLS"],
        "autocapture_exceptions_errors_to_ignore": ["e"], "capture_console_log_opt_in": null,
        "capture_performance_opt_in": false, "session_recording_opt_in": true,
        "session_recording_sample_rate": "0.10", "session_recording_minimum_duration_milliseconds": 1,
        "session_recording_linked_flag": { "id": 1, "key": "k" },
        "session_recording_network_payload_capture_config": { "recordBody": true },
        "session_replay_config": { "record_canvas": true }, "survey_config": { "a": 1 },
        "access_control": true, "week_start_day": 1, "primary_dashboard": null,
        "live_events_columns": ["c"], "recording_domains": ["r"], "inject_web_apps": true,
        "extra_settings": 1, "modifiers": { "m": 1 }, "has_completed_onboarding_for": { "x": true },
        "surveys_opt_in": true, "heatmaps_opt_in": true, "flags_persistence_default": true,
        "cookieless_server_hash_mode": 2,
    });
    let path = project.workspace.organization("projects/");
    let made = project.workspace.owner.post(&path, sent.clone()).await.ok();
    for (name, value) in sent.as_object().expect("fields") {
        assert_eq!(&made[name], value, "{name}");
    }
    assert_eq!(sent.as_object().expect("fields").len(), 41);
}
