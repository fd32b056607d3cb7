//! Tests of `/api/projects/:project_id/batch_exports/` and `/api/organizations/:organization_id/batch_exports/`.

mod destinations;
mod rights;
mod secrets;
mod states;

use crate::support::prelude::*;

const MOMENT: &str = "Datetime has wrong format. Use one of these formats instead: \
                      YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";

/// Returns the path of the first project's exports.
pub fn list_of(workspace: &Workspace) -> String {
    workspace.project("batch_exports/")
}

/// Creates an export in the first project. Returns it, and its paths below the organization and the project.
pub async fn add(workspace: &Workspace, sent: Value) -> (Value, [String; 2]) {
    let list = list_of(workspace);
    let made = workspace.owner.post(&list, sent).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let id = made.body["id"].as_str().expect("an id");
    let paths = [workspace.organization(&format!("batch_exports/{id}/")), format!("{list}{id}/")];
    (made.body, paths)
}

#[tokio::test]
async fn batch_export_has_exactly_these_fields_in_this_order() {
    let (workspace, member) = Workspace::with_member("ann", Level::Member).await;
    let (made, paths) = add(&workspace, nowhere(" Nightly ")).await;
    let project = workspace.made.project_id;
    let expected = json!({
        "id": made["id"], "team_id": project, "name": "Nightly", "model": "events",
        "destination": { "type": "NoOp", "config": {} }, "interval": "hour", "paused": false,
        "created_at": made["created_at"], "last_updated_at": made["created_at"],
        "last_paused_at": null, "start_at": null, "end_at": null, "latest_runs": [],
        "hogql_query": null, "schema": null, "filters": null,
    });
    assert_eq!(made, expected);
    let order = |body: &Value| body.as_object().expect("an object").keys().cloned().collect();
    let (shown, documented): (Vec<_>, Vec<_>) = (order(&made), order(&expected));
    assert_eq!(shown, documented);
    let id: Uuid = made["id"].as_str().expect("an id").parse().expect("a UUID");
    assert_eq!(id.get_version_num(), 7);

    let page = page(json!([made]));
    for caller in [&workspace.owner, &member] {
        for path in &paths {
            caller.get(path).await.assert_is(200, made.clone());
        }
        caller.get(&workspace.organization("batch_exports/")).await.assert_is(200, page.clone());
        caller.get(&list_of(&workspace)).await.assert_is(200, page.clone());
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn every_request_field_of_a_batch_export_is_stored() {
    let workspace = Workspace::new().await;
    let sent = json!({
        "id": UNKNOWN, "team_id": 99, "created_at": "2001-01-01", "latest_runs": [1], "schema": {"a": 1},
        "name": "Persons", "model": "persons",
        "destination": { "type": "NoOp", "config": { "arg": "x" }, "integration": 1 },
        "interval": "every 5 minutes", "paused": "yes", "last_paused_at": "2025-01-02",
        "start_at": "2026-01-01T01:00:00+01:00", "end_at": "2025-12-31 12:00:00.5",
        "hogql_query": " SELECT event, properties.$browser AS browser FROM events ",
        "filters": { "b": [1, null], "a": "\u{0}" },
    });
    let (made, [path, _]) = add(&workspace, sent).await;
    let expected = json!({
        "name": "Persons",
        "model": "persons",
        "destination": { "type": "NoOp", "config": { "arg": "x" } },
        "interval": "every 5 minutes",
        "paused": true,
        "last_paused_at": "2025-01-02T00:00:00Z",
        "start_at": "2026-01-01T00:00:00Z",
        // An end before the start is valid: the export never runs.
        "end_at": "2025-12-31T12:00:00.500000Z",
        "hogql_query": "SELECT event, properties.$browser AS browser FROM events",
        "filters": { "b": [1, null], "a": "\u{0}" },
        "latest_runs": [],
        "schema": null,
        "team_id": workspace.made.project_id,
    });
    assert_eq!(with(made.clone(), expected), made);
    workspace.owner.get(&path).await.assert_is(200, made.clone());

    for (field, values) in [
        ("model", vec![json!("persons"), json!(null), json!("events")]),
        ("interval", each(json!(["hour", "day", "week", "every 5 minutes", "every 15 minutes"]))),
        ("start_at", vec![json!(null), json!("2026-01-01T00:00:00Z")]),
        ("end_at", vec![json!(null), json!("9999-12-31T23:59:59.999999Z")]),
        ("last_paused_at", vec![json!(null), json!("0000-01-01T00:00:00Z")]),
        ("hogql_query", vec![json!(null), json!("SELECT 1 FROM events")]),
        ("filters", vec![json!(null), json!([]), json!("text"), json!({})]),
        ("paused", vec![json!(false), json!(true)]),
    ] {
        for value in values {
            let changed = workspace.owner.patch(&path, json!({ field: value })).await.ok();
            assert_eq!(changed[field], value, "{field}");
            workspace.owner.get(&path).await.assert_is(200, changed);
        }
    }
    // A response can be sent back as a request.
    let shown = workspace.owner.get(&path).await.ok();
    workspace.owner.patch(&path, shown.clone()).await.assert_is(200, shown);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn first_invalid_field_in_field_order_is_reported() {
    let workspace = Workspace::new().await;
    let list = list_of(&workspace);
    let mut sent = json!({
        "name": " ", "model": "groups", "destination": [], "interval": "month", "paused": 2, "last_paused_at": 5,
        "start_at": "soon", "end_at": "2025-02-30", "hogql_query": "SELECT 1", "filters": "x".repeat(40_000),
    });
    let (_, [_, one]) = add(&workspace, nowhere("a")).await;
    let no_object = "Invalid data. Expected a dictionary, but got list.";
    let choice = |field: &str, word: &str| {
        Refusal::new(field, "invalid_choice", format!("\"{word}\" is not a valid choice."))
    };
    let query = "Query must only SELECT FROM events";
    let long = "Ensure this field has no more than 32768 bytes of JSON.";
    let nothing = json!({ "type": "NoOp", "config": {} });
    let (mut on_create, mut on_update) = (Vec::new(), Vec::new());
    for (field, good, refusal) in [
        ("name", json!("n"), Refusal::new("name", "blank", "This field may not be blank.")),
        ("model", json!(null), choice("model", "groups")),
        ("destination", nothing, Refusal::invalid("destination__non_field_errors", no_object)),
        ("interval", json!("day"), choice("interval", "month")),
        ("paused", json!("off"), Refusal::invalid("paused", "Must be a valid boolean.")),
        ("last_paused_at", json!(null), Refusal::invalid("last_paused_at", MOMENT)),
        ("start_at", json!(null), Refusal::invalid("start_at", MOMENT)),
        ("end_at", json!(null), Refusal::invalid("end_at", MOMENT)),
        ("hogql_query", json!(null), Refusal::invalid("hogql_query", query)),
        ("filters", json!(null), Refusal::new("filters", "max_length", long)),
    ] {
        on_create.push((sent.clone(), refusal.clone()));
        on_update.push((sent.clone(), refusal));
        sent[field] = good;
    }
    for field in ["name", "destination", "interval"] {
        let mut lacking = nowhere("a");
        lacking.as_object_mut().expect("members").remove(field);
        on_create.push((lacking.clone(), Refusal::required(field)));
        on_create.push((with(lacking, json!({ field: null })), Refusal::null(field)));
        on_update.push((json!({ field: null }), Refusal::null(field)));
    }
    on_create.push((json!([]), Refusal::of_body("invalid_input", no_object)));
    workspace.owner.assert_refusals(Method::POST, &list, on_create).await;
    workspace.owner.assert_refusals(Method::PATCH, &one, on_update).await;
    workspace.owner.post(&list, sent).await.ok();
    assert_eq!(workspace.owner.get(&list).await.ok()["count"], 2);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn batch_exports_are_listed_newest_first_and_paged() {
    let workspace = Workspace::new().await;
    for name in ["c", "a", "b"] {
        add(&workspace, nowhere(name)).await;
    }
    for list in [workspace.organization("batch_exports/"), list_of(&workspace)] {
        for (query, names) in
            [("", &["b", "a", "c"][..]), ("?limit=1&offset=1", &["a"]), ("?offset=5", &[])]
        {
            let page = workspace.owner.get(&format!("{list}{query}")).await.ok();
            assert_eq!(column(&page, "name"), names);
            assert_eq!(page["count"], 3);
        }
    }
}

#[tokio::test]
async fn effective_update_changes_last_updated_at_and_an_empty_one_does_not() {
    let workspace = Workspace::new().await;
    let (made, [one, _]) = add(&workspace, nowhere("a")).await;
    for same in
        [json!({}), json!({ "name": " a " }), json!({ "destination": {} }), json!({ "unknown": 1 })]
    {
        workspace.owner.patch(&one, same).await.assert_is(200, made.clone());
    }
    let changed = workspace.owner.patch(&one, json!({ "name": "b" })).await.ok();
    let moved = json!({ "name": "b", "last_updated_at": changed["last_updated_at"] });
    assert_eq!(changed, with(made.clone(), moved));
    assert!(changed["last_updated_at"].as_str() > made["last_updated_at"].as_str());
    workspace.owner.delete(&one).await.assert_empty(204);
    let entry = |what: &str, name: &str, changes: Value| {
        json!(["BatchExport", made["id"], what, name, changes])
    };
    assert_eq!(
        entries_about(&workspace, &made["id"]),
        [
            entry("created", "a", json!({})),
            entry("updated", "b", json!({ "name": ["a", "b"] })),
            entry("deleted", "b", json!({})),
        ]
    );
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn organization_path_requires_project_id_on_create() {
    let workspace = Workspace::new().await;
    let list = workspace.organization("batch_exports/");
    let (stranger, foreign) = workspace.outsider("eve").await;
    let project = workspace.made.project_id;
    let of = |project: &Value| json!({ "name": "", "project_id": project });
    let no_number = Refusal::invalid("project_id", "A valid integer is required.");
    let mut cases = vec![
        (json!({ "name": "" }), Refusal::required("project_id")),
        (of(&json!(null)), Refusal::null("project_id")),
        (of(&json!("x")), no_number),
        (of(&json!(project)), Refusal::new("name", "blank", "This field may not be blank.")),
    ];
    for unknown in [&json!(0), &json!(99), &foreign["project_id"]] {
        cases.push((of(unknown), Refusal::unknown("project_id", &unknown.to_string())));
    }
    workspace.owner.assert_refusals(Method::POST, &list, cases).await;
    let sent = with(nowhere("a"), json!({ "project_id": project.to_string() }));
    let made = workspace.owner.post(&list, sent).await;
    assert_eq!((made.status, &made.body["team_id"]), (201, &json!(project)));
    assert_eq!(workspace.owner.get(&list_of(&workspace)).await.ok()["results"][0], made.body);
    let sent = with(nowhere("a"), json!({ "project_id": foreign["project_id"] }));
    stranger.post(&list, sent).await.assert_denied(NOT_ALLOWED);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn hogql_query_must_select_only_from_events() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, paths) = add(&workspace, nowhere("a")).await;
    for (query, detail) in [
        (json!(""), "Failed to parse query"),
        (json!("SELECT * FROM events UNION ALL SELECT * FROM events"), "UNIONs are not supported"),
        (json!("SELECT * FROM events AS a JOIN events AS b ON 1"), "JOINs are not supported"),
        (json!("SELECT * FROM persons"), "Query must only SELECT FROM events"),
        (json!(true), "Not a valid string."),
    ] {
        let sent = json!({ "hogql_query": query });
        let case = |sent: Value| [(sent, Refusal::invalid("hogql_query", detail))];
        for path in &paths {
            owner.assert_refusals(Method::PATCH, path, case(sent.clone())).await;
        }
        let created = case(with(nowhere("b"), sent));
        owner.assert_refusals(Method::POST, &list_of(&workspace), created).await;
    }
    let refused = owner.patch(&paths[0], json!({ "hogql_query": "SELECT *\nFROM persons" })).await;
    assert_eq!(refused.headers["error-position"], "line=2, column=6");
    let long = json!({ "hogql_query": "x".repeat(256 * 1024 + 1) });
    let detail = "Ensure this field has no more than 262144 characters.";
    owner.patch(&paths[0], long).await.assert_invalid("hogql_query", "max_length", detail);
}

#[tokio::test]
async fn too_long_or_deep_values_are_rejected() {
    let workspace = Workspace::new().await;
    let (_, [path, _]) = add(&workspace, nowhere("a")).await;
    let bytes = "Ensure this field has no more than 32768 bytes of JSON.";
    let containers = "Ensure this field has no more than 32 nested containers.";
    let config = |config: Value| json!({ "destination": { "type": "NoOp", "config": config } });
    let deep = |depth: usize| (0..depth).fold(json!([]), |inner, _| json!({ "a": inner }));
    let too_much = |attr: &str, detail: &str| Refusal::new(attr, "max_length", detail);
    let cases = [
        (config(json!({ "arg": "x".repeat(1_000_000) })), too_much("destination__config", bytes)),
        (config(json!({ "arg": deep(40) })), too_much("destination__config", containers)),
        (json!({ "filters": deep(40) }), too_much("filters", containers)),
    ];
    workspace.owner.assert_refusals(Method::PATCH, &path, cases).await;
    workspace.owner.patch(&path, json!({ "filters": deep(31) })).await.ok();

    // Several small updates cannot exceed the limit either.
    let least = json!({ "bucket_name": "b", "region": "r", "prefix": "p" });
    let (_, [path, _]) = add(&workspace, to("S3", &least)).await;
    let events = vec!["x".repeat(300); 70];
    let piece = |key: &str| json!({ "destination": { "config": { key: events } } });
    workspace.owner.patch(&path, piece("include_events")).await.ok();
    let refused = workspace.owner.patch(&path, piece("exclude_events")).await;
    refused.assert_invalid("destination__config", "max_length", bytes);
    workspace.assert_file_valid().await;
}
