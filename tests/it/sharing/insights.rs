//! Public pages of insights: who may share one, what its token opens, and when.

use super::{assert_opens, opened};
use crate::support::prelude::*;
use crate::support::sharing::is_unlisted;

const NO_EDIT: &str = "You don't have edit permissions for this insight.";

#[tokio::test]
async fn public_json_shows_the_insight_without_personal_data() {
    let (workspace, _clock) = Workspace::timed().await;
    let query =
        json!({"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "x": 1.0, "y": 1}});
    let sent = json!({
        "name": "Users", "derived_name": "Pageviews", "description": "Daily", "tags": ["b", "A"],
        "query": query, "favorited": true,
    });
    let (shared, made) = Board::of_insight(&workspace, sent).await;
    let board = Board::make(&workspace, json!({"name": "Secret plan"})).await;
    workspace.owner.patch(&shared.one, json!({"dashboards": [board.id]})).await.ok();
    let token = shared.enable(&workspace.owner, true).await;
    let answer = workspace.anonymous().get(&format!("/shared/{token}.json")).await;
    let moment = "2023-11-14T22:13:20Z";
    let expected = json!({ "insight": {
        "id": shared.id, "short_id": made["short_id"], "name": "Users",
        "derived_name": "Pageviews", "description": "Daily", "filters": {}, "query": query,
        "tags": ["a", "b"], "created_at": moment, "last_modified_at": moment,
    }});
    answer.assert_is(200, expected);
    is_unlisted(&answer);
    let text = String::from_utf8(answer.bytes).expect("text");
    assert!(text.contains(r#""x":1.0,"y":1"#), "{text}");
    let page = workspace.anonymous().get(&format!("/shared/{token}")).await;
    is_unlisted(&page);
    assert_eq!(
        (page.status, &page.headers["content-type"]),
        (200, &"text/html; charset=utf-8".parse().expect("a value"))
    );
    let page = String::from_utf8(page.bytes).expect("text");
    for shown in [
        "<title>Users</title>",
        "<h1 dir=\"auto\">Users</h1>",
        "Daily",
        ">a<",
        "TrendsQuery",
        "2023-11-14",
    ] {
        assert!(page.contains(shown), "{shown} not in {page}");
    }
    let me = workspace.owner.get(ME).await.ok();
    let me = me["uuid"].as_str().expect("a UUID");
    for hidden in [OWNER, "Olga", me, "created_by", "Secret plan", "dashboards", "favorited"] {
        assert!(!text.contains(hidden) && !page.contains(hidden), "{hidden}");
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn page_of_an_insight_escapes_its_fields_and_names_it_by_its_derived_name() {
    let workspace = Workspace::new().await;
    let sent = json!({
        "name": "", "derived_name": "<b>&\"x\"", "description": "<script>alert(1)</script>",
        "tags": ["<i>"], "query": {"kind": "HogQLQuery", "query": "</code><script>"},
    });
    let (shared, _) = Board::of_insight(&workspace, sent).await;
    let token = shared.enable(&workspace.owner, true).await;
    let page = workspace.anonymous().get(&format!("/shared/{token}")).await;
    let page = String::from_utf8(page.bytes).expect("text");
    for raw in ["<script>", "<b>", "<i>"] {
        assert!(!page.contains(raw), "{raw} in {page}");
    }
    assert!(page.contains("<h1 dir=\"auto\">&#60;b&#62;&#38;&#34;x&#34;</h1>"), "{page}");
    let (unnamed, _) = Board::of_insight(&workspace, json!({})).await;
    let token = unnamed.enable(&workspace.owner, true).await;
    let page = workspace.anonymous().get(&format!("/shared/{token}")).await;
    assert!(String::from_utf8(page.bytes).expect("text").contains(">Untitled insight</h1>"));
}

#[tokio::test]
async fn sharing_a_dashboard_does_not_share_its_insights_or_the_other_way_round() {
    let (workspace, owner) = Workspace::owned().await;
    let (shared, _) = Board::of_insight(&workspace, json!({"name": "Users"})).await;
    let board = Board::make(&workspace, json!({})).await;
    assert_eq!(board.id, shared.id, "the same number");
    owner.patch(&shared.one, json!({"dashboards": [board.id]})).await.ok();
    let of_board = board.enable(&owner, true).await;
    let of_insight = shared.token(&owner).await;
    assert_ne!(of_board, of_insight);
    assert_opens(opened(&workspace, &of_insight).await, false, "of_insight");
    assert_eq!(owner.get(&shared.sharing).await.ok()["enabled"], false);
    board.enable(&owner, false).await;
    assert_opens(opened(&workspace, &shared.enable(&owner, true).await).await, true, "of_insight");
    assert_eq!(owner.get(&board.one).await.ok()["is_shared"], false);
    assert_eq!(owner.get(&board.sharing).await.ok()["enabled"], false);
}

#[tokio::test]
async fn access_rules_alone_decide_who_shares_an_insight() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (shared, _) = Board::of_insight(&workspace, json!({"name": "Users"})).await;
    // An editor shares an insight even if only a restricted dashboard shows it.
    let board = Board::make(&workspace, json!({"restriction_level": 37})).await;
    owner.patch(&shared.one, json!({"dashboards": [board.id]})).await.ok();
    assert_eq!(ann.patch(&shared.one, json!({"name": "x"})).await.status, 403);
    let token = shared.enable(&ann, true).await;
    assert_opens(opened(&workspace, &token).await, true, "token");
    workspace.set_rule_on_all("insight", None, "viewer").await;
    assert_eq!(ann.get(&shared.sharing).await.ok()["access_token"], token);
    for (path, method) in [(&shared.sharing, Method::PATCH), (&shared.refresh, Method::POST)] {
        ann.send(method, path, Some(json!({"enabled": false}))).await.assert_denied(NO_EDIT);
    }
    owner.patch(&shared.sharing, json!({"enabled": false})).await.ok();
    assert_eq!(ann.get(&shared.sharing).await.ok()["access_token"], Value::Null);
    workspace.set_rule_on_all("insight", None, "none").await;
    ann.get(&shared.sharing).await.assert_denied(VIEWER);
    ann.patch(&shared.sharing, json!({"enabled": true})).await.assert_denied(NO_EDIT);
    // The public page depends on no rule.
    assert_opens(opened(&workspace, &shared.enable(&owner, true).await).await, true, "token");
}
