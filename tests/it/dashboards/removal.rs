//! Dashboards are soft-deleted and restored. DELETE never deletes one.

use axum::http::header::ALLOW;
use steward::testing::resources::dashboards::insights::Insight;

use crate::support::prelude::*;

#[tokio::test]
async fn only_deleted_false_restores_a_dashboard() {
    let (workspace, owner) = at_the_moment().await;
    let sent = json!({"name": "A", "tags": ["t"], "filters": {"a": 1}});
    let (id, one) = make(&workspace, &owner, sent.clone()).await;
    let live = detail(&owner, id, sent).await;
    owner.patch(&one, json!({"deleted": false})).await.assert_is(200, live.clone());
    owner.patch(&one, json!({"deleted": true})).await.ok();
    for sent in each(json!([
        {}, {"deleted": true}, {"deleted": "maybe"}, {"deleted": null}, {"name": "x"}, {"name": [1]},
    ])) {
        owner.patch(&one, sent).await.assert_not_found("Not found.");
    }
    owner.patch(&one, json!({"deleted": "false"})).await.assert_is(200, live.clone());
    owner.get(&one).await.assert_is(200, live.clone());
    owner.get(&workspace.dashboards("")).await.assert_is(200, page(json!([item(live)])));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn delete_returns_405_without_a_body_for_any_id() {
    let (workspace, owner) = Workspace::owned().await;
    for (list, allow) in [
        (workspace.dashboards(""), "GET, PATCH, HEAD, OPTIONS"),
        (workspace.project("insights/"), "GET, PUT, PATCH, HEAD, OPTIONS"),
    ] {
        let (live, one) = owner.create(&list, json!({})).await;
        let (removed, at) = owner.create(&list, json!({})).await;
        owner.patch(&at, json!({"deleted": true})).await.ok();
        let deleted = owner.get(&format!("{list}?deleted=true")).await.ok();
        let odd =
            ["999999", "-1", "abc", "99999999999999999999999"].map(|id| format!("{list}{id}/"));
        for path in [&one, &at].into_iter().chain(&odd) {
            for path in [path.as_str(), path.trim_end_matches('/')] {
                let answer = owner.delete(path).await;
                answer.assert_empty(405);
                assert_eq!(answer.headers[ALLOW], allow);
            }
        }
        owner.get(&one).await.assert_is(200, live);
        owner.get(&format!("{list}?deleted=true")).await.assert_is(200, deleted);
        owner.get(&at).await.assert_not_found("Not found.");
        assert_eq!(owner.patch(&at, json!({"deleted": false})).await.ok()["id"], removed["id"]);
    }
}

#[tokio::test]
async fn deleted_dashboard_is_returned_once_and_delete_insights_only_where_it_is_set() {
    let (workspace, owner) = at_the_moment().await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    let plain = detail(&owner, id, json!({})).await;
    let echoed = detail(&owner, id, json!({"delete_insights": true})).await;
    owner.patch(&one, json!({"delete_insights": true})).await.assert_is(200, echoed);
    owner.get(&one).await.assert_is(200, plain.clone());
    owner.patch(&one, json!({"delete_insights": false})).await.assert_is(200, plain);
    let gone = detail(&owner, id, json!({"delete_insights": true, "deleted": true})).await;
    owner.patch(&one, json!({"deleted": true, "delete_insights": true})).await.assert_is(200, gone);
    let (id, one) = make(&workspace, &owner, json!({"name": "A"})).await;
    let gone = detail(&owner, id, json!({"name": "B", "deleted": true})).await;
    owner.patch(&one, json!({"deleted": true, "name": "B"})).await.assert_is(200, gone);
    owner.get(&one).await.assert_not_found("Not found.");
    owner.get(&workspace.dashboards("")).await.assert_is(200, page(json!([])));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn restored_dashboard_has_all_its_tiles() {
    let (workspace, owner) = at_the_moment().await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    put_texts(&owner, &one, &["kept", "removed before"]).await;
    let whole = owner.get(&one).await.ok();
    let last = whole["tiles"][2]["id"].clone();
    owner.patch(&one, json!({"tiles": [{"id": last, "deleted": true}]})).await.ok();
    // A PATCH that deletes the dashboard also applies its changes of tiles, before the tiles are deleted.
    let sent = json!({"deleted": true, "tiles": [{"id": tile, "color": "red"}]});
    let expected = detail(&owner, id, json!({"deleted": true})).await;
    owner.patch(&one, sent).await.assert_is(200, expected);
    for sent in [
        json!({"tiles": [{"id": tile, "deleted": false}]}),
        json!({"duplicate_tiles": [{"id": tile}]}),
    ] {
        owner.patch(&one, sent).await.assert_not_found("Not found.");
    }
    let mut back = whole;
    back["tiles"][0]["color"] = json!("red");
    back["tiles"][0]["insight"]["dashboard_tiles"][0]["deleted"] = json!(false);
    owner.patch(&one, json!({"deleted": false})).await.assert_is(200, back.clone());
    owner.get(&one).await.assert_is(200, back);
    workspace.assert_file_valid().await;
}

/// Returns whether an insight is deleted.
fn is_removed(workspace: &Workspace, insight: &Value) -> bool {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let key = (workspace.made.project_id, InsightId(insight.as_u64().expect("a number")));
    tx.meta::<Insight>(&key).expect("read").expect("an insight").deleted
}

#[tokio::test]
async fn insights_are_deleted_on_request_unless_another_dashboard_shows_them() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    for name in ["shared", "hidden elsewhere", "alone"] {
        put_insight(&workspace, id, json!(name), json!({})).await;
    }
    let insights = shown_of(owner, &one, "/insight/id").await;
    let (other, beside) = make(&workspace, owner, json!({"use_dashboard": id})).await;
    let copies = shown(owner, &beside).await;
    let hidden: Vec<Value> =
        copies[1..].iter().map(|tile| json!({"id": tile["id"], "deleted": true})).collect();
    owner.patch(&beside, json!({ "tiles": hidden })).await.ok();
    let removed = || insights.iter().map(|id| is_removed(&workspace, id)).collect::<Vec<_>>();

    owner.patch(&one, json!({"deleted": true, "delete_insights": false})).await.ok();
    assert_eq!(removed(), [false, false, false]);
    assert_eq!(shown(owner, &beside).await[0]["insight"]["dashboards"], json!([other]));
    owner.patch(&one, json!({"deleted": false})).await.ok();
    owner.patch(&one, json!({"delete_insights": true})).await.ok();
    assert_eq!(removed(), [false, false, false], "delete_insights has no effect without deleted");

    clock.advance(Duration::from_secs(5));
    owner.patch(&one, json!({"deleted": true, "delete_insights": true})).await.ok();
    assert_eq!(removed(), [false, true, true]);
    assert_eq!(shown_of(owner, &beside, "/insight/id").await, [insights[0].clone()]);
    workspace.assert_file_valid().await;

    // Restoring a tile restores its insight.
    owner.patch(&beside, json!({"tiles": [{"id": copies[1]["id"], "deleted": false}]})).await.ok();
    assert_eq!(shown_of(owner, &beside, "/insight/id").await, insights[..2]);
    assert_eq!(removed(), [false, false, true]);

    clock.advance(Duration::from_secs(5));
    owner.patch(&one, json!({"deleted": false})).await.ok();
    assert_eq!(removed(), [false, false, false]);
    assert_eq!(shown_of(owner, &one, "/insight/id").await, insights);
    let moments = |tile: &Value| {
        ["created_at", "updated_at", "last_modified_at"].map(|name| tile["insight"][name].clone())
    };
    let moments: Vec<_> = shown(owner, &one).await.iter().map(moments).collect();
    let moment = json!("2023-11-14T22:13:20Z");
    assert_eq!(moments[0], [moment.clone(), moment.clone(), moment.clone()]);
    assert_eq!(moments[2], [moment.clone(), json!("2023-11-14T22:13:30Z"), moment]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_dashboard_is_no_longer_primary() {
    let (workspace, owner) = Workspace::owned().await;
    let (first, one) = make(&workspace, &owner, json!({})).await;
    let (_, two) = make(&workspace, &owner, json!({})).await;
    let project = workspace.project("");
    owner.patch(&project, json!({"primary_dashboard": first})).await.ok();
    for (path, deleted, primary) in
        [(&two, true, json!(first)), (&one, true, json!(null)), (&one, false, json!(null))]
    {
        owner.patch(path, json!({ "deleted": deleted })).await.ok();
        assert_eq!(owner.get(&project).await.ok()["primary_dashboard"], primary);
    }
    workspace.assert_file_valid().await;
}
