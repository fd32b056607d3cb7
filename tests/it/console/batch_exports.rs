//! Batch exports: the list, the forms of all destinations, and what a session may do.

use crate::support::batch_exports::DESTINATIONS;
use crate::support::prelude::*;

const LIST: &str = "/console/projects/1/batch_exports/";
const API: &str = "/api/projects/1/batch_exports/";

/// Returns the schema of a destination's configuration.
fn schema(document: &Value, name: &str) -> Value {
    document["components"]["schemas"][format!("{name}Destination")]["properties"]["config"].clone()
}

/// Returns the value that a text becomes in the API.
fn value(schema: &Value, text: &str) -> Value {
    let is = |name: &str| {
        let types = &schema["type"];
        types == name || types.as_array().is_some_and(|types| types.contains(&json!(name)))
    };
    match text {
        _ if is("array") => text.lines().map(Value::from).collect(),
        _ if is("boolean") => json!(text == "true"),
        _ if is("integer") => json!(text.parse::<u64>().expect("a number")),
        _ => json!(text.replace("\r\n", "\n")),
    }
}

#[tokio::test]
async fn every_destination_is_created_by_its_form_and_changed_without_its_secrets() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let document = workspace.owner.get("/api/schema/?format=json").await.ok();
    for (name, typed, (changed, new_text)) in DESTINATIONS {
        let schema = schema(&document, name);
        let properties = schema["properties"].as_object().expect("properties");
        let page = owner.get(&format!("{LIST}new/?destination={name}")).await;
        assert_eq!(page.status, 200, "{name}");
        let mut form = page.form("form").with("name", name).with("interval", "day");
        for key in properties.keys() {
            let field = format!("destination.config.{key}");
            assert_eq!(form.value(&field), "", "{name}: {key}");
            let (_, text) = typed.iter().find(|(known, _)| known == key).expect("a text");
            form = form.with(&field, text);
        }
        let made = owner.submit(&form).await;
        let path =
            made.location().strip_suffix("?done=export-created").expect("a notice").to_owned();
        let api = path.replace("/console/", "/api/");
        let mut expected = serde_json::Map::new();
        for (key, text) in typed.iter().filter(|(key, _)| properties[*key]["writeOnly"] != true) {
            expected.insert((*key).to_owned(), value(&properties[*key], text));
        }
        let stored = workspace.owner.get(&api).await.ok();
        assert_eq!(stored["destination"], json!({ "type": name, "config": expected }));
        let shown = ["name", "interval", "model", "paused"].map(|field| &stored[field]);
        assert_eq!(json!(shown), json!([name, "day", "events", false]));
        assert_eq!([&stored["hogql_query"], &stored["filters"]], [&Value::Null; 2]);

        let page = owner.open(&path, name).await;
        for (key, text) in typed {
            let field = format!("destination.config.{key}");
            let is_secret = properties[*key]["writeOnly"] == true;
            let shown = if is_secret { String::new() } else { text.replace("\r\n", "\n") };
            assert_eq!(page.form("form").value(&field), shown, "{name}: {key}");
            assert!(!is_secret || !page.html.contains(&format!("value=\"{text}\"")));
        }
        let hints = page.html.matches("Leave it empty to keep the stored value.").count();
        let secrets = properties.values().filter(|one| one["writeOnly"] == true).count();
        assert_eq!(hints, secrets, "{name}");
        let field = format!("destination.config.{changed}");
        let form = page.form("form").with(&field, new_text).with("name", "Renamed");
        let command = owner.submit(&form.clone().with("_show", "command")).await.command();
        let number = value(&properties[changed], new_text);
        let body = json!({ "name": "Renamed", "destination": { "config": { changed: number } } });
        assert!(command.contains(&body.to_string()), "{command}");
        assert_eq!(owner.submit(&form).await.location(), format!("{path}?done=export-saved"));
        expected.insert(changed.to_owned(), number);
        let stored = workspace.owner.get(&api).await.ok();
        assert_eq!(stored["destination"], json!({ "type": name, "config": expected }));
        assert_eq!(stored["name"], "Renamed");
    }
}

#[tokio::test]
async fn emptied_optional_keys_are_removed_and_errors_stand_beside_their_fields() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let config = json!({ "user": "u", "password": "p", "host": "h", "database": "d", "port": 1 });
    let made = workspace.owner.post(API, to("Postgres", &config)).await.ok();
    let path = format!("{LIST}{}/", made["id"].as_str().expect("an id"));
    let form = owner.get(&path).await.form("form");
    let wrong = form.clone().with("destination.config.host", " ").with("interval", "year");
    let page = owner.submit(&wrong).await.showing(400, "e");
    page.assert_field_error("destination-config-host", "This field may not be blank.");
    assert_eq!(page.form("form").value("interval"), "year");
    let page = owner.submit(&form.clone().with("interval", "year")).await;
    page.assert_field_error("interval", "&#34;year&#34; is not a valid choice.");
    let form = form.with("destination.config.port", "").with("start_at", "2026-01-31T06:00:00");
    assert_eq!(owner.submit(&form).await.location(), format!("{path}?done=export-saved"));
    let stored = workspace.owner.get(&path.replace("/console/", "/api/")).await.ok();
    assert_eq!(stored["destination"]["config"], json!({ "host": "h", "database": "d" }));
    assert_eq!(stored["start_at"], "2026-01-31T06:00:00Z");
}

#[tokio::test]
async fn place_of_an_error_in_a_query_is_marked() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let form = owner.get(&format!("{LIST}new/?destination=NoOp")).await.form("form");
    let query = "SELECT <b>;\r\n  event FROM events";
    let page = owner.submit(&form.with("name", "e").with("hogql_query", query)).await;
    page.assert_shows(400, "New batch export to Nowhere");
    page.assert_field_error("hogql_query", "Failed to parse query: line 1, column 11.");
    let mark = page.between("<pre class=\"excerpt\" dir=\"ltr\" aria-hidden=\"true\">", "</pre>");
    assert_eq!(mark, "SELECT &#60;b&#62;;\n          ^");
    let query = "SELECT *\nFROM events\n  JOIN persons ON 1";
    let page = owner.submit(&page.form("form").with("hogql_query", query)).await;
    page.assert_field_error("hogql_query", "JOINs are not supported: line 3, column 3.");
    let form = page.form("form").with("hogql_query", "SELECT *\r\nFROM events");
    let made = owner.submit(&form).await;
    let path = made.location().replace("/console/", "/api/").replace("?done=export-created", "");
    assert_eq!(workspace.owner.get(&path).await.ok()["hogql_query"], "SELECT *\nFROM events");
}

#[tokio::test]
async fn exports_are_paused_and_unpaused_one_or_many() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    owner.get(LIST).await.assert_has(&["This project has no batch exports."]);
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        let made = workspace.owner.post(API, nowhere(name)).await.ok();
        ids.push(made["id"].as_str().expect("an id").to_owned());
    }
    let paused = async || {
        let list = workspace.owner.get(API).await.ok();
        let of = |export: &Value| export["paused"] == true;
        list["results"].as_array().expect("a list").iter().rev().map(of).collect::<Vec<_>>()
    };
    let many = owner.get(LIST).await.form("exports").and("id", &ids[0]).and("id", &ids[2]);
    for (action, states) in [("pause", [true, false, true]), ("unpause", [false; 3])] {
        let done = format!("{LIST}?offset=0&done=export-{action}d&count=2");
        assert_eq!(owner.submit(&many.clone().with("action", action)).await.location(), done);
        assert_eq!(paused().await, states);
        let shown = owner.get(LIST).await.html.matches("</svg>Paused</span>").count();
        assert_eq!(shown, states.iter().filter(|is_paused| **is_paused).count());
    }
    let none = owner.post(LIST, &[("action", "pause")]).await.showing(400, "Batch exports");
    none.assert_has(&["Select the batch exports first."]);
    assert_eq!(owner.post(LIST, &[("action", "delete"), ("id", &ids[1])]).await.status, 404);
    let path = format!("{LIST}{}/", ids[1]);
    let page = owner.get(&path).await;
    let done = owner.submit(&page.form("state")).await;
    assert_eq!(done.location(), format!("{path}?done=export-paused"));
    let page = owner.get(done.location()).await;
    page.assert_has(&["Last paused <time"]);
    let done = owner.submit(&page.form("state")).await;
    assert_eq!(done.location(), format!("{path}?done=export-unpaused"));
    assert!(owner.get(done.location()).await.html.contains("Batch export unpaused."));
    assert_eq!(paused().await, [false; 3]);
}

#[tokio::test]
async fn session_that_may_only_read_sees_values_without_secrets_and_controls() {
    let workspace = Workspace::new().await;
    let made = to("HTTP", &json!({ "url": "https://in.example/", "token": "t0k3n" }));
    let made = with(made, json!({ "hogql_query": "SELECT 1 FROM events", "paused": true }));
    let made = workspace.owner.post(API, made).await.ok();
    let scopes = ["batch_export:read", "project:read"];
    let reader = Visitor::with_scopes(&workspace, OWNER, &scopes).await;
    reader.open(LIST, "Batch exports").await.assert_lacks(&["checkbox", "New batch export"]);
    let page = reader.open(&format!("{LIST}{}/", made["id"].as_str().expect("an id")), "e").await;
    page.assert_lacks(&["Unpause", "Delete", "id=\"form\"", "t0k3n"]);
    page.assert_has(&[
        "<dt>URL</dt><dd dir=\"auto\">https://in.example/</dd>",
        "<dt>Token</dt><dd dir=\"auto\">Not shown</dd>",
        "<dt>Interval</dt><dd dir=\"auto\">Every hour</dd>",
        "<dt>Query</dt><dd class=\"code\" dir=\"ltr\">SELECT 1 FROM events</dd>",
        "<dt>Filters</dt><dd class=\"code\" dir=\"ltr\">–</dd>",
    ]);
    reader.get(&format!("{LIST}new/")).await.assert_shows(403, "You do not have access");
}
