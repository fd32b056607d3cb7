//! Access rules on insights.

use crate::support::prelude::*;

#[tokio::test]
async fn access_rules_hide_insights_from_lists_counts_and_retrieval() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (a, at_a) = make_insight(&workspace, &owner, json!({"name": "A"})).await;
    let (_, at_b) = make_insight(&workspace, &owner, json!({"name": "B"})).await;
    let (_, mine) = make_insight(&workspace, &ann, json!({"name": "mine"})).await;
    workspace.set_rule(&at_a, None, "none").await;
    let list = insights(&workspace, "");
    for query in ["", "?search=&order=name", "?saved=true", "?limit=2", "?basic=1"] {
        let listed = ann.get(&format!("{list}{query}")).await.ok();
        assert_eq!(listed["count"], 2, "{query}");
        let shown = listed["results"].as_array().expect("a list");
        assert!(shown.iter().all(|item| item["name"] != "A"), "{query}");
        assert_eq!(owner.get(&format!("{list}{query}")).await.ok()["count"], 3, "{query}");
    }
    let short = a["short_id"].as_str().expect("a text");
    assert_eq!(ann.get(&format!("{list}?short_id={short}")).await.ok()["count"], 0);
    for path in [at_a.clone(), insights(&workspace, &format!("{short}/"))] {
        ann.get(&path).await.assert_denied(VIEWER);
        ann.patch(&path, json!({"name": "x"})).await.assert_denied(EDITOR);
    }
    workspace.set_rule(&at_a, None, "viewer").await;
    assert_eq!(ann.get(&at_a).await.ok()["user_access_level"], "viewer");
    for sent in [json!({"name": "x"}), json!({"name": 5}), json!({"deleted": true})] {
        ann.patch(&at_a, sent).await.assert_denied(EDITOR);
    }
    assert_eq!(ann.get(&list).await.ok()["count"], 3);
    // The rule on all insights precedes the default of one.
    workspace.set_rule_on_all("insight", None, "none").await;
    ann.get(&at_b).await.assert_denied(VIEWER);
    let listed = ann.get(&list).await.ok();
    assert_eq!((&listed["count"], &listed["results"][0]["name"]), (&json!(1), &json!("mine")));
    ann.patch(&mine, json!({"name": "still mine"})).await.ok();
    ann.post(&list, json!({})).await.assert_denied(EDITOR);
}

#[tokio::test]
async fn hidden_insight_is_cut_in_dashboards_and_never_copied_or_deleted_with_them() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (board, at_board) = make(&workspace, &owner, json!({})).await;
    let sent = json!({"name": "Secret", "dashboards": [board]});
    let (made, one) = make_insight(&workspace, &owner, sent).await;
    workspace.set_rule(&one, None, "none").await;
    let cut = json!({"id": made["id"], "short_id": made["short_id"], "user_access_level": "none"});
    let body = ann.get(&at_board).await.ok();
    assert_eq!(body["tiles"][0]["insight"], cut);
    let tile = &body["tiles"][0]["id"];
    let layouts = json!({"tiles": [{"id": tile, "layouts": {"sm": {"x": 1, "y": 1}}}]});
    assert_eq!(ann.patch(&at_board, layouts).await.ok()["tiles"][0]["insight"], cut);
    assert_eq!(owner.get(&at_board).await.ok()["tiles"][0]["insight"]["name"], "Secret");
    ann.patch(&at_board, json!({"duplicate_tiles": [{"id": tile}]})).await.assert_denied(VIEWER);
    let sent = json!({"use_dashboard": board, "duplicate_tiles": true});
    let (copy, at_copy) = ann.create(&workspace.dashboards(""), sent).await;
    assert_eq!(copy["tiles"][0]["insight"], cut);
    ann.patch(&at_copy, json!({"deleted": true, "delete_insights": true})).await.ok();
    ann.patch(&at_board, json!({"deleted": true, "delete_insights": true})).await.ok();
    assert_eq!(owner.get(&one).await.ok()["dashboards"], json!([]));
    let text = ann.get(&insights(&workspace, "")).await;
    assert!(!String::from_utf8_lossy(&text.bytes).contains("Secret"));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn hidden_dashboards_restrict_an_insight_and_never_let_it_be_edited() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let restricted = json!({"restriction_level": 37});
    let (secret, at_secret) = make(&workspace, &owner, restricted.clone()).await;
    let (open, at_open) = make(&workspace, &owner, json!({})).await;
    let (closed, _) = make(&workspace, &owner, restricted).await;
    let (shared, _) = make(&workspace, &owner, json!({})).await;
    for hidden in [&at_secret, &at_open] {
        workspace.set_rule(hidden, None, "none").await;
    }
    let text = "This insight is on a dashboard that can only be edited by its owner, team members invited to editing the dashboard, and project admins.";
    for (on, shown, levels, may_edit) in [
        (json!([secret]), None, [37, 21], false),
        (json!([open]), None, [21, 37], true),
        (json!([open, closed]), Some(closed), [37, 21], false),
        (json!([secret, closed]), Some(closed), [37, 21], false),
        (json!([secret, shared]), Some(shared), [37, 37], true),
    ] {
        let (mut body, one) = make_insight(&workspace, &owner, json!({"dashboards": on})).await;
        let seen = |tile: &Value| tile["dashboard_id"].as_u64() == shown;
        body["dashboard_tiles"].as_array_mut().expect("tiles").retain(seen);
        body["dashboards"] = shown.into_iter().collect();
        body["user_access_level"] = json!("editor");
        body["effective_restriction_level"] = levels[0].into();
        body["effective_privilege_level"] = levels[1].into();
        ann.get(&one).await.assert_is(200, body.clone());
        let same = format!("?short_id={}", body["short_id"].as_str().expect("a text"));
        let listed = ann.get(&insights(&workspace, &same)).await.ok();
        assert_eq!(listed["results"], json!([body]), "{on}");
        let answer = ann.patch(&one, json!({"name": "by ann"})).await;
        if may_edit {
            assert_eq!((answer.status, &answer.body["name"]), (200, &json!("by ann")), "{on}");
        } else {
            answer.assert_denied(text);
        }
        assert_eq!(owner.get(&one).await.ok()["dashboards"], on);
    }
}
