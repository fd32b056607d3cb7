use serde_json::json;
use steward::resources::members::Level;

use crate::support::Workspace;

#[tokio::test]
async fn a_dashboard_is_made_listed_changed_and_removed() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let made = owner.post(&workspace.dashboards(""), json!({"name": "A"})).await;
    assert_eq!(made.status, 201);
    let id = made.body["id"].as_u64().expect("an id");
    let one = workspace.dashboards(&format!("{id}/"));
    owner.get(&one).await.is(200, made.body.clone());
    assert_eq!(owner.get(&workspace.dashboards("")).await.ok()["count"], 1);
    owner.patch(&one, json!({"deleted": true})).await.ok();
    owner.get(&one).await.misses("Not found.");
    owner.delete(&one).await.is_empty(405);
    let member = workspace.member("ann", Level::Member).await;
    assert_eq!(member.get(&workspace.dashboards("")).await.ok()["count"], 0);
    workspace.check().await;
}
