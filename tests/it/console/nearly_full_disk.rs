//! While the disk is nearly full, pages can be read, and say why they offer no change.

use serde_json::json;
use steward::Config;

use crate::support::Workspace;
use crate::support::console::Visitor;

const INSIGHTS: &str = "/console/projects/1/insights/";

#[tokio::test]
async fn pages_are_read_and_name_the_reason() {
    let workspace = Workspace::new().await;
    let made = workspace.owner.post("/api/projects/1/insights/", json!({ "name": "Visitors" }));
    let insight = format!("{INSIGHTS}{}/", made.await.ok()["id"]);
    let board = json!({ "name": "Growth", "restriction_level": 37 });
    workspace.owner.post(&workspace.dashboards(""), board).await.ok();
    let key = workspace.owner.get("/api/personal_api_keys/@current/").await.ok()["id"].clone();
    let owner = Visitor::owner(&workspace).await;

    let mut config = Config::default();
    // A reserve larger than any disk.
    config.caps.disk_reserve = Some(usize::MAX);
    let workspace = workspace.reopened(config).await;
    let mut owner = owner.at(&workspace);
    let refused = workspace.owner.post(&workspace.dashboards(""), json!({ "name": "x" })).await;
    assert_eq!(refused.status, 503);
    let list = owner.open(INSIGHTS, "Insights").await;
    assert!(list.html.contains("New insight"), "the level decides, not the disk: {}", list.html);
    let sharing = owner.open(&format!("{insight}sharing/"), "Sharing").await;
    let reason = "The service is temporarily unavailable. Try again shortly.";
    sharing.assert_has(&[reason]);
    sharing.assert_lacks(&["id=\"sharing\""]);
    let organization = format!("/console/organizations/{}/", workspace.made.organization_id);
    let invites = owner.open(&format!("{organization}invites/"), "Invites").await;
    assert!(invites.html.contains("id=\"form\""), "levels can be given: {}", invites.html);
    let new = owner.open(&format!("{organization}projects/new/"), "New project").await;
    new.assert_has(&[reason]);
    for path in [
        "/console/profile/",
        "/console/projects/1/settings/",
        "/console/projects/1/dashboards/1/access/",
        &format!("{organization}members/"),
        &format!("{organization}settings/"),
        &format!("/console/keys/{}/", key.as_str().expect("an id")),
        &format!("{INSIGHTS}new/"),
        &format!("{insight}edit/"),
    ] {
        assert_eq!(owner.get(path).await.status, 200, "{path}");
    }
    // What is typed is kept.
    let form = owner.get(&format!("{INSIGHTS}new/")).await.form("form").with("name", "Kept");
    let page = owner.submit(&form).await.showing(503, "New insight");
    assert_eq!(page.form("form").value("name"), "Kept");
}
