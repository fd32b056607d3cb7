//! Insights that access rules hide, on dashboards and in the activity log.

use crate::support::prelude::*;

pub const NOT_MANAGER: &str = "Must be manager to modify insight permissions.";

impl Scene {
    /// Creates an insight as Cleo. Returns its number and its paths by number and by short id.
    pub async fn insight(&self) -> (u64, [String; 2]) {
        let made = self.creator.post(&self.insights(), json!({ "name": "Visitors" })).await.ok();
        let (id, short) = (&made["id"], made["short_id"].as_str().expect("a short id"));
        let paths = [format!("{}{id}/", self.insights()), format!("{}{short}/", self.insights())];
        (id.as_u64().expect("a number"), paths)
    }

    pub fn insights(&self) -> String {
        self.workspace.project("insights/")
    }

    /// Sets a rule on all insights as the owner. A null level deletes it.
    pub async fn rule_on_insights(&self, name: Option<&str>, level: impl Into<Value>) {
        let mut sent = self.sent(name, level).await;
        sent["resource"] = json!("insight");
        self.owner().put(&self.of_all(), sent).await.ok();
    }
}

#[tokio::test]
async fn activity_log_hides_entries_of_hidden_insights() {
    let scene = Scene::new().await;
    let (id, [one, _]) = scene.insight().await;
    scene.clock.advance(minute());
    scene.creator.patch(&one, json!({ "name": "Secret" })).await.ok();
    let project = scene.workspace.made.project_id;
    let log = |scope: &str| format!("/api/projects/{project}/activity_log/?scope={scope}");
    assert_eq!(scene.ann.get(&log("Insight")).await.ok()["count"], 2);
    for on_all in [false, true] {
        let mut sent = scene.sent(Some("ann"), "none").await;
        let path = if on_all { scene.of_all() } else { format!("{one}access_controls/") };
        sent["resource"] = json!("insight");
        scene.owner().put(&path, sent.clone()).await.ok();
        let hidden = scene.ann.get(&log("Insight")).await.ok();
        assert_eq!((&hidden["count"], &hidden["results"]), (&json!(0), &json!([])));
        let rules = scene.ann.get(&log("AccessControl")).await.ok()["results"].clone();
        let named = format!("{project}:insight:{id}:");
        let rules = rules.as_array().expect("a list");
        assert!(!rules.iter().any(|rule| rule["item_id"].as_str().unwrap().starts_with(&named)));
        for caller in [&scene.bob, &scene.creator, scene.owner()] {
            assert_eq!(caller.get(&log("Insight")).await.ok()["count"], 2);
        }
        sent["access_level"] = Value::Null;
        scene.owner().put(&path, sent).await.assert_empty(204);
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn insight_that_rules_hide_is_not_shared_moved_or_restored_through_its_dashboard() {
    let scene = Scene::new().await;
    let (_, paths) = scene.insight().await;
    let dashboard = scene.creator.get(&scene.one).await.ok()["id"].clone();
    scene.creator.patch(&paths[0], json!({ "dashboards": [dashboard] })).await.ok();
    let tile = scene.creator.get(&scene.one).await.ok()["tiles"][0]["id"].clone();
    scene.rule_on(&paths[0], None, "none").await;

    let sharing = format!("{}sharing/", scene.one);
    let enable = json!({ "enabled": true });
    scene.ann.patch(&sharing, enable.clone()).await.assert_denied(VIEWER);
    assert_eq!(scene.creator.get(&sharing).await.ok()["enabled"], false);
    let boards = scene.workspace.dashboards("");
    let copy = scene.ann.post(&boards, json!({ "use_dashboard": dashboard })).await.ok();
    let of_copy = format!("{boards}{}/sharing/", copy["id"]);
    scene.ann.patch(&of_copy, enable.clone()).await.assert_denied(VIEWER);
    scene.creator.patch(&sharing, enable).await.ok();
    scene.ann.patch(&sharing, json!({ "enabled": false })).await.ok();

    let other = scene.ann.post(&boards, json!({})).await.ok()["id"].clone();
    let sent = json!({ "tile": { "id": tile }, "toDashboard": other });
    scene.ann.patch(&format!("{}move_tile/", scene.one), sent).await.assert_denied(VIEWER);

    for level in ["none", "viewer"] {
        scene.rule_on(&paths[0], None, level).await;
        scene.creator.patch(&paths[0], json!({ "deleted": true })).await.ok();
        let restored = json!({ "tiles": [{ "id": tile, "deleted": false }] });
        assert_eq!(scene.ann.patch(&scene.one, restored).await.ok()["tiles"], json!([]));
        scene.creator.get(&paths[0]).await.assert_not_found("Not found.");
        scene.ann.patch(&scene.one, json!({ "deleted": true })).await.ok();
        scene.ann.patch(&scene.one, json!({ "deleted": false })).await.ok();
        scene.creator.get(&paths[0]).await.assert_not_found("Not found.");
        scene.creator.patch(&paths[0], json!({ "deleted": false })).await.ok();
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn member_who_may_not_create_insights_creates_none_through_dashboards() {
    let scene = Scene::new().await;
    let (_, paths) = scene.insight().await;
    let dashboard = scene.creator.get(&scene.one).await.ok()["id"].clone();
    scene.creator.patch(&paths[0], json!({ "dashboards": [dashboard] })).await.ok();
    let tile = scene.creator.get(&scene.one).await.ok()["tiles"][0]["id"].clone();
    scene.rule_on_insights(None, "viewer").await;
    let boards = scene.workspace.dashboards("");
    for sent in [
        json!({ "use_dashboard": dashboard, "duplicate_tiles": true }),
        json!({ "use_template": "DEFAULT_APP" }),
    ] {
        scene.ann.post(&boards, sent).await.assert_denied(EDITOR);
    }
    let duplicates = json!({ "duplicate_tiles": [{ "id": tile }] });
    scene.ann.patch(&scene.one, duplicates.clone()).await.assert_denied(EDITOR);
    assert_eq!(scene.owner().get(&scene.insights()).await.ok()["count"], 1);
    scene.ann.post(&boards, json!({ "use_dashboard": dashboard })).await.ok();
    scene.admin.patch(&scene.one, duplicates).await.ok();
    assert_eq!(scene.owner().get(&scene.insights()).await.ok()["count"], 2);
}

#[tokio::test]
async fn project_open_to_everyone_as_admin_opens_no_hidden_object() {
    let scene = Scene::new().await;
    let (_, paths) = scene.insight().await;
    let open = json!({ "access_level": "admin" });
    scene.owner().put(&scene.workspace.access_controls(), open).await.ok();
    for (path, refusal) in [(&paths[0], NOT_MANAGER), (&scene.one, super::NOT_MANAGER)] {
        scene.rule_on(path, None, "none").await;
        let controls = format!("{path}access_controls/");
        scene.bob.get(&controls).await.assert_denied(VIEWER);
        let own = scene.sent(Some("bob"), "manager").await;
        scene.bob.put(&controls, own).await.assert_denied(refusal);
        scene.bob.get(path).await.assert_denied(VIEWER);
    }
}
