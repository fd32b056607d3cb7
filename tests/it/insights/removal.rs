//! Deleting and restoring insights.

use axum::http::Method;
use serde_json::json;

use crate::dashboards::make;
use crate::support::Workspace;

use super::{insights, make_insight};

#[tokio::test]
async fn deleted_insight_is_returned_once_and_then_404() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (dashboard, board) = make(&workspace, owner, json!({})).await;
    let sent = json!({"name": "A", "dashboards": [dashboard]});
    let (made, one) = make_insight(&workspace, owner, sent).await;
    let gone = owner.patch(&one, json!({"deleted": true, "name": "B"})).await.ok();
    assert_eq!((&gone["deleted"], &gone["name"]), (&json!(true), &json!("B")));
    assert_eq!((&gone["dashboards"], &gone["dashboard_tiles"]), (&json!([]), &json!([])));
    let short = insights(&workspace, &format!("{}/", made["short_id"].as_str().expect("a text")));
    for path in [&one, &short] {
        owner.get(path).await.assert_not_found("Not found.");
        for sent in [json!({"name": "C"}), json!({"deleted": true}), json!({"name": 5}), json!({})]
        {
            owner.patch(path, sent.clone()).await.assert_not_found("Not found.");
            owner.send(Method::PUT, path, Some(sent)).await.assert_not_found("Not found.");
        }
    }
    let list = insights(&workspace, "");
    for query in ["", "?basic=true"] {
        assert_eq!(owner.get(&format!("{list}{query}")).await.ok()["count"], 0, "{query}");
    }
    assert_eq!(owner.get(&board).await.ok()["tiles"], json!([]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn restored_insight_takes_other_fields_and_is_on_no_dashboard() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (dashboard, _) = make(&workspace, owner, json!({})).await;
    let (made, one) = make_insight(&workspace, owner, json!({"dashboards": [dashboard]})).await;
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let bad = owner.patch(&one, json!({"deleted": false, "name": [1]})).await;
    bad.assert_invalid("name", "invalid_input", "Not a valid string.");
    owner.get(&one).await.assert_not_found("Not found.");
    let back =
        owner.patch(&one, json!({"deleted": "false", "name": "B", "tags": ["t"]})).await.ok();
    assert_eq!((&back["name"], &back["tags"]), (&json!("B"), &json!(["t"])));
    assert_eq!((&back["deleted"], &back["dashboards"]), (&json!(false), &json!([])));
    let again = owner.patch(&one, json!({"dashboards": [dashboard]})).await.ok();
    let tile = &made["dashboard_tiles"][0]["id"];
    let revived = json!([{"id": tile, "dashboard_id": dashboard, "deleted": false}]);
    assert_eq!(again["dashboard_tiles"], revived);
    let live = owner.patch(&one, json!({"deleted": false})).await.ok();
    assert_eq!(live["dashboards"], json!([dashboard]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn restored_dashboard_restores_an_insight_that_was_deleted_by_hand() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (dashboard, board) = make(&workspace, owner, json!({})).await;
    let (_, one) = make_insight(&workspace, owner, json!({"dashboards": [dashboard]})).await;
    owner.patch(&one, json!({"deleted": true})).await.ok();
    owner.patch(&board, json!({"deleted": true})).await.ok();
    owner.patch(&board, json!({"deleted": false})).await.ok();
    assert_eq!(owner.get(&one).await.ok()["dashboards"], json!([dashboard]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn insight_goes_with_its_only_dashboard_if_the_request_says_so() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (a, at_a) = make(&workspace, owner, json!({})).await;
    let (b, _) = make(&workspace, owner, json!({})).await;
    let (_, alone) = make_insight(&workspace, owner, json!({"dashboards": [a]})).await;
    let (_, shared) = make_insight(&workspace, owner, json!({"dashboards": [a, b]})).await;
    owner.patch(&at_a, json!({"deleted": true, "delete_insights": true})).await.ok();
    owner.get(&alone).await.assert_not_found("Not found.");
    assert_eq!(owner.get(&shared).await.ok()["dashboards"], json!([b]));
    owner.patch(&at_a, json!({"deleted": false})).await.ok();
    assert_eq!(owner.get(&alone).await.ok()["dashboards"], json!([a]));
    assert_eq!(owner.get(&shared).await.ok()["dashboards"], json!([a, b]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn delete_of_an_insight_returns_405_without_a_body_for_any_id() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, live) = make_insight(&workspace, owner, json!({})).await;
    let (_, deleted) = make_insight(&workspace, owner, json!({})).await;
    owner.patch(&deleted, json!({"deleted": true})).await.ok();
    for path in
        [live.as_str(), &deleted, &insights(&workspace, "999999/"), &insights(&workspace, "x/")]
    {
        let answer = owner.delete(path).await;
        answer.assert_empty(405);
        assert_eq!(answer.headers["allow"], "GET, PUT, PATCH, HEAD, OPTIONS");
    }
    owner.get(&live).await.ok();
}
