//! Numbers in bodies: what is stored as sent comes back digit for digit, and 5.0 is the integer 5.

use crate::support::prelude::*;

/// Numbers that a floating-point number does not hold, or that programs write in another way.
const NUMBERS: &str = "\
    12345678901234567890123,-98765432109876543210.10,0.1234567890123456789012345,1.50,1e+400,1e-7,\
    -0.0,9007199254740993,100000000000000000000.0";

/// Sends a body as it is written.
async fn send(client: &TestClient, method: Method, path: &str, body: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    let answer = client.raw(request.body(Body::from(body.to_owned())).expect("a request")).await;
    (answer.status, String::from_utf8(answer.bytes).expect("text"))
}

async fn read(client: &TestClient, path: &str) -> String {
    send(client, Method::GET, path, "").await.1
}

/// The free-form fields of one object of each type: the path of the object and the name of the field.
struct FreeFields {
    fields: Vec<(String, &'static str)>,
    dashboard: String,
    insight: String,
    export: String,
    tile: String,
}

/// Creates an object of each type with free-form fields.
async fn free_fields(workspace: &Workspace) -> FreeFields {
    let owner = &workspace.owner;
    let project = workspace.project("");
    let (_, insight) = owner.create(&format!("{project}insights/"), json!({})).await;
    let (_, board) = owner.create(&workspace.dashboards(""), json!({})).await;
    let export = json!({
        "name": "e", "interval": "hour",
        "destination": {"type": "S3", "config": {
            "bucket_name": "b", "region": "r", "prefix": "p",
            "aws_access_key_id": "a", "aws_secret_access_key": "s",
        }},
    });
    let (_, export) = owner.create(&format!("{project}batch_exports/"), export).await;
    owner.patch(&board, json!({"tiles": [{"text": {"body": "x"}}]})).await.ok();
    let tile = owner.get(&board).await.ok()["tiles"][0]["id"].to_string();
    let me = ME.to_owned();
    let fields = vec![
        (insight.clone(), "query"),
        (insight.clone(), "filters"),
        (board.clone(), "filters"),
        (board.clone(), "variables"),
        (project.clone(), "test_account_filters"),
        (project.clone(), "survey_config"),
        (project.clone(), "extra_settings"),
        (project, "session_replay_config"),
        (export.clone(), "filters"),
        (me.clone(), "notification_settings"),
        (me.clone(), "events_column_config"),
        (me.clone(), "has_seen_product_intro_for"),
        (me, "hedgehog_config"),
    ];
    FreeFields { fields, dashboard: board, insight, export, tile }
}

/// Returns a member that the field may have.
fn member_of(name: &str) -> &'static str {
    if name == "session_replay_config" { "record_canvas" } else { "v" }
}

#[tokio::test]
async fn free_form_numbers_come_back_digit_for_digit() {
    let (workspace, owner) = Workspace::owned().await;
    let FreeFields { fields, dashboard: board, insight, tile, .. } = free_fields(&workspace).await;
    for (path, name) in &fields {
        let value = format!(r#"{{"{}":[{NUMBERS}]}}"#, member_of(name));
        if *name == "filters" && *path == insight {
            assert_eq!(send(&owner, Method::PATCH, path, r#"{"query":null}"#).await.0, 200);
        }
        let sent = format!(r#"{{"{name}":{value}}}"#);
        let (status, answer) = send(&owner, Method::PATCH, path, &sent).await;
        assert!(status == 200 && answer.contains(&value), "{path} {name}: {answer}");
        let shown = read(&owner, path).await;
        assert!(shown.contains(&format!(r#""{name}":{value}"#)), "{path} {name}: {shown}");
        let (status, again) = send(&owner, Method::PATCH, path, &shown).await;
        assert!(status == 200 && again == shown, "{path} {name}: {again}");
    }
    for list in ["tiles", "duplicate_tiles"] {
        for field in ["layouts", "filters_overrides"] {
            let value = format!(r#"{{"{list}":{{"w":[{NUMBERS}]}}}}"#);
            let sent = format!(r#"{{"{list}":[{{"id":{tile},"{field}":{value}}}]}}"#);
            let (status, answer) = send(&owner, Method::PATCH, &board, &sent).await;
            assert!(status == 200 && answer.contains(&value), "{list} {field}: {answer}");
            assert!(read(&owner, &board).await.contains(&value), "{list} {field}");
        }
    }
    let value = format!(r#"{{"v":[{NUMBERS}]}}"#);
    for field in ["query", "filters", "layouts"] {
        let sent = format!(
            r#"{{"template":{{"template_name":"T","dashboard_description":"","dashboard_filters":{value},"tiles":[{{"type":"INSIGHT","{field}":{value}}}]}}}}"#
        );
        let path = workspace.dashboards("create_from_template_json/");
        let (status, answer) = send(&owner, Method::POST, &path, &sent).await;
        let found = answer.matches(value.trim_end_matches('}')).count();
        assert_eq!((status, found), (200, 2), "{field}: {answer}");
    }
    // The spelling of an exponent is that of programs: a small letter and a sign.
    let (_, answer) =
        send(&owner, Method::PATCH, &insight, r#"{"query":{"v":[1E2,1.50e+2]}}"#).await;
    assert!(answer.contains(r#""query":{"v":[1e+2,1.50e+2]}"#), "{answer}");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn object_with_a_reserved_member_is_refused_and_never_read_as_a_number() {
    let (workspace, owner) = Workspace::owned().await;
    let FreeFields { fields, dashboard, insight, export, tile } = free_fields(&workspace).await;
    let reserved = json!({ "$serde_json::private::Number": "5" });
    let detail = "No object may have a member \"$serde_json::private::Number\".";
    for (path, name) in &fields {
        for value in [reserved.clone(), json!({ member_of(name): [reserved] })] {
            let before = owner.get(path).await.ok();
            owner.patch(path, json!({ *name: value })).await.assert_bad(name, detail);
            owner.get(path).await.assert_is(200, before);
        }
    }
    let layouts = json!({ "id": tile, "layouts": reserved });
    let overrides = json!({ "id": tile, "filters_overrides": { "a": reserved } });
    let overrides_of_a_copy = "duplicate_tiles__0__filters_overrides";
    for (path, body, attr) in [
        (&dashboard, json!({ "tiles": [layouts] }), "tiles__0__layouts"),
        (&dashboard, json!({ "duplicate_tiles": [overrides] }), overrides_of_a_copy),
        (&export, json!({ "destination": { "config": reserved } }), "destination__config"),
    ] {
        owner.patch(path, body).await.assert_bad(attr, detail);
    }
    for (path, body, attr, detail) in [
        (&insight, json!({ "order": reserved }), "order", "A valid integer is required."),
        (&insight, json!({ "name": reserved }), "name", "Not a valid string."),
        (&insight, json!({ "saved": reserved }), "saved", "Must be a valid boolean."),
    ] {
        owner.patch(path, body).await.assert_bad(attr, detail);
    }
    let before = owner.get(&dashboard).await.ok();
    for ignored in [reserved.clone(), json!({ "unknown": reserved })] {
        owner.patch(&dashboard, ignored).await.assert_is(200, before.clone());
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn text_read_from_a_number_has_its_digits() {
    let (workspace, owner) = Workspace::owned().await;
    let (list, organization) = (workspace.dashboards(""), workspace.organization(""));
    for number in NUMBERS.split(',') {
        let sent = format!(r#"{{"name":{number},"description":{number},"tags":[{number}]}}"#);
        let (status, answer) = send(&owner, Method::POST, &list, &sent).await;
        let body: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!((status, &body["name"]), (201, &json!(number)), "{answer}");
        assert_eq!(body["description"], json!(number));
        assert_eq!(body["tags"], json!([number.to_lowercase()]));
        let sent = format!(r#"{{"name":{number}}}"#);
        assert_eq!(send(&owner, Method::PATCH, &organization, &sent).await.0, 200);
        assert_eq!(owner.get(&organization).await.ok()["name"], number);
    }
}

#[tokio::test]
async fn five_point_zero_is_the_integer_five_wherever_an_integer_is_read() {
    let (workspace, owner) = Workspace::owned().await;
    let project = workspace.made.project_id;
    let insights = workspace.project("insights/");
    let (_, insight) = owner.create(&insights, json!({})).await;
    let (board, one) = owner.create(&workspace.dashboards(""), json!({})).await;
    let board = &board["id"];
    let text = json!({"tiles": [{"text": {"body": "x"}}]});
    let tile = owner.patch(&one, text).await.ok()["tiles"][0]["id"].clone();
    let key = json!({"label": "k", "scopes": ["*"]});
    let (_, key) = owner.create("/api/personal_api_keys/", key).await;
    let settings = workspace.project("");
    for zero in [".0", ".000", "e0"] {
        for (path, body) in [
            (&insight, format!(r#"{{"order": 5{zero}}}"#)),
            (&insight, format!(r#"{{"dashboards": [{board}{zero}]}}"#)),
            (&one, format!(r#"{{"restriction_level": 21{zero}}}"#)),
            (&one, format!(r#"{{"tiles": [{{"id": {tile}{zero}, "color": "a"}}]}}"#)),
            (&settings, format!(r#"{{"primary_dashboard": {board}{zero}}}"#)),
            (&settings, format!(r#"{{"session_recording_sample_rate": 1{zero}}}"#)),
            (&settings, format!(r#"{{"anonymize_ips": 1{zero}}}"#)),
            (&key, format!(r#"{{"scoped_teams": [{project}{zero}]}}"#)),
            (&key, r#"{"scoped_teams": []}"#.to_owned()),
        ] {
            let (status, answer) = send(&owner, Method::PATCH, path, &body).await;
            // A sample rate has at most two places.
            let is_refused = body.contains("rate") && zero == ".000";
            assert_eq!(status, if is_refused { 400 } else { 200 }, "{path} {body}: {answer}");
        }
        let rule = format!(
            r#"{{"resource": "dashboard", "resource_id": {board}{zero}, "access_level": "editor"}}"#
        );
        let path = format!("{one}access_controls/");
        let (status, answer) = send(&owner, Method::PUT, &path, &rule).await;
        assert_eq!(status, 200, "{rule}: {answer}");
        let invite = format!(
            r#"{{"target_email": "b@corp.example", "private_project_access": [{{"id": {project}{zero}, "level": 1{zero}}}]}}"#
        );
        let path = workspace.organization("invites/");
        let (status, answer) = send(&owner, Method::POST, &path, &invite).await;
        assert_eq!(status, 201, "{invite}: {answer}");
        for query in [
            format!("dashboards=[{board}{zero}]"),
            format!("dashboards={board}{zero}"),
            format!("created_by=[{}{zero}]", workspace.made.user_id),
        ] {
            assert_eq!(owner.get(&format!("{insights}?{query}")).await.ok()["count"], 1, "{query}");
        }
        let found = owner.get(&format!("{insight}?from_dashboard={board}.0")).await.ok();
        assert!(found.get("layouts").is_some(), "{found}");
    }
    let refused = send(&owner, Method::PATCH, &insight, r#"{"order": 5.5}"#).await;
    assert!(refused.0 == 400 && refused.1.contains("A valid integer is required."));
}
