//! `/api/projects/:project_id/resource_access_controls/`: what a member, or everyone by default, may do
//! with all dashboards of a project.

use serde_json::{Value, json};

use crate::dashboards::access::{
    BAD_LEVEL, BAD_MEMBER, BAD_UUID, BEGAN, BOTH, EDITOR, REQUIRED, Scene, VIEWER, allows, minute,
    whole,
};
use crate::dashboards::make;

const BAD_KIND: &str = "Invalid resource. Must be one of: action, activity_log, customer_analytics, dashboard, early_access_feature, endpoint, error_tracking, experiment, export, external_data_source, feature_flag, insight, llm_analytics, logs, notebook, revenue_analytics, sharing_configuration, session_recording, survey, tracing, warehouse_objects, web_analytics";
const ADMIN: &str = "Must be an Organization admin to modify project-wide permissions.";

impl Scene {
    /// The request body that sets this level for `name`, or for everyone, on all dashboards.
    async fn sent_on_all(&self, name: Option<&str>, level: impl Into<Value>) -> Value {
        let mut sent = self.sent(name, level).await;
        sent["resource"] = json!("dashboard");
        sent
    }
}

#[tokio::test]
async fn rules_for_all_dashboards_are_created_updated_listed_and_deleted() {
    let scene = Scene::new().await;
    let path = scene.of_all();
    for (caller, level, edits) in [
        (&scene.ann, "editor", false),
        (&scene.admin, "manager", true),
        (&scene.creator, "editor", false),
    ] {
        for path in [path.as_str(), path.trim_end_matches('/')] {
            caller.get(path).await.assert_is(200, whole(json!([]), "editor", level, edits));
        }
    }
    let everyone = scene.shown(None, None, "viewer", [BEGAN, BEGAN]).await;
    let sent = scene.sent_on_all(None, "viewer").await;
    scene.admin.put(&path, sent.clone()).await.assert_is(200, everyone.clone());
    let bob = scene.shown(None, Some("bob"), "manager", [BEGAN, BEGAN]).await;
    let sent_bob = scene.sent_on_all(Some("bob"), "manager").await;
    scene.owner().put(&path, sent_bob).await.assert_is(200, bob.clone());
    // A rule on one dashboard is not among those on all.
    scene.rule(Some("max"), "none").await;

    let rules = json!([everyone, bob]);
    for (caller, level, edits) in [
        (&scene.ann, "viewer", false),
        (&scene.bob, "manager", false),
        (&scene.max, "viewer", false),
        (&scene.admin, "manager", true),
    ] {
        caller.get(&path).await.assert_is(200, whole(rules.clone(), "editor", level, edits));
    }
    scene.clock.advance(minute());
    scene.admin.put(&path, sent).await.assert_is(200, everyone);
    let later = "2025-01-02T03:05:05Z";
    let lowered = scene.shown(None, None, "none", [BEGAN, later]).await;
    scene
        .admin
        .put(&path, scene.sent_on_all(None, "none").await)
        .await
        .assert_is(200, lowered.clone());
    // Members may read the rules even if these hide all dashboards from them.
    let shown = whole(json!([lowered, bob]), "editor", "none", false);
    scene.ann.get(&path).await.assert_is(200, shown);
    for name in [None, Some("bob")] {
        for _ in 0..2 {
            let sent = scene.sent_on_all(name, Value::Null).await;
            scene.admin.put(&path, sent).await.assert_empty(204);
        }
    }
    scene.ann.get(&path).await.assert_is(200, whole(json!([]), "editor", "editor", false));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn only_organization_admins_set_rules_for_all_dashboards() {
    let scene = Scene::new().await;
    scene.grant("max", "admin").await;
    scene.rule_on_all(Some("bob"), "manager").await;
    let rule = scene.sent_on_all(Some("ann"), "viewer").await;
    for caller in [&scene.creator, &scene.ann, &scene.bob, &scene.max] {
        for sent in [&rule, &json!({}), &json!({ "access_level": [], "resource": 1 })] {
            caller.put(&scene.of_all(), sent.clone()).await.assert_denied(ADMIN);
        }
    }
    for caller in [&scene.admin, scene.owner()] {
        caller.put(&scene.of_all(), rule.clone()).await.ok();
    }
}

#[tokio::test]
async fn fields_are_validated_in_their_order() {
    let scene = Scene::new().await;
    let nobody = uuid::Uuid::max().to_string();
    let member = scene.sent(Some("ann"), "none").await["organization_member"].clone();
    let unknown = format!("Invalid pk \"{nobody}\" - object does not exist.");
    for (sent, attr, code, detail) in [
        (json!({ "resource": 1 }), Some("access_level"), "required", REQUIRED.to_owned()),
        (
            json!({ "access_level": "admin", "resource": 1 }),
            Some("access_level"),
            "invalid_input",
            BAD_LEVEL.to_owned(),
        ),
        (
            json!({ "access_level": "none", "organization_member": [] }),
            Some("resource"),
            "required",
            REQUIRED.to_owned(),
        ),
        (
            json!({ "access_level": null, "resource": null }),
            Some("resource"),
            "null",
            "This field may not be null.".to_owned(),
        ),
        (
            json!({ "access_level": null, "resource": "project", "role": [] }),
            Some("resource"),
            "invalid_input",
            BAD_KIND.to_owned(),
        ),
        (
            json!({ "access_level": "none", "resource": ["dashboard"] }),
            Some("resource"),
            "invalid_input",
            BAD_KIND.to_owned(),
        ),
        (
            json!({ "access_level": "none", "resource": "dashboard", "organization_member": 1.5 }),
            Some("organization_member"),
            "invalid_input",
            BAD_MEMBER.to_owned(),
        ),
        (
            json!({ "access_level": "none", "resource": "dashboard", "role": true }),
            Some("role"),
            "invalid_input",
            BAD_UUID.to_owned(),
        ),
        (
            json!({
                "access_level": "none", "resource": "dashboard",
                "organization_member": member, "role": nobody,
            }),
            None,
            "invalid_input",
            BOTH.to_owned(),
        ),
        (
            json!({ "access_level": null, "resource": "dashboard", "organization_member": nobody }),
            Some("organization_member"),
            "does_not_exist",
            unknown.clone(),
        ),
        (
            json!({ "access_level": "none", "resource": "dashboard", "role": nobody }),
            Some("role"),
            "does_not_exist",
            unknown,
        ),
    ] {
        let answer = scene.admin.put(&scene.of_all(), sent).await;
        answer.assert_error(400, "validation_error", code, &detail, attr);
    }
    scene
        .admin
        .get(&scene.of_all())
        .await
        .assert_is(200, whole(json!([]), "editor", "manager", true));
}

#[tokio::test]
async fn with_level_none_only_own_and_granted_dashboards_are_visible() {
    let scene = Scene::new().await;
    let list = scene.workspace.dashboards("");
    let (_, other) = make(&scene.workspace, scene.owner(), json!({ "name": "B" })).await;
    let (own, _) = make(&scene.workspace, &scene.bob, json!({ "name": "C" })).await;
    scene.rule_on_all(None, "none").await;
    let refused = scene.ann.get(&list).await;
    refused.assert_denied(VIEWER);
    for query in ["?search=a", "?deleted=true", "?limit=1", "?created_by=@me"] {
        scene.ann.get(&format!("{list}{query}")).await.assert_denied(VIEWER);
    }
    scene.ann.get(&scene.one).await.assert_denied(VIEWER);
    scene.ann.patch(&scene.one, json!({})).await.assert_denied(EDITOR);

    // A rule for everyone on one dashboard does not open the list; a rule that names the caller does.
    scene.rule(None, "editor").await;
    scene.ann.get(&list).await.assert_denied(VIEWER);
    scene.rule(Some("ann"), "viewer").await;
    let shown = scene.ann.get(&list).await.ok();
    assert_eq!((&shown["count"], &shown["results"][0]["id"]), (&json!(1), &json!(scene.id)));
    assert_eq!(shown["results"][0]["user_access_level"], "viewer");
    scene.ann.get(&scene.one).await.ok();
    scene.ann.patch(&scene.one, json!({})).await.assert_denied(EDITOR);
    scene.ann.get(&other).await.assert_denied(VIEWER);

    let shown = scene.bob.get(&list).await.ok();
    assert_eq!((&shown["count"], &shown["results"][0]["id"]), (&json!(1), &json!(own)));
    assert_eq!(scene.admin.get(&list).await.ok()["count"], 3);
    // A rule on all dashboards that names a member precedes the rule for everyone.
    scene.rule_on_all(Some("max"), "viewer").await;
    assert_eq!(scene.max.get(&list).await.ok()["count"], 3);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rules_for_all_dashboards_are_deleted_with_the_membership_and_the_project() {
    let scene = Scene::new().await;
    scene.rule_on_all(Some("ann"), "none").await;
    scene.rule_on_all(None, "viewer").await;
    scene.leave("ann").await;
    scene.come_back("ann").await;
    assert_eq!(scene.ann.get(&scene.one).await.ok()["user_access_level"], "viewer");
    let rules = scene.admin.get(&scene.of_all()).await.ok();
    assert_eq!(rules["access_controls"].as_array().map(Vec::len), Some(1));
    let project = format!("/api/projects/{}/", scene.workspace.made.project_id);
    scene.owner().delete(&project).await.assert_empty(204);
    scene.admin.get(&scene.of_all()).await.assert_not_found("Project not found.");
    scene.workspace.assert_file_valid().await;
}
#[tokio::test]
async fn creating_a_dashboard_requires_editor_access_to_all_dashboards() {
    let scene = Scene::new().await;
    for (level, makes) in [("none", false), ("viewer", false), ("editor", true), ("manager", true)]
    {
        scene.rule_on_all(None, level).await;
        for caller in [&scene.ann, &scene.creator] {
            allows(&caller.post(&scene.workspace.dashboards(""), json!({})).await, makes, EDITOR);
        }
        for caller in [&scene.admin, scene.owner()] {
            caller.post(&scene.workspace.dashboards(""), json!({})).await.ok();
        }
    }
    // A rule on one dashboard does not let the caller create others.
    scene.rule_on_all(None, "viewer").await;
    scene.rule(Some("ann"), "manager").await;
    scene
        .ann
        .post(&scene.workspace.dashboards(""), json!({ "name": [] }))
        .await
        .assert_denied(EDITOR);
}
