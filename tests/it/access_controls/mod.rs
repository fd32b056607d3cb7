//! Access rules: on a project, on all objects of a kind, on one dashboard and on one insight.

mod explanation;
mod insights;
mod kinds;
mod of_insights;
mod of_members;
mod on_project;
mod order;
mod roles;

use steward::testing::resources::projects::grants::{self, GrantLevel};

use crate::support::prelude::*;

const BOB: &str = "bob@corp.example";
const MAX: &str = "max@corp.example";
const NOT_ADMIN: &str = "Must be admin to modify project permissions.";
const NOT_MANAGER: &str = "Must be manager to modify dashboard permissions.";
const NOT_ORGANIZATION_ADMIN: &str =
    "Must be an Organization admin to modify project-wide permissions.";
const BAD_MEMBER: &str = "Invalid organization member id. Use the 'id' field from the /api/organizations/<organization_id>/members/ endpoint.";
const OTHER_TARGET: &str =
    "Cannot modify access controls for a resource different from the URL target.";

/// Returns the only reason in `because` that decides.
fn decided(entry: &Value) -> &Value {
    let because = entry["because"].as_array().expect("an array");
    let decided: Vec<_> = because.iter().filter(|reason| reason["decided"] == true).collect();
    let [decided] = decided[..] else { panic!("{entry}") };
    decided
}

/// What rules are on.
struct Target {
    path: String,
    resource: &'static str,
    /// Null for all objects of the kind.
    resource_id: Value,
    /// A low and the highest level.
    levels: [&'static str; 2],
    /// The response to callers who may not set rules.
    refusal: &'static str,
}

impl Target {
    /// The first project, all dashboards in it, the first dashboard, and a new insight.
    async fn all(scene: &Scene) -> [Self; 4] {
        let (insight, [_, by_short_id]) = scene.insight().await;
        let levels = ["viewer", "manager"];
        [
            Self {
                path: scene.workspace.access_controls(),
                resource: "project",
                resource_id: json!(scene.workspace.made.project_id.to_string()),
                levels: ["member", "admin"],
                refusal: NOT_ADMIN,
            },
            Self {
                path: scene.of_all(),
                resource: "dashboard",
                resource_id: Value::Null,
                levels,
                refusal: NOT_ORGANIZATION_ADMIN,
            },
            Self {
                path: scene.controls(),
                resource: "dashboard",
                resource_id: json!(scene.id.to_string()),
                levels,
                refusal: NOT_MANAGER,
            },
            Self {
                path: format!("{by_short_id}access_controls/"),
                resource: "insight",
                resource_id: json!(insight.to_string()),
                levels,
                refusal: insights::NOT_MANAGER,
            },
        ]
    }

    fn is_project(&self) -> bool {
        self.resource == "project"
    }

    /// The request body that sets this level for a member, `{"organization_member": id}`, for a role, or for everyone.
    fn sent(&self, subject: &Value, level: impl Into<Value>) -> Value {
        let mut sent = subject.clone();
        sent["access_level"] = level.into();
        sent["resource"] = json!(self.resource);
        sent["resource_id"] = self.resource_id.clone();
        sent
    }

    /// The expected rule, created and last changed at these times.
    fn rule(&self, subject: &Value, level: &str, [created_at, updated_at]: [&Value; 2]) -> Value {
        json!({
            "access_level": level, "resource": self.resource, "resource_id": self.resource_id,
            "organization_member": subject["organization_member"], "role": subject["role"],
            "created_by": null, "created_at": created_at, "updated_at": updated_at,
        })
    }

    /// The expected response: the rules, the default level, the caller's level, and whether the caller may edit the rules.
    fn whole(&self, rules: Value, default: &str, level: &str, edits: bool) -> Value {
        let mut whole = crate::dashboards::access::whole(rules, default, level, edits);
        if self.is_project() {
            whole["available_access_levels"] = json!(["none", "member", "admin"]);
        }
        whole
    }

    /// The level of everyone without a rule.
    fn default_level(&self) -> &'static str {
        if self.is_project() { "member" } else { "editor" }
    }

    /// The levels of the listed rules, as the owner sees them.
    async fn listed(&self, scene: &Scene) -> Vec<Value> {
        let shown = scene.owner().get(&self.path).await.ok();
        column(&json!({ "results": shown["access_controls"] }), "access_level")
    }
}

#[tokio::test]
async fn target_without_rules_shows_its_default_and_a_kind_is_not_read_below_one_object() {
    let scene = Scene::new().await;
    for target in Target::all(&scene).await {
        let [_, highest] = target.levels;
        let is_one_object = !target.is_project() && !target.resource_id.is_null();
        for (caller, edits) in [
            (&scene.ann, false),
            (&scene.creator, is_one_object),
            (&scene.admin, true),
            (scene.owner(), true),
        ] {
            let level = if edits { highest } else { target.default_level() };
            let expected = target.whole(json!([]), target.default_level(), level, edits);
            caller.get(&target.path).await.assert_is(200, expected);
        }
    }
    let refusal = "Resource-level access controls can only be configured for projects.";
    for one in [scene.one.clone(), scene.insight().await.1[0].clone()] {
        let path = format!("{one}resource_access_controls/");
        for caller in [&scene.ann, scene.owner()] {
            caller.get(&path).await.assert_bad_body(refusal);
        }
        scene.rule_on(&one, Some("ann"), "none").await;
        scene.ann.get(&path).await.assert_denied(VIEWER);
    }
}

#[tokio::test]
async fn rules_of_every_target_are_created_updated_listed_and_deleted() {
    let scene = Scene::new().await;
    let owner = scene.owner();
    // Rules are listed in the order of their creation, the reverse of that of their keys.
    let subjects = [
        json!({ "organization_member": scene.workspace.membership(ANN).await }),
        json!({ "role": scene.role("Readers", &["bob"]).await }),
        json!({}),
    ];
    let targets = Target::all(&scene).await;
    let mut stored = Vec::new();
    for target in &targets {
        let [low, high] = target.levels;
        let mut rules = Vec::new();
        for subject in &subjects {
            let began = json!(scene.workspace.app.now());
            let first = target.rule(subject, low, [&began, &began]);
            let sent = target.sent(subject, low);
            owner.put(&target.path, sent.clone()).await.assert_is(200, first.clone());
            // Sending the same rule again changes nothing.
            scene.clock.advance(minute());
            scene.admin.put(&target.path, sent).await.assert_is(200, first);
            let raised = target.rule(subject, high, [&began, &json!(scene.workspace.app.now())]);
            let sent = target.sent(subject, high);
            owner.put(&target.path, sent).await.assert_is(200, raised.clone());
            rules.push(raised);
        }
        stored.push(rules);
    }
    // The default of a dashboard is the rule for everyone on all dashboards.
    let defaults = ["admin", "editor", "manager", "editor"];
    for ((target, rules), default) in targets.iter().zip(stored).zip(defaults) {
        let expected = target.whole(json!(rules), default, target.levels[1], true);
        owner.get(&target.path).await.assert_is(200, expected);
    }
    for target in &targets {
        for subject in subjects.iter().chain(&subjects) {
            owner.put(&target.path, target.sent(subject, Value::Null)).await.assert_empty(204);
        }
        let none = target.whole(json!([]), target.default_level(), target.levels[1], true);
        owner.get(&target.path).await.assert_is(200, none);
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn permission_to_set_rules_is_checked_before_fields_and_may_be_given_away() {
    let scene = Scene::new().await;
    let ann = json!({ "organization_member": scene.workspace.membership(ANN).await });
    for target in Target::all(&scene).await {
        let [low, high] = target.levels;
        let rule = target.sent(&json!({}), low);
        let nonsense = json!({ "access_level": [], "organization_member": 1, "resource": 1 });
        for sent in [&rule, &nonsense, &json!({})] {
            scene.ann.put(&target.path, sent.clone()).await.assert_denied(target.refusal);
        }
        scene.owner().put(&target.path, target.sent(&ann, high)).await.ok();
        // Managers of all dashboards do not set the rules on all of them.
        if !target.resource_id.is_null() {
            scene.ann.put(&target.path, rule.clone()).await.ok();
            scene.ann.put(&target.path, target.sent(&ann, low)).await.ok();
        }
        scene.ann.put(&target.path, rule.clone()).await.assert_denied(target.refusal);
        scene.admin.put(&target.path, rule).await.ok();
        scene.admin.put(&target.path, target.sent(&ann, Value::Null)).await.assert_empty(204);
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn fields_are_validated_in_their_order() {
    let scene = Scene::new().await;
    let nobody = Uuid::max().to_string();
    let ann = scene.workspace.membership(ANN).await;
    let both = "You can not scope an access control to both a member and a role.";
    for target in Target::all(&scene).await {
        let low = target.levels[0];
        let levels = if target.is_project() { "member, admin" } else { "viewer, editor, manager" };
        let bad_level = format!("Invalid access level. Must be one of: none, {levels}");
        let mut without_level = target.sent(&json!({ "organization_member": [] }), low);
        without_level.as_object_mut().expect("an object").remove("access_level");
        let mut cases = vec![(without_level, Refusal::required("access_level"))];
        for (level, subject, refusal) in [
            (json!("owner"), json!([[], null]), Refusal::invalid("access_level", &bad_level)),
            (json!(null), json!(["x", "x"]), Refusal::invalid("organization_member", BAD_MEMBER)),
            (json!(null), json!([nobody, "x"]), Refusal::invalid("role", BAD_UUID)),
            (json!(low), json!([ann, nobody]), Refusal::of_body("invalid_input", both)),
            (json!(null), json!([nobody, nobody]), Refusal::of_body("invalid_input", both)),
        ] {
            let subject = json!({ "organization_member": subject[0], "role": subject[1] });
            cases.push((target.sent(&subject, level), refusal));
        }
        let long = "x".repeat(10_000);
        for wrong in each(json!([8.5, -1, true, [], ["member"], {}, "", "x", "Member\0", long])) {
            let sent = target.sent(&json!({}), wrong.clone());
            cases.push((sent, Refusal::invalid("access_level", &bad_level)));
            for (name, detail) in [("organization_member", BAD_MEMBER), ("role", BAD_UUID)] {
                let sent = target.sent(&json!({ name: wrong }), low);
                cases.push((sent, Refusal::invalid(name, detail)));
            }
        }
        // An integer is a valid UUID.
        for name in ["organization_member", "role"] {
            let first = "00000000-0000-0000-0000-000000000001";
            cases.push((target.sent(&json!({ name: 1 }), low), Refusal::unknown(name, first)));
        }
        let list = "Invalid data. Expected a dictionary, but got list.";
        cases.push((json!([]), Refusal::of_body("invalid_input", list)));
        scene.owner().assert_refusals(Method::PUT, &target.path, cases).await;
        assert!(target.listed(&scene).await.is_empty());
    }
}

#[tokio::test]
async fn rules_name_only_members_and_roles_of_the_organization() {
    let scene = Scene::new().await;
    let (eve, other) = scene.workspace.outsider("eve").await;
    let theirs = format!("/api/organizations/{}/", other["id"].as_str().expect("an id"));
    let their_role = eve.post(&format!("{theirs}roles/"), json!({ "name": "Theirs" })).await.ok();
    let their_member = eve.get(&format!("{theirs}members/")).await.ok()["results"][0].clone();
    let deleted = scene.role("Gone", &[]).await;
    scene.owner().delete(&scene.role_path(&deleted)).await.assert_empty(204);
    let user = json!(scene.workspace.uuid(ANN).await);
    let inactive = scene.workspace.membership(MAX).await;
    scene.workspace.set_active(MAX, false).await;
    let gone = scene.workspace.membership(BOB).await;
    scene.leave("bob").await;
    let nobody = json!(Uuid::max().to_string());
    for target in Target::all(&scene).await {
        let mut cases = Vec::new();
        for (name, id) in [
            ("organization_member", &their_member["id"]),
            ("organization_member", &user),
            ("organization_member", &inactive),
            ("organization_member", &gone),
            ("organization_member", &nobody),
            ("role", &their_role["id"]),
            ("role", &deleted),
            ("role", &nobody),
        ] {
            for level in [json!(target.levels[0]), Value::Null] {
                let sent = target.sent(&json!({ name: id }), level);
                cases.push((sent, Refusal::unknown(name, id.as_str().expect("an id"))));
            }
        }
        scene.owner().assert_refusals(Method::PUT, &target.path, cases).await;
        assert!(target.listed(&scene).await.is_empty());
        let own = scene.workspace.membership(ANN).await;
        let upper = own.as_str().expect("an id").to_uppercase();
        let sent = target.sent(&json!({ "organization_member": upper }), target.levels[0]);
        assert_eq!(scene.owner().put(&target.path, sent).await.ok()["organization_member"], own);
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rules_end_with_the_membership_and_are_hidden_while_the_user_is_inactive() {
    let scene = Scene::new().await;
    let targets = Target::all(&scene).await;
    for target in &targets {
        for (email, level) in [(ANN, target.levels[1]), (BOB, target.levels[0])] {
            let subject = json!({ "organization_member": scene.workspace.membership(email).await });
            scene.owner().put(&target.path, target.sent(&subject, level)).await.ok();
        }
        scene.workspace.set_active(BOB, false).await;
        assert_eq!(target.listed(&scene).await, [target.levels[1]]);
        scene.workspace.set_active(BOB, true).await;
        assert_eq!(target.listed(&scene).await.len(), 2);
    }
    scene.leave("ann").await;
    scene.ann.get(&scene.controls()).await.assert_denied(NO_ACCESS);
    scene.workspace.rejoin(ANN, Level::Member).await;
    for target in &targets {
        assert_eq!(target.listed(&scene).await, [target.levels[0]]);
        scene.ann.put(&target.path, json!({})).await.assert_denied(target.refusal);
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rules_of_missing_and_deleted_objects_return_404() {
    let scene = Scene::new().await;
    let (insight, [by_number, by_short_id]) = scene.insight().await;
    for one in [&by_number, &scene.one] {
        scene.creator.patch(one, json!({ "deleted": true })).await.ok();
    }
    let beside = scene.workspace.add_project(json!({})).await;
    for one in [
        scene.one.clone(),
        by_number,
        by_short_id,
        format!("/api/projects/{beside}/dashboards/{}/", scene.id),
        format!("/api/projects/{beside}/insights/{insight}/"),
        scene.workspace.dashboards("999999/"),
        scene.workspace.dashboards("x/"),
        format!("{}999999/", scene.insights()),
        format!("{}no-such/", scene.insights()),
    ] {
        for below in ["access_controls/", "resource_access_controls/", "access/"] {
            scene.owner().get(&format!("{one}{below}")).await.assert_not_found("Not found.");
        }
        let path = format!("{one}access_controls/");
        for sent in [json!({}), json!({ "access_level": "none" })] {
            scene.owner().put(&path, sent).await.assert_not_found("Not found.");
        }
    }
}

#[tokio::test]
async fn body_that_names_another_object_than_the_path_is_rejected() {
    let scene = Scene::new().await;
    let [.., dashboard, insight] = Target::all(&scene).await;
    for (target, other) in [(&dashboard, "insight"), (&insight, "dashboard")] {
        let id = target.resource_id.as_str().expect("an id");
        let next = id.parse::<u64>().expect("a number") + 1;
        let kinds = json!([other, "project", "", { "dashboard": 1 }]);
        let ids = json!([next.to_string(), next, format!("0{id}"), "x".repeat(10_000), [id]]);
        for (name, wrongs) in [("resource", kinds), ("resource_id", ids)] {
            for wrong in each(wrongs) {
                for level in [json!("none"), Value::Null] {
                    let sent = json!({ "access_level": level, name: wrong });
                    scene.creator.put(&target.path, sent).await.assert_denied(OTHER_TARGET);
                }
            }
        }
        let number = id.parse::<u64>().expect("a number");
        for (resource, id) in [(json!(null), json!(null)), (json!(target.resource), json!(number))]
        {
            let sent = json!({ "access_level": "none", "resource": resource, "resource_id": id });
            scene.creator.put(&target.path, sent).await.ok();
        }
        // The level is checked first, and permission before both.
        let sent = json!({ "access_level": "owner", "resource": other });
        assert_eq!(scene.creator.put(&target.path, sent).await.body["attr"], "access_level");
    }
}

#[tokio::test]
async fn role_deleted_while_it_gets_a_rule_leaves_no_rule() {
    let scene = Scene::new().await;
    for (at, path) in [scene.workspace.access_controls(), scene.controls()].iter().enumerate() {
        for round in 0..8 {
            let role = scene.role(&format!("R{at}{round}"), &["ann"]).await;
            let put = scene.owner().put(path, json!({ "role": role, "access_level": "none" }));
            let gone = scene.role_path(&role);
            let deleted = scene.admin.delete(&gone);
            let (put, deleted) = if round % 2 == 0 {
                tokio::join!(put, deleted)
            } else {
                let (deleted, put) = tokio::join!(deleted, put);
                (put, deleted)
            };
            deleted.assert_empty(204);
            if put.status != 200 {
                let id = role.as_str().expect("an id");
                let detail = format!("Invalid pk \"{id}\" - object does not exist.");
                put.assert_invalid("role", "does_not_exist", &detail);
            }
            assert_eq!(scene.owner().get(path).await.ok()["access_controls"], json!([]));
        }
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn concurrently_revoked_project_admin_is_rejected_inside_the_write() {
    let scene = Scene::new().await;
    let path = scene.workspace.access_controls();
    let lost = scene.sent(Some("ann"), Value::Null).await;
    let bobs = scene.sent(Some("bob"), "member").await;
    for _ in 0..20 {
        scene.grant("ann", "admin").await;
        scene.grant("bob", Value::Null).await;
        // The project is open, so Ann passes the access check in both cases. Only the rule refuses her.
        let (taken, put) = tokio::join!(
            scene.owner().put(&path, lost.clone()),
            scene.ann.put(&path, bobs.clone()),
        );
        taken.assert_empty(204);
        let rules = scene.owner().get(&path).await.ok()["access_controls"].clone();
        if put.status == 200 {
            assert_eq!(rules[0]["access_level"], "member");
        } else {
            put.assert_denied(NOT_ADMIN);
            assert_eq!(rules, json!([]));
        }
        scene.ann.put(&path, bobs.clone()).await.assert_denied(NOT_ADMIN);
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn access_granted_by_an_invite_never_lowers_an_existing_grant() {
    let scene = Scene::new().await;
    let [on_project, ..] = Target::all(&scene).await;
    let organization = scene.workspace.made.organization_id;
    let project = scene.workspace.made.project_id;
    let user = UserId(scene.ann.get(ME).await.ok()["id"].as_u64().expect("an id"));
    for (of, level, levels) in [
        (project, GrantLevel::None, &[][..]),
        (project, GrantLevel::Member, &["member"]),
        (project, GrantLevel::None, &["member"]),
        (project, GrantLevel::Admin, &["admin"]),
        (project, GrantLevel::Member, &["admin"]),
        (ProjectId(999), GrantLevel::Admin, &["admin"]),
    ] {
        let raised = scene
            .workspace
            .app
            .operate(move |tx, now| grants::raise(tx, organization, of, user, level, now))
            .await;
        raised.expect("the grant is written");
        assert_eq!(on_project.listed(&scene).await, levels);
    }
    scene.workspace.assert_file_valid().await;
}
