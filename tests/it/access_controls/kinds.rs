//! `/api/projects/:project_id/resource_access_controls/`: access rules on all objects of a kind. All kinds are stored and
//! shown; only those on dashboards and insights apply.

use crate::dashboards::access::{BAD_LEVEL, BEGAN, whole};
use crate::support::prelude::*;

/// All kinds, in the order of the error text.
const KINDS: &str = "\
    action, activity_log, customer_analytics, dashboard, early_access_feature, endpoint, \
    error_tracking, experiment, export, external_data_source, feature_flag, insight, \
    llm_analytics, logs, notebook, revenue_analytics, sharing_configuration, session_recording, \
    survey, tracing, warehouse_objects, web_analytics";

#[tokio::test]
async fn rules_on_every_kind_are_stored_for_everyone_members_and_roles() {
    let scene = Scene::new().await;
    let path = scene.of_all();
    let role = scene.role("Readers", &["ann"]).await;
    let member = scene.sent(Some("ann"), "none").await["organization_member"].clone();
    let mut expected = Vec::new();
    // In the reverse order of the names, because the rules are listed in the order of their creation.
    for kind in KINDS.rsplit(", ").filter(|kind| *kind != "dashboard") {
        for (member, role) in
            [(json!(null), &role), (member.clone(), &json!(null)), (json!(null), &json!(null))]
        {
            scene.clock.advance(Duration::from_secs(1));
            let sent = json!({
                "resource": kind, "organization_member": member, "role": role,
                "access_level": "viewer",
            });
            let stored = scene.admin.put(&path, sent).await.ok();
            assert_eq!(stored["created_at"], stored["updated_at"]);
            let shown = json!({
                "access_level": "viewer", "resource": kind, "resource_id": null,
                "organization_member": member, "role": role, "created_by": null,
                "created_at": stored["created_at"], "updated_at": stored["updated_at"],
            });
            assert_eq!(stored, shown);
            expected.push(shown);
        }
    }
    scene.ann.get(&path).await.assert_is(200, whole(json!(expected), "editor", "editor", false));
    // None of them says anything about dashboards.
    assert_eq!(scene.ann.get(&scene.one).await.ok()["user_access_level"], "editor");
    let controls = scene.ann.get(&scene.controls()).await;
    controls.assert_is(200, whole(json!([]), "editor", "editor", false));
    for rule in &expected {
        let mut sent = rule.clone();
        sent["access_level"] = Value::Null;
        scene.admin.put(&path, sent).await.assert_empty(204);
    }
    scene.ann.get(&path).await.assert_is(200, whole(json!([]), "editor", "editor", false));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn every_kind_has_its_levels() {
    let scene = Scene::new().await;
    let path = scene.of_all();
    for kind in KINDS.split(", ") {
        for level in ["none", "viewer", "editor", "manager"] {
            let sent = json!({ "resource": kind, "access_level": level });
            let answer = scene.admin.put(&path, sent).await;
            let bound = match (kind, level) {
                ("action", "none") => "below the minimum 'viewer' for action.",
                ("activity_log", "editor" | "manager") => {
                    "above the maximum 'viewer' for activity_log."
                }
                _ => {
                    assert_eq!(answer.ok()["access_level"], level);
                    continue;
                }
            };
            answer.assert_bad("access_level", &format!("Access level cannot be set {bound}"));
        }
        for wrong in ["member", "admin", "", "Viewer"] {
            let sent = json!({ "resource": kind, "access_level": wrong });
            scene.admin.put(&path, sent).await.assert_bad("access_level", BAD_LEVEL);
        }
    }
}

#[tokio::test]
async fn kind_is_required_and_one_of_those_in_the_error() {
    let scene = Scene::new().await;
    let detail = format!("Invalid resource. Must be one of: {KINDS}");
    let mut cases = vec![
        (json!({ "resource": 1 }), Refusal::required("access_level")),
        (json!({ "access_level": "admin" }), Refusal::invalid("access_level", BAD_LEVEL)),
        (json!({ "access_level": "none", "role": [] }), Refusal::required("resource")),
        (json!({ "access_level": null, "resource": null }), Refusal::null("resource")),
    ];
    let long = "x".repeat(10_000);
    for wrong in each(json!([
        "project", "organization", "plugin", "dashboards", "Dashboard", "", "dashboard\0", long,
        1, false, [], ["dashboard"], { "resource": "dashboard" },
    ])) {
        for level in [json!("viewer"), Value::Null] {
            let sent = json!({ "resource": wrong, "access_level": level, "role": [] });
            cases.push((sent, Refusal::invalid("resource", &detail)));
        }
    }
    scene.admin.assert_refusals(Method::PUT, &scene.of_all(), cases).await;
    let rules = scene.admin.get(&scene.of_all()).await;
    rules.assert_is(200, whole(json!([]), "editor", "manager", true));
}

#[tokio::test]
async fn rules_of_all_projects_are_apart() {
    let scene = Scene::new().await;
    let other = scene.workspace.add_project(json!({})).await;
    let other = format!("/api/projects/{other}/resource_access_controls/");
    let role = scene.role("Readers", &["ann"]).await;
    let sent = json!({ "resource": "dashboard", "role": role, "access_level": "none" });
    let stored = scene.owner().put(&other, sent).await.ok();
    assert_eq!(stored["created_at"], BEGAN);
    scene.ann.get(&scene.one).await.ok();
    let none = whole(json!([]), "editor", "editor", false);
    scene.ann.get(&scene.of_all()).await.assert_is(200, none);
    scene.ann.get(&other).await.assert_is(200, whole(json!([stored]), "editor", "none", false));
}

#[tokio::test]
async fn at_most_one_thousand_dashboards_have_rules_of_their_own() {
    let scene = Scene::new().await;
    // Each object has two rules, so that the rules do not reach the limit twice.
    fill(&scene, 2_000, |number| (Kind::Dashboard, Some(1_000_000 + number / 2))).await;
    let viewer = json!({ "access_level": "viewer" });
    let limit = "Reached the limit of 1000 dashboards with access control overrides.";
    let refused = scene.creator.put(&scene.controls(), viewer.clone()).await;
    refused.assert_invalid_body("limit_reached", limit);
    // Rules on all dashboards do not count, and deleting a rule that does not exist is no new rule.
    let all = json!({ "resource": "dashboard", "access_level": "editor" });
    scene.admin.put(&scene.of_all(), all).await.ok();
    scene.creator.put(&scene.controls(), json!({ "access_level": null })).await.assert_empty(204);
    let first = (scene.workspace.made.project_id, Kind::Dashboard, Some(1_000_007_u64));
    let freed = scene.workspace.write(move |tx| tx.remove_some::<AccessRule>(&first, 9)).await;
    assert_eq!(freed, 2);
    scene.creator.put(&scene.controls(), viewer.clone()).await.ok();
    // The limit is of objects, so that one with a rule may have more.
    scene.creator.put(&scene.controls(), scene.sent(Some("ann"), "viewer").await).await.ok();
    let (_, other) = make(&scene.workspace, &scene.creator, json!({})).await;
    let refused = scene.creator.put(&format!("{other}access_controls/"), viewer).await;
    refused.assert_invalid_body("limit_reached", limit);
}

/// Adds a rule for each of `count` users. `targets` gives the kind and the object of each.
async fn fill(
    scene: &Scene,
    count: u64,
    targets: impl Fn(u64) -> (Kind, Option<u64>) + Send + 'static,
) {
    let (organization, project) =
        (scene.workspace.made.organization_id, scene.workspace.made.project_id);
    let now = scene.workspace.app.now();
    let written = scene.workspace.write(move |tx| {
        for number in 0..count {
            let (kind, object) = targets(number);
            tx.put(&AccessRule {
                organization,
                project,
                kind,
                object,
                subject: Subject::User(UserId(1_000_000 + number)),
                level: AccessLevel::Editor,
                created_at: now,
                updated_at: now,
            })?;
        }
        Ok(())
    });
    written.await;
}

/// Asserts that one more rule reaches the limit: `other` is set, may change, and has to be deleted before `sent` is set.
async fn assert_last(scene: &Scene, path: &str, sent: Value, other: Value, limit: &str) {
    let deleted = |mut sent: Value| {
        sent["access_level"] = Value::Null;
        sent
    };
    let stored = scene.admin.put(path, other.clone()).await.ok();
    scene.admin.put(path, sent.clone()).await.assert_invalid_body("limit_reached", limit);
    scene.admin.put(path, deleted(sent.clone())).await.assert_empty(204);
    // A rule that exists may change.
    let mut lower = other.clone();
    lower["access_level"] = json!("none");
    assert_eq!(scene.admin.put(path, lower).await.ok()["created_at"], stored["created_at"]);
    scene.admin.put(path, deleted(other)).await.assert_empty(204);
    scene.admin.put(path, sent).await.ok();
}

#[tokio::test]
async fn at_most_one_thousand_rules_are_on_one_dashboard() {
    let scene = Scene::new().await;
    let controls = scene.controls();
    let (_, id) = controls.split_once("/dashboards/").expect("a path");
    let object = id.split('/').next().map(|id| id.parse().expect("a number"));
    fill(&scene, 999, move |_| (Kind::Dashboard, object)).await;
    fill(&scene, 2000, move |_| (Kind::Insight, object)).await;
    let limit = "Reached the limit of 1000 access controls on one dashboard.";
    let sent = scene.sent(Some("ann"), "viewer").await;
    assert_last(&scene, &scene.controls(), sent, json!({ "access_level": "viewer" }), limit).await;
    // Another dashboard, and all dashboards, have their own limits.
    let (_, other) = make(&scene.workspace, &scene.creator, json!({})).await;
    let viewer = json!({ "access_level": "viewer" });
    scene.creator.put(&format!("{other}access_controls/"), viewer).await.ok();
    let all = json!({ "resource": "dashboard", "access_level": "editor" });
    scene.admin.put(&scene.of_all(), all).await.ok();
}

#[tokio::test]
async fn at_most_five_thousand_rules_are_on_all_objects_of_the_kinds_of_a_project() {
    let scene = Scene::new().await;
    fill(&scene, 4999, |number| {
        (if number % 2 == 0 { Kind::Dashboard } else { Kind::Survey }, None)
    })
    .await;
    fill(&scene, 900, |_| (Kind::Dashboard, Some(1))).await;
    let limit =
        "Reached the limit of 5000 access controls on all objects of a kind in one project.";
    let rule = |kind: &str| json!({ "resource": kind, "access_level": "viewer" });
    assert_last(&scene, &scene.of_all(), rule("notebook"), rule("logs"), limit).await;
    scene.creator.put(&scene.controls(), json!({ "access_level": "viewer" })).await.ok();
}

#[tokio::test]
async fn level_on_all_objects_of_a_kind_is_that_of_the_kind_in_the_query() {
    let scene = Scene::new().await;
    let path = scene.of_all();
    scene.admin.put(&path, json!({ "resource": "insight", "access_level": "viewer" })).await.ok();
    for (query, level) in [
        ("", "editor"),
        ("?resource=", "editor"),
        ("?resource=dashboard", "editor"),
        ("?resource=insight", "viewer"),
        ("?resource=notebook", "editor"),
    ] {
        let shown = scene.ann.get(&format!("{path}{query}")).await.ok();
        assert_eq!(shown["user_access_level"], level, "{query}");
        assert_eq!(shown["access_controls"].as_array().expect("rules").len(), 1, "{query}");
    }
    let refused = scene.ann.get(&format!("{path}?resource=door")).await;
    assert_eq!((refused.status, &refused.body["code"]), (400, &json!("invalid_input")));
}
