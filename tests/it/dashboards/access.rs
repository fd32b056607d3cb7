//! `/api/projects/:project_id/dashboards/:id/access_controls/`: what a member, or everyone by default, may
//! do with one dashboard.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::Method;
use futures_util::stream;
use serde_json::{Value, json};
use steward::Config;
use steward::testing::operator::{Operation, UserOptions};
use steward::testing::resources::members::Level;
use steward::testing::time::{Clock, ManualClock, Timestamp};
use tokio::sync::oneshot;

use crate::dashboards::make;
use crate::support::{TestClient, TestResponse, Workspace};

pub const BEGAN: &str = "2025-01-02T03:04:05Z";
pub const VIEWER: &str = "You do not have viewer access to this resource.";
pub const EDITOR: &str = "You do not have editor access to this resource.";
const MANAGER: &str = "Must be manager to modify dashboard permissions.";
pub const BAD_LEVEL: &str = "Invalid access level. Must be one of: none, viewer, editor, manager";
pub const BAD_UUID: &str = "Must be a valid UUID.";
pub const BAD_MEMBER: &str = "Invalid organization member id. Use the 'id' field from the /api/organizations/<organization_id>/members/ endpoint.";
pub const OTHER_TARGET: &str =
    "Cannot modify access controls for a resource different from the URL target.";
pub const REQUIRED: &str = "This field is required.";
pub const BOTH: &str = "You can not scope an access control to both a member and a role.";
const NO_ACCESS: &str = "You don't have access to the project.";

pub fn minute() -> Duration {
    Duration::from_mins(1)
}

/// A workspace with a dashboard that Cleo, a member, created. The other users are the members Ann, Bob and
/// Max, the admin Ada, and the owner.
pub struct Scene {
    pub workspace: Workspace,
    pub clock: ManualClock,
    pub creator: TestClient,
    pub ann: TestClient,
    pub bob: TestClient,
    pub max: TestClient,
    pub admin: TestClient,
    /// ID and path of the dashboard.
    pub id: u64,
    pub one: String,
}

impl Scene {
    pub async fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_735_787_045_000_000));
        let mut config = Config::default();
        config.clock = Clock::Manual(clock.clone());
        let workspace = Workspace::with(config).await;
        let creator = workspace.member("cleo", Level::Member).await;
        let ann = workspace.member("ann", Level::Member).await;
        let bob = workspace.member("bob", Level::Member).await;
        let max = workspace.member("max", Level::Member).await;
        let admin = workspace.member("ada", Level::Admin).await;
        let (id, one) = make(&workspace, &creator, json!({ "name": "A" })).await;
        Self { workspace, clock, creator, ann, bob, max, admin, id, one }
    }

    pub fn owner(&self) -> &TestClient {
        &self.workspace.owner
    }

    pub fn controls(&self) -> String {
        format!("{}access_controls/", self.one)
    }

    /// Path of the rules on all dashboards.
    pub fn of_all(&self) -> String {
        format!("/api/projects/{}/resource_access_controls/", self.workspace.made.project_id)
    }

    /// The request body that sets this level for `name`, or for everyone.
    pub async fn sent(&self, name: Option<&str>, level: impl Into<Value>) -> Value {
        let member = match name {
            Some(name) => self.workspace.membership(&format!("{name}@corp.example")).await,
            None => Value::Null,
        };
        json!({ "organization_member": member, "access_level": level.into() })
    }

    /// Sets a rule on the dashboard as the owner. A null level deletes it.
    pub async fn rule(&self, name: Option<&str>, level: impl Into<Value>) {
        self.rule_on(&self.one, name, level).await;
    }

    /// Like [`Self::rule`], for the dashboard at this path.
    pub async fn rule_on(&self, one: &str, name: Option<&str>, level: impl Into<Value>) {
        let sent = self.sent(name, level).await;
        self.owner().put(&format!("{one}access_controls/"), sent).await.ok();
    }

    /// Sets a rule on all dashboards as the owner. A null level deletes it.
    pub async fn rule_on_all(&self, name: Option<&str>, level: impl Into<Value>) {
        let mut sent = self.sent(name, level).await;
        sent["resource"] = json!("dashboard");
        self.owner().put(&self.of_all(), sent).await.ok();
    }

    /// Sets a level on the project as the owner.
    pub async fn grant(&self, name: &str, level: &str) {
        let sent = self.sent(Some(name), level).await;
        self.owner().put(&self.workspace.access_controls(), sent).await.ok();
    }

    pub async fn deactivate(&self, email: &str) {
        let email = email.to_owned();
        self.workspace.run_operation(Operation::UserSetActive { email, active: false }).await;
    }

    /// Removes `name` from the organization as the owner.
    pub async fn leave(&self, name: &str) {
        let found = self.workspace.organization(&format!("members/?search={name}@"));
        let found = self.owner().get(&found).await.ok();
        let uuid = found["results"][0]["user"]["uuid"].as_str().expect("a uuid");
        let member = self.workspace.organization(&format!("members/{uuid}/"));
        self.owner().delete(&member).await.assert_empty(204);
    }

    /// Adds `name` to the organization again.
    pub async fn come_back(&self, name: &str) {
        self.workspace
            .run_operation(Operation::UserCreate(UserOptions {
                email: format!("{name}@corp.example"),
                first_name: String::new(),
                last_name: String::new(),
                organization: Some(self.workspace.made.organization_id),
                level: Level::Member,
                existing: true,
            }))
            .await;
    }

    /// The expected rule, created and last changed at these times. `about` is a dashboard, or none for all.
    pub async fn shown(
        &self,
        about: Option<u64>,
        name: Option<&str>,
        level: &str,
        moments: [&str; 2],
    ) -> Value {
        let sent = self.sent(name, level).await;
        json!({
            "access_level": level,
            "resource": "dashboard",
            "resource_id": about.map(|id| id.to_string()),
            "organization_member": sent["organization_member"],
            "role": null,
            "created_by": null,
            "created_at": moments[0],
            "updated_at": moments[1],
        })
    }
}

/// The expected response: the rules, the default level, the caller's level, and whether the caller may edit
/// the rules.
pub fn whole(rules: Value, default: &str, level: &str, edits: bool) -> Value {
    json!({
        "access_controls": rules,
        "available_access_levels": ["none", "viewer", "editor", "manager"],
        "default_access_level": default,
        "user_access_level": level,
        "user_can_edit_access_levels": edits,
    })
}

/// Asserts that the response is a success, or else this refusal.
#[track_caller]
pub fn allows(answer: &TestResponse, allowed: bool, refusal: &str) {
    if allowed {
        assert!((200..300).contains(&answer.status), "{} {}", answer.status, answer.body);
    } else {
        answer.assert_denied(refusal);
    }
}

#[tokio::test]
async fn dashboard_without_rules_shows_the_default_and_the_callers_level() {
    let scene = Scene::new().await;
    let path = scene.controls();
    for (caller, level, edits) in [
        (&scene.ann, "editor", false),
        (&scene.creator, "manager", true),
        (&scene.admin, "manager", true),
        (scene.owner(), "manager", true),
    ] {
        for path in [path.as_str(), path.trim_end_matches('/')] {
            caller.get(path).await.assert_is(200, whole(json!([]), "editor", level, edits));
        }
        caller.send(Method::HEAD, &path, None).await.ok();
    }
}

#[tokio::test]
async fn access_rule_is_created_updated_and_deleted() {
    let scene = Scene::new().await;
    let path = scene.controls();
    let viewer = scene.sent(Some("ann"), "viewer").await;
    let first = scene.shown(Some(scene.id), Some("ann"), "viewer", [BEGAN, BEGAN]).await;
    scene.creator.put(&path, viewer.clone()).await.assert_is(200, first.clone());
    scene.ann.get(&path).await.assert_is(200, whole(json!([first]), "editor", "viewer", false));

    // Sending the same rule again changes nothing. The body may repeat what the path says.
    scene.clock.advance(minute());
    let mut spelled_out = viewer;
    spelled_out["role"] = Value::Null;
    spelled_out["resource"] = json!("dashboard");
    spelled_out["resource_id"] = json!(scene.id.to_string());
    scene.admin.put(&path, spelled_out.clone()).await.assert_is(200, first.clone());
    spelled_out["resource_id"] = json!(scene.id);
    scene.admin.put(&path, spelled_out).await.assert_is(200, first);

    let later = "2025-01-02T03:05:05Z";
    let raised = scene.shown(Some(scene.id), Some("ann"), "manager", [BEGAN, later]).await;
    let sent = scene.sent(Some("ann"), "manager").await;
    scene.creator.put(&path, sent).await.assert_is(200, raised.clone());
    scene.ann.get(&path).await.assert_is(200, whole(json!([raised]), "editor", "manager", true));

    for _ in 0..2 {
        let sent = scene.sent(Some("ann"), Value::Null).await;
        scene.creator.put(&path, sent).await.assert_empty(204);
        scene.ann.get(&path).await.assert_is(200, whole(json!([]), "editor", "editor", false));
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rules_are_listed_in_the_order_of_their_creation() {
    let scene = Scene::new().await;
    let path = scene.controls();
    let mut rules = Vec::new();
    for (second, name, level) in [
        (5, Some("max"), "viewer"),
        (6, None, "none"),
        (7, Some("cleo"), "none"),
        (8, Some("ann"), "none"),
    ] {
        scene.rule(name, level).await;
        let at = format!("2025-01-02T03:04:0{second}Z");
        rules.push(scene.shown(Some(scene.id), name, level, [&at, &at]).await);
        scene.clock.advance(Duration::from_secs(1));
    }
    let rules = json!(rules);
    scene.creator.get(&path).await.assert_is(200, whole(rules.clone(), "editor", "manager", true));
    scene.max.get(&path).await.assert_is(200, whole(rules, "editor", "viewer", false));
    for caller in [&scene.ann, &scene.bob] {
        caller.get(&path).await.assert_denied(VIEWER);
        caller.get(&scene.one).await.assert_denied(VIEWER);
    }
    // The rules of another dashboard do not change.
    let (_, other) = make(&scene.workspace, &scene.creator, json!({})).await;
    let other = format!("{other}access_controls/");
    scene.ann.get(&other).await.assert_is(200, whole(json!([]), "editor", "editor", false));
    // Rules on inactive users are left out.
    scene.deactivate("max@corp.example").await;
    let left = scene.creator.get(&path).await.ok();
    let left = left["access_controls"].as_array().expect("a list");
    let levels: Vec<_> = left.iter().map(|rule| &rule["access_level"]).collect();
    assert_eq!(levels, ["none", "none", "none"]);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn most_specific_rule_takes_precedence() {
    let scene = Scene::new().await;
    // The rules in order of precedence: Ann on this dashboard, Ann on all, everyone on all, everyone on
    // this dashboard.
    for (rules, level) in [
        ([Some("none"), Some("manager"), Some("manager"), Some("manager")], "none"),
        ([Some("manager"), Some("none"), Some("none"), Some("none")], "manager"),
        ([Some("viewer"), None, Some("none"), None], "viewer"),
        ([None, Some("viewer"), Some("none"), Some("editor")], "viewer"),
        ([None, Some("none"), Some("manager"), Some("editor")], "none"),
        ([None, None, Some("viewer"), Some("none")], "viewer"),
        ([None, None, Some("none"), Some("manager")], "none"),
        ([None, None, None, Some("viewer")], "viewer"),
        ([None, None, None, Some("manager")], "manager"),
        ([None, None, None, None], "editor"),
    ] {
        let [ann, ann_on_all, on_all, everyone] = rules;
        scene.rule(Some("ann"), ann).await;
        scene.rule_on_all(Some("ann"), ann_on_all).await;
        scene.rule_on_all(None, on_all).await;
        scene.rule(None, everyone).await;
        let list = scene.ann.get(&scene.workspace.dashboards("")).await;
        let detail = scene.ann.get(&scene.one).await;
        if level == "none" {
            detail.assert_denied(VIEWER);
        } else {
            assert_eq!(detail.ok()["user_access_level"], level, "{rules:?}");
            let list = list.ok();
            assert_eq!(list["results"][0]["user_access_level"], level, "{rules:?}");
            let controls = scene.ann.get(&scene.controls()).await.ok();
            assert_eq!(controls["user_access_level"], level);
            assert_eq!(controls["default_access_level"], on_all.unwrap_or("editor"));
        }
        let patched = scene.ann.patch(&scene.one, json!({ "name": "B" })).await;
        allows(&patched, ["editor", "manager"].contains(&level), EDITOR);
        for caller in [&scene.creator, &scene.admin, scene.owner()] {
            let list = caller.get(&scene.workspace.dashboards("")).await.ok();
            assert_eq!(
                (&list["count"], list["results"].as_array().map(Vec::len)),
                (&json!(1), Some(1))
            );
            for shown in [&caller.get(&scene.one).await.ok(), &list["results"][0]] {
                assert_eq!(shown["user_access_level"], "manager", "{rules:?}");
            }
            caller.patch(&scene.one, json!({})).await.ok();
        }
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn access_rules_are_checked_before_restriction_and_fields() {
    let scene = Scene::new().await;
    scene.creator.patch(&scene.one, json!({ "restriction_level": 37 })).await.ok();
    scene
        .ann
        .patch(&scene.one, json!({ "name": [] }))
        .await
        .assert_denied("You don't have edit permissions for this dashboard.");
    for level in ["none", "viewer"] {
        scene.rule(Some("ann"), level).await;
        for sent in [json!({}), json!({ "name": [] }), json!({ "restriction_level": 21 })] {
            scene.ann.patch(&scene.one, sent).await.assert_denied(EDITOR);
        }
    }
    scene.creator.patch(&scene.one, json!({ "deleted": true })).await.ok();
    scene.ann.patch(&scene.one, json!({ "name": "x" })).await.assert_not_found("Not found.");
    scene.ann.patch(&scene.one, json!({ "deleted": false })).await.assert_denied(EDITOR);
    scene.ann.get(&scene.one).await.assert_not_found("Not found.");
    scene.ann.delete(&scene.one).await.assert_empty(405);
}

#[tokio::test]
async fn only_managers_set_dashboard_rules_and_permission_is_checked_before_fields() {
    let scene = Scene::new().await;
    let path = scene.controls();
    let rule = scene.sent(Some("bob"), "viewer").await;
    for given in [None, Some("none"), Some("viewer"), Some("editor")] {
        scene.rule(Some("ann"), given).await;
        for sent in [&rule, &json!({}), &json!({ "access_level": [], "role": 1 })] {
            scene.ann.put(&path, sent.clone()).await.assert_denied(MANAGER);
        }
    }
    // A caller may edit rules by a rule on this dashboard, by a rule on all dashboards, or as an admin of
    // the project.
    scene.rule(Some("ann"), "manager").await;
    scene.ann.put(&path, rule.clone()).await.ok();
    scene.ann.put(&path, scene.sent(Some("ann"), Value::Null).await).await.assert_empty(204);
    scene.ann.put(&path, rule.clone()).await.assert_denied(MANAGER);
    scene.rule_on_all(None, "manager").await;
    scene.ann.put(&path, scene.sent(Some("bob"), Value::Null).await).await.assert_empty(204);
    scene.rule_on_all(None, Value::Null).await;

    scene.grant("max", "member").await;
    scene.max.put(&path, rule.clone()).await.assert_denied(MANAGER);
    scene.grant("max", "admin").await;
    scene.rule(Some("max"), "none").await;
    // An admin of the project may edit the rules of a dashboard that hides itself from them, and so can
    // give themselves access.
    scene.max.get(&scene.one).await.assert_denied(VIEWER);
    let shown = scene.max.get(&path).await.ok();
    assert_eq!(
        (&shown["user_access_level"], &shown["user_can_edit_access_levels"]),
        (&json!("none"), &json!(true))
    );
    scene.max.put(&path, scene.sent(Some("max"), Value::Null).await).await.assert_empty(204);
    scene.max.get(&scene.one).await.ok();
    for caller in [&scene.creator, &scene.admin, scene.owner(), &scene.max] {
        caller.put(&path, rule.clone()).await.ok();
        caller.put(&path, json!({})).await.assert_invalid("access_level", "required", REQUIRED);
    }
    // A manager who lowers their own level loses the right to edit rules.
    scene.rule(Some("ann"), "manager").await;
    scene.ann.put(&path, scene.sent(Some("ann"), "none").await).await.ok();
    scene.ann.put(&path, scene.sent(Some("ann"), "manager").await).await.assert_denied(MANAGER);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn fields_are_validated_in_their_order() {
    let scene = Scene::new().await;
    let member = scene.sent(Some("ann"), "none").await["organization_member"].clone();
    let nobody = uuid::Uuid::max().to_string();
    let unknown = format!("Invalid pk \"{nobody}\" - object does not exist.");
    for (sent, attr, code, detail) in [
        (
            json!({ "organization_member": [], "role": [] }),
            Some("access_level"),
            "required",
            REQUIRED,
        ),
        (
            json!({ "access_level": "member", "organization_member": [] }),
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
            json!({ "access_level": "none", "organization_member": nobody, "role": "x" }),
            Some("role"),
            "invalid_input",
            BAD_UUID,
        ),
        (
            json!({ "access_level": "viewer", "organization_member": member, "role": nobody }),
            None,
            "invalid_input",
            BOTH,
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
        let answer = scene.creator.put(&scene.controls(), sent).await;
        answer.assert_error(400, "validation_error", code, detail, attr);
    }
    for wrong in [
        json!(1),
        json!(true),
        json!([]),
        json!(["none"]),
        json!({}),
        json!(""),
        json!("Viewer"),
        json!("admin"),
        json!("viewer\0"),
        json!("x".repeat(10_000)),
    ] {
        let sent = json!({ "access_level": wrong, "organization_member": member });
        let answer = scene.creator.put(&scene.controls(), sent).await;
        answer.assert_invalid("access_level", "invalid_input", BAD_LEVEL);
    }
    let list = scene.creator.put(&scene.controls(), json!([])).await;
    list.assert_invalid_body("invalid_input", "Invalid data. Expected a dictionary, but got list.");
    let none = whole(json!([]), "editor", "manager", true);
    scene.creator.get(&scene.controls()).await.assert_is(200, none);
}

#[tokio::test]
async fn body_that_names_another_object_than_the_path_is_rejected() {
    let scene = Scene::new().await;
    let (other, _) = make(&scene.workspace, &scene.creator, json!({})).await;
    for (name, wrong) in [
        ("resource", json!("project")),
        ("resource", json!("insight")),
        ("resource", json!("")),
        ("resource", json!({ "dashboard": 1 })),
        ("resource_id", json!(other.to_string())),
        ("resource_id", json!(other)),
        ("resource_id", json!(format!("0{}", scene.id))),
        ("resource_id", json!("x".repeat(10_000))),
        ("resource_id", json!([scene.id])),
    ] {
        for level in [json!("none"), Value::Null] {
            let sent = json!({ "access_level": level, name: wrong });
            scene.creator.put(&scene.controls(), sent).await.assert_denied(OTHER_TARGET);
        }
    }
    let sent = json!({ "access_level": "none", "resource": null, "resource_id": null });
    scene.creator.put(&scene.controls(), sent).await.ok();
    // The level is checked first, and permission before both.
    let sent = json!({ "access_level": "owner", "resource": "insight" });
    let wrong = scene.creator.put(&scene.controls(), sent.clone()).await;
    wrong.assert_invalid("access_level", "invalid_input", BAD_LEVEL);
    scene.ann.put(&scene.controls(), sent).await.assert_denied(MANAGER);
}

#[tokio::test]
async fn rules_of_missing_or_deleted_dashboards_return_404() {
    let scene = Scene::new().await;
    let other = scene.workspace.organization("projects/");
    let other = scene.owner().post(&other, json!({})).await.ok()["id"].clone();
    let (_, removed) = make(&scene.workspace, scene.owner(), json!({})).await;
    scene.owner().patch(&removed, json!({ "deleted": true })).await.ok();
    for one in [
        format!("/api/projects/{other}/dashboards/{}/", scene.id),
        removed,
        scene.workspace.dashboards("999999/"),
        scene.workspace.dashboards("x/"),
    ] {
        let path = format!("{one}access_controls/");
        scene.owner().get(&path).await.assert_not_found("Not found.");
        for sent in [json!({}), json!({ "access_level": "none" })] {
            scene.owner().put(&path, sent).await.assert_not_found("Not found.");
        }
        scene
            .owner()
            .get(&format!("{one}resource_access_controls/"))
            .await
            .assert_not_found("Not found.");
    }
}

#[tokio::test]
async fn resource_rules_of_a_single_dashboard_are_rejected() {
    let scene = Scene::new().await;
    let path = format!("{}resource_access_controls/", scene.one);
    let refusal = "Resource-level access controls can only be configured for projects.";
    for caller in [&scene.ann, scene.owner()] {
        caller.get(&path).await.assert_invalid_body("invalid_input", refusal);
        let put = caller.put(&path, json!({})).await;
        let detail = "Method \"PUT\" not allowed.";
        put.assert_error(405, "invalid_request", "method_not_allowed", detail, None);
    }
    scene.rule(Some("ann"), "none").await;
    scene.ann.get(&path).await.assert_denied(VIEWER);
}

#[tokio::test]
async fn rules_end_with_the_membership_and_survive_deletion_and_restore() {
    let scene = Scene::new().await;
    scene.rule(Some("ann"), "none").await;
    scene.rule(None, "viewer").await;
    scene.creator.patch(&scene.one, json!({ "deleted": true })).await.ok();
    scene.creator.patch(&scene.one, json!({ "deleted": false })).await.ok();
    scene.ann.get(&scene.one).await.assert_denied(VIEWER);
    scene.bob.patch(&scene.one, json!({})).await.assert_denied(EDITOR);
    scene.leave("ann").await;
    let everyone = scene.shown(Some(scene.id), None, "viewer", [BEGAN, BEGAN]).await;
    let left = whole(json!([everyone]), "editor", "manager", true);
    scene.creator.get(&scene.controls()).await.assert_is(200, left.clone());
    scene.ann.get(&scene.one).await.assert_denied(NO_ACCESS);
    scene.come_back("ann").await;
    assert_eq!(scene.ann.get(&scene.one).await.ok()["user_access_level"], "viewer");
    scene.creator.get(&scene.controls()).await.assert_is(200, left);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn private_project_denies_access_before_dashboard_rules() {
    let scene = Scene::new().await;
    scene.rule(Some("ann"), "manager").await;
    let project = format!("/api/projects/{}/", scene.workspace.made.project_id);
    scene.owner().patch(&project, json!({ "access_control": true })).await.ok();
    let path = scene.controls();
    for caller in [&scene.ann, &scene.creator] {
        caller.get(&path).await.assert_denied(NO_ACCESS);
        caller.put(&path, json!({})).await.assert_denied(NO_ACCESS);
        caller.get(&scene.of_all()).await.assert_denied(NO_ACCESS);
        caller.put(&scene.of_all(), json!({})).await.assert_denied(NO_ACCESS);
        caller.get(&scene.one).await.assert_denied(NO_ACCESS);
    }
    scene.grant("ann", "member").await;
    let rule = scene.sent(Some("bob"), "none").await;
    scene.ann.put(&path, rule).await.ok();
    let (stranger, _) = scene.workspace.outsider("eve").await;
    stranger.get(&path).await.assert_denied(NO_ACCESS);
    stranger.put(&path, json!({})).await.assert_denied(NO_ACCESS);
}

#[tokio::test]
async fn rule_removed_during_an_update_rejects_it() {
    let scene = Scene::new().await;
    scene.rule(None, "viewer").await;
    for sent in [&json!({ "name": "B" }), &json!({})] {
        scene.rule(Some("ann"), "editor").await;
        let (asks, asked) = oneshot::channel();
        let (go, goes) = oneshot::channel::<String>();
        let body = stream::once(async move {
            // The access check has let Ann in when the server starts to read her body.
            asks.send(()).expect("the test is waiting");
            Ok::<_, Infallible>(goes.await.expect("the test sends the body"))
        });
        let headers = [("content-type", "application/json")];
        let body = Body::from_stream(body);
        let changed = scene.ann.fetch(Method::PATCH, &scene.one, &headers, body);
        let taken = async {
            asked.await.expect("the server reads the body");
            scene.rule(Some("ann"), Value::Null).await;
            go.send(sent.to_string()).expect("the server is reading the body");
        };
        let (changed, ()) = tokio::join!(changed, taken);
        changed.assert_denied(EDITOR);
    }
    assert_eq!(scene.creator.get(&scene.one).await.ok()["name"], "A");
}

#[tokio::test]
async fn openapi_document_describes_the_rule_fields() {
    let scene = Scene::new().await;
    let document = scene.workspace.anonymous().get("/api/schema/?format=json").await.ok();
    let schemas = &document["components"]["schemas"];
    let schema = &schemas["NewObjectAccessControl"];
    assert_eq!(schema["required"], json!(["access_level"]));
    let level = &schema["properties"]["access_level"];
    assert_eq!(level["enum"], json!(["none", "viewer", "editor", "manager", null]));
    let schema = &schemas["NewResourceAccessControl"];
    assert_eq!(schema["required"], json!(["access_level", "resource"]));
    let kinds = schema["properties"]["resource"]["enum"].as_array().expect("a list");
    assert!(kinds.contains(&json!("dashboard")) && kinds.contains(&json!("insight")));
    assert_eq!(kinds.len(), 22);
}
