//! The requests of PostHog's agent toolkit.

use crate::support::prelude::*;

const INSIGHTS: &str = "/api/projects/1/insights/";

#[tokio::test]
async fn toolkit_creates_finds_updates_and_deletes_an_insight() {
    let (workspace, owner) = Workspace::owned().await;
    let query = json!({"kind": "InsightVizNode", "source": {"kind": "TrendsQuery"}});
    let sent = json!({"name": "Visitors", "query": query, "description": "Daily", "favorited": false, "tags": ["a"]});
    let made = owner.post(INSIGHTS, sent).await.ok();
    let (id, short_id) = (&made["id"], made["short_id"].as_str().expect("a short id"));
    // The toolkit takes eight letters and digits for a short id and any other text for a number.
    assert!(short_id.len() == 8 && short_id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert!(short_id.bytes().any(|byte| byte.is_ascii_alphabetic()), "{short_id}");
    assert!(id.is_u64() && made["filters"].is_object());
    let found = owner.get(&format!("{INSIGHTS}?short_id={short_id}")).await.ok();
    assert_eq!((&found["count"], &found["results"][0]["id"]), (&json!(1), id));
    assert_eq!(
        owner.get(&format!("{INSIGHTS}?short_id=unknown0")).await.ok()["results"],
        json!([])
    );
    let listed = owner.get(&format!("{INSIGHTS}?limit=10&offset=0&search=visit")).await.ok();
    assert_eq!(listed["results"][0]["short_id"], short_id);
    let one = format!("{INSIGHTS}{id}/");
    assert_eq!(owner.get(&one).await.ok(), made);
    assert_eq!(owner.patch(&one, json!({"name": "Users"})).await.ok()["name"], "Users");
    let list = workspace.dashboards("");
    for name in ["A", "B"] {
        let board = owner.post(&list, json!({ "name": name })).await.ok()["id"].clone();
        let placed = owner.patch(&one, json!({"dashboards": [board]})).await.ok();
        assert_eq!(placed["dashboards"], json!([board]), "the set is replaced");
    }
    owner.patch(&one, json!({"deleted": true})).await.ok();
    owner.get(&one).await.assert_not_found("Not found.");
}

#[tokio::test]
async fn toolkit_reads_projects_and_its_queries_are_not_served() {
    let (workspace, owner) = Workspace::owned().await;
    let one = owner.get("/api/projects/1/").await.ok();
    let listed = owner.get(&workspace.organization("projects/")).await.ok();
    assert_eq!(listed["results"][0]["id"], one["id"]);
    let query = owner.post("/api/environments/1/query/", json!({"query": Value::Null})).await;
    query.assert_not_found("API endpoint not found.");
}
