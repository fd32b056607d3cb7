//! When callers last viewed insights.

use std::time::Duration;

use axum::http::Method;
use serde_json::json;
use steward::testing::operator::Operation;
use steward::testing::resources::access_controls::levels::AccessLevel;
use steward::testing::resources::cascade_delete;
use steward::testing::resources::members::Level;

use crate::dashboards::make;
use crate::support::{TestClient, Workspace, with_clock};

use super::{insights, make_insight};

/// Returns the ids of a list in its order.
async fn ids(caller: &TestClient, workspace: &Workspace, query: &str) -> Vec<u64> {
    let body = caller.get(&insights(workspace, query)).await.ok();
    let items = body["results"].as_array().expect("a list");
    assert_eq!(body["count"], items.len());
    items.iter().map(|item| item["id"].as_u64().expect("an id")).collect()
}

#[tokio::test]
async fn recorded_view_shows_to_the_caller_alone_and_moves_no_version() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    let (board, at_board) = make(&workspace, owner, json!({})).await;
    let (made, one) = make_insight(&workspace, owner, json!({"dashboards": [board]})).await;
    let log = format!("/api/projects/{}/activity_log/", workspace.made.project_id);
    let (before, on_board, told) =
        (owner.get(&one).await, owner.get(&at_board).await, owner.get(&log).await.ok());
    assert_eq!((&before.body["last_viewed_at"], &on_board.status), (&json!(null), &200));
    clock.advance(Duration::from_secs(1));
    let viewed = insights(&workspace, "viewed/");
    let sent = json!({"insight_ids": [made["id"], made["id"].to_string(), 99]});
    let reader = workspace.key("ann@corp.example", &["insight:read"]).await;
    for caller in [&ann, &reader] {
        caller.post(&viewed, sent.clone()).await.assert_is(201, json!({}));
    }
    let mut expected = ann.get(&one).await.ok();
    let at = expected["last_viewed_at"].clone();
    assert!(at.as_str() > made["created_at"].as_str(), "{at}");
    let basic = ann.get(&format!("{one}?basic=1")).await.ok();
    let listed = ann.get(&insights(&workspace, "")).await.ok();
    for shown in [&basic, &listed["results"][0]] {
        assert_eq!(shown["last_viewed_at"], at);
    }
    expected["last_viewed_at"] = json!(null);
    for caller in [owner, &ann] {
        let tiles = caller.get(&at_board).await.ok();
        assert_eq!(tiles["tiles"][0]["insight"]["last_viewed_at"], json!(null));
    }
    owner.get(&one).await.assert_is(200, before.body.clone());
    assert_eq!(owner.get(&one).await.headers["etag"], before.headers["etag"]);
    owner.get(&log).await.assert_is(200, told);
    // The version that the caller read before the view still matches.
    let tag = before.headers["etag"].to_str().expect("a tag");
    let headers = [("content-type", "application/json"), ("if-match", tag)];
    let patched = ann.fetch(Method::PATCH, &one, &headers, r#"{"name": "N"}"#).await.ok();
    assert_eq!((&patched["name"], &patched["last_viewed_at"]), (&json!("N"), &at));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn insights_are_filtered_and_sorted_by_the_time_of_the_callers_last_view() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    for _ in 0..4 {
        make_insight(&workspace, owner, json!({})).await;
    }
    let viewed = insights(&workspace, "viewed/");
    for (hours, viewer, seen) in [
        (1, owner, json!([3, 1])),
        (48, owner, json!([3])),
        (1, &ann, json!([4])),
        (1, &ann, json!([])),
    ] {
        clock.advance(Duration::from_hours(hours));
        if seen != json!([]) {
            viewer.post(&viewed, json!({"insight_ids": seen})).await.assert_is(201, json!({}));
        }
    }
    for (query, of_owner, of_ann) in [
        ("?order=last_viewed_at", vec![1, 3, 2, 4], vec![4, 1, 2, 3]),
        ("?order=-last_viewed_at", vec![3, 1, 2, 4], vec![4, 1, 2, 3]),
        ("?last_viewed_date_from=-1d", vec![3], vec![4]),
        ("?last_viewed_date_to=-1d", vec![1], vec![]),
        ("?last_viewed_date_from=-1y&last_viewed_date_to=-1h", vec![1, 3], vec![]),
        ("?last_viewed_date_from=2020-01-01&order=-last_viewed_at", vec![3, 1], vec![4]),
        ("?last_viewed_date_from=nonsense", vec![1, 2, 3, 4], vec![1, 2, 3, 4]),
    ] {
        assert_eq!(ids(owner, &workspace, query).await, of_owner, "{query}");
        assert_eq!(ids(&ann, &workspace, query).await, of_ann, "{query}");
    }
}

#[tokio::test]
async fn views_of_missing_and_hidden_insights_are_ignored_and_invalid_ones_rejected() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    let (deleted, gone) = make_insight(&workspace, owner, json!({})).await;
    let (hidden, secret) = make_insight(&workspace, owner, json!({})).await;
    let (seen, one) = make_insight(&workspace, owner, json!({})).await;
    owner.patch(&gone, json!({"deleted": true})).await.ok();
    super::access::put_rule(&workspace, hidden["id"].as_u64(), AccessLevel::None).await;
    let viewed = insights(&workspace, "viewed/");
    let sent = json!({"insight_ids": [deleted["id"], hidden["id"], seen["id"], -1, 0]});
    ann.post(&viewed, sent.clone()).await.assert_is(201, json!({}));
    owner.patch(&gone, json!({"deleted": false})).await.ok();
    super::access::put_rule(&workspace, hidden["id"].as_u64(), AccessLevel::Viewer).await;
    for path in [&gone, &secret] {
        assert_eq!(ann.get(path).await.ok()["last_viewed_at"], json!(null));
    }
    let at = ann.get(&one).await.ok()["last_viewed_at"].clone();
    assert!(at.is_string());
    let many: Vec<u64> = (0..2501).collect();
    for (sent, attr, code, detail) in [
        (json!({}), "insight_ids", "required", "This field is required."),
        (json!({"insight_ids": null}), "insight_ids", "null", "This field may not be null."),
        (json!({"insight_ids": []}), "insight_ids", "empty", "This list may not be empty."),
        (
            json!({"insight_ids": "1"}),
            "insight_ids",
            "not_a_list",
            "Expected a list of items but got type \"str\".",
        ),
        (
            json!({"insight_ids": [1, "x"]}),
            "insight_ids__1",
            "invalid_input",
            "A valid integer is required.",
        ),
        (
            json!({"insight_ids": many}),
            "insight_ids",
            "max_length",
            "Ensure this field has no more than 2500 elements.",
        ),
    ] {
        ann.post(&viewed, sent).await.assert_invalid(attr, code, detail);
    }
    let all = json!({"insight_ids": (0..2500).collect::<Vec<u64>>()});
    ann.post(&viewed, all).await.assert_is(201, json!({}));
    let refused = ann.get(&viewed).await;
    let detail = "Method \"GET\" not allowed.";
    refused.assert_error(405, "invalid_request", "method_not_allowed", detail, None);
}

#[tokio::test]
async fn views_end_with_the_membership_and_the_project() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    let (made, one) = make_insight(&workspace, owner, json!({})).await;
    let viewed = insights(&workspace, "viewed/");
    for caller in [owner, &ann] {
        let sent = json!({"insight_ids": [made["id"]]});
        caller.post(&viewed, sent).await.assert_is(201, json!({}));
    }
    assert!(ann.get(&one).await.ok()["last_viewed_at"].is_string());
    let uuid = workspace.uuid("ann@corp.example").await;
    let member = workspace.organization(&format!("members/{uuid}/"));
    owner.delete(&member).await.assert_empty(204);
    let back = Operation::UserCreate {
        email: "ann@corp.example".to_owned(),
        first_name: "Ann".to_owned(),
        last_name: String::new(),
        organization: Some(workspace.made.organization_id),
        level: Level::Member,
        existing: true,
    };
    workspace.run_operation(back).await;
    assert_eq!(ann.get(&one).await.ok()["last_viewed_at"], json!(null));
    let project = format!("/api/projects/{}/", workspace.made.project_id);
    owner.delete(&project).await.assert_empty(204);
    while workspace.app.store().write(cascade_delete::delete_batch).await.expect("deleted") {}
    workspace.assert_file_valid().await;
}
