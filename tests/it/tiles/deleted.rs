//! `/api/projects/:project_id/dashboards/:id/deleted_tiles/`: the deleted tiles of a dashboard.

use crate::support::prelude::*;

/// A workspace with a dashboard that has two deleted texts around a live one.
async fn with_texts() -> Workspace {
    let workspace = Workspace::new().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    let texts = ["A", "B", "C"].map(|body| json!({ "text": { "body": body }, "color": "blue" }));
    workspace.owner.patch(&workspace.dashboards("1/"), json!({ "tiles": texts })).await.ok();
    delete(&workspace, 1).await;
    delete(&workspace, 3).await;
    workspace
}

async fn delete(workspace: &Workspace, tile: u64) {
    let sent = json!({ "tiles": [{ "id": tile, "deleted": true }] });
    workspace.owner.patch(&workspace.dashboards("1/"), sent).await.ok();
}

async fn listed(workspace: &Workspace) -> Value {
    workspace.owner.get(&workspace.dashboards("1/deleted_tiles/")).await.ok()
}

#[tokio::test]
async fn deleted_tiles_are_listed_newest_first_until_they_are_restored() {
    let workspace = with_texts().await;
    let list = listed(&workspace).await;
    assert_eq!(list["count"], 2);
    let [newest, oldest] = [&list["results"][0], &list["results"][1]];
    assert_eq!((&newest["id"], &newest["text"]["body"]), (&json!(3), &json!("C")));
    assert_eq!(newest["text"]["created_by"]["first_name"], "Olga");
    let mut expected = json!({
        "id": 1, "layouts": {}, "color": "blue", "show_description": null, "insight": null,
        "transparent_background": null, "filters_overrides": {},
        "text": { "id": 1, "body": "A", "team": 1 },
    });
    for name in ["created_by", "last_modified_by", "last_modified_at"] {
        expected["text"][name] = oldest["text"][name].clone();
    }
    assert_eq!(*oldest, expected);
    let second = workspace.dashboards("1/deleted_tiles/?limit=1&offset=1");
    let second = workspace.owner.get(&second).await.ok();
    assert_eq!((&second["count"], &second["results"]), (&json!(2), &json!([expected])));
    let restore = json!({ "tiles": [{ "id": 1, "deleted": false }] });
    workspace.owner.patch(&workspace.dashboards("1/"), restore).await.ok();
    assert_eq!(listed(&workspace).await["count"], 1);
}

#[tokio::test]
async fn deleted_tile_names_its_insight_only_to_those_who_may_view_it() {
    let (workspace, ben) = Workspace::with_member("ben", Level::Member).await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    delete(&workspace, put_insight(&workspace, 1, json!("Payroll"), json!({})).await).await;
    let path = workspace.dashboards("1/deleted_tiles/");
    let list = ben.get(&path).await.ok();
    let insight = list["results"][0]["insight"].clone();
    let expected = json!({
        "id": insight["id"], "short_id": insight["short_id"], "name": "Payroll",
        "derived_name": null, "user_access_level": "editor",
    });
    assert_eq!((&insight, &list["results"][0]["text"]), (&expected, &Value::Null));
    let path_of_insight = workspace.project(&format!("insights/{}/", insight["id"]));
    workspace.set_rule(&path_of_insight, None, "none").await;
    let list = ben.get(&path).await.ok();
    let mut hidden = expected;
    hidden["name"] = Value::Null;
    hidden["user_access_level"] = json!("none");
    assert_eq!(list["results"][0]["insight"], hidden);
}

#[tokio::test]
async fn only_editors_of_a_live_dashboard_list_its_deleted_tiles() {
    let workspace = with_texts().await;
    let ben = workspace.member("ben", Level::Member).await;
    let path = workspace.dashboards("1/deleted_tiles/");
    assert_eq!(ben.get(&path).await.ok()["count"], 2);
    let one = workspace.dashboards("1/");
    workspace.owner.patch(&one, json!({ "restriction_level": 37 })).await.ok();
    ben.get(&path).await.assert_denied(NO_EDIT);
    workspace.owner.patch(&one, json!({ "restriction_level": 21 })).await.ok();
    workspace.set_rule(&one, None, "viewer").await;
    ben.get(&path).await.assert_denied(EDITOR);
}
