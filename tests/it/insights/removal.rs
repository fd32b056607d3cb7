//! Deleting and restoring insights.

use crate::activity::log::at_a_standstill;
use crate::support::prelude::*;

#[tokio::test]
async fn deleted_insight_is_returned_once_and_then_404() {
    let (workspace, owner) = Workspace::owned().await;
    let (dashboard, board) = make(&workspace, &owner, json!({})).await;
    let sent = json!({"name": "A", "dashboards": [dashboard]});
    let (made, one) = make_insight(&workspace, &owner, sent).await;
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
    let (workspace, owner) = Workspace::owned().await;
    let (dashboard, _) = make(&workspace, &owner, json!({})).await;
    let (made, one) = make_insight(&workspace, &owner, json!({"dashboards": [dashboard]})).await;
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let bad = owner.patch(&one, json!({"deleted": false, "name": [1]})).await;
    bad.assert_bad("name", "Not a valid string.");
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

/// Returns the ids of the deleted insights that a caller lists.
async fn trash(workspace: &Workspace, caller: &TestClient, query: &str) -> (u64, Vec<u64>) {
    let page = caller.get(&insights(workspace, &format!("?deleted=true{query}"))).await.ok();
    let ids = page["results"].as_array().expect("a list").iter();
    let ids = ids.map(|item| item["id"].as_u64().expect("a number")).collect();
    (page["count"].as_u64().expect("a number"), ids)
}

#[tokio::test]
async fn deleted_insights_are_listed_with_who_deleted_them_and_when() {
    let (workspace, clock) = at_a_standstill().await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    let (dashboard, board) = make(&workspace, owner, json!({})).await;
    let mut made = Vec::new();
    for (name, sent) in [
        ("A", json!({ "tags": ["old"] })),
        ("B", json!({})),
        ("C", json!({ "dashboards": [dashboard] })),
        ("D", json!({})),
    ] {
        let mut sent = sent;
        sent["name"] = json!(name);
        made.push(make_insight(&workspace, owner, sent).await);
    }
    let id = |at: usize| made[at].0["id"].as_u64().expect("a number");
    owner.patch(&made[1].1, json!({ "deleted": true })).await.ok();
    clock.advance(Duration::from_mins(1));
    ann.patch(&made[0].1, json!({ "deleted": true })).await.ok();
    clock.advance(Duration::from_mins(1));
    owner.patch(&board, json!({ "deleted": true, "delete_insights": true })).await.ok();
    for caller in [owner, &ann] {
        assert_eq!(trash(&workspace, caller, "").await, (3, vec![id(2), id(0), id(1)]));
    }
    for (query, count, found) in [
        ("&limit=1", 3, vec![id(2)]),
        ("&limit=1&offset=2", 3, vec![id(1)]),
        ("&offset=9", 3, vec![]),
        ("&order=name", 3, vec![id(2), id(0), id(1)]),
        ("&search=a", 1, vec![id(0)]),
        ("&tags=old", 1, vec![id(0)]),
        ("&dashboards=[1]", 0, vec![]),
        (&format!("&short_id={}", made[1].0["short_id"].as_str().expect("a text")), 1, vec![id(1)]),
    ] {
        assert_eq!(trash(&workspace, owner, query).await, (count, found), "{query}");
    }
    for basic in ["", "&basic=true"] {
        let page = owner.get(&insights(&workspace, &format!("?deleted=true{basic}"))).await.ok();
        let [c, a, _] = &page["results"].as_array().expect("a list")[..] else { panic!("{page}") };
        assert_eq!((&a["deleted_at"], &a["name"]), (&json!("2025-01-02T03:05:05Z"), &json!("A")));
        assert_eq!(a["deleted_by"]["email"], ANN);
        assert_eq!(c["deleted_at"], "2025-01-02T03:06:05Z");
        assert_eq!((&c["deleted_by"]["email"], &c["dashboards"]), (&json!(OWNER), &json!([])));
        let live = owner.get(&insights(&workspace, &format!("?deleted=false{basic}"))).await.ok();
        assert_eq!((&live["count"], &live["results"][0]["id"]), (&json!(1), &json!(id(3))));
        assert!(live["results"][0].get("deleted_at").is_none(), "{live}");
    }
    // Restored by hand, and with its dashboard.
    ann.patch(&made[1].1, json!({ "deleted": false })).await.ok();
    owner.patch(&board, json!({ "deleted": false })).await.ok();
    assert_eq!(trash(&workspace, owner, "").await, (1, vec![id(0)]));
    assert!(owner.get(&made[1].1).await.ok().get("deleted_by").is_none());
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_insights_that_rules_hide_are_neither_listed_nor_counted() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (open, one) = make_insight(&workspace, &owner, json!({ "name": "A" })).await;
    let (_, hidden) = make_insight(&workspace, &owner, json!({ "name": "B" })).await;
    workspace.set_rule(&hidden, None, "none").await;
    for path in [&one, &hidden] {
        owner.patch(path, json!({ "deleted": true })).await.ok();
    }
    assert_eq!(trash(&workspace, &owner, "").await.0, 2);
    let id = open["id"].as_u64().expect("a number");
    for query in ["", "&search=", "&search=a"] {
        assert_eq!(trash(&workspace, &ann, query).await, (1, vec![id]), "{query}");
    }
    workspace.set_rule_on_all("insight", None, "none").await;
    ann.get(&insights(&workspace, "?deleted=true")).await.assert_denied(VIEWER);
}
