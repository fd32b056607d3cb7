//! Rules on a project for everyone and for roles: who sees the project, and who edits its rules.

use crate::support::prelude::*;

use super::{NOT_ADMIN, NOT_MANAGER, NOT_ORGANIZATION_ADMIN};

impl Scene {
    fn on_project(&self) -> String {
        self.workspace.access_controls()
    }

    /// Sets the rule for everyone as the owner. Null deletes it.
    async fn give_everyone(&self, level: impl Into<Value>) {
        self.owner().put(&self.on_project(), json!({ "access_level": level.into() })).await.ok();
    }

    /// Sets the rule of a role as the owner. Null deletes it.
    async fn give_role(&self, role: &Value, level: impl Into<Value>) {
        let sent = json!({ "role": role["id"], "access_level": level.into() });
        self.owner().put(&self.on_project(), sent).await.ok();
    }

    /// Asserts that the project is absent from all lists of the caller, and the errors below it.
    async fn is_hidden_from(&self, caller: &TestClient) {
        for list in [self.workspace.organization("projects/"), "/api/projects/".to_owned()] {
            assert_eq!(caller.get(&list).await.ok()["count"], 0);
        }
        caller.get(&self.workspace.project("")).await.assert_not_found("Not found.");
        caller.get(&self.on_project()).await.assert_denied(NO_ACCESS);
        caller.get(&self.workspace.dashboards("")).await.assert_denied(NO_ACCESS);
        let me = caller.get(ME).await.ok();
        assert_eq!((&me["team"], &me["organization"]["teams"]), (&Value::Null, &json!([])));
    }

    /// Asserts that the caller sees the project at these levels: as a member, and on its rules.
    async fn is_shown_to(&self, caller: &TestClient, level: i64, on_rules: &str) {
        for list in [self.workspace.organization("projects/"), "/api/projects/".to_owned()] {
            assert_eq!(caller.get(&list).await.ok()["count"], 1);
        }
        let project = caller.get(&self.workspace.project("")).await.ok();
        assert_eq!(project["effective_membership_level"], level);
        caller.get(&self.workspace.dashboards("")).await.ok();
        let shown = caller.get(&self.on_project()).await.ok();
        let edits = on_rules == "admin";
        assert_eq!(shown["user_access_level"], json!(on_rules));
        assert_eq!(shown["user_can_edit_access_levels"], json!(edits));
        let put = caller.put(&self.on_project(), self.sent(Some("owner"), "member").await).await;
        if edits { drop(put.ok()) } else { put.assert_denied(NOT_ADMIN) }
    }
}

#[tokio::test]
async fn default_admin_lets_everyone_edit_the_rules_of_the_project_only() {
    let scene = Scene::new().await;
    scene.give_everyone("admin").await;
    scene.is_shown_to(&scene.ann, 1, "admin").await;
    scene.ann.put(&scene.on_project(), scene.sent(Some("bob"), "admin").await).await.ok();
    let closed = json!({ "access_control": true });
    scene.ann.patch(&scene.workspace.project(""), closed).await.assert_denied(
        "Your organization access level is insufficient to configure project access restrictions.",
    );
    // Ann may lower the default, and with it herself.
    scene.ann.put(&scene.on_project(), json!({ "access_level": "member" })).await.ok();
    let admin = json!({ "access_level": "admin" });
    scene.ann.put(&scene.on_project(), admin).await.assert_denied(NOT_ADMIN);
    scene.bob.put(&scene.on_project(), json!({ "access_level": "none" })).await.ok();
    scene.is_hidden_from(&scene.ann).await;
    scene.is_shown_to(&scene.bob, 8, "admin").await;
}

#[tokio::test]
async fn highest_level_of_default_roles_and_member_decides() {
    let scene = Scene::new().await;
    let mut roles = Vec::new();
    for name in ["One", "Two"] {
        let (role, path) = add_role(&scene.workspace, name).await;
        add_to_role(&scene.workspace, &path, ANN).await;
        roles.push(role);
    }
    // The levels of everyone, of both roles and of Ann; her level as a member, and on the rules.
    let none = || json!(null);
    for (default, [one, two], own, expected) in [
        (json!("none"), [none(), none()], none(), None),
        (json!("none"), [json!("none"), none()], json!("none"), None),
        (json!("none"), [json!("member"), none()], none(), Some((1, "member"))),
        (json!("none"), [json!("none"), json!("member")], none(), Some((1, "member"))),
        (json!("none"), [json!("member"), json!("admin")], none(), Some((8, "admin"))),
        (json!("none"), [json!("member"), none()], json!("admin"), Some((8, "admin"))),
        (json!("none"), [json!("admin"), none()], json!("none"), Some((8, "admin"))),
        (json!("none"), [json!("none"), json!("none")], json!("member"), Some((1, "member"))),
        (json!("member"), [json!("none"), json!("none")], json!("none"), Some((1, "member"))),
        (none(), [json!("none"), none()], none(), Some((1, "member"))),
        (json!("member"), [json!("admin"), none()], none(), Some((1, "admin"))),
        (none(), [none(), json!("admin")], json!("member"), Some((1, "admin"))),
        (json!("admin"), [json!("none"), json!("member")], none(), Some((1, "admin"))),
    ] {
        scene.give_everyone(default).await;
        scene.give_role(&roles[0], one).await;
        scene.give_role(&roles[1], two).await;
        scene.grant("ann", own).await;
        match expected {
            None => scene.is_hidden_from(&scene.ann).await,
            Some((level, on_rules)) => scene.is_shown_to(&scene.ann, level, on_rules).await,
        }
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn admin_of_a_project_by_a_role_edits_its_rules_and_no_organization() {
    let scene = Scene::new().await;
    let (role, path) = add_role(&scene.workspace, "Leads").await;
    add_to_role(&scene.workspace, &path, ANN).await;
    scene.give_role(&role, "admin").await;
    let controls = scene.controls();
    let viewers = json!({ "access_level": "viewer" });
    scene.ann.put(&controls, viewers.clone()).await.ok();
    scene.bob.put(&controls, viewers.clone()).await.assert_denied(NOT_MANAGER);
    let as_admin = json!({ "role": role["id"], "access_level": "admin" });
    scene.ann.put(&scene.on_project(), as_admin).await.ok();

    let roles = scene.workspace.organization("roles/");
    scene.ann.post(&roles, json!({ "name": "Mine" })).await.assert_denied(TOO_LOW);
    scene.ann.patch(&path, json!({ "name": "Mine" })).await.assert_denied(TOO_LOW);
    scene.ann.patch(&scene.workspace.organization(""), json!({})).await.assert_denied(TOO_LOW);
    let sent = json!({ "resource": "dashboard", "access_level": "viewer" });
    scene.grant("max", "admin").await;
    for caller in [&scene.ann, &scene.max, &scene.creator] {
        caller.put(&scene.of_all(), sent.clone()).await.assert_denied(NOT_ORGANIZATION_ADMIN);
    }

    scene.give_role(&role, "member").await;
    scene.ann.put(&controls, viewers).await.assert_denied(NOT_MANAGER);
    scene.ann.put(&scene.on_project(), json!({})).await.assert_denied(NOT_ADMIN);
}

#[tokio::test]
async fn rule_for_everyone_moves_the_projects_version_when_it_changes_the_project() {
    let scene = Scene::new().await;
    let project = scene.workspace.project("");
    let version = async || {
        let shown = scene.owner().get(&project).await;
        let tag = shown.headers["etag"].to_str().expect("text");
        (tag.split('-').next().map(str::to_owned), shown.body["updated_at"].clone())
    };
    let before = version().await;
    scene.give_everyone("member").await;
    assert_eq!(version().await, before);
    scene.clock.advance(minute());
    scene.give_everyone("none").await;
    let after = version().await;
    assert_ne!(after.0, before.0);
    assert_eq!(after.1, "2025-01-02T03:05:05Z");
    assert_eq!(scene.owner().get(&project).await.ok()["access_control"], true);
    // `access_control` is the rule `none`: to set it replaces another rule, to clear it keeps another rule.
    for (rule, closed, shown) in
        [("admin", false, "admin"), ("admin", true, "none"), ("none", false, "member")]
    {
        scene.give_everyone(rule).await;
        assert_eq!(scene.owner().get(&project).await.ok()["access_control"], rule == "none");
        let sent = json!({ "access_control": closed, "name": format!("{rule} {closed}") });
        assert_eq!(scene.owner().patch(&project, sent).await.ok()["access_control"], closed);
        let rules = scene.owner().get(&scene.on_project()).await.ok();
        assert_eq!(rules["default_access_level"], shown, "{rule} {closed}");
    }
}

#[tokio::test]
async fn member_who_sees_a_private_project_by_a_role_invites_up_to_its_level() {
    let scene = Scene::new().await;
    let (role, path) = add_role(&scene.workspace, "Analysts").await;
    add_to_role(&scene.workspace, &path, ANN).await;
    scene.give_everyone("none").await;
    let list = invites(&scene.workspace, "");
    let invite = |address: &str, level: &str| {
        json!({
            "target_email": format!("{address}@corp.example"),
            "private_project_access": [{ "id": scene.workspace.made.project_id, "level": level }],
        })
    };
    let hidden = "Project does not exist on this organization, or it is private and you do not have access to it.";
    let too_high = "You cannot invite to a private project with a higher level than your own.";
    let refused = scene.ann.post(&list, invite("a", "member")).await;
    refused.assert_bad("private_project_access", hidden);
    scene.give_role(&role, "member").await;
    scene.ann.post(&list, invite("a", "member")).await.ok();
    let refused = scene.ann.post(&list, invite("b", "admin")).await;
    refused.assert_bad("private_project_access", too_high);
    scene.give_role(&role, "admin").await;
    let made = scene.ann.post(&list, invite("b", "admin")).await.ok();
    // An invite ends with the right to give what it gives.
    let offer = format!("/api/signup/{}/", made["id"].as_str().expect("an id"));
    scene.workspace.anonymous().get(&offer).await.ok();
    scene.give_role(&role, "member").await;
    let ended = scene.workspace.anonymous().get(&offer).await;
    ended.assert_bad_body("The provided invite ID is not valid.");
}
