//! Projects at `/api/organizations/:organization_id/projects/` and `/api/projects/`.

mod access;
mod configs;
mod fields;
mod of_member;
mod private;
mod token;

use crate::support::prelude::*;

const ON_CREATE: &str = "Primary dashboard cannot be set on project creation.";
const NOT_OURS: &str = "Dashboard does not belong to this team.";

/// Path of a project of the first organization, or of the list.
pub fn projects(workspace: &Workspace, rest: &str) -> String {
    workspace.organization(&format!("projects/{rest}"))
}

/// Both paths of a project of the first organization.
pub fn both(workspace: &Workspace, id: &Value) -> [String; 2] {
    [projects(workspace, &format!("{id}/")), format!("/api/projects/{id}/")]
}

/// Creates a project in the first organization.
pub async fn make(caller: &TestClient, workspace: &Workspace, fields: Value) -> Value {
    let made = caller.post(&projects(workspace, ""), fields).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.body
}

#[tokio::test]
async fn project_list_has_exactly_the_summary_fields() {
    let workspace = Workspace::new().await;
    let path = projects(&workspace, "");
    let list = workspace.owner.get(&path).await.ok();
    workspace.owner.get(path.trim_end_matches('/')).await.assert_is(200, list.clone());
    workspace.owner.get("/api/projects/").await.assert_is(200, list.clone());
    workspace.owner.get("/api/projects").await.assert_is(200, list.clone());
    let token = list["results"][0]["api_token"].as_str().expect("a token");
    assert!(token.starts_with("phc_") && token.len() >= 40, "{token}");
    let expected = json!({
        "count": 1, "next": null, "previous": null,
        "results": [{
            "id": workspace.made.project_id, "uuid": "[uuid]", "organization": "[organization]",
            "api_token": "[api_token]", "name": "Web", "completed_snippet_onboarding": false,
            "has_completed_onboarding_for": null, "ingested_event": false, "is_demo": false,
            "timezone": "UTC", "access_control": false,
        }],
    });
    assert_eq!(redacted(list), expected);
}

/// The expected detail view of a project that was created with `{}`, for an owner.
const FRESH: &str = r#"{
    "id": 2, "organization": "[organization]", "created_at": "[created_at]",
    "effective_membership_level": 15, "has_group_types": false,
    "live_events_token": "[live_events_token]", "updated_at": "[updated_at]", "uuid": "[uuid]",
    "api_token": "[api_token]", "person_on_events_querying_enabled": "false",
    "default_modifiers": "{}", "product_intents": "[]", "name": "Default project",
    "product_description": null, "app_urls": [],
    "slack_incoming_webhook": null, "anonymize_ips": false, "completed_snippet_onboarding": false,
    "test_account_filters": [
        { "key": "email", "operator": "not_icontains", "value": "@corp.example", "type": "person" },
        {
            "key": "$host", "operator": "not_regex", "value": "^(localhost|127\\.0\\.0\\.1)($|:)",
            "type": "event"
        }
    ],
    "test_account_filters_default_checked": null, "path_cleaning_filters": [], "is_demo": false,
    "timezone": "UTC", "data_attributes": ["data-attr"], "person_display_name_properties": null,
    "correlation_config": {}, "autocapture_opt_out": null, "autocapture_exceptions_opt_in": null,
    "autocapture_web_vitals_opt_in": null, "autocapture_web_vitals_allowed_metrics": null,
    "autocapture_exceptions_errors_to_ignore": null, "capture_console_log_opt_in": true,
    "capture_performance_opt_in": true, "session_recording_opt_in": false,
    "session_recording_sample_rate": null, "session_recording_minimum_duration_milliseconds": null,
    "session_recording_linked_flag": null,
    "session_recording_network_payload_capture_config": null, "session_replay_config": null,
    "survey_config": null, "access_control": false, "week_start_day": null,
    "primary_dashboard": null, "live_events_columns": null, "recording_domains": null,
    "inject_web_apps": null, "extra_settings": null, "modifiers": null,
    "has_completed_onboarding_for": null, "surveys_opt_in": null, "heatmaps_opt_in": null,
    "flags_persistence_default": false, "cookieless_server_hash_mode": 0
}"#;

#[tokio::test]
async fn new_project_has_exactly_the_detail_fields_with_defaults() {
    let workspace = Workspace::new().await;
    let path = projects(&workspace, "");
    let made = workspace.owner.post(path.trim_end_matches('/'), json!({})).await;
    assert_eq!(made.status, 201);
    let made = made.body;
    assert_eq!(made["organization"], json!(workspace.made.organization_id));
    assert_eq!(made["created_at"], made["updated_at"]);
    let expected: Value = serde_json::from_str(FRESH).expect("JSON");
    assert_eq!(redacted(made.clone()), expected);
    for path in both(&workspace, &made["id"]) {
        workspace.owner.get(&path).await.assert_is(200, made.clone());
        workspace.owner.get(path.trim_end_matches('/')).await.assert_is(200, made.clone());
    }
    workspace.owner.get("/api/projects/@current/").await.assert_is(200, made.clone());
    workspace.owner.get(&projects(&workspace, "@current/")).await.assert_is(200, made);
}

#[tokio::test]
async fn live_events_token_is_signed_for_the_project() {
    let workspace = Workspace::new().await;
    let [path, _] = both(&workspace, &json!(workspace.made.project_id));
    let project = workspace.owner.get(&path).await.ok();
    let token = project["live_events_token"].as_str().expect("a token");
    let claims = jsonwebtoken::dangerous::insecure_decode::<Value>(token).expect("a token");
    assert_eq!(claims.header.alg, jsonwebtoken::Algorithm::HS256);
    let claims = claims.claims;
    assert_eq!(claims["team_id"], project["id"]);
    assert_eq!(claims["api_token"], project["api_token"]);
    assert_eq!(claims["aud"], "posthog:livestream");
    let left = claims["exp"].as_i64().expect("an expiry") - workspace.app.now().seconds();
    let day = 24 * 60 * 60;
    assert!((7 * day..=8 * day).contains(&left), "{left}");
}

#[tokio::test]
async fn default_test_account_filters_exclude_public_mail_domains() {
    let workspace = Workspace::new().await;
    let join = |email: &str, organization| {
        let new = new_user(email, organization);
        Operation::UserCreate(UserOptions { level: Level::Owner, ..new })
    };
    workspace.run_operation(join("ann@gmail.com", None)).await;
    let ann = workspace.key("ann@gmail.com", &["*"]).await;
    let own = ann.post("/api/organizations/", json!({ "name": "Own" })).await.ok();
    let path = format!("/api/organizations/{}/projects/", own["id"].as_str().expect("an id"));
    let filters = ann.post(&path, json!({})).await.ok()["test_account_filters"].clone();
    assert_eq!(filters.as_array().expect("filters").len(), 1, "{filters}");
    assert_eq!(filters[0]["key"], "$host");
    let id = own["id"].as_str().expect("an id").parse().expect("an id");
    workspace.run_operation(join("bob@Own.example", Some(id))).await;
    let filters = ann.post(&path, json!({})).await.ok()["test_account_filters"].clone();
    assert_eq!([&filters[0]["value"], &filters[1]["key"]], ["@own.example", "$host"]);
    let sent = json!({ "test_account_filters": [] });
    assert_eq!(ann.post(&path, sent).await.ok()["test_account_filters"], json!([]));
}

#[tokio::test]
async fn primary_dashboard_is_set_by_update_and_must_be_of_the_same_project() {
    let (workspace, owner) = Workspace::owned().await;
    let refusal = |detail| Refusal::invalid("primary_dashboard", detail);
    let sent = |id: Value| json!({ "primary_dashboard": id });
    let refused = [json!(1), json!("1"), json!(0)].map(|id| (sent(id), refusal(ON_CREATE)));
    owner.assert_refusals(Method::POST, &projects(&workspace, ""), refused).await;
    let other = make(&owner, &workspace, json!({ "primary_dashboard": null })).await;
    assert_eq!(other["primary_dashboard"], Value::Null);

    let dashboard = |name: &str| json!({ "name": name });
    let ours = owner.post(&workspace.dashboards(""), dashboard("A")).await.ok()["id"].clone();
    let gone = owner.post(&workspace.dashboards(""), dashboard("B")).await.ok()["id"].clone();
    owner.patch(&workspace.dashboards(&format!("{gone}/")), json!({ "deleted": true })).await.ok();
    let theirs = format!("/api/projects/{}/dashboards/", other["id"]);
    let theirs = owner.post(&theirs, dashboard("C")).await.ok()["id"].clone();
    for path in both(&workspace, &json!(workspace.made.project_id)) {
        let set = owner.patch(&path, json!({ "primary_dashboard": ours })).await.ok();
        assert_eq!(set["primary_dashboard"], ours);
        let mut refused: Vec<_> = each(json!([theirs, gone, 999, -1, 0, u64::MAX]))
            .into_iter()
            .map(|id| (sent(id), refusal(NOT_OURS)))
            .collect();
        refused.push((sent(json!("x")), refusal("A valid integer is required.")));
        owner.assert_refusals(Method::PATCH, &path, refused).await;
        assert_eq!(owner.get(&path).await.ok()["primary_dashboard"], ours);
        let cleared = owner.patch(&path, json!({ "primary_dashboard": null })).await.ok();
        assert_eq!(cleared["primary_dashboard"], Value::Null);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn project_update_changes_the_sent_fields_and_updated_at() {
    let (workspace, member) = Workspace::with_member("ann", Level::Member).await;
    let id = json!(workspace.made.project_id);
    for (number, path) in both(&workspace, &id).into_iter().enumerate() {
        let before = member.get(&path).await.ok();
        let name = format!("Name {number}");
        let sent = json!({
            "name": format!(" {name} "), "anonymize_ips": true, "id": 9, "uuid": "x",
            "api_token": "phc_mine", "organization": "x", "created_at": "x", "updated_at": "x",
            "effective_membership_level": 15, "has_group_types": true, "ingested_event": true,
            "live_events_token": "x", "default_modifiers": "x", "product_intents": "x",
            "person_on_events_querying_enabled": "true", "unknown": 1,
        });
        let after = member.patch(&path, sent).await.ok();
        assert_ne!(after["updated_at"], before["updated_at"]);
        let mut expected = before;
        expected["name"] = json!(name);
        expected["anonymize_ips"] = json!(true);
        expected["updated_at"] = after["updated_at"].clone();
        assert_eq!(after, expected);
        member.get(&path).await.assert_is(200, after.clone());
        member.patch(path.trim_end_matches('/'), json!({})).await.assert_is(200, after.clone());
        member.patch(&path, json!({ "name": name })).await.assert_is(200, after);
    }
    assert_eq!(column(&member.get("/api/projects/").await.ok(), "name"), ["Name 1"]);
}

#[tokio::test]
async fn projects_are_listed_by_id_and_paged() {
    let (workspace, owner) = Workspace::owned().await;
    for name in ["C", "B", "A"] {
        make(&owner, &workspace, json!({ "name": name })).await;
    }
    let (second, first) = workspace.second_organization().await;
    make(&owner, &workspace, json!({ "name": "D" })).await;
    let here = ["Web", "C", "B", "A", "D"];
    let everywhere = ["Web", "C", "B", "A", "Default project", "D"];
    let path = projects(&workspace, "");
    for (path, expected) in [(path.as_str(), &here[..]), ("/api/projects/", &everywhere[..])] {
        for limit in 1..=expected.len() {
            let seen = walked(&owner, &format!("{path}?limit={limit}"), "name").await;
            assert_eq!(seen, expected, "{path} by {limit}");
        }
        let beyond = owner.get(&format!("{path}?offset=99")).await.ok();
        assert_eq!((&beyond["count"], &beyond["results"]), (&json!(expected.len()), &json!([])));
    }
    let path = format!("/api/organizations/{second}/projects/");
    assert_eq!(column(&owner.get(&path).await.ok(), "id"), [first]);
}
