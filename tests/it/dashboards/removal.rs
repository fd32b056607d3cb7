//! Dashboards are soft-deleted and restored. DELETE never deletes one.

use std::time::Duration;

use axum::http::header::ALLOW;
use serde_json::{Value, json};
use steward::testing::ids::{DashboardId, InsightId};
use steward::testing::resources::access_objects::Kind;
use steward::testing::resources::cascade_delete;
use steward::testing::resources::dashboards::Dashboard;
use steward::testing::resources::dashboards::deletions::{self, Deletion};
use steward::testing::resources::dashboards::insights::Insight;
use steward::testing::resources::dashboards::texts::Text;
use steward::testing::resources::dashboards::tiles::Tile;
use steward::testing::resources::members::Level;
use steward::testing::store::{Order, Record, Tx, Window};
use steward::testing::time::Timestamp;

use crate::dashboards::{at_the_moment, detail, embedded, item, make};
use crate::support::{Workspace, with_clock};
use crate::tiles::{put_insight, put_texts, shown, shown_of};

#[tokio::test]
async fn deleted_dashboard_is_returned_once_and_then_404() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({"name": "A"})).await;
    let gone = detail(owner, id, json!({"name": "B", "deleted": true})).await;
    owner.patch(&one, json!({"deleted": true, "name": "B"})).await.assert_is(200, gone);
    owner.get(&one).await.assert_not_found("Not found.");
    let listed = owner.get(&workspace.dashboards("")).await;
    listed.assert_is(200, json!({"count": 0, "next": null, "previous": null, "results": []}));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn only_deleted_false_restores_a_dashboard() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let sent = json!({"name": "A", "tags": ["t"], "filters": {"a": 1}});
    let (id, one) = make(&workspace, owner, sent.clone()).await;
    let live = detail(owner, id, sent).await;
    owner.patch(&one, json!({"deleted": false})).await.assert_is(200, live.clone());
    owner.patch(&one, json!({"deleted": true})).await.ok();
    for sent in [
        json!({}),
        json!({"deleted": true}),
        json!({"deleted": "maybe"}),
        json!({"deleted": null}),
        json!({"name": "x"}),
        json!({"name": [1]}),
    ] {
        owner.patch(&one, sent.clone()).await.assert_not_found("Not found.");
    }
    owner.patch(&one, json!({"deleted": "false"})).await.assert_is(200, live.clone());
    owner.get(&one).await.assert_is(200, live.clone());
    let listed = json!({"count": 1, "next": null, "previous": null, "results": [item(live)]});
    owner.get(&workspace.dashboards("")).await.assert_is(200, listed);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn delete_returns_405_without_a_body_for_any_id() {
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
            answer.assert_empty(405);
            assert_eq!(answer.headers[ALLOW], "GET, PATCH, HEAD, OPTIONS");
        }
    }
    owner.get(&one).await.assert_is(200, before);
}

#[tokio::test]
async fn rejected_delete_changes_nothing_about_a_deleted_dashboard() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({"name": "A"})).await;
    let live = detail(owner, id, json!({"name": "A"})).await;
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let removed = removals_of(&workspace);
    assert_eq!(removed.len(), 1);
    owner.delete(&one).await.assert_empty(405);
    assert_eq!(removals_of(&workspace), removed);
    owner.get(&one).await.assert_not_found("Not found.");
    owner.patch(&one, json!({"deleted": false})).await.assert_is(200, live);
}

#[tokio::test]
async fn deleted_dashboard_cannot_be_copied() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let copied = owner.post(&workspace.dashboards(""), json!({"use_dashboard": id})).await;
    copied.assert_invalid("use_dashboard", "invalid_input", "Invalid value provided");
}

#[tokio::test]
async fn delete_insights_is_true_only_in_the_response_to_the_patch_that_set_it() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let plain = detail(owner, id, json!({})).await;
    let echoed = detail(owner, id, json!({"delete_insights": true})).await;
    owner.patch(&one, json!({"delete_insights": true})).await.assert_is(200, echoed);
    owner.get(&one).await.assert_is(200, plain.clone());
    owner.patch(&one, json!({"delete_insights": false})).await.assert_is(200, plain);
    let gone = detail(owner, id, json!({"delete_insights": true, "deleted": true})).await;
    owner.patch(&one, json!({"deleted": true, "delete_insights": true})).await.assert_is(200, gone);
}

#[tokio::test]
async fn restored_dashboard_has_all_its_tiles() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    put_texts(owner, &one, &["kept", "removed before"]).await;
    let whole = owner.get(&one).await.ok();
    let last = whole["tiles"][2]["id"].clone();
    owner.patch(&one, json!({"tiles": [{"id": last, "deleted": true}]})).await.ok();
    // A PATCH that deletes the dashboard also applies its changes of tiles, before the tiles are deleted.
    let sent = json!({"deleted": true, "tiles": [{"id": tile, "color": "red"}]});
    owner.patch(&one, sent).await.assert_is(200, detail(owner, id, json!({"deleted": true})).await);
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
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config).await;
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

/// The deleted dashboards of the first project, ordered by the time of deletion: dashboard, user, time.
fn removals_of(workspace: &Workspace) -> Vec<(u64, u64, Timestamp)> {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let of_project = (workspace.made.project_id, Kind::Dashboard);
    let mut found = Vec::new();
    let walked = tx.walk(&deletions::BY_TIME, &of_project, Window::all(Order::Ascending), |row| {
        let Deletion { object, removed_by, removed_at, .. } = row.meta;
        found.push((object.number(), removed_by.0, removed_at));
        Ok(())
    });
    walked.expect("removals");
    assert_eq!(tx.count::<Deletion>(&of_project).expect("a count"), found.len() as u64);
    found
}

#[tokio::test]
async fn deletion_time_and_user_are_stored_until_the_dashboard_is_restored() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    let hers = embedded(&ann).await["id"].as_u64().expect("a number");
    let mine = workspace.made.user_id.0;
    let (first, one) = make(&workspace, owner, json!({})).await;
    let (second, two) = make(&workspace, owner, json!({})).await;
    assert_eq!(removals_of(&workspace), []);
    let start = workspace.app.now();
    ann.patch(&two, json!({"deleted": true})).await.ok();
    clock.advance(Duration::from_secs(1));
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let later = workspace.app.now();
    assert_eq!(removals_of(&workspace), [(second, hers, start), (first, mine, later)]);
    owner.patch(&one, json!({"deleted": true})).await.assert_not_found("Not found.");
    ann.patch(&one, json!({"deleted": false})).await.ok();
    assert_eq!(removals_of(&workspace), [(second, hers, start)]);
    clock.advance(Duration::from_secs(1));
    ann.patch(&one, json!({"deleted": true})).await.ok();
    assert_eq!(removals_of(&workspace)[1], (first, hers, workspace.app.now()));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_dashboard_is_no_longer_primary() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (first, one) = make(&workspace, owner, json!({})).await;
    let (_, two) = make(&workspace, owner, json!({})).await;
    let project = format!("/api/projects/{}/", workspace.made.project_id);
    owner.patch(&project, json!({"primary_dashboard": first})).await.ok();
    owner.patch(&two, json!({"deleted": true})).await.ok();
    assert_eq!(owner.get(&project).await.ok()["primary_dashboard"], first);
    owner.patch(&one, json!({"deleted": true})).await.ok();
    assert_eq!(owner.get(&project).await.ok()["primary_dashboard"], json!(null));
    owner.patch(&one, json!({"deleted": false})).await.ok();
    assert_eq!(owner.get(&project).await.ok()["primary_dashboard"], json!(null));
    workspace.assert_file_valid().await;
}

/// The number of records of a type in the first project.
fn count<R: Record>(workspace: &Workspace) -> usize {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let mut count = 0;
    let counted =
        tx.scan::<R, _>(&workspace.made.project_id, Window::all(Order::Ascending), |_| {
            count += 1;
            Ok(())
        });
    counted.expect("counted");
    count
}

#[tokio::test]
async fn tiles_and_contents_of_a_deleted_project_are_deleted() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    for _ in 0..40 {
        put_insight(&workspace, id, json!("I"), json!({})).await;
    }
    put_texts(owner, &one, &["t"; 450]).await;
    let (_, gone) = make(&workspace, owner, json!({"use_dashboard": id})).await;
    owner.patch(&gone, json!({"deleted": true})).await.ok();
    let left = || {
        [
            count::<Tile>(&workspace),
            count::<Insight>(&workspace),
            count::<Text>(&workspace),
            count::<Deletion>(&workspace),
            count::<Dashboard>(&workspace),
        ]
    };
    assert_eq!(left(), [980, 40, 450, 1, 2]);
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    let store = workspace.app.store();
    let removed = store.write(move |tx| cascade_delete::delete_project(tx, organization, project));
    removed.await.expect("removed");
    loop {
        workspace.assert_file_valid().await;
        let before: usize = left().iter().sum();
        if !store.write(cascade_delete::delete_batch).await.expect("deleted") {
            break;
        }
        assert!(before - left().iter().sum::<usize>() <= 500);
    }
    assert_eq!(left(), [0; 5]);
    let tx = store.snapshot().expect("a snapshot");
    let counted = tx.count::<Tile>(&(project, DashboardId(id))).expect("a count");
    let deleted = tx.count::<Deletion>(&(project, Kind::Dashboard)).expect("a count");
    assert_eq!((counted, deleted), (0, 0));
}
