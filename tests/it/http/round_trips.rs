//! What a GET returns, a PATCH takes back: 200, and nothing changes.

use axum::http::header::ETAG;

use crate::support::prelude::*;

/// Paths of PATCH whose objects a GET on the same path returns.
fn paths() -> Vec<&'static str> {
    let table = routes();
    let having = |method: Method| -> BTreeSet<&'static str> {
        let rows = table.specs().iter().filter(|row: &&RouteSpec| row.method == method);
        rows.map(|row| row.path).collect()
    };
    having(Method::PATCH).intersection(&having(Method::GET)).copied().collect()
}

/// Returns the schema of a PATCH.
fn schema(path: &str) -> &'static Value {
    let mut found = contract().operations().iter().filter(|operation| operation.method == "patch");
    let operation = found.find(|operation| operation.path == path).expect("an operation");
    let schema = &operation.told()["requestBody"]["content"]["application/json"]["schema"];
    match schema["$ref"].as_str() {
        Some(name) => contract().document.pointer(&name[1..]).expect("a schema"),
        None => schema,
    }
}

/// Returns values of a property: the ends of what its schema permits.
fn values(schema: &Value) -> Vec<Value> {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if let Some(choices) = schema["enum"].as_array() {
        return choices.clone();
    }
    let of_kind = |kind: &&str| -> Vec<Value> {
        match *kind {
            "null" => vec![Value::Null],
            "boolean" => vec![json!(true), json!(false)],
            "integer" => [&schema["minimum"], &schema["maximum"]].into_iter().cloned().collect(),
            "string" => {
                let length = schema["maxLength"].as_u64().unwrap_or(10).min(400);
                let long = "ä".repeat(usize::try_from(length).expect("a small number"));
                ["", "x", " y ", "2030-01-02T03:04:05+0100", "https://a.example/"]
                    .into_iter()
                    .map(Value::from)
                    .chain([Value::from(long)])
                    .collect()
            }
            "array" => vec![json!([]), json!(["b", "a"]), json!([{ "k": 1.50 }])],
            "object" => vec![json!({}), json!({ "a": { "b": [1, null] } })],
            _ => Vec::new(),
        }
    };
    kinds.iter().flat_map(of_kind).collect()
}

/// Asserts that the object at `path` stays as it is when it is sent back.
async fn assert_stays(workspace: &Workspace, client: &TestClient, path: &str, log: &str) {
    let before = client.get(path).await;
    if before.status == 404 {
        return;
    }
    let entries = workspace.owner.get(log).await.ok()["count"].clone();
    let answer = client.patch(path, before.body.clone()).await;
    assert_eq!((answer.status, &answer.body), (200, &before.body), "{path}");
    let after = client.get(path).await;
    assert_eq!((&after.body, after.headers.get(ETAG)), (&before.body, before.headers.get(ETAG)));
    assert_eq!(workspace.owner.get(log).await.ok()["count"], entries, "{path}");
}

#[tokio::test]
async fn what_a_get_returns_a_patch_takes_back_unchanged() {
    let workspace = Workspace::new().await;
    let objects = Objects::make(&workspace, "acme").await;
    let dashboard = objects.fill("/api/projects/{project_id}/dashboards/{id}/");
    let style = json!({
        "tiles": [{ "text": { "body": " # Hi " }, "layouts": { "sm": { "x": 1.0 } } }],
    });
    workspace.owner.patch(&dashboard, style).await.ok();
    let member = workspace.key("acme@corp.example", &["*"]).await;
    let log = format!("/api/organizations/{}/activity_log/", objects.organization());
    let (mut kept, mut by_member) = (0, 0);
    for template in paths() {
        let path = objects.fill(template);
        assert_stays(&workspace, &workspace.owner, &path, &log).await;
        // Whoever may send an empty patch may send back what they read.
        if member.get(&path).await.status == 200
            && member.patch(&path, json!({})).await.status == 200
        {
            assert_stays(&workspace, &member, &path, &log).await;
            by_member += 1;
        }
        let empty = Map::new();
        let properties = schema(template)["properties"].as_object().unwrap_or(&empty);
        for (name, property) in properties {
            for value in values(property) {
                let sent = json!({ name: value });
                if name == "deleted" || workspace.owner.patch(&path, sent).await.status != 200 {
                    continue;
                }
                assert_stays(&workspace, &workspace.owner, &path, &log).await;
                kept += 1;
            }
        }
    }
    assert!(kept > 150 && by_member >= 5, "{kept} {by_member}");
}

#[tokio::test]
async fn dashboard_with_every_kind_of_tile_is_taken_back_unchanged() {
    let (workspace, owner) = Workspace::owned().await;
    let log = workspace.organization("activity_log/");
    let query = json!({ "kind": "TrendsQuery", "v": 1.0 });
    let template = json!({ "template": {
        "template_name": "T", "dashboard_description": "d", "dashboard_filters": {},
        "tiles": [
            { "type": "TEXT", "body": " text ", "layouts": {} },
            { "type": "INSIGHT", "name": "n", "query": query, "description": "é".repeat(1_000) },
            { "type": "INSIGHT", "name": "legacy", "filters": { "a": 1.50 } },
        ],
    } });
    let made = owner.post(&workspace.dashboards("create_from_template_json/"), template).await.ok();
    let path = workspace.dashboards(&format!("{}/", made["id"]));
    assert_stays(&workspace, &owner, &path, &log).await;
    for tile in made["tiles"].as_array().expect("tiles") {
        if let Some(id) = tile["insight"]["id"].as_u64() {
            let insight = format!("/api/projects/{}/insights/{id}/", workspace.made.project_id);
            assert_stays(&workspace, &owner, &insight, &log).await;
            // A description that a template may have, and a request may not set.
            let other = owner.patch(&insight, json!({ "description": "é".repeat(999) })).await;
            let detail = "Ensure this field has no more than 400 characters.";
            other.assert_invalid("description", "max_length", detail);
        }
    }
    let copy = json!({ "use_dashboard": made["id"], "duplicate_tiles": true });
    let copy = owner.post(&workspace.dashboards(""), copy).await.ok();
    assert_stays(&workspace, &owner, &workspace.dashboards(&format!("{}/", copy["id"])), &log)
        .await;
}

#[tokio::test]
async fn one_request_restores_and_updates_a_dashboard() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, path) = owner.create(&workspace.dashboards(""), json!({ "name": "old" })).await;
    let text = json!({ "tiles": [{ "text": { "body": "a" } }, { "text": { "body": "b" } }] });
    let tiles = owner.patch(&path, text).await.ok()["tiles"].clone();
    owner.patch(&path, json!({ "deleted": true })).await.ok();
    owner.patch(&path, json!({ "name": "x" })).await.assert_not_found("Not found.");
    let bad = json!({ "deleted": false, "name": "x".repeat(401) });
    let detail = "Ensure this field has no more than 400 characters.";
    owner.patch(&path, bad).await.assert_invalid("name", "max_length", detail);
    owner.get(&path).await.assert_not_found("Not found.");
    let gone = json!({ "id": tiles[1]["id"], "deleted": true });
    let sent = json!({ "deleted": false, "name": "new", "tags": ["t"], "tiles": [gone] });
    let restored = owner.patch(&path, sent).await.ok();
    assert_eq!((&restored["name"], &restored["tags"]), (&json!("new"), &json!(["t"])));
    assert_eq!(restored["tiles"], json!([tiles[0]]));
    owner.get(&path).await.assert_is(200, restored);
    workspace.assert_file_valid().await;
}
