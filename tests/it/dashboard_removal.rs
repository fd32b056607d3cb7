//! Dashboards: removed, brought back, and never deleted (facts-dashboards §4).

use axum::http::header::ALLOW;
use serde_json::json;

use crate::dashboards::{at_the_moment, detail, item, make};
use crate::support::Workspace;

#[tokio::test]
async fn a_removed_dashboard_is_shown_once_and_then_nowhere() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({"name": "A"})).await;
    let gone = detail(owner, id, json!({"name": "B", "deleted": true})).await;
    owner.patch(&one, json!({"deleted": true, "name": "B"})).await.is(200, gone);
    owner.get(&one).await.misses("Not found.");
    let listed = owner.get(&workspace.dashboards("")).await;
    listed.is(200, json!({"count": 0, "next": null, "previous": null, "results": []}));
    workspace.check().await;
}

#[tokio::test]
async fn only_deleted_false_alone_brings_a_dashboard_back() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let sent = json!({"name": "A", "tags": ["t"], "filters": {"a": 1}});
    let (id, one) = make(&workspace, owner, sent.clone()).await;
    let live = detail(owner, id, sent).await;
    owner.patch(&one, json!({"deleted": false})).await.is(200, live.clone());
    owner.patch(&one, json!({"deleted": true})).await.ok();
    for sent in [
        json!({}),
        json!({"deleted": true}),
        json!({"deleted": false, "name": "x"}),
        json!({"deleted": false, "unknown": 1}),
        json!({"deleted": "maybe"}),
        json!({"deleted": null}),
        json!({"name": "x"}),
        json!({"name": [1]}),
    ] {
        owner.patch(&one, sent.clone()).await.misses("Not found.");
    }
    owner.patch(&one, json!({"deleted": "false"})).await.is(200, live.clone());
    owner.get(&one).await.is(200, live.clone());
    let listed = json!({"count": 1, "next": null, "previous": null, "results": [item(live)]});
    owner.get(&workspace.dashboards("")).await.is(200, listed);
    workspace.check().await;
}

#[tokio::test]
async fn a_delete_is_refused_without_a_body_whatever_the_id() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (live, one) = make(&workspace, owner, json!({})).await;
    let (removed, at) = make(&workspace, owner, json!({})).await;
    owner.patch(&at, json!({"deleted": true})).await.ok();
    let before = owner.get(&one).await.ok();
    let ids = [live.to_string(), removed.to_string(), "999999".to_owned()];
    for id in ids.iter().map(String::as_str).chain(["-1", "abc", "99999999999999999999999"]) {
        for slash in ["", "/"] {
            let answer = owner.delete(&workspace.dashboards(&format!("{id}{slash}"))).await;
            answer.is_empty(405);
            assert_eq!(answer.headers[ALLOW], "GET, PATCH, HEAD, OPTIONS");
        }
    }
    owner.get(&one).await.is(200, before);
}

#[tokio::test]
async fn a_removed_dashboard_is_no_source() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let copied = owner.post(&workspace.dashboards(""), json!({"use_dashboard": id})).await;
    copied.refuses_field("use_dashboard", "invalid_input", "Invalid value provided");
}

#[tokio::test]
async fn delete_insights_shows_only_in_the_answer_to_the_patch_that_set_it() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let plain = detail(owner, id, json!({})).await;
    let echoed = detail(owner, id, json!({"delete_insights": true})).await;
    owner.patch(&one, json!({"delete_insights": true})).await.is(200, echoed);
    owner.get(&one).await.is(200, plain.clone());
    owner.patch(&one, json!({"delete_insights": false})).await.is(200, plain);
    let gone = detail(owner, id, json!({"delete_insights": true, "deleted": true})).await;
    owner.patch(&one, json!({"deleted": true, "delete_insights": true})).await.is(200, gone);
}
