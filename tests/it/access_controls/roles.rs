//! Access rules that name a role, on one dashboard and on all of them.

use futures_util::future::join;
use serde_json::{Value, json};
use steward::testing::ids::{ProjectId, RoleId};
use steward::testing::operator::Operation;
use steward::testing::resources::access_controls::levels::AccessLevel;
use steward::testing::resources::access_controls::rules::{AccessRule, BY_ROLE};
use steward::testing::resources::access_objects::Kind;
use steward::testing::resources::access_subject::Subject;
use steward::testing::resources::cascade_delete;
use steward::testing::store::Tx;

use crate::dashboards::access::{BEGAN, BOTH, EDITOR, Scene, VIEWER, allows, minute, whole};
use crate::dashboards::make;

impl Scene {
    /// Creates a role with these members, and returns its id.
    pub async fn role(&self, name: &str, members: &[&str]) -> Value {
        let roles = self.workspace.organization("roles/");
        let role = self.owner().post(&roles, json!({ "name": name })).await.ok()["id"].clone();
        for member in members {
            self.join(&role, member).await;
        }
        role
    }

    fn role_path(&self, role: &Value) -> String {
        let role = role.as_str().expect("an id");
        self.workspace.organization(&format!("roles/{role}/"))
    }

    /// Adds a member to a role, and returns the path of the role membership.
    async fn join(&self, role: &Value, member: &str) -> String {
        let path = format!("{}role_memberships/", self.role_path(role));
        let user = self.workspace.uuid(&format!("{member}@corp.example")).await;
        let made = self.owner().post(&path, json!({ "user_uuid": user })).await.ok();
        format!("{path}{}/", made["id"].as_str().expect("an id"))
    }

    /// Sets the role's rule on the first dashboard as the owner. A null level deletes it.
    async fn role_rule(&self, role: &Value, level: impl Into<Value>) {
        let sent = json!({ "role": role, "access_level": level.into() });
        self.owner().put(&self.controls(), sent).await.ok();
    }

    /// Sets the role's rule on all dashboards as the owner. A null level deletes it.
    async fn role_rule_on_all(&self, role: &Value, level: impl Into<Value>) {
        let sent = json!({ "resource": "dashboard", "role": role, "access_level": level.into() });
        self.owner().put(&self.of_all(), sent).await.ok();
    }

    /// The level of Ann on the first dashboard; `none` if she may not see it. Also asserts that the list agrees.
    async fn level_of_ann(&self) -> Value {
        let list = self.ann.get(&self.workspace.dashboards("")).await;
        let detail = self.ann.get(&self.one).await;
        if detail.status == 403 {
            detail.assert_denied(VIEWER);
            if list.status == 200 {
                assert_eq!(list.ok()["count"], 0);
            }
            return json!("none");
        }
        let level = detail.ok()["user_access_level"].clone();
        assert_eq!(list.ok()["results"][0]["user_access_level"], level);
        level
    }
}

/// The expected rule of a role on a dashboard, or on all.
fn shown(id: Option<u64>, role: &Value, level: &str, moments: [&str; 2]) -> Value {
    json!({
        "access_level": level,
        "resource": "dashboard",
        "resource_id": id.map(|id| id.to_string()),
        "organization_member": null,
        "role": role,
        "created_by": null,
        "created_at": moments[0],
        "updated_at": moments[1],
    })
}

#[tokio::test]
async fn rule_of_a_role_is_created_updated_listed_and_deleted() {
    for on_all in [false, true] {
        let scene = Scene::new().await;
        let role = scene.role("Readers", &["ann"]).await;
        let (path, id) =
            if on_all { (scene.of_all(), None) } else { (scene.controls(), Some(scene.id)) };
        // As the Terraform provider sends it.
        let sent = |level: Value| {
            json!({
                "resource": "dashboard", "resource_id": id.map(|id| id.to_string()),
                "organization_member": null, "role": role, "access_level": level,
            })
        };
        let first = shown(id, &role, "viewer", [BEGAN, BEGAN]);
        scene.owner().put(&path, sent(json!("viewer"))).await.assert_is(200, first.clone());
        scene.clock.advance(minute());
        scene.owner().put(&path, sent(json!("viewer"))).await.assert_is(200, first);
        let raised = shown(id, &role, "manager", [BEGAN, "2025-01-02T03:05:05Z"]);
        scene.owner().put(&path, sent(json!("manager"))).await.assert_is(200, raised.clone());
        let listed = whole(json!([raised]), "editor", "manager", !on_all);
        scene.ann.get(&path).await.assert_is(200, listed);
        for _ in 0..2 {
            scene.owner().put(&path, sent(Value::Null)).await.assert_empty(204);
            let none = whole(json!([]), "editor", "editor", false);
            scene.ann.get(&path).await.assert_is(200, none);
        }
        scene.workspace.assert_file_valid().await;
    }
}

#[tokio::test]
async fn unknown_foreign_and_deleted_roles_are_rejected() {
    let scene = Scene::new().await;
    let deleted = scene.role("Gone", &[]).await;
    scene.owner().delete(&scene.role_path(&deleted)).await.assert_empty(204);
    let (eve, foreign) = scene.workspace.outsider("eve").await;
    let theirs = foreign["id"].as_str().expect("an id");
    let theirs = format!("/api/organizations/{theirs}/roles/");
    let foreign = eve.post(&theirs, json!({ "name": "Theirs" })).await.ok()["id"].clone();
    let unknown = json!(uuid::Uuid::max().to_string());
    let own = scene.role("Own", &[]).await;
    let member = scene.sent(Some("ann"), "none").await["organization_member"].clone();
    for path in [scene.controls(), scene.of_all()] {
        for role in [&deleted, &foreign, &unknown] {
            for level in [json!("none"), Value::Null] {
                let sent = json!({ "access_level": level, "resource": "dashboard", "role": role });
                let id = role.as_str().expect("an id");
                let detail = format!("Invalid pk \"{id}\" - object does not exist.");
                let answer = scene.owner().put(&path, sent).await;
                answer.assert_invalid("role", "does_not_exist", &detail);
            }
        }
        for wrong in [json!("x"), json!([]), json!({}), json!(true), json!(1.5), json!("")] {
            let sent = json!({ "access_level": "none", "resource": "dashboard", "role": wrong });
            let answer = scene.owner().put(&path, sent).await;
            answer.assert_invalid("role", "invalid_input", "Must be a valid UUID.");
        }
        let sent = json!({
            "access_level": "none", "resource": "dashboard",
            "organization_member": member, "role": own,
        });
        scene.owner().put(&path, sent).await.assert_invalid_body("invalid_input", BOTH);
        let rules = scene.owner().get(&path).await.ok();
        assert_eq!(rules["access_controls"], json!([]));
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn highest_rule_of_a_members_roles_and_their_own_counts() {
    let scene = Scene::new().await;
    let low = scene.role("Low", &["ann"]).await;
    let high = scene.role("High", &["ann"]).await;
    let other = scene.role("Other", &["bob"]).await;
    scene.role_rule(&other, "manager").await;
    scene.role_rule_on_all(&other, "manager").await;
    assert_eq!(scene.level_of_ann().await, "editor");
    scene.role_rule(&low, "none").await;
    assert_eq!(scene.level_of_ann().await, "none");
    scene.role_rule(&high, "viewer").await;
    assert_eq!(scene.level_of_ann().await, "viewer");
    scene.rule(Some("ann"), "none").await;
    assert_eq!(scene.level_of_ann().await, "viewer");
    scene.rule(Some("ann"), "manager").await;
    assert_eq!(scene.level_of_ann().await, "manager");
    scene.rule(Some("ann"), Value::Null).await;
    scene.role_rule(&high, Value::Null).await;

    // Rules on the dashboard precede rules on all dashboards.
    scene.role_rule_on_all(&high, "manager").await;
    assert_eq!(scene.level_of_ann().await, "none");
    scene.role_rule(&low, Value::Null).await;
    scene.role_rule_on_all(&low, "none").await;
    scene.rule_on_all(Some("ann"), "viewer").await;
    assert_eq!(scene.level_of_ann().await, "manager");
    scene.role_rule_on_all(&high, Value::Null).await;
    assert_eq!(scene.level_of_ann().await, "viewer");
    // They precede the rules for everyone.
    scene.rule_on_all(Some("ann"), Value::Null).await;
    scene.rule_on_all(None, "manager").await;
    scene.rule(None, "manager").await;
    assert_eq!(scene.level_of_ann().await, "none");
    scene.role_rule_on_all(&low, Value::Null).await;
    assert_eq!(scene.level_of_ann().await, "manager");
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rule_of_a_role_opens_one_dashboard_although_all_are_hidden() {
    let scene = Scene::new().await;
    let role = scene.role("Guests", &["ann"]).await;
    let (_, other) = make(&scene.workspace, scene.owner(), json!({ "name": "B" })).await;
    let list = scene.workspace.dashboards("");
    for hidden_from in [None, Some(&role)] {
        match hidden_from {
            None => scene.rule_on_all(None, "none").await,
            Some(role) => scene.role_rule_on_all(role, "none").await,
        }
        scene.ann.get(&list).await.assert_denied(VIEWER);
        scene.role_rule(&role, "editor").await;
        let seen = scene.ann.get(&list).await.ok();
        assert_eq!((&seen["count"], &seen["results"][0]["id"]), (&json!(1), &json!(scene.id)));
        scene.ann.patch(&scene.one, json!({ "name": "A" })).await.ok();
        scene.ann.get(&other).await.assert_denied(VIEWER);
        scene.ann.post(&list, json!({})).await.assert_denied(EDITOR);
        scene.role_rule(&role, Value::Null).await;
        scene.rule_on_all(None, Value::Null).await;
    }
    // Bob has no role, so that the role's rule does not concern him.
    assert_eq!(scene.bob.get(&list).await.ok()["count"], 2);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn role_decides_who_creates_dashboards() {
    let scene = Scene::new().await;
    let role = scene.role("Makers", &["ann"]).await;
    let list = scene.workspace.dashboards("");
    for (everyone, of_role, makes) in [
        ("editor", "viewer", false),
        ("editor", "none", false),
        ("viewer", "editor", true),
        ("none", "manager", true),
    ] {
        scene.rule_on_all(None, everyone).await;
        scene.role_rule_on_all(&role, of_role).await;
        allows(&scene.ann.post(&list, json!({})).await, makes, EDITOR);
        allows(&scene.bob.post(&list, json!({})).await, everyone == "editor", EDITOR);
        scene.admin.post(&list, json!({})).await.ok();
    }
}

#[tokio::test]
async fn leaving_a_role_or_deleting_it_takes_effect_at_once() {
    let scene = Scene::new().await;
    let role = scene.role("Hidden", &[]).await;
    scene.role_rule(&role, "none").await;
    scene.role_rule_on_all(&role, "viewer").await;
    assert_eq!(scene.level_of_ann().await, "editor");
    let membership = scene.join(&role, "ann").await;
    assert_eq!(scene.level_of_ann().await, "none");
    scene.role_rule(&role, Value::Null).await;
    assert_eq!(scene.level_of_ann().await, "viewer");
    scene.owner().delete(&membership).await.assert_empty(204);
    assert_eq!(scene.level_of_ann().await, "editor");

    // Leaving the organization ends the role membership, so that it does not apply after a return.
    scene.join(&role, "ann").await;
    scene.leave("ann").await;
    scene.come_back("ann").await;
    assert_eq!(scene.level_of_ann().await, "editor");
    scene.join(&role, "ann").await;
    scene.role_rule(&role, "manager").await;
    assert_eq!(scene.level_of_ann().await, "manager");
    scene.owner().delete(&scene.role_path(&role)).await.assert_empty(204);
    assert_eq!(scene.level_of_ann().await, "editor");
    for path in [scene.controls(), scene.of_all()] {
        assert_eq!(scene.owner().get(&path).await.ok()["access_controls"], json!([]));
    }
    // A new role with the same name has no rules.
    scene.role("Hidden", &["ann"]).await;
    assert_eq!(scene.level_of_ann().await, "editor");
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rules_never_lock_out_creator_admins_and_owner() {
    let scene = Scene::new().await;
    let role = scene.role("All", &["ann", "bob", "cleo", "max", "ada", "owner"]).await;
    for name in [None, Some("ann"), Some("bob"), Some("cleo"), Some("max"), Some("ada")] {
        scene.rule(name, "none").await;
        scene.rule_on_all(name, "none").await;
    }
    scene.role_rule(&role, "none").await;
    scene.role_rule_on_all(&role, "none").await;
    for caller in [&scene.ann, &scene.bob, &scene.max] {
        caller.get(&scene.one).await.assert_denied(VIEWER);
    }
    for caller in [&scene.creator, &scene.admin, scene.owner()] {
        assert_eq!(caller.get(&scene.one).await.ok()["user_access_level"], "manager");
        caller.patch(&scene.one, json!({ "name": "A" })).await.ok();
        assert_eq!(caller.get(&scene.workspace.dashboards("")).await.ok()["count"], 1);
        let sent = json!({ "role": role, "access_level": "none" });
        caller.put(&scene.controls(), sent).await.ok();
        let rules = caller.get(&scene.controls()).await.ok();
        assert_eq!(
            (&rules["user_access_level"], &rules["user_can_edit_access_levels"]),
            (&json!("manager"), &json!(true))
        );
    }
    // The creator can still open the dashboard to others.
    scene.creator.put(&scene.controls(), json!({ "access_level": null })).await.assert_empty(204);
    let sent = scene.sent(Some("ann"), "viewer").await;
    scene.creator.put(&scene.controls(), sent).await.ok();
    scene.ann.get(&scene.one).await.ok();
}

#[tokio::test]
async fn manager_by_a_role_sets_rules_and_may_lose_that_right() {
    let scene = Scene::new().await;
    let role = scene.role("Managers", &["ann"]).await;
    let lowered = json!({ "role": role, "access_level": "viewer" });
    let manager = "Must be manager to modify dashboard permissions.";
    scene.ann.put(&scene.controls(), lowered.clone()).await.assert_denied(manager);
    scene.role_rule_on_all(&role, "manager").await;
    scene.ann.put(&scene.controls(), lowered.clone()).await.ok();
    scene.ann.put(&scene.controls(), lowered).await.assert_denied(manager);
    // Managers of all dashboards do not set the rules on all of them.
    scene.role_rule(&role, Value::Null).await;
    let sent = json!({ "resource": "dashboard", "access_level": "none" });
    let admin = "Must be an Organization admin to modify project-wide permissions.";
    scene.ann.put(&scene.of_all(), sent).await.assert_denied(admin);
}

#[tokio::test]
async fn role_with_many_rules_has_no_effect_at_once_and_its_rules_are_deleted_in_batches() {
    let scene = Scene::new().await;
    let role = scene.role("Hidden", &["ann"]).await;
    let id: RoleId = serde_json::from_value(role.clone()).expect("an id");
    let (organization, first) =
        (scene.workspace.made.organization_id, scene.workspace.made.project_id);
    let mut projects = vec![first];
    for _ in 0..30 {
        let made = scene.owner().post(&scene.workspace.organization("projects/"), json!({})).await;
        projects.push(ProjectId(made.ok()["id"].as_u64().expect("an id")));
    }
    let (store, now) = (scene.workspace.app.store(), scene.workspace.app.now());
    let written = store.write(move |tx| {
        for (project, kind) in
            projects.iter().flat_map(|project| Kind::ALL.iter().map(move |kind| (*project, *kind)))
        {
            tx.put(&AccessRule {
                organization,
                project,
                kind,
                object: None,
                subject: Subject::Role(id),
                level: AccessLevel::None,
                created_at: now,
                updated_at: now,
            })?;
        }
        Ok(())
    });
    written.await.expect("written");
    scene.role_rule(&role, "viewer").await;
    assert_eq!(scene.level_of_ann().await, "viewer");
    let left = || {
        let tx = store.snapshot().expect("a snapshot");
        tx.keys(&BY_ROLE, &(organization, id), usize::MAX).expect("read").len()
    };
    assert_eq!(left(), 31 * 22 + 1);
    let deleted = store.write(move |tx| cascade_delete::delete_role(tx, organization, id, now));
    deleted.await.expect("deleted");
    assert_eq!(left(), 31 * 22 + 1 - 500);
    scene.workspace.assert_file_valid().await;
    let projects = scene.owner().get(&scene.workspace.organization("projects/")).await.ok();
    for project in projects["results"].as_array().expect("a list") {
        let at = format!("/api/projects/{}/", project["id"]);
        let rules = scene.ann.get(&format!("{at}resource_access_controls/")).await;
        rules.assert_is(200, whole(json!([]), "editor", "editor", false));
        scene.ann.get(&format!("{at}dashboards/")).await.ok();
    }
    assert_eq!(scene.level_of_ann().await, "editor");
    let controls = scene.ann.get(&scene.controls()).await;
    controls.assert_is(200, whole(json!([]), "editor", "editor", false));
    while store.write(cascade_delete::delete_batch).await.expect("deleted") {
        scene.workspace.assert_file_valid().await;
    }
    assert_eq!(left(), 0);
}

#[tokio::test]
async fn role_deleted_while_it_gets_a_rule_leaves_no_rule() {
    let scene = Scene::new().await;
    for round in 0..12 {
        let role = scene.role(&format!("R{round}"), &["ann"]).await;
        let sent = json!({ "role": role, "access_level": "none" });
        let (path, gone) = (scene.controls(), scene.role_path(&role));
        let (put, deleted) = if round % 2 == 0 {
            join(scene.owner().put(&path, sent), scene.admin.delete(&gone)).await
        } else {
            let (deleted, put) =
                join(scene.admin.delete(&gone), scene.owner().put(&path, sent)).await;
            (put, deleted)
        };
        deleted.assert_empty(204);
        if put.status != 200 {
            let id = role.as_str().expect("an id");
            let detail = format!("Invalid pk \"{id}\" - object does not exist.");
            put.assert_invalid("role", "does_not_exist", &detail);
        }
        assert_eq!(scene.level_of_ann().await, "editor");
        assert_eq!(scene.owner().get(&path).await.ok()["access_controls"], json!([]));
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn inactive_members_keep_their_roles() {
    let scene = Scene::new().await;
    let role = scene.role("Readers", &["ann"]).await;
    scene.role_rule(&role, "viewer").await;
    for active in [false, true] {
        let email = "ann@corp.example".to_owned();
        scene.workspace.run_operation(Operation::UserSetActive { email, active }).await;
        let rules = scene.owner().get(&scene.controls()).await.ok();
        assert_eq!(rules["access_controls"].as_array().map(Vec::len), Some(1));
    }
    assert_eq!(scene.level_of_ann().await, "viewer");
}

#[tokio::test]
async fn activity_log_names_the_role_of_a_rule() {
    let scene = Scene::new().await;
    let role = scene.role("Readers", &["ann"]).await;
    scene.role_rule(&role, "viewer").await;
    scene.clock.advance(minute());
    scene.role_rule_on_all(&role, "editor").await;
    scene.clock.advance(minute());
    scene.role_rule(&role, Value::Null).await;
    let log = scene.workspace.organization("activity_log/?scope=AccessControl");
    let entries = scene.owner().get(&log).await.ok()["results"].clone();
    let (project, id) = (scene.workspace.made.project_id, scene.id);
    let role = role.as_str().expect("an id");
    let one = format!("{project}:dashboard:{id}:{role}");
    let all = format!("{project}:dashboard:*:{role}");
    let found: Vec<_> = entries
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| (entry["activity"].clone(), entry["item_id"].clone()))
        .collect();
    let of = |activity: &str, item: &str| (json!(activity), json!(item));
    assert_eq!(found, [of("deleted", &one), of("created", &all), of("created", &one)]);
    // An entry about a dashboard that the reader may not see is hidden.
    scene.rule(Some("bob"), "none").await;
    let log = format!("/api/projects/{project}/activity_log/?scope=AccessControl");
    let seen = scene.bob.get(&log).await.ok();
    assert_eq!((&seen["count"], &seen["results"][0]["item_id"]), (&json!(1), &json!(all)));
}
