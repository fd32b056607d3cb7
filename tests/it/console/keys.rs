//! The pages of API keys: the list, a new key, and one key.

use crate::support::prelude::*;

const KEYS: &str = "/console/keys/";
const NEW: &str = "/console/keys/new/";

fn text(key: &TestClient) -> &str {
    key.key.as_deref().expect("a key")
}

/// Returns the value that a page shows.
#[track_caller]
fn value(page: &Page) -> String {
    page.between("<output id=\"value\" aria-label=\"Value of the key\" dir=\"ltr\">", "</output>")
        .to_owned()
}

/// Creates a key and returns its body.
async fn create(workspace: &Workspace, sent: Value) -> Value {
    workspace.owner.post("/api/personal_api_keys/", sent).await.ok()
}

fn page_of(key: &Value) -> String {
    format!("{KEYS}{}/", key["id"].as_str().expect("an id"))
}

#[tokio::test]
async fn key_is_created_from_a_preset_and_its_value_is_shown_once() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let page = owner.open(NEW, "New API key").await;
    page.assert_has(&["Choose scopes to see it."]);
    let form = page.form("form").with("label", "Nightly <report>");
    assert!(form.values("scopes").is_empty());
    let default = page.html.find("<button form=\"form\" class=\"vh\"").expect("a default button");
    let preset = page.html.find("name=\"_preset\"").expect("a preset");
    assert!(default < preset, "Enter in a field creates the key");
    assert!(form.value("expires_at").ends_with("T00:00"), "{form:?}");

    let preset = owner.submit(&form.with("_preset", "dashboards")).await;
    preset.assert_shows(200, "New API key");
    let form = preset.form("form");
    assert_eq!(form.values("scopes"), ["dashboard:write", "insight:write", "project:read"]);
    assert_eq!(form.value("label"), "Nightly <report>");
    assert!(preset.html.contains("operations</span>"), "what the key could do is shown");

    let form = form.with("scopes", "dashboard:read").and("scopes", "project:read");
    let checked = owner.submit(&form.clone().with("_check", "operations")).await;
    let expected = json!({"scopes": ["dashboard:read", "project:read"]});
    let expected = workspace.owner.post("/api/personal_api_keys/operations/", expected).await.ok();
    let expected = expected.as_array().expect("operations");
    let allowed = expected.iter().filter(|one| one["allowed"] == true).count();
    checked.assert_has(&[&format!("{allowed} of {} operations", expected.len())]);
    let nothing = workspace.owner.get("/api/personal_api_keys/").await.ok();
    assert_eq!(nothing.as_array().map(Vec::len), Some(1), "nothing was created");

    let form = checked.form("form").with("scoped_teams", &workspace.made.project_id.to_string());
    let created = owner.submit(&form).await.showing(200, "API key created");
    assert_eq!(created.headers["cache-control"], "no-store");
    created.assert_has(&["<bdi>Nightly &#60;report&#62;</bdi>"]);
    let key = workspace.with_key(&value(&created));
    let found = key.get("/api/personal_api_keys/@current/").await.ok();
    let of = [&found["label"], &found["scopes"], &found["scoped_teams"]];
    let scopes = json!(["dashboard:read", "project:read"]);
    assert_eq!(of, [&json!("Nightly <report>"), &scopes, &json!([workspace.made.project_id])]);
    assert!(found["expires_at"].as_str().expect("a time").ends_with("T00:00:00Z"));

    let again = owner.submit(&form).await.showing(200, "API key created");
    again.assert_has(&["The form was sent twice and done once."]);
    assert!(!again.html.contains("phx_"), "the value is not shown again");
    let keys = workspace.owner.get("/api/personal_api_keys/").await.ok();
    assert_eq!(keys.as_array().map(Vec::len), Some(2));

    let list = owner.open(KEYS, "API keys").await;
    list.assert_has(&["<span class=\"tag\">Read dashboards</span>", "<bdi>Web (Corp)</bdi>"]);
    list.assert_has(&["1 to 2 of 2"]);
    assert_eq!(list.html.matches("This session").count(), 1);
    assert!(!list.html.contains(&value(&created)));
}

#[tokio::test]
async fn session_of_a_narrow_key_is_offered_only_what_it_may_give() {
    let workspace = Workspace::new().await;
    let limits = json!({ "projects": [workspace.made.project_id], "expires_in": 3600 });
    let scopes = ["dashboard:write", "personal_api_key:write", "project:read"];
    let key = workspace.limited_key(OWNER, &scopes, limits).await;
    let mut narrow = Visitor::with_key(&workspace, text(&key)).await;
    let page = narrow.open(NEW, "New API key").await;
    let offered = page.html.split("name=\"scopes\" value=\"").skip(1);
    let offered: Vec<_> = offered.filter_map(|rest| rest.split('"').next()).collect();
    let expected = [
        "dashboard:read",
        "dashboard:write",
        "personal_api_key:read",
        "personal_api_key:write",
        "project:read",
    ];
    assert_eq!(offered, expected);
    assert_eq!(page.form("form").value("expires_at"), "", "the key of the session expires first");
    let form = narrow.submit(&page.form("form").with("_preset", "everything")).await.form("form");
    assert_eq!(form.values("scopes"), scopes);
    let child = workspace.with_key(&value(&narrow.submit(&form.with("label", "child")).await));
    let child = child.get("/api/personal_api_keys/@current/").await.ok();
    assert_eq!(child["scoped_teams"], json!([workspace.made.project_id]));

    narrow.get(KEYS).await.assert_shows(200, "API keys");
    let first = workspace.owner.get("/api/personal_api_keys/@current/").await.ok();
    let page = narrow.open(&page_of(&first), "<bdi>First key</bdi>").await;
    page.assert_has(&["This API key cannot change a key with more access: scopes."]);
    page.assert_lacks(&["id=\"rotate\"", "/revoke/"]);

    let reader = workspace.key(OWNER, &["personal_api_key:read"]).await;
    let reader = Visitor::with_key(&workspace, text(&reader)).await;
    reader.get(KEYS).await.assert_lacks(&["New key"]);
    let page = reader.get(NEW).await;
    page.assert_has(&["This session may not create keys."]).assert_lacks(&["Create the key"]);
}

#[tokio::test]
async fn key_is_narrowed() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let sent = json!({"label": "CI", "scopes": ["dashboard:write", "feature_flag:read", "project:write"],
        "expires_at": "2100-01-02T03:04:00Z"});
    let key = create(&workspace, sent).await;
    let path = page_of(&key);
    let form = owner.open(&path, "<bdi>CI</bdi>").await.form("form");
    let held = ["dashboard:write", "project:write", "feature_flag:read"];
    assert_eq!(form.values("scopes"), held, "scopes that the API does not serve stay");
    assert_eq!(form.value("expires_at"), "2100-01-02T03:04");
    let sent =
        form.with("scopes", "dashboard:read").with("scoped_teams", "1").with("label", "CI 2");
    assert_eq!(owner.submit(&sent).await.location(), format!("{path}?done=key-saved"));
    let api = format!("/api/personal_api_keys/{}/", key["id"].as_str().expect("an id"));
    let found = workspace.owner.get(&api).await.ok();
    let of = ["label", "scopes", "scoped_teams", "expires_at"].map(|name| found[name].clone());
    let time = json!("2100-01-02T03:04:00Z");
    assert_eq!(of, [json!("CI 2"), json!(["dashboard:read"]), json!([1]), time]);
    owner.get("/console/keys/no-uuid/").await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn new_value_of_the_own_key_is_shown_although_the_session_ends() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let path = page_of(&workspace.owner.get("/api/personal_api_keys/@current/").await.ok());
    let question = owner.get(&format!("{path}revoke/")).await;
    question.assert_has(&["This session uses the key and ends with it."]);
    let page = owner.get(&path).await;
    page.assert_has(&["This session ends, because the key signed it in."]);
    let form = page.form("rotate");
    assert_eq!(form.value("grace_seconds"), "86400", "programs keep working by default");
    let rotated = owner.submit(&form).await.showing(200, "API key rotated");
    assert!(owner.get(KEYS).await.location().starts_with("/console/sign_in/"));
    let mut again = Visitor::with_key(&workspace, &value(&rotated)).await;
    let question = again.get(&format!("{path}revoke/")).await;
    again.submit(&question.form("form")).await.location();
    assert!(again.get(KEYS).await.location().starts_with("/console/sign_in/"));
}

#[tokio::test]
async fn session_by_link_offers_every_scope() {
    let workspace = Workspace::new().await;
    let visitor = Visitor::with_link(&workspace, false).await;
    let page = visitor.open(NEW, "New API key").await;
    page.assert_has(&["Everything, also what later versions add"]);
    visitor.open(KEYS, "API keys").await.assert_lacks(&["This session</span>"]);
}
