//! `/api/projects/:project_id/access_controls/`: the levels of single members on a project. What a grant
//! allows is tested in `private_projects`.

mod explanation;
mod insights;
mod kinds;
mod of_insights;
mod of_members;
mod on_project;
mod order;
mod resources;
mod roles;

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use steward::Config;
use steward::testing::ids::{ProjectId, UserId};
use steward::testing::operator::{Operation, OrganizationOptions, UserOptions};
use steward::testing::resources::members::Level;
use steward::testing::resources::projects::grants::{self, GrantLevel};
use steward::testing::time::{Clock, ManualClock, Timestamp};

use crate::projects::column;
use crate::support::{OWNER, TestClient, Workspace};

const ADAM: &str = "adam@corp.example";
const ANN: &str = "ann@corp.example";
const BOB: &str = "bob@corp.example";
const NOT_ADMIN: &str = "Must be admin to modify project permissions.";
const NO_ACCESS: &str = "You don't have access to the project.";
const BAD_LEVEL: &str = "Invalid access level. Must be one of: none, member, admin";
const BAD_UUID: &str = "Must be a valid UUID.";
const BAD_MEMBER: &str = "Invalid organization member id. Use the 'id' field from the /api/organizations/<organization_id>/members/ endpoint.";
const REQUIRED: &str = "This field is required.";
const BOTH: &str = "You can not scope an access control to both a member and a role.";
const BEGAN: &str = "2025-01-02T03:04:05Z";

/// A workspace with an admin and two members, and the access controls of its first project.
struct Scene {
    workspace: Workspace,
    clock: ManualClock,
    adam: TestClient,
    ann: TestClient,
    bob: TestClient,
    path: String,
}

impl Scene {
    async fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_735_787_045_000_000));
        let mut config = Config::default();
        config.clock = Clock::Manual(clock.clone());
        let workspace = Workspace::with(config).await;
        let adam = workspace.member("adam", Level::Admin).await;
        let ann = workspace.member("ann", Level::Member).await;
        let bob = workspace.member("bob", Level::Member).await;
        let path = workspace.access_controls();
        Self { workspace, clock, adam, ann, bob, path }
    }

    fn owner(&self) -> &TestClient {
        &self.workspace.owner
    }

    /// The request body that sets this level for the member with this address.
    async fn rule(&self, email: &str, level: impl Into<Value>) -> Value {
        let member = self.workspace.membership(email).await;
        json!({ "organization_member": member, "access_level": level.into() })
    }

    /// Sets a level as the owner. Null deletes the rule.
    async fn give(&self, email: &str, level: impl Into<Value>) {
        let rule = self.rule(email, level).await;
        self.owner().put(&self.path, rule).await.ok();
    }

    async fn make_private(&self, private: bool) {
        let project = format!("/api/projects/{}/", self.workspace.made.project_id);
        self.owner().patch(&project, json!({ "access_control": private })).await.ok();
    }

    /// The expected rule, created and last changed at these times.
    async fn shown(&self, email: &str, level: &str, moments: [&str; 2]) -> Value {
        json!({
            "access_level": level,
            "resource": "project",
            "resource_id": self.workspace.made.project_id.to_string(),
            "organization_member": self.workspace.membership(email).await,
            "role": null,
            "created_by": null,
            "created_at": moments[0],
            "updated_at": moments[1],
        })
    }

    /// The levels of all rules for members in the order of the response, as the owner sees them.
    async fn levels(&self) -> Value {
        let shown = self.owner().get(&self.path).await.ok();
        let rules = shown["access_controls"].as_array().expect("a list").iter();
        let rules = rules.filter(|rule| !rule["organization_member"].is_null());
        rules.map(|rule| rule["access_level"].clone()).collect()
    }
}

/// The expected response: the rules, the default level, the caller's level, and whether the caller may edit
/// the rules.
fn whole(rules: Value, default: &str, level: &str, edits: bool) -> Value {
    json!({
        "access_controls": rules,
        "available_access_levels": ["none", "member", "admin"],
        "default_access_level": default,
        "user_access_level": level,
        "user_can_edit_access_levels": edits,
    })
}

/// The expected rule for everyone, created and last changed at these times.
fn project_rule(scene: &Scene, level: &str, moments: [&str; 2]) -> Value {
    json!({
        "access_level": level,
        "resource": "project",
        "resource_id": scene.workspace.made.project_id.to_string(),
        "organization_member": null,
        "role": null,
        "created_by": null,
        "created_at": moments[0],
        "updated_at": moments[1],
    })
}

#[tokio::test]
async fn project_without_rules_shows_its_default_and_the_callers_level() {
    let scene = Scene::new().await;
    let bare = scene.path.trim_end_matches('/');
    for (caller, level, edits) in [
        (&scene.ann, "member", false),
        (&scene.adam, "admin", true),
        (scene.owner(), "admin", true),
    ] {
        for path in [&scene.path, bare, "/api/projects/@current/access_controls/"] {
            caller.get(path).await.assert_is(200, whole(json!([]), "member", level, edits));
        }
        caller.send(Method::HEAD, &scene.path, None).await.ok();
    }
    scene.make_private(true).await;
    scene.ann.get(&scene.path).await.assert_denied(NO_ACCESS);
    let default = project_rule(&scene, "none", [BEGAN, BEGAN]);
    for caller in [&scene.adam, scene.owner()] {
        let expected = whole(json!([default]), "none", "admin", true);
        caller.get(&scene.path).await.assert_is(200, expected);
    }
}

#[tokio::test]
async fn access_rule_is_created_updated_and_deleted() {
    let scene = Scene::new().await;
    let (owner, path) = (scene.owner(), &scene.path);
    let member = scene.rule(ANN, "member").await;
    let first = scene.shown(ANN, "member", [BEGAN, BEGAN]).await;
    owner.put(path, member.clone()).await.assert_is(200, first.clone());
    scene.bob.get(path).await.assert_is(200, whole(json!([first]), "member", "member", false));

    // Sending the same rule again changes nothing.
    scene.clock.advance(Duration::from_mins(1));
    scene.adam.put(path.trim_end_matches('/'), member.clone()).await.assert_is(200, first.clone());
    let mut spelled_out = member;
    spelled_out["role"] = Value::Null;
    spelled_out["resource"] = json!("dashboard");
    owner.put(path, spelled_out).await.assert_is(200, first);

    let raised = scene.shown(ANN, "admin", [BEGAN, "2025-01-02T03:05:05Z"]).await;
    owner.put(path, scene.rule(ANN, "admin").await).await.assert_is(200, raised.clone());
    owner.get(path).await.assert_is(200, whole(json!([raised]), "member", "admin", true));

    for _ in 0..2 {
        owner.put(path, scene.rule(ANN, Value::Null).await).await.assert_empty(204);
        owner.get(path).await.assert_is(200, whole(json!([]), "member", "admin", true));
    }
    let anew = scene.shown(ANN, "none", ["2025-01-02T03:05:05Z"; 2]).await;
    owner.put(path, scene.rule(ANN, "none").await).await.assert_is(200, anew);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn access_rules_are_listed_in_the_order_of_creation_and_belong_to_one_project() {
    let scene = Scene::new().await;
    let mut rules = Vec::new();
    for (second, (email, level)) in
        [(BOB, "member"), (OWNER, "none"), (ANN, "admin"), (ADAM, "member")].into_iter().enumerate()
    {
        scene.give(email, level).await;
        let moment = format!("2025-01-02T03:04:{:02}Z", 5 + second);
        rules.push(scene.shown(email, level, [&moment, &moment]).await);
        scene.clock.advance(Duration::from_secs(1));
    }
    scene.bob.get(&scene.path).await.assert_is(200, whole(json!(rules), "member", "member", false));
    let other = scene.workspace.organization("projects/");
    let other = scene.owner().post(&other, json!({})).await.ok()["id"].clone();
    let other = format!("/api/projects/{other}/access_controls/");
    scene.ann.get(&other).await.assert_is(200, whole(json!([]), "member", "member", false));
    let rule = scene.rule(BOB, "member").await;
    scene.ann.put(&other, rule).await.assert_denied(NOT_ADMIN);
}

#[tokio::test]
async fn effective_access_level_of_the_caller_is_shown() {
    let scene = Scene::new().await;
    for (given, level, edits) in
        [("none", "member", false), ("member", "member", false), ("admin", "admin", true)]
    {
        scene.give(ANN, given).await;
        scene.give(ADAM, given).await;
        for (caller, level, edits) in [(&scene.ann, level, edits), (&scene.adam, "admin", true)] {
            let shown = caller.get(&scene.path).await.ok();
            assert_eq!(
                (&shown["user_access_level"], &shown["user_can_edit_access_levels"]),
                (&json!(level), &json!(edits)),
                "{given}"
            );
        }
    }
}

#[tokio::test]
async fn only_project_admins_set_rules_and_permission_is_checked_before_fields() {
    let scene = Scene::new().await;
    let rule = scene.rule(BOB, "member").await;
    let nonsense = json!({ "access_level": [], "organization_member": 1, "role": {} });
    for given in [json!(null), json!("none"), json!("member")] {
        scene.give(ANN, given).await;
        for sent in [&rule, &nonsense, &json!({})] {
            scene.ann.put(&scene.path, sent.clone()).await.assert_denied(NOT_ADMIN);
        }
    }
    assert_eq!(scene.levels().await, json!(["member"]));

    // A project's admin may set and delete rules, also for other admins. An admin who lowers their own
    // level loses that right.
    scene.give(ANN, "admin").await;
    scene.ann.put(&scene.path, rule).await.ok();
    scene.ann.put(&scene.path, scene.rule(OWNER, "none").await).await.ok();
    assert_eq!(scene.levels().await, json!(["none", "admin", "member"]));
    scene.ann.put(&scene.path, scene.rule(BOB, "admin").await).await.ok();
    scene.bob.put(&scene.path, scene.rule(OWNER, Value::Null).await).await.assert_empty(204);
    scene.ann.put(&scene.path, scene.rule(ANN, "member").await).await.ok();
    scene.ann.put(&scene.path, scene.rule(ANN, "admin").await).await.assert_denied(NOT_ADMIN);

    // An admin of the organization is an admin of the project, whatever the rule says, until the
    // organization level changes.
    scene.adam.put(&scene.path, scene.rule(ADAM, "none").await).await.ok();
    scene.adam.put(&scene.path, scene.rule(ANN, Value::Null).await).await.assert_empty(204);
    let adam = scene.adam.get("/api/users/@me/").await.ok()["uuid"].clone();
    let adam = format!("members/{}/", adam.as_str().expect("a uuid"));
    let adam = scene.workspace.organization(&adam);
    scene.owner().patch(&adam, json!({ "level": 1 })).await.ok();
    scene.adam.put(&scene.path, json!({})).await.assert_denied(NOT_ADMIN);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn fields_are_validated_in_their_order() {
    let scene = Scene::new().await;
    let member = scene.workspace.membership(ANN).await;
    let nobody = uuid::Uuid::max().to_string();
    let unknown = format!("Invalid pk \"{nobody}\" - object does not exist.");
    for (sent, attr, code, detail) in [
        (json!({}), Some("access_level"), "required", REQUIRED),
        (
            json!({ "organization_member": [], "role": [] }),
            Some("access_level"),
            "required",
            REQUIRED,
        ),
        (
            json!({ "access_level": "owner", "organization_member": [] }),
            Some("access_level"),
            "invalid_input",
            BAD_LEVEL,
        ),
        (
            json!({ "access_level": null, "organization_member": "x", "role": "x" }),
            Some("organization_member"),
            "invalid_input",
            BAD_MEMBER,
        ),
        (
            json!({ "access_level": null, "organization_member": nobody, "role": "x" }),
            Some("role"),
            "invalid_input",
            BAD_UUID,
        ),
        (
            json!({ "access_level": "member", "organization_member": member, "role": nobody }),
            None,
            "invalid_input",
            BOTH,
        ),
        (
            json!({ "access_level": null, "organization_member": nobody, "role": nobody }),
            None,
            "invalid_input",
            BOTH,
        ),
        (
            json!({ "access_level": "member", "organization_member": nobody }),
            Some("organization_member"),
            "does_not_exist",
            &unknown,
        ),
        (
            json!({ "access_level": null, "organization_member": nobody }),
            Some("organization_member"),
            "does_not_exist",
            &unknown,
        ),
        (
            json!({ "access_level": "none", "role": nobody }),
            Some("role"),
            "does_not_exist",
            &unknown,
        ),
    ] {
        let answer = scene.owner().put(&scene.path, sent).await;
        answer.assert_error(400, "validation_error", code, detail, attr);
    }
    let list = scene.owner().put(&scene.path, json!([])).await;
    list.assert_invalid_body("invalid_input", "Invalid data. Expected a dictionary, but got list.");
    assert_eq!(scene.levels().await, json!([]));
}

#[tokio::test]
async fn values_of_the_wrong_type_are_rejected() {
    let scene = Scene::new().await;
    let member = scene.workspace.membership(ANN).await;
    let long = "x".repeat(10_000);
    for wrong in [
        json!(1),
        json!(8.5),
        json!(-1),
        json!(true),
        json!([]),
        json!(["member"]),
        json!({}),
        json!({ "access_level": "member" }),
        json!(""),
        json!("Member"),
        json!("manager"),
        json!("null"),
        json!("member\0"),
        json!(long),
    ] {
        let sent = json!({ "access_level": wrong, "organization_member": member });
        let answer = scene.owner().put(&scene.path, sent).await;
        answer.assert_invalid("access_level", "invalid_input", BAD_LEVEL);
        // An integer is a valid UUID value, but no membership has it.
        if wrong == 1 {
            continue;
        }
        for (name, detail) in [("organization_member", BAD_MEMBER), ("role", BAD_UUID)] {
            let sent = json!({ "access_level": "member", name: wrong });
            let answer = scene.owner().put(&scene.path, sent).await;
            answer.assert_invalid(name, "invalid_input", detail);
        }
    }
    for name in ["organization_member", "role"] {
        let sent = json!({ "access_level": "member", name: 1 });
        let detail = "Invalid pk \"00000000-0000-0000-0000-000000000001\" - object does not exist.";
        let answer = scene.owner().put(&scene.path, sent).await;
        answer.assert_invalid(name, "does_not_exist", detail);
    }
    assert_eq!(scene.levels().await, json!([]));
}

#[tokio::test]
async fn rules_accept_only_membership_ids_of_the_organization() {
    let scene = Scene::new().await;
    let (eve, foreign) = scene.workspace.outsider("eve").await;
    let theirs = format!("/api/organizations/{}/members/", foreign["id"].as_str().expect("an id"));
    let theirs = eve.get(&theirs).await.ok()["results"][0]["id"].clone();
    let own = scene.workspace.membership(ANN).await;
    let user = scene.ann.get("/api/users/@me/").await.ok()["uuid"].clone();
    let off = Operation::UserSetActive { email: BOB.to_owned(), active: false };
    let inactive = scene.workspace.membership(BOB).await;
    scene.workspace.run_operation(off).await;
    let gone = scene.workspace.membership(ADAM).await;
    scene.adam.delete(&scene.workspace.organization("members/@me/")).await.assert_empty(204);

    for named in [&theirs, &user, &inactive, &gone] {
        for level in [json!("member"), json!(null)] {
            let sent = json!({ "access_level": level, "organization_member": named });
            let id = named.as_str().expect("an id");
            let detail = format!("Invalid pk \"{id}\" - object does not exist.");
            let answer = scene.owner().put(&scene.path, sent).await;
            answer.assert_invalid("organization_member", "does_not_exist", &detail);
        }
    }
    let upper = own.as_str().expect("an id").to_uppercase();
    let sent = json!({ "access_level": "member", "organization_member": upper });
    let shown = scene.owner().put(&scene.path, sent).await.ok();
    assert_eq!(shown["organization_member"], own);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn level_none_is_stored_and_grants_no_access() {
    let scene = Scene::new().await;
    scene.give(ANN, "none").await;
    scene.ann.get(&scene.workspace.dashboards("")).await.ok();
    assert_eq!(scene.ann.get("/api/projects/").await.ok()["count"], 1);
    scene.make_private(true).await;
    for level in [json!("none"), json!("admin"), json!("none"), json!(null)] {
        scene.give(ANN, level.clone()).await;
        let sees = level == "admin";
        assert_eq!(scene.ann.get("/api/projects/").await.ok()["count"], u8::from(sees));
        let dashboards = scene.ann.get(&scene.workspace.dashboards("")).await;
        let project = scene.ann.get("/api/projects/@current/").await;
        if sees {
            dashboards.ok();
            assert_eq!(project.ok()["effective_membership_level"], 8);
        } else {
            dashboards.assert_denied(NO_ACCESS);
            project.assert_not_found("Not found.");
        }
    }
    assert_eq!(scene.levels().await, json!([]));
}

#[tokio::test]
async fn grant_takes_effect_at_once_in_every_project_list() {
    let scene = Scene::new().await;
    let list = scene.workspace.organization("projects/");
    let mut ids = Vec::new();
    for (name, private) in [("A", true), ("B", false), ("C", true), ("D", false), ("E", true)] {
        let sent = json!({ "name": name, "access_control": private });
        ids.push(scene.owner().post(&list, sent).await.ok()["id"].clone());
    }
    let controls = format!("/api/projects/{}/access_controls/", ids[2]);
    let dashboards = format!("/api/projects/{}/dashboards/", ids[2]);
    let everything = json!(["Web", "B", "C", "D"]);
    let rest = json!(["Web", "B", "D"]);
    for (level, names) in
        [(json!(null), &rest), (json!("member"), &everything), (json!("none"), &rest)]
    {
        let rule = scene.rule(ANN, level).await;
        scene.owner().put(&controls, rule).await.ok();
        let count = names.as_array().expect("names").len();
        for path in [list.as_str(), "/api/projects/"] {
            let mut seen = Vec::new();
            for offset in 0..count {
                let page = scene.ann.get(&format!("{path}?limit=1&offset={offset}")).await.ok();
                assert_eq!(page["count"], json!(count));
                assert_eq!(page["next"].is_null(), offset + 1 == count);
                seen.extend(column(&page, "name"));
            }
            assert_eq!(&json!(seen), names, "{path}");
        }
        let organization = scene.ann.get(&scene.workspace.organization("")).await.ok();
        let me = scene.ann.get("/api/users/@me/").await.ok();
        assert_eq!(me["organization"], organization);
        for part in ["teams", "projects"] {
            let shown = organization[part].as_array().expect("a list").iter();
            let shown: Value = shown.map(|project| project["name"].clone()).collect();
            assert_eq!(&shown, names, "{part}");
        }
        let opened = scene.ann.post(&dashboards, json!({})).await;
        if count == 4 {
            opened.ok();
        } else {
            opened.assert_denied(NO_ACCESS);
            scene.ann.get(&controls).await.assert_denied(NO_ACCESS);
        }
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rule_is_deleted_with_the_membership_and_hidden_while_the_user_is_inactive() {
    let scene = Scene::new().await;
    scene.make_private(true).await;
    scene.give(ANN, "admin").await;
    scene.give(BOB, "member").await;
    let set_active = |active| Operation::UserSetActive { email: BOB.to_owned(), active };
    scene.workspace.run_operation(set_active(false)).await;
    assert_eq!(scene.levels().await, json!(["admin"]));
    scene.workspace.run_operation(set_active(true)).await;
    assert_eq!(scene.levels().await, json!(["admin", "member"]));
    scene.bob.get(&scene.workspace.dashboards("")).await.ok();

    let ann = scene.ann.get("/api/users/@me/").await.ok()["uuid"].clone();
    let ann = format!("members/{}/", ann.as_str().expect("a uuid"));
    scene.adam.delete(&scene.workspace.organization(&ann)).await.assert_empty(204);
    scene.ann.get(&scene.path).await.assert_denied(NO_ACCESS);
    scene.ann.put(&scene.path, json!({})).await.assert_denied(NO_ACCESS);
    assert_eq!(scene.levels().await, json!(["member"]));
    let back = Operation::UserCreate(UserOptions {
        email: ANN.to_owned(),
        first_name: String::new(),
        last_name: String::new(),
        organization: Some(scene.workspace.made.organization_id),
        level: Level::Member,
        existing: true,
    });
    scene.workspace.run_operation(back).await;
    scene.ann.get(&scene.path).await.assert_denied(NO_ACCESS);
    assert_eq!(scene.levels().await, json!(["member"]));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn resources_of_other_organizations_return_403_or_404() {
    let scene = Scene::new().await;
    let (eve, _) = scene.workspace.outsider("eve").await;
    eve.get(&scene.path).await.assert_denied(NO_ACCESS);
    eve.put(&scene.path, json!({})).await.assert_denied(NO_ACCESS);
    for id in ["999", "0", "abc", "-1", "18446744073709551616"] {
        let path = format!("/api/projects/{id}/access_controls/");
        scene.owner().get(&path).await.assert_not_found("Project not found.");
        scene.owner().put(&path, json!({})).await.assert_not_found("Project not found.");
    }
    for method in [Method::POST, Method::PATCH, Method::DELETE] {
        let refused = scene.owner().send(method.clone(), &scene.path, None).await;
        assert_eq!(refused.headers["allow"], "GET, PUT, HEAD, OPTIONS");
        let detail = format!("Method \"{method}\" not allowed.");
        refused.assert_error(405, "invalid_request", "method_not_allowed", &detail, None);
    }
}

#[tokio::test]
async fn key_scopes_and_limits_apply_to_access_controls() {
    let scene = Scene::new().await;
    let (workspace, path) = (&scene.workspace, &scene.path);
    let rule = scene.rule(ANN, "member").await;
    let reads = workspace.key(OWNER, &["access_control:read"]).await;
    reads.get(path).await.ok();
    let missing = "API key missing required scope 'access_control:write'";
    reads.put(path, rule.clone()).await.assert_denied(missing);
    let writes = workspace.key(OWNER, &["access_control:write"]).await;
    writes.put(path, rule.clone()).await.ok();
    writes.get(path).await.ok();
    let other = workspace.key(OWNER, &["project:write", "organization_member:write"]).await;
    other.get(path).await.assert_denied("API key missing required scope 'access_control:read'");
    other.put(path, rule.clone()).await.assert_denied(missing);

    let projects = workspace.organization("projects/");
    let beside = workspace.owner.post(&projects, json!({})).await.ok()["id"].clone();
    let limits = json!({ "projects": [beside] });
    let limited = workspace.limited_key(OWNER, &["*"], limits).await;
    let project = workspace.made.project_id;
    let refused = format!("API key does not have access to the requested project: ID {project}.");
    limited.get(path).await.assert_denied(&refused);
    limited.put(path, rule.clone()).await.assert_denied(&refused);
    limited.put(&format!("/api/projects/{beside}/access_controls/"), rule.clone()).await.ok();

    let second = Operation::OrganizationCreate(OrganizationOptions {
        name: "Second".to_owned(),
        owner: OWNER.to_owned(),
        existing: false,
    });
    let second = workspace.run_operation(second).await;
    let limits = json!({ "organizations": [second["id"]] });
    let limited = workspace.limited_key(OWNER, &["*"], limits).await;
    limited.get(path).await.assert_denied(&refused);
    limited.put(path, rule).await.assert_denied(&refused);
}

#[tokio::test]
async fn key_ban_of_the_organization_applies_to_project_admins() {
    let scene = Scene::new().await;
    scene.give(ANN, "admin").await;
    let closed = json!({ "members_can_use_personal_api_keys": false });
    scene.owner().patch(&scene.workspace.organization(""), closed).await.ok();
    let text = "Organization 'Corp' does not allow using personal API keys. Contact an admin to enable personal API keys for this organization.";
    let rule = scene.rule(BOB, "member").await;
    scene.ann.get(&scene.path).await.assert_denied(text);
    scene.ann.put(&scene.path, rule.clone()).await.assert_denied(text);
    scene.adam.get(&scene.path).await.ok();
    scene.adam.put(&scene.path, rule).await.ok();
}

#[tokio::test]
async fn concurrently_revoked_project_admin_is_rejected_inside_the_write() {
    let scene = Scene::new().await;
    let (lost, bobs) = (scene.rule(ANN, Value::Null).await, scene.rule(BOB, "member").await);
    for _ in 0..20 {
        scene.give(ANN, "admin").await;
        scene.give(BOB, Value::Null).await;
        // The project is open, so Ann passes the access check in both cases. Only the rule refuses her.
        let (taken, put) = tokio::join!(
            scene.owner().put(&scene.path, lost.clone()),
            scene.ann.put(&scene.path, bobs.clone()),
        );
        taken.assert_empty(204);
        if put.status == 200 {
            assert_eq!(scene.levels().await, json!(["member"]));
        } else {
            put.assert_denied(NOT_ADMIN);
            assert_eq!(scene.levels().await, json!([]));
        }
        scene.ann.put(&scene.path, bobs.clone()).await.assert_denied(NOT_ADMIN);
    }
    let levels = ["none", "member", "admin"];
    let mut rules = Vec::new();
    for level in levels {
        rules.push(scene.rule(BOB, level).await);
    }
    let (a, b, c) = tokio::join!(
        scene.owner().put(&scene.path, rules[0].clone()),
        scene.owner().put(&scene.path, rules[1].clone()),
        scene.adam.put(&scene.path, rules[2].clone()),
    );
    for (answer, level) in [a, b, c].into_iter().zip(levels) {
        assert_eq!(answer.ok()["access_level"], level);
    }
    assert_eq!(scene.levels().await.as_array().expect("a list").len(), 1);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn access_granted_by_an_invite_never_lowers_an_existing_grant() {
    let scene = Scene::new().await;
    let organization = scene.workspace.made.organization_id;
    let project = scene.workspace.made.project_id;
    let user = UserId(scene.ann.get("/api/users/@me/").await.ok()["id"].as_u64().expect("an id"));
    let give = async |project: ProjectId, level: GrantLevel| {
        let given = scene
            .workspace
            .app
            .operate(move |tx, now| grants::raise(tx, organization, project, user, level, now))
            .await;
        given.expect("the grant is written");
        scene.levels().await
    };
    assert_eq!(give(project, GrantLevel::None).await, json!([]));
    assert_eq!(give(project, GrantLevel::Member).await, json!(["member"]));
    assert_eq!(give(project, GrantLevel::None).await, json!(["member"]));
    assert_eq!(give(project, GrantLevel::Admin).await, json!(["admin"]));
    assert_eq!(give(project, GrantLevel::Member).await, json!(["admin"]));
    assert_eq!(give(ProjectId(999), GrantLevel::Admin).await, json!(["admin"]));
    scene.give(ANN, "none").await;
    assert_eq!(give(project, GrantLevel::Member).await, json!(["member"]));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn openapi_document_describes_the_rule_fields() {
    let scene = Scene::new().await;
    let document = scene.workspace.anonymous().get("/api/schema/?format=json").await.ok();
    let schema = &document["components"]["schemas"]["NewAccessControl"];
    assert_eq!(schema["required"], json!(["access_level"]));
    let level = &schema["properties"]["access_level"];
    assert_eq!(level["type"], json!(["string", "null"]));
    assert_eq!(level["enum"], json!(["none", "member", "admin", null]));
}
