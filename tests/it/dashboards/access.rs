//! Dashboards below access rules. The rules themselves are tested in `access_controls`.

use crate::support::prelude::*;

pub const BEGAN: &str = "2025-01-02T03:04:05Z";
pub const BAD_LEVEL: &str = "Invalid access level. Must be one of: none, viewer, editor, manager";

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
        let (config, clock) = with_clock_at(1_735_787_045_000_000);
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

    /// Returns the user with this name.
    pub fn caller(&self, name: &str) -> &TestClient {
        match name {
            "ada" => &self.admin,
            "max" => &self.max,
            "bob" => &self.bob,
            "ann" => &self.ann,
            "cleo" => &self.creator,
            _ => self.owner(),
        }
    }

    pub fn controls(&self) -> String {
        format!("{}access_controls/", self.one)
    }

    /// Path of the rules on all dashboards.
    pub fn of_all(&self) -> String {
        self.workspace.project("resource_access_controls/")
    }

    /// The request body that sets this level for `name`, or for everyone.
    pub async fn sent(&self, name: Option<&str>, level: impl Into<Value>) -> Value {
        let email = name.map(|name| format!("{name}@corp.example"));
        self.workspace.rule_for(email.as_deref(), level).await
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

    /// Sets a rule on the project as the owner. A null level deletes it.
    pub async fn grant(&self, name: &str, level: impl Into<Value>) {
        let sent = self.sent(Some(name), level).await;
        self.owner().put(&self.workspace.access_controls(), sent).await.ok();
    }

    /// Sets the restriction level of the dashboard as its creator.
    pub async fn restrict(&self, level: u64) {
        self.creator.patch(&self.one, json!({ "restriction_level": level })).await.ok();
    }

    /// Removes `name` from the organization as the owner.
    pub async fn leave(&self, name: &str) {
        self.workspace.remove_member(&format!("{name}@corp.example")).await;
    }

    /// Creates a role with these members, and returns its id.
    pub async fn role(&self, name: &str, members: &[&str]) -> Value {
        let roles = self.workspace.organization("roles/");
        let role = self.owner().post(&roles, json!({ "name": name })).await.ok()["id"].clone();
        for member in members {
            self.join(&role, member).await;
        }
        role
    }

    pub fn role_path(&self, role: &Value) -> String {
        let role = role.as_str().expect("an id");
        self.workspace.organization(&format!("roles/{role}/"))
    }

    /// Adds a member to a role, and returns the path of the role membership.
    pub async fn join(&self, role: &Value, member: &str) -> String {
        let path = format!("{}role_memberships/", self.role_path(role));
        let user = self.workspace.uuid(&format!("{member}@corp.example")).await;
        let made = self.owner().post(&path, json!({ "user_uuid": user })).await.ok();
        format!("{path}{}/", made["id"].as_str().expect("an id"))
    }
}

/// The expected response: the rules, the default level, the caller's level, and whether the caller may edit
/// the rules.
pub fn whole(rules: Value, default: &str, level: &str, edits: bool) -> Value {
    json!({
        "access_controls": rules,
        "available_access_levels": ["none", "viewer", "editor", "manager"],
        "default_access_level": default, "user_access_level": level,
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
async fn access_rules_are_checked_before_restriction_and_fields() {
    let scene = Scene::new().await;
    scene.creator.patch(&scene.one, json!({ "restriction_level": 37 })).await.ok();
    scene.ann.patch(&scene.one, json!({ "name": [] })).await.assert_denied(NO_EDIT);
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
    scene.creator.patch(&scene.one, json!({ "deleted": false })).await.ok();
    scene.ann.patch(&scene.one, json!({})).await.assert_denied(EDITOR);
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
        let changed = scene.ann.fetch(Method::PATCH, &scene.one, &headers, Body::from_stream(body));
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
