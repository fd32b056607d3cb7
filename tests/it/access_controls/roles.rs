//! Access rules that name a role, on one dashboard and on all of them.

use steward::testing::resources::access_controls::BY_ROLE;

use crate::dashboards::access::whole;
use crate::support::prelude::*;

impl Scene {
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
    scene.workspace.rejoin(ANN, Level::Member).await;
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
        caller.put(&scene.controls(), json!({ "role": role, "access_level": "none" })).await.ok();
        let rules = caller.get(&scene.controls()).await.ok();
        assert_eq!(rules["user_access_level"], "manager");
        assert_eq!(rules["user_can_edit_access_levels"], true);
    }
    // The creator can still open the dashboard to others.
    scene.creator.put(&scene.controls(), json!({ "access_level": null })).await.assert_empty(204);
    scene.creator.put(&scene.controls(), scene.sent(Some("ann"), "viewer").await).await.ok();
    scene.ann.get(&scene.one).await.ok();
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
