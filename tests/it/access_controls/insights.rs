//! `/api/projects/:project_id/insights/:id/access_controls/`: access rules on one insight, and on all of them.

use serde_json::{Value, json};

use crate::dashboards::access::{
    BAD_LEVEL, BEGAN, EDITOR, OTHER_TARGET, REQUIRED, Scene, VIEWER, allows, minute,
};

const MANAGER: &str = "Must be manager to modify insight permissions.";

impl Scene {
    /// Creates an insight as Cleo. Returns its number and its paths by number and by short id.
    pub async fn insight(&self) -> (u64, [String; 2]) {
        let made = self.creator.post(&self.insights(), json!({ "name": "Visitors" })).await.ok();
        let (id, short) = (&made["id"], made["short_id"].as_str().expect("a short id"));
        let paths = [format!("{}{id}/", self.insights()), format!("{}{short}/", self.insights())];
        (id.as_u64().expect("a number"), paths)
    }

    pub fn insights(&self) -> String {
        format!("/api/projects/{}/insights/", self.workspace.made.project_id)
    }

    /// Sets a rule on all insights as the owner. A null level deletes it.
    pub async fn rule_on_insights(&self, name: Option<&str>, level: impl Into<Value>) {
        let mut sent = self.sent(name, level).await;
        sent["resource"] = json!("insight");
        self.owner().put(&self.of_all(), sent).await.ok();
    }
}

/// The expected rule on an insight for a member or a role.
fn shown(id: u64, sent: &Value, level: &str, moments: [&str; 2]) -> Value {
    json!({
        "access_level": level,
        "resource": "insight",
        "resource_id": id.to_string(),
        "organization_member": sent["organization_member"],
        "role": sent["role"],
        "created_by": null,
        "created_at": moments[0],
        "updated_at": moments[1],
    })
}

/// The expected response: the rules, the default level, the caller's level, and whether the caller may edit the rules.
fn whole(rules: Value, default: &str, level: &str, edits: bool) -> Value {
    json!({
        "access_controls": rules,
        "available_access_levels": ["none", "viewer", "editor", "manager"],
        "default_access_level": default,
        "user_access_level": level,
        "user_can_edit_access_levels": edits,
    })
}

#[tokio::test]
async fn rules_on_an_insight_are_created_updated_listed_and_deleted() {
    for by_short_id in [false, true] {
        let scene = Scene::new().await;
        let (id, paths) = scene.insight().await;
        let path = format!("{}access_controls/", paths[usize::from(by_short_id)]);
        for (caller, level, edits) in [
            (&scene.ann, "editor", false),
            (&scene.creator, "manager", true),
            (&scene.admin, "manager", true),
            (scene.owner(), "manager", true),
        ] {
            caller.get(&path).await.assert_is(200, whole(json!([]), "editor", level, edits));
        }
        let role = scene.role("Readers", &["bob"]).await;
        let mut member = scene.sent(Some("ann"), "viewer").await;
        (member["resource"], member["resource_id"]) = (json!("insight"), json!(id.to_string()));
        let first = shown(id, &member, "viewer", [BEGAN, BEGAN]);
        scene.creator.put(&path, member.clone()).await.assert_is(200, first);
        scene.clock.advance(minute());
        let later = "2025-01-02T03:05:05Z";
        let raised = shown(id, &member, "manager", [BEGAN, later]);
        member["access_level"] = json!("manager");
        scene.creator.put(&path, member.clone()).await.assert_is(200, raised.clone());
        let of_role = json!({ "role": role, "access_level": "viewer" });
        let second = shown(id, &of_role, "viewer", [later, later]);
        scene.ann.put(&path, of_role.clone()).await.assert_is(200, second.clone());
        let rules = json!([raised, second]);
        scene.bob.get(&path).await.assert_is(200, whole(rules, "editor", "viewer", false));
        for mut sent in [member, of_role] {
            sent["access_level"] = Value::Null;
            for _ in 0..2 {
                scene.creator.put(&path, sent.clone()).await.assert_empty(204);
            }
        }
        scene.bob.get(&path).await.assert_is(200, whole(json!([]), "editor", "editor", false));
        scene.workspace.assert_file_valid().await;
    }
}

#[tokio::test]
async fn only_managers_set_rules_on_an_insight_and_fields_are_validated() {
    let scene = Scene::new().await;
    let (id, [one, _]) = scene.insight().await;
    let path = format!("{one}access_controls/");
    let rule = json!({ "access_level": "viewer" });
    for sent in [&rule, &json!({}), &json!({ "access_level": [], "resource_id": "9" })] {
        scene.ann.put(&path, sent.clone()).await.assert_denied(MANAGER);
    }
    // A manager of the dashboards is none of the insights.
    scene.rule_on_all(Some("ann"), "manager").await;
    scene.ann.put(&path, rule.clone()).await.assert_denied(MANAGER);
    scene.rule_on_insights(Some("ann"), "manager").await;
    scene.ann.put(&path, rule.clone()).await.ok();
    scene.grant("max", "admin").await;
    scene.max.put(&path, rule.clone()).await.ok();

    let creator = &scene.creator;
    creator.put(&path, json!({})).await.assert_invalid("access_level", "required", REQUIRED);
    let wrong = creator.put(&path, json!({ "access_level": "admin" })).await;
    wrong.assert_invalid("access_level", "invalid_input", BAD_LEVEL);
    for (name, wrong) in [
        ("resource", json!("dashboard")),
        ("resource_id", json!((id + 1).to_string())),
        ("resource_id", json!("x")),
    ] {
        let sent = json!({ "access_level": "none", name: wrong });
        creator.put(&path, sent).await.assert_denied(OTHER_TARGET);
    }
    let refused = "Resource-level access controls can only be configured for projects.";
    let kind = scene.ann.get(&format!("{one}resource_access_controls/")).await;
    kind.assert_invalid_body("invalid_input", refused);
}

#[tokio::test]
async fn rules_of_missing_or_deleted_insights_return_404() {
    let scene = Scene::new().await;
    let (id, [one, short]) = scene.insight().await;
    scene.creator.patch(&one, json!({ "deleted": true })).await.ok();
    let projects = scene.workspace.organization("projects/");
    let other = scene.owner().post(&projects, json!({})).await.ok()["id"].clone();
    let list = scene.insights();
    for one in [
        one,
        short,
        format!("/api/projects/{other}/insights/{id}/"),
        format!("{list}999999/"),
        format!("{list}no-such/"),
    ] {
        let path = format!("{one}access_controls/");
        scene.owner().get(&path).await.assert_not_found("Not found.");
        scene.owner().put(&path, json!({})).await.assert_not_found("Not found.");
        let path = format!("{one}resource_access_controls/");
        scene.owner().get(&path).await.assert_not_found("Not found.");
    }
}

#[tokio::test]
async fn most_specific_rule_on_an_insight_takes_precedence() {
    let scene = Scene::new().await;
    let (_, [one, short]) = scene.insight().await;
    let path = format!("{one}access_controls/");
    for (rules, level) in [
        ([Some("none"), Some("manager"), Some("manager"), Some("manager")], "none"),
        ([Some("manager"), Some("none"), Some("none"), Some("none")], "manager"),
        ([None, Some("viewer"), Some("none"), Some("editor")], "viewer"),
        ([None, None, Some("viewer"), Some("none")], "viewer"),
        ([None, None, None, Some("viewer")], "viewer"),
        ([None, None, None, None], "editor"),
    ] {
        let [ann, ann_on_all, on_all, everyone] = rules;
        for (name, level) in [(Some("ann"), ann), (None, everyone)] {
            let sent = scene.sent(name, level).await;
            scene.owner().put(&path, sent).await.ok();
        }
        scene.rule_on_insights(Some("ann"), ann_on_all).await;
        scene.rule_on_insights(None, on_all).await;
        for one in [&one, &short] {
            let detail = scene.ann.get(one).await;
            if level == "none" {
                detail.assert_denied(VIEWER);
                scene.ann.get(&path).await.assert_denied(VIEWER);
            } else {
                assert_eq!(detail.ok()["user_access_level"], level, "{rules:?}");
                let controls = scene.ann.get(&path).await.ok();
                assert_eq!(controls["user_access_level"], level);
                assert_eq!(controls["default_access_level"], on_all.unwrap_or("editor"));
            }
        }
        let patched = scene.ann.patch(&one, json!({ "description": "B" })).await;
        allows(&patched, ["editor", "manager"].contains(&level), EDITOR);
        for caller in [&scene.creator, &scene.admin, scene.owner()] {
            assert_eq!(caller.get(&one).await.ok()["user_access_level"], "manager", "{rules:?}");
            caller.patch(&one, json!({})).await.ok();
        }
        // Dashboards are another kind.
        assert_eq!(scene.ann.get(&scene.one).await.ok()["user_access_level"], "editor");
    }
    scene.rule_on_all(None, "none").await;
    assert_eq!(scene.ann.get(&one).await.ok()["user_access_level"], "editor");
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn creating_an_insight_requires_editor_access_to_all_insights() {
    let scene = Scene::new().await;
    for (level, makes) in [("none", false), ("viewer", false), ("editor", true), ("manager", true)]
    {
        scene.rule_on_insights(None, level).await;
        allows(&scene.ann.post(&scene.insights(), json!({})).await, makes, EDITOR);
        scene.admin.post(&scene.insights(), json!({})).await.ok();
        scene.ann.post(&scene.workspace.dashboards(""), json!({})).await.ok();
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
    scene
        .owner()
        .put(&scene.workspace.access_controls(), json!({ "access_level": "admin" }))
        .await
        .ok();
    for (path, refusal) in
        [(&paths[0], MANAGER), (&scene.one, "Must be manager to modify dashboard permissions.")]
    {
        scene.rule_on(path, None, "none").await;
        let controls = format!("{path}access_controls/");
        scene.bob.get(&controls).await.assert_denied(VIEWER);
        let own = scene.sent(Some("bob"), "manager").await;
        scene.bob.put(&controls, own).await.assert_denied(refusal);
        scene.bob.get(path).await.assert_denied(VIEWER);
    }
}
