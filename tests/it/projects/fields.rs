//! Each field of a project: the values that it accepts, how they are stored, and the values that it
//! refuses.

use serde_json::{Map, Value, json};

use crate::support::Workspace;

const NULL: (&str, &str) = ("null", "This field may not be null.");
const BOOLEAN: (&str, &str) = ("invalid_input", "Must be a valid boolean.");
const STRING: (&str, &str) = ("invalid_input", "Not a valid string.");
const NUL: (&str, &str) = ("null_characters_not_allowed", "Null characters are not allowed.");

/// The first project of a workspace.
pub struct Project {
    pub workspace: Workspace,
    pub path: String,
}

impl Project {
    pub async fn new() -> Self {
        let workspace = Workspace::new().await;
        let path = format!("/api/projects/{}/", workspace.made.project_id);
        Self { workspace, path }
    }

    pub async fn now(&self) -> Value {
        self.workspace.owner.get(&self.path).await.ok()
    }

    /// Sends `sent` as `field`, and asserts that only this field changes, to `shown`.
    pub async fn takes(&self, field: &str, sent: Value, shown: Value) {
        let mut expected = self.now().await;
        let body = Value::Object(Map::from_iter([(field.to_owned(), sent.clone())]));
        let after = self.workspace.owner.patch(&self.path, body).await;
        assert_eq!(after.status, 200, "{field} = {sent}: {}", after.body);
        expected[field] = shown;
        expected["updated_at"] = after.body["updated_at"].clone();
        assert_eq!(after.body, expected, "{field} = {sent}");
    }

    /// Sends `sent` as `field` in a PATCH and in a POST, and asserts the refusal.
    pub async fn refuses(&self, field: &str, sent: Value, attr: Option<&str>, error: (&str, &str)) {
        let body = Value::Object(Map::from_iter([(field.to_owned(), sent.clone())]));
        let list = self.workspace.organization("projects/");
        let expected = json!({
            "type": "validation_error", "code": error.0, "detail": error.1, "attr": attr,
        });
        for answer in [
            self.workspace.owner.patch(&self.path, body.clone()).await,
            self.workspace.owner.post(&list, body).await,
        ] {
            assert_eq!((answer.status, &answer.body), (400, &expected), "{field} = {sent}");
        }
    }

    /// Asserts that no refused request changed or created anything.
    pub async fn is_still(&self, before: Value) {
        assert_eq!(self.now().await, before);
        assert_eq!(self.workspace.owner.get("/api/projects/").await.ok()["count"], 1);
    }
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
        for (sent, shown) in
            [(json!(true), true), (json!("no"), false), (json!("true"), true), (json!(0), false)]
        {
            project.takes(field, sent, json!(shown)).await;
        }
    }
    for field in nullable {
        project.takes(field, json!(null), Value::Null).await;
        project.takes(field, json!(1), json!(true)).await;
        project.takes(field, json!(""), Value::Null).await;
    }
    let before = project.now().await;
    for field in plain {
        project.refuses(field, json!(null), Some(field), NULL).await;
        project.refuses(field, json!(""), Some(field), BOOLEAN).await;
    }
    for field in plain.into_iter().chain(nullable) {
        for sent in [json!("Welwyn Garden City"), json!(2), json!([]), json!({})] {
            project.refuses(field, sent, Some(field), BOOLEAN).await;
        }
    }
    project.is_still(before).await;
}

#[tokio::test]
async fn project_strings_are_trimmed_and_limited() {
    let project = Project::new().await;
    for (field, max) in
        [("name", 200), ("product_description", 1000), ("slack_incoming_webhook", 500)]
    {
        let longest = "ä".repeat(max);
        project.takes(field, json!(format!(" {longest}\n")), json!(longest)).await;
        project.takes(field, json!(5), json!("5")).await;
        let before = project.now().await;
        let long = format!("Ensure this field has no more than {max} characters.");
        project
            .refuses(field, json!("ä".repeat(max + 1)), Some(field), ("max_length", &long))
            .await;
        project.refuses(field, json!("a\0b"), Some(field), NUL).await;
        for sent in [json!(true), json!(["a"]), json!({ "a": 1 })] {
            project.refuses(field, sent, Some(field), STRING).await;
        }
        project.is_still(before).await;
    }
    for field in ["product_description", "slack_incoming_webhook"] {
        project.takes(field, json!("  "), json!("")).await;
        project.takes(field, json!(null), Value::Null).await;
    }
    let before = project.now().await;
    project.refuses("name", json!(null), Some("name"), NULL).await;
    for blank in ["", " \n\t"] {
        project
            .refuses("name", json!(blank), Some("name"), ("blank", "This field may not be blank."))
            .await;
    }
    project.is_still(before).await;
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
        project
            .takes(field, json!([" b ", longest, 5, "b"]), json!(["b", longest, "5", "b"]))
            .await;
        project.takes(field, json!([]), json!([])).await;
        project.takes(field, json!(vec!["a"; 1000]), json!(vec!["a"; 1000])).await;
        project.takes(field, json!(["a"]), json!(["a"])).await;
        let before = project.now().await;
        let second = format!("{field}__1");
        let long = format!("Ensure this field has no more than {max} characters.");
        for (sent, error) in [
            (json!("a".repeat(max + 1)), ("max_length", long.as_str())),
            (json!("a\0"), NUL),
            (json!(true), STRING),
            (json!([]), STRING),
        ] {
            project.refuses(field, json!(["a", sent]), Some(&second), error).await;
        }
        for (sent, kind) in
            [(json!("a"), "str"), (json!({}), "dict"), (json!(1), "int"), (json!(true), "bool")]
        {
            let detail = format!("Expected a list of items but got type \"{kind}\".");
            project.refuses(field, sent, Some(field), ("not_a_list", &detail)).await;
        }
        let many = ("max_length", "Ensure this field has no more than 1000 elements.");
        project.refuses(field, json!(vec!["a"; 1001]), Some(field), many).await;
        project.is_still(before).await;
    }
    for field in urls {
        project.takes(field, json!([null, "", " ", "a", null]), json!(["a"])).await;
    }
    for field in texts {
        project.refuses(field, json!(["a", null]), Some(&format!("{field}__1")), NULL).await;
    }
    for field in ["recording_domains", "person_display_name_properties", "live_events_columns"] {
        project.takes(field, json!(null), Value::Null).await;
    }
    project.refuses("app_urls", json!(null), Some("app_urls"), NULL).await;
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
        for sent in [
            json!({ "a": [1, 2.5, null, "x"] }),
            json!([]),
            json!("x"),
            json!(0),
            json!(true),
            nested(32),
            wide(32 * 1024),
        ] {
            project.takes(field, sent.clone(), sent).await;
        }
        project.takes(field, json!({}), json!({})).await;
    }
    for field in nullable {
        project.takes(field, json!(null), Value::Null).await;
    }
    let before = project.now().await;
    let deep = ("max_length", "Ensure this field has no more than 32 nested containers.");
    let large = ("max_length", "Ensure this field has no more than 32768 bytes of JSON.");
    for field in plain.into_iter().chain(nullable).chain(["survey_config"]) {
        project.refuses(field, nested(33), Some(field), deep).await;
        project.refuses(field, wide(32 * 1024 + 1), Some(field), large).await;
    }
    for field in plain {
        project.refuses(field, json!(null), Some(field), NULL).await;
    }
    project.is_still(before).await;
}

#[tokio::test]
async fn time_zone_must_be_a_known_name() {
    let project = Project::new().await;
    for name in ["Europe/Berlin", "US/Pacific", "Asia/Calcutta", "Etc/GMT+5", "UTC"] {
        project.takes("timezone", json!(name), json!(name)).await;
    }
    let before = project.now().await;
    for name in ["America/I_Dont_Exist", "utc", "", "CEST+1", "Europe/Berlin\0"] {
        let detail = format!("\"{name}\" is not a valid choice.");
        project
            .refuses("timezone", json!(name), Some("timezone"), ("invalid_choice", &detail))
            .await;
    }
    let number = ("invalid_choice", "\"5\" is not a valid choice.");
    project.refuses("timezone", json!(5), Some("timezone"), number).await;
    project.refuses("timezone", json!(null), Some("timezone"), NULL).await;
    project.is_still(before).await;
}

#[tokio::test]
async fn week_starts_on_sunday_or_monday() {
    let project = Project::new().await;
    let field = "week_start_day";
    for (sent, shown) in [(json!(0), json!(0)), (json!("1"), json!(1)), (json!(null), Value::Null)]
    {
        project.takes(field, sent, shown).await;
    }
    for (sent, text) in [
        (json!(2), "2"),
        (json!(-1), "-1"),
        (json!("monday"), "monday"),
        (json!(true), "True"),
        (json!(""), ""),
    ] {
        let detail = format!("\"{text}\" is not a valid choice.");
        project.refuses(field, sent, Some(field), ("invalid_choice", &detail)).await;
    }
}

#[tokio::test]
async fn cookieless_hash_mode_is_one_of_three_numbers_or_null() {
    let project = Project::new().await;
    let field = "cookieless_server_hash_mode";
    for (sent, shown) in [
        (json!(2), json!(2)),
        (json!("1"), json!(1)),
        (json!(null), Value::Null),
        (json!(0), json!(0)),
    ] {
        project.takes(field, sent, shown).await;
    }
    for (sent, text) in [
        (json!(3), "3"),
        (json!(-1), "-1"),
        (json!(true), "True"),
        (json!([]), "[]"),
        (json!(""), ""),
    ] {
        let detail = format!("\"{text}\" is not a valid choice.");
        project.refuses(field, sent, Some(field), ("invalid_choice", &detail)).await;
    }
}

#[tokio::test]
async fn recording_sample_rate_and_minimum_duration_have_ranges() {
    let project = Project::new().await;
    let rate = "session_recording_sample_rate";
    for (sent, shown) in [
        (json!("0.4"), "0.40"),
        (json!(0), "0.00"),
        (json!("1.00"), "1.00"),
        (json!(0.25), "0.25"),
        (json!(" .5 "), "0.50"),
    ] {
        project.takes(rate, sent, json!(shown)).await;
    }
    project.takes(rate, json!(null), Value::Null).await;
    let number = ("invalid_input", "A valid number is required.");
    for (sent, error) in [
        (json!("Welwyn Garden City"), number),
        (json!(true), number),
        (json!([]), number),
        (json!(-1), ("min_value", "Ensure this value is greater than or equal to 0.")),
        (json!(1.5), ("max_value", "Ensure this value is less than or equal to 1.")),
        (json!("1.01"), ("max_value", "Ensure this value is less than or equal to 1.")),
        (
            json!(0.534),
            ("max_decimal_places", "Ensure that there are no more than 2 decimal places."),
        ),
        (json!("1.234"), ("max_digits", "Ensure that there are no more than 3 digits in total.")),
    ] {
        project.refuses(rate, sent, Some(rate), error).await;
    }
    let least = "session_recording_minimum_duration_milliseconds";
    for (sent, shown) in [(json!(0), 0), (json!("15000"), 15_000), (json!(30_000.0), 30_000)] {
        project.takes(least, sent, json!(shown)).await;
    }
    project.takes(least, json!(null), Value::Null).await;
    let integer = ("invalid_input", "A valid integer is required.");
    for (sent, error) in [
        (json!("trombone"), integer),
        (json!("0.5"), integer),
        (json!(0.5), integer),
        (json!(true), integer),
        (json!(-1), ("min_value", "Ensure this value is greater than or equal to 0.")),
        (json!(30_001), ("max_value", "Ensure this value is less than or equal to 30000.")),
        (json!(u64::MAX), ("max_value", "Ensure this value is less than or equal to 30000.")),
    ] {
        project.refuses(least, sent, Some(least), error).await;
    }
}

#[tokio::test]
async fn first_of_several_invalid_project_fields_in_documented_order_is_reported() {
    let project = Project::new().await;
    let sent = json!({ "week_start_day": 9, "anonymize_ips": "x", "timezone": "x", "name": "ok" });
    let refused = project.workspace.owner.patch(&project.path, sent).await;
    refused.assert_invalid("anonymize_ips", BOOLEAN.0, BOOLEAN.1);
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
