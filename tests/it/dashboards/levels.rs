//! Restriction and privilege levels of dashboards, and private projects.

use crate::support::prelude::*;

const RESTRICT: &str = "Only the dashboard owner and project admins have the restriction rights required to change the dashboard's restriction level.";

/// A scene whose dashboard has this restriction level.
async fn restricted(level: u64) -> Scene {
    let scene = Scene::new().await;
    scene.restrict(level).await;
    scene
}

impl Scene {
    /// The callers who may change the restriction level.
    fn deciders(&self) -> [&TestClient; 3] {
        [&self.creator, &self.admin, self.owner()]
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
    let scene = restricted(21).await;
    for caller in scene.deciders() {
        scene.shows(caller, &json!([21, 21, 37, "manager", "v2"])).await;
    }
    scene.shows(&scene.max, &json!([21, 21, 37, "editor", "v2"])).await;
    let changed = scene.max.patch(&scene.one, json!({"name": "B", "pinned": true})).await.ok();
    assert_eq!((&changed["name"], &changed["user_access_level"]), (&json!("B"), &json!("editor")));
    scene.max.patch(&scene.one, json!({"deleted": true})).await.ok();
    scene.max.patch(&scene.one, json!({"deleted": false})).await.ok();
}

#[tokio::test]
async fn only_creator_admins_and_collaborators_edit_a_dashboard_at_level_37() {
    let scene = restricted(37).await;
    for caller in scene.deciders() {
        scene.shows(caller, &json!([37, 37, 37, "manager", "v1"])).await;
        caller.patch(&scene.one, json!({"description": "d"})).await.ok();
    }
    scene.shows(&scene.max, &json!([37, 37, 21, "editor", "v1"])).await;
    scene.workspace.add_collaborator(&scene.one, ANN).await;
    scene.shows(&scene.ann, &json!([37, 37, 37, "editor", "v1"])).await;
    scene.ann.patch(&scene.one, json!({"description": "d"})).await.ok();
    let before = scene.creator.get(&scene.one).await.ok();
    for sent in [
        json!({}),
        json!({"name": "B"}),
        json!({"deleted": true}),
        json!({"deleted": false}),
        json!({"restriction_level": 21}),
    ] {
        scene.max.patch(&scene.one, sent).await.assert_denied(NO_EDIT);
    }
    scene.creator.get(&scene.one).await.assert_is(200, before);
    scene.max.delete(&scene.one).await.assert_empty(405);
}

#[tokio::test]
async fn only_creator_and_admins_change_the_restriction_level() {
    let scene = restricted(21).await;
    for caller in scene.deciders() {
        for (level, version) in [(37, "v1"), (21, "v2")] {
            let changed = caller.patch(&scene.one, json!({"restriction_level": level})).await.ok();
            assert_eq!(changed["restriction_level"], level);
            assert_eq!(changed["effective_restriction_level"], level);
            assert_eq!(changed["access_control_version"], version);
            allows(&scene.max.patch(&scene.one, json!({})).await, level == 21, NO_EDIT);
        }
    }
    for level in [json!(37), json!("37")] {
        let sent = json!({"restriction_level": level, "name": "B"});
        scene.max.patch(&scene.one, sent).await.assert_denied(RESTRICT);
    }
    assert_eq!(scene.creator.get(&scene.one).await.ok()["name"], "A");
    for level in [json!(21), json!("21")] {
        let sent = json!({"restriction_level": level, "name": "C"});
        assert_eq!(scene.max.patch(&scene.one, sent).await.ok()["name"], "C");
    }
    let wrong = scene.max.patch(&scene.one, json!({"restriction_level": 30})).await;
    wrong.assert_invalid("restriction_level", "invalid_choice", "\"30\" is not a valid choice.");
    let both = json!({"restriction_level": 37, "use_template": "A", "use_dashboard": 1});
    let detail = "`use_dashboard` and `use_template` cannot be used together";
    scene.max.patch(&scene.one, both).await.assert_bad_body(detail);
}

#[tokio::test]
async fn any_member_may_create_a_restricted_dashboard() {
    let (workspace, member) = Workspace::with_member("max", Level::Member).await;
    let made = member.post(&workspace.dashboards(""), json!({"restriction_level": 37})).await;
    assert_eq!(made.status, 201);
    let shown = ["effective_privilege_level", "user_access_level", "access_control_version"];
    assert_eq!(json!(shown.map(|name| &made.body[name])), json!([37, "manager", "v1"]));
}
