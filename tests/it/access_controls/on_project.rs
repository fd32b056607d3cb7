//! Rules on a project for everyone and for roles: who sees the project, and who edits its rules.

use std::time::Duration;

use serde_json::{Value, json};
use steward::testing::resources::members::Level;

use crate::activity::entries;
use crate::support::invites::invites;
use crate::support::roles::{add_role, add_to_role};
use crate::support::{TestClient, Workspace};

use super::{ANN, BEGAN, BOB, NO_ACCESS, NOT_ADMIN, Scene, project_rule, whole};

impl Scene {
    fn project(&self) -> String {
        format!("/api/projects/{}/", self.workspace.made.project_id)
    }

    /// Sets the rule for everyone as the owner. Null deletes it.
    async fn give_everyone(&self, level: impl Into<Value>) {
        self.owner().put(&self.path, json!({ "access_level": level.into() })).await.ok();
    }

    /// Sets the rule of a role as the owner. Null deletes it.
    async fn give_role(&self, role: &Value, level: impl Into<Value>) {
        let sent = json!({ "role": role["id"], "access_level": level.into() });
        self.owner().put(&self.path, sent).await.ok();
    }

    /// Asserts that the project is absent from all lists of the caller, and the errors below it.
    async fn is_hidden_from(&self, caller: &TestClient) {
        for list in [self.workspace.organization("projects/"), "/api/projects/".to_owned()] {
            assert_eq!(caller.get(&list).await.ok()["count"], 0);
        }
        caller.get(&self.project()).await.assert_not_found("Not found.");
        caller.get(&self.path).await.assert_denied(NO_ACCESS);
        caller.get(&self.workspace.dashboards("")).await.assert_denied(NO_ACCESS);
        let me = caller.get("/api/users/@me/").await.ok();
        assert_eq!((&me["team"], &me["organization"]["teams"]), (&Value::Null, &json!([])));
    }

    /// Asserts that the caller sees the project at these levels: as a member, and on its rules.
    async fn is_shown_to(&self, caller: &TestClient, level: i64, on_rules: &str) {
        for list in [self.workspace.organization("projects/"), "/api/projects/".to_owned()] {
            assert_eq!(caller.get(&list).await.ok()["count"], 1);
        }
        let project = caller.get(&self.project()).await.ok();
        assert_eq!(project["effective_membership_level"], level);
        caller.get(&self.workspace.dashboards("")).await.ok();
        let shown = caller.get(&self.path).await.ok();
        let edits = on_rules == "admin";
        assert_eq!(
            (&shown["user_access_level"], &shown["user_can_edit_access_levels"]),
            (&json!(on_rules), &json!(edits))
        );
        let rule = self.rule(super::OWNER, "member").await;
        let put = caller.put(&self.path, rule).await;
        if edits { drop(put.ok()) } else { put.assert_denied(NOT_ADMIN) }
    }
}

/// The expected rule of a role, created and last changed at these times.
fn role_rule(scene: &Scene, role: &Value, level: &str, moments: [&str; 2]) -> Value {
    let mut rule = project_rule(scene, level, moments);
    rule["role"] = role["id"].clone();
    rule
}

#[tokio::test]
async fn rules_for_everyone_and_roles_are_created_updated_and_deleted() {
    let scene = Scene::new().await;
    let (owner, path) = (scene.owner(), &scene.path);
    let (role, _) = add_role(&scene.workspace, "Analysts").await;
    let named = |level: Value| json!({ "role": role["id"], "access_level": level });
    let first = role_rule(&scene, &role, "member", [BEGAN, BEGAN]);
    let mut spelled_out = named(json!("member"));
    spelled_out["organization_member"] = Value::Null;
    spelled_out["resource"] = json!("project");
    owner.put(path, spelled_out).await.assert_is(200, first.clone());

    scene.clock.advance(Duration::from_mins(1));
    let later = "2025-01-02T03:05:05Z";
    owner.put(path, named(json!("member"))).await.assert_is(200, first);
    let raised = role_rule(&scene, &role, "admin", [BEGAN, later]);
    owner.put(path, named(json!("admin"))).await.assert_is(200, raised.clone());
    for level in ["member", "admin", "none"] {
        let everyones = project_rule(&scene, level, [later, later]);
        let sent = json!({ "access_level": level, "resource": "project" });
        owner.put(path, sent).await.assert_is(200, everyones.clone());
        let expected = whole(json!([raised, everyones]), level, "admin", true);
        owner.get(path).await.assert_is(200, expected);
    }
    for _ in 0..2 {
        owner.put(path, json!({ "access_level": null })).await.assert_empty(204);
        owner.put(path, named(Value::Null)).await.assert_empty(204);
        owner.get(path).await.assert_is(200, whole(json!([]), "member", "admin", true));
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn default_none_hides_a_project_from_members_and_never_from_admins() {
    let scene = Scene::new().await;
    scene.give_everyone("none").await;
    scene.is_hidden_from(&scene.ann).await;
    scene.is_shown_to(&scene.adam, 8, "admin").await;
    scene.is_shown_to(scene.owner(), 15, "admin").await;
    scene.give_everyone("member").await;
    scene.is_shown_to(&scene.ann, 1, "member").await;
    scene.give_everyone("none").await;
    scene.is_hidden_from(&scene.ann).await;
    scene.give_everyone(Value::Null).await;
    scene.is_shown_to(&scene.ann, 1, "member").await;
}

#[tokio::test]
async fn default_admin_lets_everyone_edit_the_rules_of_the_project_only() {
    let scene = Scene::new().await;
    scene.give_everyone("admin").await;
    scene.is_shown_to(&scene.ann, 1, "admin").await;
    scene.ann.put(&scene.path, scene.rule(BOB, "admin").await).await.ok();
    let closed = json!({ "access_control": true });
    let refused = scene.ann.patch(&scene.project(), closed).await;
    refused.assert_denied(
        "Your organization access level is insufficient to configure project access restrictions.",
    );
    // Ann may lower the default, and with it herself.
    scene.ann.put(&scene.path, json!({ "access_level": "member" })).await.ok();
    scene.ann.put(&scene.path, json!({ "access_level": "admin" })).await.assert_denied(NOT_ADMIN);
    scene.bob.put(&scene.path, json!({ "access_level": "none" })).await.ok();
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
        scene.give(ANN, own).await;
        match expected {
            None => scene.is_hidden_from(&scene.ann).await,
            Some((level, on_rules)) => scene.is_shown_to(&scene.ann, level, on_rules).await,
        }
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn role_opens_a_private_project_to_its_present_members_only() {
    let scene = Scene::new().await;
    let (role, path) = add_role(&scene.workspace, "Analysts").await;
    let member = add_to_role(&scene.workspace, &path, ANN).await;
    scene.give_everyone("none").await;
    scene.give_role(&role, "member").await;
    scene.is_shown_to(&scene.ann, 1, "member").await;
    scene.is_hidden_from(&scene.bob).await;

    let one = format!("{path}role_memberships/{}/", member["id"].as_str().expect("an id"));
    scene.owner().delete(&one).await.assert_empty(204);
    scene.is_hidden_from(&scene.ann).await;
    add_to_role(&scene.workspace, &path, ANN).await;
    add_to_role(&scene.workspace, &path, BOB).await;
    for caller in [&scene.ann, &scene.bob] {
        scene.is_shown_to(caller, 1, "member").await;
    }
    let (second, other) = add_role(&scene.workspace, "Billing").await;
    add_to_role(&scene.workspace, &other, BOB).await;
    scene.give_role(&second, "member").await;
    scene.owner().delete(&path).await.assert_empty(204);
    scene.is_hidden_from(&scene.ann).await;
    scene.is_shown_to(&scene.bob, 1, "member").await;
    let rules = scene.owner().get(&scene.path).await.ok()["access_controls"].clone();
    let roles: Vec<_> = rules.as_array().expect("rules").iter().map(|rule| &rule["role"]).collect();
    assert!(roles.contains(&&second["id"]) && !roles.contains(&&role["id"]), "{rules}");
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn admin_of_a_project_by_a_role_edits_its_rules_and_no_organization() {
    let scene = Scene::new().await;
    let (role, path) = add_role(&scene.workspace, "Leads").await;
    add_to_role(&scene.workspace, &path, ANN).await;
    scene.give_role(&role, "admin").await;
    let made = scene.owner().post(&scene.workspace.dashboards(""), json!({})).await.ok();
    let controls = scene.workspace.dashboards(&format!("{}/access_controls/", made["id"]));
    let viewers = json!({ "access_level": "viewer" });
    scene.ann.put(&controls, viewers.clone()).await.ok();
    let refused = scene.bob.put(&controls, viewers.clone()).await;
    refused.assert_denied("Must be manager to modify dashboard permissions.");
    scene.ann.put(&scene.path, json!({ "role": role["id"], "access_level": "admin" })).await.ok();

    let low = "Your organization access level is insufficient.";
    let roles = scene.workspace.organization("roles/");
    scene.ann.post(&roles, json!({ "name": "Mine" })).await.assert_denied(low);
    scene.ann.patch(&path, json!({ "name": "Mine" })).await.assert_denied(low);
    scene.ann.patch(&scene.workspace.organization(""), json!({})).await.assert_denied(low);
    let kinds = format!("{}resource_access_controls/", scene.project());
    let sent = json!({ "resource": "dashboard", "access_level": "viewer" });
    let refused = scene.ann.put(&kinds, sent).await;
    refused.assert_denied("Must be an Organization admin to modify project-wide permissions.");

    scene.give_role(&role, "member").await;
    scene
        .ann
        .put(&controls, viewers)
        .await
        .assert_denied("Must be manager to modify dashboard permissions.");
    scene.ann.put(&scene.path, json!({})).await.assert_denied(NOT_ADMIN);
}

#[tokio::test]
async fn access_control_and_the_rule_for_everyone_are_one_fact() {
    let scene = Scene::new().await;
    let (owner, project) = (scene.owner(), scene.project());
    let private = async || owner.get(&project).await.ok()["access_control"].clone();
    let default = async || {
        let shown = owner.get(&scene.path).await.ok();
        let rules = shown["access_controls"].as_array().expect("rules").clone();
        let levels: Vec<_> = rules.iter().map(|rule| rule["access_level"].clone()).collect();
        (levels, shown["default_access_level"].clone())
    };
    for (step, is_private, levels, level) in [
        (json!({ "access_control": true }), true, json!(["none"]), "none"),
        (json!({ "access_control": true }), true, json!(["none"]), "none"),
        (json!({ "access_control": false }), false, json!([]), "member"),
        (json!({ "access_level": "none" }), true, json!(["none"]), "none"),
        (json!({ "access_control": false }), false, json!([]), "member"),
        (json!({ "access_level": "admin" }), false, json!(["admin"]), "admin"),
        // An open project stays as it is.
        (json!({ "access_control": false, "name": "N" }), false, json!(["admin"]), "admin"),
        (json!({ "access_control": true }), true, json!(["none"]), "none"),
        (json!({ "access_level": "member" }), false, json!(["member"]), "member"),
        (json!({ "access_level": "none" }), true, json!(["none"]), "none"),
        (json!({ "access_level": null }), false, json!([]), "member"),
    ] {
        if step.get("access_level").is_some() {
            owner.put(&scene.path, step.clone()).await.ok();
        } else {
            owner.patch(&project, step.clone()).await.ok();
        }
        assert_eq!(private().await, json!(is_private), "{step}");
        assert_eq!(json!(default().await), json!([levels, level]), "{step}");
        let list = owner.get("/api/projects/").await.ok();
        assert_eq!(list["results"][0]["access_control"], json!(is_private), "{step}");
    }
    let list = scene.workspace.organization("projects/");
    let made = owner.post(&list, json!({ "access_control": true })).await.ok();
    let controls = format!("/api/projects/{}/access_controls/", made["id"]);
    let shown = owner.get(&controls).await.ok();
    assert_eq!(shown["access_controls"][0]["access_level"], "none");
    assert_eq!(shown["default_access_level"], "none");
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rule_for_everyone_moves_the_projects_version_when_it_changes_the_project() {
    let scene = Scene::new().await;
    let project = scene.project();
    let before = scene.owner().get(&project).await;
    let tag = before.headers["etag"].to_str().expect("text").to_owned();
    scene.give_everyone("member").await;
    let same = scene.owner().get(&project).await;
    assert_eq!(
        same.headers["etag"].to_str().expect("text").split('-').next(),
        tag.split('-').next()
    );
    scene.clock.advance(Duration::from_mins(1));
    scene.give_everyone("none").await;
    let after = scene.owner().get(&project).await;
    assert_ne!(
        after.headers["etag"].to_str().expect("text").split('-').next(),
        tag.split('-').next()
    );
    assert_eq!(after.body["updated_at"], "2025-01-02T03:05:05Z");
}

#[tokio::test]
async fn only_roles_of_the_organization_can_be_named() {
    let scene = Scene::new().await;
    let (eve, foreign) = scene.workspace.outsider("eve").await;
    let theirs = format!("/api/organizations/{}/roles/", foreign["id"].as_str().expect("an id"));
    let theirs = eve.post(&theirs, json!({ "name": "Theirs" })).await.ok();
    let (gone, path) = add_role(&scene.workspace, "Gone").await;
    scene.owner().delete(&path).await.assert_empty(204);
    for named in [&theirs["id"], &gone["id"], &json!("01890000-0000-7000-8000-000000000000")] {
        for level in [json!("member"), json!(null)] {
            let sent = json!({ "access_level": level, "role": named });
            let id = named.as_str().expect("an id");
            let detail = format!("Invalid pk \"{id}\" - object does not exist.");
            let refused = scene.owner().put(&scene.path, sent).await;
            refused.assert_invalid("role", "does_not_exist", &detail);
        }
    }
    scene.owner().get(&scene.path).await.assert_is(200, whole(json!([]), "member", "admin", true));
}

#[tokio::test]
async fn role_deleted_while_it_gets_a_rule_leaves_no_rule() {
    let scene = Scene::new().await;
    for round in 0..8 {
        let (role, path) = add_role(&scene.workspace, &format!("R{round}")).await;
        let sent = json!({ "role": role["id"], "access_level": "member" });
        let (put, deleted) = if round % 2 == 0 {
            tokio::join!(scene.owner().put(&scene.path, sent), scene.owner().delete(&path))
        } else {
            let (deleted, put) =
                tokio::join!(scene.owner().delete(&path), scene.owner().put(&scene.path, sent));
            (put, deleted)
        };
        deleted.assert_empty(204);
        if put.status != 200 {
            let id = role["id"].as_str().expect("an id");
            let detail = format!("Invalid pk \"{id}\" - object does not exist.");
            put.assert_invalid("role", "does_not_exist", &detail);
        }
        assert_eq!(scene.owner().get(&scene.path).await.ok()["access_controls"], json!([]));
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn member_who_sees_a_private_project_by_a_role_invites_up_to_its_level() {
    let scene = Scene::new().await;
    let (role, path) = add_role(&scene.workspace, "Analysts").await;
    add_to_role(&scene.workspace, &path, ANN).await;
    scene.give_everyone("none").await;
    let project = scene.workspace.made.project_id;
    let list = invites(&scene.workspace, "");
    let invite = |address: &str, level: &str| {
        json!({
            "target_email": format!("{address}@corp.example"),
            "private_project_access": [{ "id": project, "level": level }],
        })
    };
    let hidden = "Project does not exist on this organization, or it is private and you do not have access to it.";
    let too_high = "You cannot invite to a private project with a higher level than your own.";
    let refused = scene.ann.post(&list, invite("a", "member")).await;
    refused.assert_invalid("private_project_access", "invalid_input", hidden);
    scene.give_role(&role, "member").await;
    scene.ann.post(&list, invite("a", "member")).await.ok();
    let refused = scene.ann.post(&list, invite("b", "admin")).await;
    refused.assert_invalid("private_project_access", "invalid_input", too_high);
    scene.give_role(&role, "admin").await;
    let made = scene.ann.post(&list, invite("b", "admin")).await.ok();
    // An invite ends with the right to give what it gives.
    let offer = format!("/api/signup/{}/", made["id"].as_str().expect("an id"));
    scene.workspace.anonymous().get(&offer).await.ok();
    scene.give_role(&role, "member").await;
    let ended = scene.workspace.anonymous().get(&offer).await;
    ended.assert_invalid_body("invalid_input", "The provided invite ID is not valid.");
}

#[tokio::test]
async fn rules_of_roles_are_logged_with_the_role() {
    let scene = Scene::new().await;
    let (role, _) = add_role(&scene.workspace, "Analysts").await;
    let id = role["id"].as_str().expect("an id").to_owned();
    let project = scene.workspace.made.project_id;
    for (sent, item, activity, change) in [
        (
            json!({ "role": id, "access_level": "member" }),
            &*id,
            "created",
            [json!(null), json!("member")],
        ),
        (
            json!({ "role": id, "access_level": "admin" }),
            &id,
            "updated",
            [json!("member"), json!("admin")],
        ),
        (
            json!({ "role": id, "access_level": null }),
            &id,
            "deleted",
            [json!("admin"), json!(null)],
        ),
        (json!({ "access_level": "none" }), "*", "created", [json!(null), json!("none")]),
        (json!({ "access_level": "admin" }), "*", "updated", [json!("none"), json!("admin")]),
        (json!({ "access_level": null }), "*", "deleted", [json!("admin"), json!(null)]),
    ] {
        scene.clock.advance(Duration::from_secs(1));
        scene.owner().put(&scene.path, sent).await.ok();
        let log = format!("/api/projects/{project}/activity_log/?limit=1");
        let entry = scene.owner().get(&log).await.ok()["results"][0].clone();
        let change = json!({
            "type": "AccessControl", "action": "changed", "field": "access_level",
            "before": change[0], "after": change[1],
        });
        assert_eq!(
            json!([entry["scope"], entry["item_id"], entry["activity"], entry["detail"]]),
            json!([
                "AccessControl", format!("{project}:{item}"), activity,
                { "name": "Web", "changes": [change] },
            ])
        );
    }
}

#[tokio::test]
async fn opening_a_closed_project_is_logged_as_a_change_of_the_project() {
    let scene = Scene::new().await;
    let project = scene.workspace.made.project_id;
    scene.owner().put(&scene.path, json!({ "access_level": "none" })).await.ok();
    scene.clock.advance(Duration::from_secs(1));
    let known = entries(&scene.workspace).len();
    scene.owner().put(&scene.path, json!({ "access_level": null })).await.assert_empty(204);
    let new: Vec<_> = entries(&scene.workspace).split_off(known);
    let [entry] = &*new else { panic!("one entry") };
    let change = json!({
        "type": "Project", "action": "changed", "field": "access_control",
        "before": true, "after": false,
    });
    assert_eq!(
        json!(entry.fields),
        json!({
            "scope": "Project", "item_id": project.to_string(), "activity": "updated",
            "detail": { "name": "Web", "changes": [change] },
        })
    );
}

/// What PostHog's Terraform provider does in its test of role-based access, without the rules on other kinds.
#[tokio::test]
async fn roles_and_a_closed_project_are_set_up_changed_and_taken_down() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let made =
        owner.post(&workspace.organization("projects/"), json!({ "name": "RBAC" })).await.ok();
    let path = format!("/api/projects/{}/access_controls/", made["id"]);
    let mut roles = Vec::new();
    for name in ["Admins", "Editors", "Viewers"] {
        roles.push(add_role(&workspace, name).await);
    }
    let everyone = |level: &str| json!({ "access_level": level, "resource": "project" });
    owner.put(&path, everyone("none")).await.ok();
    let named = |role: &Value, level: Value| json!({ "role": role["id"], "access_level": level, "resource": "project" });
    for ((role, _), level) in roles.iter().zip(["admin", "member", "member"]) {
        owner.put(&path, named(role, json!(level))).await.ok();
    }
    let ann = workspace.member("ann", Level::Member).await;
    assert_eq!(ann.get("/api/projects/").await.ok()["count"], 1);
    add_to_role(&workspace, &roles[2].1, ANN).await;
    assert_eq!(ann.get("/api/projects/").await.ok()["count"], 2);
    for level in ["member", "admin", "none"] {
        owner.put(&path, everyone(level)).await.ok();
        let rules = owner.get(&path).await.ok()["access_controls"].clone();
        let default = rules.as_array().expect("rules").iter().find(|rule| rule["role"].is_null());
        assert_eq!(default.expect("the rule for everyone")["access_level"], level);
    }
    for (role, path_of_role) in &roles {
        owner.put(&path, named(role, Value::Null)).await.assert_empty(204);
        owner.delete(path_of_role).await.assert_empty(204);
    }
    assert_eq!(ann.get("/api/projects/").await.ok()["count"], 1);
    owner.put(&path, everyone("none")).await.ok();
    owner.delete(&format!("/api/projects/{}/", made["id"])).await.assert_empty(204);
    workspace.assert_file_valid().await;
}
