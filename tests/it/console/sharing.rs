//! The public page of a dashboard.

use serde_json::json;
use steward::testing::resources::members::Level;

use crate::support::Workspace;
use crate::support::console::Visitor;

const ONE: &str = "/console/projects/1/dashboards/1/";

#[tokio::test]
async fn public_page_is_enabled_rotated_and_disabled() {
    let workspace = Workspace::new().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    let text = json!({ "tiles": [{ "text": { "body": "Read this" } }] });
    workspace.owner.patch(&workspace.dashboards("1/"), text).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let path = format!("{ONE}sharing/");
    assert!(owner.get(ONE).await.html.contains(&format!("href=\"{path}\"")));
    let page = owner.open(&path, "Sharing of <bdi>Growth</bdi>").await;
    page.assert_has(&["The dashboard is not public"]);
    page.assert_lacks(&["/shared/"]);
    let command = page.between("<code dir=\"ltr\">", "</code>");
    assert!(command.contains("{&#34;enabled&#34;:true}"), "{command}");
    let done = owner.post(&path, &[("action", "enable")]).await;
    assert_eq!(done.location(), format!("{path}?done=page-enabled"));
    let page = owner.get(&path).await;
    let link = page.between("<output id=\"link\">http://localhost", "</output>").to_owned();
    let public = workspace.anonymous().get(&link).await;
    assert_eq!(public.status, 200);
    let done = owner.post(&path, &[("action", "rotate"), ("_once", "k")]).await;
    assert_eq!(done.location(), format!("{path}?done=link-replaced"));
    let page = owner.get(&path).await;
    let rotated = page.between("<output id=\"link\">http://localhost", "</output>").to_owned();
    assert_ne!(link, rotated);
    let done = owner.post(&path, &[("action", "disable")]).await;
    assert_eq!(done.location(), format!("{path}?done=page-disabled"));
    for link in [link, rotated] {
        assert_eq!(workspace.anonymous().get(&link).await.status, 404);
    }
    owner.post(&path, &[("action", "evil")]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn users_who_may_not_share_see_why() {
    let workspace = Workspace::new().await;
    let mut ben = Visitor::member(&workspace, "ben", Level::Member).await;
    let sent = json!({ "name": "Growth", "restriction_level": 37 });
    workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
    let path = format!("{ONE}sharing/");
    let page = ben.get(&path).await;
    page.assert_has(&["Only users who may edit the dashboard can share it."]);
    page.assert_lacks(&["value=\"enable\""]);
    let page = ben.post(&path, &[("action", "enable")]).await;
    page.assert_shows(403, "Sharing of <bdi>Growth</bdi>");
    let alert = page.between("role=\"alert\">", "</div>");
    assert!(alert.contains("You don&#39;t have edit permissions for this dashboard."), "{alert}");
    workspace
        .owner
        .patch(&workspace.dashboards("1/"), json!({ "restriction_level": 21 }))
        .await
        .ok();
    let insights = format!("/api/projects/{}/insights/", workspace.made.project_id);
    let sent = json!({ "name": "Pay", "dashboards": [1], "query": { "kind": "TrendsQuery" } });
    let insight = workspace.owner.post(&insights, sent).await.ok();
    let rules = format!("{insights}{}/access_controls/", insight["id"]);
    workspace.owner.put(&rules, json!({ "access_level": "none" })).await.ok();
    let page = ben.get(&path).await;
    page.assert_has(&["The dashboard shows an insight that you may not view."]);
    page.assert_lacks(&["value=\"enable\""]);
}
