//! Tests of `/api/projects/:project_id/batch_exports/` and `/api/organizations/:organization_id/batch_exports/`.

mod destinations;
mod limits;
mod rights;
mod secrets;
mod states;

use axum::http::Method;
use serde_json::{Value, json};
use steward::testing::resources::members::Level;

use crate::domains::entries_about;
pub use crate::support::batch_exports::{nowhere, with};
use crate::support::{OWNER, Workspace};

pub const UNKNOWN: &str = "01890000-0000-7000-8000-000000000000";
const MOMENT: &str = "Datetime has wrong format. Use one of these formats instead: \
                      YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";

/// Returns the path of the first project's exports.
pub fn list_of(workspace: &Workspace) -> String {
    format!("/api/projects/{}/batch_exports/", workspace.made.project_id)
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

fn names(list: &Value) -> Vec<&str> {
    let results = list["results"].as_array().expect("results");
    results.iter().map(|item| item["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn batch_export_has_exactly_these_fields_in_this_order() {
    let workspace = Workspace::new().await;
    let member = workspace.member("ann", Level::Member).await;
    let (made, paths) = add(&workspace, nowhere(" Nightly ")).await;
    let project = workspace.made.project_id;
    let expected = json!({
        "id": made["id"],
        "team_id": project,
        "name": "Nightly",
        "model": "events",
        "destination": { "type": "NoOp", "config": {} },
        "interval": "hour",
        "paused": false,
        "created_at": made["created_at"],
        "last_updated_at": made["created_at"],
        "last_paused_at": null,
        "start_at": null,
        "end_at": null,
        "latest_runs": [],
        "hogql_query": null,
        "schema": null,
        "filters": null,
    });
    assert_eq!(made, expected);
    let order = |body: &Value| body.as_object().expect("an object").keys().cloned().collect();
    let (shown, documented): (Vec<_>, Vec<_>) = (order(&made), order(&expected));
    assert_eq!(shown, documented);
    let id: uuid::Uuid = made["id"].as_str().expect("an id").parse().expect("a UUID");
    assert_eq!(id.get_version_num(), 7);

    let page = json!({ "count": 1, "next": null, "previous": null, "results": [made] });
    for caller in [&workspace.owner, &member] {
        for path in &paths {
            caller.get(path).await.assert_is(200, made.clone());
            caller.get(path.trim_end_matches('/')).await.assert_is(200, made.clone());
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
        "name": "Persons",
        "model": "persons",
        "destination": { "type": "NoOp", "config": { "arg": "x" }, "integration": 1 },
        "interval": "every 5 minutes",
        "paused": "yes",
        "last_paused_at": "2025-01-02",
        "start_at": "2026-01-01T01:00:00+01:00",
        "end_at": "2025-12-31 12:00:00.5",
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
        (
            "interval",
            ["hour", "day", "week", "every 5 minutes", "every 15 minutes"].map(Value::from).into(),
        ),
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
    let required = "This field is required.";
    let boolean = "Must be a valid boolean.";
    let mut sent = json!({
        "name": " ", "model": "groups", "destination": [], "interval": "month", "paused": 2, "last_paused_at": 5,
        "start_at": "soon", "end_at": "2025-02-30", "hogql_query": "SELECT 1", "filters": "x".repeat(40_000),
    });
    let (_, [_, one]) = add(&workspace, nowhere("a")).await;
    let not_dictionary = "Invalid data. Expected a dictionary, but got list.";
    for (field, good, attr, code, detail) in [
        ("name", json!("n"), "name", "blank", "This field may not be blank."),
        ("model", json!(null), "model", "invalid_choice", "\"groups\" is not a valid choice."),
        (
            "destination",
            json!({"type": "NoOp", "config": {}}),
            "destination__non_field_errors",
            "invalid_input",
            not_dictionary,
        ),
        (
            "interval",
            json!("day"),
            "interval",
            "invalid_choice",
            "\"month\" is not a valid choice.",
        ),
        ("paused", json!("off"), "paused", "invalid_input", boolean),
        ("last_paused_at", json!(null), "last_paused_at", "invalid_input", MOMENT),
        ("start_at", json!(null), "start_at", "invalid_input", MOMENT),
        ("end_at", json!(null), "end_at", "invalid_input", MOMENT),
        (
            "hogql_query",
            json!(null),
            "hogql_query",
            "invalid_input",
            "Query must only SELECT FROM events",
        ),
        (
            "filters",
            json!(null),
            "filters",
            "max_length",
            "Ensure this field has no more than 32768 bytes of JSON.",
        ),
    ] {
        workspace.owner.post(&list, sent.clone()).await.assert_invalid(attr, code, detail);
        workspace.owner.patch(&one, sent.clone()).await.assert_invalid(attr, code, detail);
        sent[field] = good;
    }
    workspace.owner.post(&list, sent).await.ok();

    for field in ["name", "destination", "interval"] {
        let mut lacking = nowhere("a");
        lacking.as_object_mut().expect("members").remove(field);
        workspace
            .owner
            .post(&list, lacking.clone())
            .await
            .assert_invalid(field, "required", required);
        lacking[field] = json!(null);
        for answer in [
            workspace.owner.post(&list, lacking).await,
            workspace.owner.patch(&one, json!({ field: null })).await,
        ] {
            answer.assert_invalid(field, "null", "This field may not be null.");
        }
    }
    workspace
        .owner
        .post(&list, json!([]))
        .await
        .assert_invalid_body("invalid_input", "Invalid data. Expected a dictionary, but got list.");
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
        let all = workspace.owner.get(&list).await.ok();
        assert_eq!((names(&all), &all["count"]), (vec!["b", "a", "c"], &json!(3)));
        let page = workspace.owner.get(&format!("{list}?limit=1&offset=1")).await.ok();
        assert_eq!((names(&page), &page["count"]), (vec!["a"], &json!(3)));
        assert!(
            page["next"].as_str().expect("a link").ends_with("batch_exports/?limit=1&offset=2")
        );
        assert!(page["previous"].as_str().expect("a link").ends_with("batch_exports/?limit=1"));
        let page = workspace.owner.get(&format!("{list}?offset=5")).await.ok();
        assert_eq!((names(&page), &page["count"]), (vec![], &json!(3)));
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
async fn deleted_and_unknown_batch_exports_return_404() {
    let workspace = Workspace::new().await;
    let (_, [of_organization, of_project]) = add(&workspace, nowhere("a")).await;
    workspace.owner.delete(&of_project).await.assert_empty(204);
    let (_, [other, _]) = add(&workspace, nowhere("b")).await;
    workspace.owner.delete(&other).await.assert_empty(204);
    let unknown = [UNKNOWN, "1", "x", "0189", &"9".repeat(5000)];
    let lists = [workspace.organization("batch_exports/"), list_of(&workspace)];
    let unknown = lists.iter().flat_map(|list| unknown.map(|id| format!("{list}{id}/")));
    for path in unknown.chain([of_organization, of_project, other]) {
        // The body is not checked if the export does not exist.
        let body = json!({ "name": "", "model": 5 });
        for (method, rest) in [
            (Method::GET, ""),
            (Method::PATCH, ""),
            (Method::DELETE, ""),
            (Method::POST, "pause/"),
            (Method::POST, "unpause/"),
        ] {
            let path = format!("{path}{rest}");
            workspace
                .owner
                .send(method, &path, Some(body.clone()))
                .await
                .assert_not_found("Not found.");
        }
    }
    for list in lists {
        let none = json!({ "count": 0, "next": null, "previous": null, "results": [] });
        workspace.owner.get(&list).await.assert_is(200, none);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn organization_path_requires_project_id_on_create() {
    let workspace = Workspace::new().await;
    let list = workspace.organization("batch_exports/");
    let (stranger, foreign) = workspace.outsider("eve").await;
    let bad = json!({ "name": "" });
    let post = async |project: Value| {
        workspace.owner.post(&list, with(bad.clone(), json!({ "project_id": project }))).await
    };
    let refused = workspace.owner.post(&list, bad.clone()).await;
    refused.assert_invalid("project_id", "required", "This field is required.");
    post(json!(null)).await.assert_invalid("project_id", "null", "This field may not be null.");
    post(json!("x")).await.assert_invalid(
        "project_id",
        "invalid_input",
        "A valid integer is required.",
    );
    for project in [json!(0), json!(99), foreign["project_id"].clone()] {
        let detail = format!("Invalid pk \"{project}\" - object does not exist.");
        post(project).await.assert_invalid("project_id", "does_not_exist", &detail);
    }
    let project = workspace.made.project_id;
    post(json!(project)).await.assert_invalid("name", "blank", "This field may not be blank.");
    let sent = with(nowhere("a"), json!({ "project_id": project.to_string() }));
    let made = workspace.owner.post(&list, sent).await;
    assert_eq!((made.status, &made.body["team_id"]), (201, &json!(project)));
    assert_eq!(workspace.owner.get(&list_of(&workspace)).await.ok()["results"][0], made.body);
    let sent = with(nowhere("a"), json!({ "project_id": foreign["project_id"] }));
    stranger
        .post(&list, sent)
        .await
        .assert_denied("You do not have permission to perform this action.");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn put_on_batch_exports_is_not_allowed() {
    let workspace = Workspace::new().await;
    let (_, paths) = add(&workspace, nowhere("a")).await;
    for path in paths {
        let refused = workspace.owner.put(&path, nowhere("b")).await;
        assert_eq!(refused.status, 405);
        assert_eq!(refused.headers["allow"], "GET, PATCH, DELETE, HEAD, OPTIONS");
        let refused = workspace.owner.get(&format!("{path}pause/")).await;
        assert_eq!(
            (refused.status, &refused.headers["allow"]),
            (405, &"POST, OPTIONS".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn project_limited_key_accesses_exports_only_by_the_project_path() {
    let workspace = Workspace::new().await;
    let (made, [of_organization, of_project]) = add(&workspace, nowhere("a")).await;
    let limits = json!({ "projects": [workspace.made.project_id] });
    let key = workspace.limited_key(OWNER, &["batch_export:write"], limits).await;
    key.get(&of_project).await.assert_is(200, made);
    key.post(&format!("{of_project}pause/"), json!({})).await.assert_empty(200);
    let text = "API keys with scoped projects are only supported on project-based endpoints.";
    key.get(&of_organization).await.assert_denied(text);
    key.post(&format!("{of_organization}pause/"), json!({})).await.assert_denied(text);
    let reader = workspace.key(OWNER, &["batch_export:read"]).await;
    reader.get(&of_organization).await.ok();
    let refused = reader.post(&format!("{of_organization}pause/"), json!({})).await;
    refused.assert_denied("API key missing required scope 'batch_export:write'");
}
