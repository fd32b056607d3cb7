//! The entries of insights in the activity log.

use crate::support::prelude::*;

/// Returns the newest entries of the project's log: scope, item, activity, name, short ID, and changes.
async fn newest(workspace: &Workspace, count: usize) -> Vec<Value> {
    let log = workspace.project(&format!("activity_log/?limit={count}"));
    let listed = workspace.owner.get(&log).await.ok();
    let entry = |entry: &Value| {
        let detail = &entry["detail"];
        let change = |change: &Value| {
            (
                change["field"].as_str().expect("a name").to_owned(),
                json!([change["before"], change["after"]]),
            )
        };
        let changes = detail["changes"].as_array().expect("changes").iter().map(change);
        let changes: serde_json::Map<_, _> = changes.collect();
        json!([
            entry["scope"],
            entry["item_id"],
            entry["activity"],
            detail["name"],
            detail["short_id"],
            changes
        ])
    };
    listed["results"].as_array().expect("a list").iter().map(entry).collect()
}

async fn length(workspace: &Workspace) -> Value {
    workspace.owner.get(&workspace.project("activity_log/")).await.ok()["count"].clone()
}

#[tokio::test]
async fn changes_of_an_insight_are_entries_with_its_fields() {
    let (workspace, owner) = Workspace::owned().await;
    let (made, one) = make_insight(&workspace, &owner, json!({"derived_name": "derived"})).await;
    let (id, short) = (made["id"].to_string(), made["short_id"].clone());
    let told = |activity: &str, name: &str, changes: Value| {
        json!(["Insight", id, activity, name, short, changes])
    };
    assert_eq!(newest(&workspace, 1).await, [told("created", "derived", json!({}))]);
    for [sent, activity, changes] in rows(json!([
        [{"name": "N"}, "updated", {"name": [null, "N"]}],
        [{"description": "d", "tags": ["t"], "favorited": true, "saved": false, "derived_name": null}, "updated",
         {"description": [null, "d"], "tags": [[], ["t"]], "favorited": [false, true],
          "saved": [true, false], "derived_name": ["derived", null]}],
        [{"query": {"a": 1}}, "updated", {"query": [null, {"a": 1}]}],
        [{"query": null, "filters": {"b": 2}}, "updated",
         {"query": [{"a": 1}, null], "filters": [{}, {"b": 2}]}],
        [{"deleted": true}, "deleted", {"deleted": [false, true]}],
        [{"deleted": false}, "restored", {"deleted": [true, false]}],
    ])) {
        let activity = activity.as_str().expect("a verb");
        // A change without `saved` would set it.
        let sent = if sent["name"] == "N" { sent } else { with(sent, json!({"saved": false})) };
        owner.patch(&one, sent.clone()).await.ok();
        assert_eq!(newest(&workspace, 1).await, [told(activity, "N", changes)], "{sent}");
    }
    let known = length(&workspace).await;
    owner.patch(&one, json!({"name": "N", "saved": false})).await.ok();
    assert_eq!(length(&workspace).await, known);
}

#[tokio::test]
async fn dashboards_of_an_insight_have_entries_when_their_tiles_change() {
    let (workspace, owner) = Workspace::owned().await;
    let (a, _) = make(&workspace, &owner, json!({"name": "A"})).await;
    let (b, _) = make(&workspace, &owner, json!({"name": "B"})).await;
    let (made, one) =
        make_insight(&workspace, &owner, json!({"name": "I", "dashboards": [a]})).await;
    let (id, short) = (made["id"].to_string(), made["short_id"].clone());
    let tile = made["dashboard_tiles"][0]["id"].to_string();
    let field = |tile: &str, name: &str| format!("tiles__{tile}__{name}");
    let added = |tile: &str| {
        json!({
            field(tile, "insight"): [null, made["id"]], field(tile, "layouts"): [null, {}],
            field(tile, "color"): [null, null], field(tile, "deleted"): [null, false],
            field(tile, "show_description"): [null, null],
        })
    };
    let shown = |changes: Value| {
        let mut changes = changes.as_object().expect("changes").clone();
        changes.retain(|_, change| change[0] != change[1]);
        Value::from(changes)
    };
    let insight =
        |activity: &str, changes: Value| json!(["Insight", id, activity, "I", short, changes]);
    let dashboard = |of: u64, name: &str, changes: Value| {
        json!(["Dashboard", of.to_string(), "updated", name, null, shown(changes)])
    };
    let sorted = |mut entries: Vec<Value>| {
        entries.sort_by_key(ToString::to_string);
        entries
    };
    let expected = vec![dashboard(a, "A", added(&tile)), insight("created", json!({}))];
    assert_eq!(sorted(newest(&workspace, 2).await), sorted(expected));
    let known = length(&workspace).await.as_u64().expect("a count");
    let body = owner.patch(&one, json!({"dashboards": [b]})).await.ok();
    let second = body["dashboard_tiles"][0]["id"].to_string();
    let expected = vec![
        dashboard(a, "A", json!({field(&tile, "deleted"): [false, true]})),
        dashboard(b, "B", added(&second)),
    ];
    // The insight itself has no entry: none of its own fields changed.
    assert_eq!(sorted(newest(&workspace, 2).await), sorted(expected));
    assert_eq!(length(&workspace).await, known + 2);
    // Another field changes what the dashboard shows, but not the dashboard.
    let known = length(&workspace).await.as_u64().expect("a count");
    owner.patch(&one, json!({"favorited": true})).await.ok();
    assert_eq!(length(&workspace).await, known + 1);
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let expected = vec![
        dashboard(b, "B", json!({field(&second, "deleted"): [false, true]})),
        insight("deleted", json!({"deleted": [false, true]})),
    ];
    assert_eq!(sorted(newest(&workspace, 2).await), sorted(expected));
}

#[tokio::test]
async fn change_of_hidden_dashboards_alone_leaves_no_entry_that_other_members_can_read() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (hidden, at_hidden) = make(&workspace, &owner, json!({"name": "Hidden"})).await;
    workspace.set_rule(&at_hidden, None, "none").await;
    let (_, one) = make_insight(&workspace, &owner, json!({"name": "I"})).await;
    let log = workspace.project("activity_log/");
    let (known, all) = (ann.get(&log).await.ok(), length(&workspace).await);
    for dashboards in [json!([hidden]), json!([])] {
        owner.patch(&one, json!({"dashboards": dashboards})).await.ok();
        ann.get(&log).await.assert_is(200, known.clone());
    }
    assert_eq!(length(&workspace).await, all.as_u64().expect("a count") + 2);
    owner.patch(&one, json!({"dashboards": [hidden], "name": "J"})).await.ok();
    let told = ann.get(&log).await.ok();
    assert_eq!(told["count"].as_u64(), known["count"].as_u64().map(|count| count + 1));
    let changes = told["results"][0]["detail"]["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["field"], "name");
}
