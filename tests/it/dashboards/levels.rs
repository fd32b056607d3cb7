//! Restriction and privilege levels of dashboards, and private projects.

use serde_json::{Value, json};
use steward::testing::resources::members::Level;

use crate::dashboards::make;
use crate::support::{TestClient, Workspace};

const EDIT: &str = "You don't have edit permissions for this dashboard.";
const RESTRICT: &str = "Only the dashboard owner and project admins have the restriction rights required to change the dashboard's restriction level.";

/// A workspace with a dashboard that Cleo, a member, created. There are also another member, an admin and
/// the owner.
struct Scene {
    workspace: Workspace,
    creator: TestClient,
    member: TestClient,
    admin: TestClient,
    one: String,
}

impl Scene {
    async fn with(restriction: u64) -> Self {
        let workspace = Workspace::new().await;
        let creator = workspace.member("cleo", Level::Member).await;
        let member = workspace.member("max", Level::Member).await;
        let admin = workspace.member("ada", Level::Admin).await;
        let sent = json!({"name": "A", "restriction_level": restriction});
        let (_, one) = make(&workspace, &creator, sent).await;
        Self { workspace, creator, member, admin, one }
    }

    /// The callers who may change the restriction level.
    fn deciders(&self) -> [&TestClient; 3] {
        [&self.creator, &self.admin, &self.workspace.owner]
    }

    /// Asserts the levels that `caller` sees in the detail view and in the list.
    async fn shows(&self, caller: &TestClient, levels: &Value) {
        let names = [
            "restriction_level",
            "effective_restriction_level",
            "effective_privilege_level",
            "user_access_level",
            "access_control_version",
        ];
        let detail = caller.get(&self.one).await.ok();
        let list = caller.get(&self.workspace.dashboards("")).await.ok();
        assert_eq!(list["count"], 1);
        for shown in [&detail, &list["results"][0]] {
            assert_eq!(&json!(names.map(|name| &shown[name])), levels);
        }
    }
}

#[tokio::test]
async fn members_edit_a_dashboard_at_level_21_but_cannot_restrict_it() {
    let scene = Scene::with(21).await;
    for caller in scene.deciders() {
        scene.shows(caller, &json!([21, 21, 37, "manager", "v2"])).await;
    }
    scene.shows(&scene.member, &json!([21, 21, 37, "editor", "v2"])).await;
    let changed = scene.member.patch(&scene.one, json!({"name": "B", "pinned": true})).await.ok();
    assert_eq!((&changed["name"], &changed["user_access_level"]), (&json!("B"), &json!("editor")));
    scene.member.patch(&scene.one, json!({"deleted": true})).await.ok();
    scene.member.patch(&scene.one, json!({"deleted": false})).await.ok();
}

#[tokio::test]
async fn only_creator_and_admins_edit_a_dashboard_at_level_37() {
    let scene = Scene::with(37).await;
    for caller in scene.deciders() {
        scene.shows(caller, &json!([37, 37, 37, "manager", "v1"])).await;
        caller.patch(&scene.one, json!({"description": "d"})).await.ok();
    }
    scene.shows(&scene.member, &json!([37, 37, 21, "editor", "v1"])).await;
    let before = scene.creator.get(&scene.one).await.ok();
    for sent in [
        json!({}),
        json!({"name": "B"}),
        json!({"deleted": true}),
        json!({"deleted": false}),
        json!({"restriction_level": 21}),
    ] {
        scene.member.patch(&scene.one, sent).await.assert_denied(EDIT);
    }
    scene.creator.get(&scene.one).await.assert_is(200, before);
    scene.member.delete(&scene.one).await.assert_empty(405);
}

#[tokio::test]
async fn creator_and_admins_change_the_restriction_both_ways() {
    let scene = Scene::with(21).await;
    for caller in scene.deciders() {
        for (level, version) in [(37, "v1"), (21, "v2")] {
            let changed = caller.patch(&scene.one, json!({"restriction_level": level})).await.ok();
            assert_eq!(changed["restriction_level"], level);
            assert_eq!(changed["effective_restriction_level"], level);
            assert_eq!(changed["access_control_version"], version);
            scene.member.patch(&scene.one, json!({})).await.is_edit(level == 21);
        }
    }
}

#[tokio::test]
async fn other_members_cannot_change_the_restriction_level() {
    let scene = Scene::with(21).await;
    for level in [json!(37), json!("37")] {
        let sent = json!({"restriction_level": level, "name": "B"});
        scene.member.patch(&scene.one, sent).await.assert_denied(RESTRICT);
    }
    assert_eq!(scene.creator.get(&scene.one).await.ok()["name"], "A");
    for level in [json!(21), json!("21")] {
        let sent = json!({"restriction_level": level, "name": "C"});
        assert_eq!(scene.member.patch(&scene.one, sent).await.ok()["name"], "C");
    }
}

#[tokio::test]
async fn any_member_may_create_a_restricted_dashboard() {
    let workspace = Workspace::new().await;
    let member = workspace.member("max", Level::Member).await;
    let made = member.post(&workspace.dashboards(""), json!({"restriction_level": 37})).await;
    assert_eq!(made.status, 201);
    let shown = ["effective_privilege_level", "user_access_level", "access_control_version"];
    assert_eq!(json!(shown.map(|name| &made.body[name])), json!([37, "manager", "v1"]));
}

#[tokio::test]
async fn creators_key_with_one_scope_has_the_creators_rights() {
    let scene = Scene::with(37).await;
    let key = scene.workspace.key("cleo@corp.example", &["dashboard:write"]).await;
    key.patch(&scene.one, json!({"restriction_level": 21})).await.ok();
}

#[tokio::test]
async fn dashboard_rights_follow_the_membership_level_at_once() {
    let scene = Scene::with(37).await;
    let members = scene.workspace.organization("members/");
    let listed = scene.workspace.owner.get(&members).await.ok();
    let max = listed["results"].as_array().expect("a list").iter();
    let max = max.clone().find(|row| row["user"]["email"] == "max@corp.example").expect("Max");
    let at = format!("{members}{}/", max["user"]["uuid"].as_str().expect("a UUID"));
    scene.member.patch(&scene.one, json!({})).await.assert_denied(EDIT);
    scene.workspace.owner.patch(&at, json!({"level": 8})).await.ok();
    scene.shows(&scene.member, &json!([37, 37, 37, "manager", "v1"])).await;
    scene.member.patch(&scene.one, json!({})).await.ok();
    scene.workspace.owner.patch(&at, json!({"level": 1})).await.ok();
    scene.member.patch(&scene.one, json!({})).await.assert_denied(EDIT);
}

#[tokio::test]
async fn existence_is_checked_before_rights_and_rights_before_fields() {
    let scene = Scene::with(37).await;
    let unknown = scene.workspace.dashboards("999999/");
    scene.member.patch(&unknown, json!({"name": [1]})).await.assert_not_found("Not found.");
    scene.member.patch(&scene.one, json!({"name": [1]})).await.assert_denied(EDIT);
    scene.creator.patch(&scene.one, json!({"deleted": true})).await.ok();
    scene.member.patch(&scene.one, json!({"name": "B"})).await.assert_not_found("Not found.");
    scene.member.patch(&scene.one, json!({"deleted": false})).await.assert_denied(EDIT);
    scene.creator.patch(&scene.one, json!({"deleted": false})).await.ok();
}

#[tokio::test]
async fn fields_are_checked_before_the_right_to_restrict() {
    let scene = Scene::with(21).await;
    let wrong = scene.member.patch(&scene.one, json!({"restriction_level": 30})).await;
    wrong.assert_invalid("restriction_level", "invalid_choice", "\"30\" is not a valid choice.");
    let both = json!({"restriction_level": 37, "use_template": "A", "use_dashboard": 1});
    let detail = "`use_dashboard` and `use_template` cannot be used together";
    scene.member.patch(&scene.one, both).await.assert_invalid_body("invalid_input", detail);
}

#[tokio::test]
async fn private_project_is_closed_to_members_without_a_grant() {
    let scene = Scene::with(21).await;
    let project = format!("/api/projects/{}/", scene.workspace.made.project_id);
    scene.admin.patch(&project, json!({"access_control": true})).await.ok();
    let list = scene.workspace.dashboards("");
    let refusal = "You don't have access to the project.";
    for caller in [&scene.member, &scene.creator] {
        caller.get(&list).await.assert_denied(refusal);
        caller.get(&scene.one).await.assert_denied(refusal);
        caller.post(&list, json!({})).await.assert_denied(refusal);
        caller.patch(&scene.one, json!({"name": [1]})).await.assert_denied(refusal);
        caller.delete(&scene.one).await.assert_denied(refusal);
        caller.get(&project).await.assert_not_found("Not found.");
    }
    for caller in [&scene.admin, &scene.workspace.owner] {
        caller.patch(&scene.one, json!({"name": "B"})).await.ok();
    }
    scene.admin.patch(&project, json!({"access_control": false})).await.ok();
    assert_eq!(scene.member.get(&scene.one).await.ok()["name"], "B");
}

impl crate::support::TestResponse {
    /// Asserts that the change succeeded, or was refused because of missing edit rights.
    #[track_caller]
    fn is_edit(&self, allowed: bool) {
        if allowed {
            assert_eq!(self.status, 200, "{}", self.body);
        } else {
            self.assert_denied(EDIT);
        }
    }
}
