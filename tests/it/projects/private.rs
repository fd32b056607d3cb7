//! Private projects: who may see them, and what other members get.

use crate::projects::both;
use crate::support::prelude::*;

/// A workspace whose second project is private, with a plain member.
struct Private {
    workspace: Workspace,
    id: Value,
    ann: TestClient,
}

impl Private {
    async fn new() -> Self {
        let workspace = Workspace::new().await;
        let id = workspace.add_project(json!({ "name": "Secret", "access_control": true })).await;
        let ann = workspace.member("ann", Level::Member).await;
        Self { workspace, id, ann }
    }

    /// Both paths of the project.
    fn paths(&self) -> [String; 2] {
        both(&self.workspace, &self.id)
    }

    /// Path of the project's dashboards.
    fn dashboards(&self) -> String {
        format!("/api/projects/{}/dashboards/", self.id)
    }

    /// Sets Ann's level on the project. Null deletes her grant.
    async fn grant(&self, level: Value) {
        let [_, project] = self.paths();
        self.workspace.set_rule(&project, Some(ANN), level).await;
    }

    /// Asserts that no list and no path shows the project to the caller.
    async fn is_absent_for(&self, caller: &TestClient) {
        for list in [self.workspace.organization("projects/"), "/api/projects/".to_owned()] {
            let list = caller.get(&list).await.ok();
            assert_eq!((names(&list["results"]), &list["count"]), (vec!["Web"], &json!(1)));
        }
        for path in self.paths() {
            for method in [Method::GET, Method::PATCH, Method::DELETE, Method::PUT] {
                let body = json!({ "name": "" });
                caller.send(method, &path, Some(body)).await.assert_not_found("Not found.");
            }
        }
        caller.get(&self.dashboards()).await.assert_denied(NO_ACCESS);
        caller.post(&self.dashboards(), json!({ "pinned": "x" })).await.assert_denied(NO_ACCESS);
        let me = caller.get(ME).await.ok();
        let organization = caller.get(&self.workspace.organization("")).await.ok();
        assert_eq!(me["organization"], organization);
        for list in ["teams", "projects"] {
            assert_eq!(names(&organization[list]), ["Web"], "{list}");
        }
        assert_eq!(me["team"]["name"], "Web");
    }

    /// Asserts that the caller sees the project, at this level.
    async fn is_shown_to(&self, caller: &TestClient, level: i64) {
        for list in [self.workspace.organization("projects/"), "/api/projects/".to_owned()] {
            let list = caller.get(&list).await.ok();
            assert_eq!(names(&list["results"]), ["Web", "Secret"]);
            assert_eq!(list["count"], 2);
        }
        for path in self.paths() {
            let project = caller.get(&path).await.ok();
            assert_eq!(project["effective_membership_level"], json!(level));
            assert_eq!(project["access_control"], true);
        }
        caller.get(&self.dashboards()).await.ok();
        let organization = caller.get(&self.workspace.organization("")).await.ok();
        assert_eq!(names(&organization["teams"]), ["Web", "Secret"]);
    }
}

fn names(list: &Value) -> Vec<&str> {
    let items = list.as_array().expect("a list");
    items.iter().map(|item| item["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn private_project_is_hidden_from_members_without_a_grant_and_visible_to_admins() {
    let private = Private::new().await;
    let admin = private.workspace.member("adam", Level::Admin).await;
    private.is_absent_for(&private.ann).await;
    private.is_shown_to(&admin, 8).await;
    private.is_shown_to(&private.workspace.owner, 15).await;
    let bob = private.workspace.member("bob", Level::Member).await;
    private.grant(json!("member")).await;
    private.is_shown_to(&private.ann, 1).await;
    private.is_absent_for(&bob).await;
    private.grant(json!("admin")).await;
    private.is_shown_to(&private.ann, 8).await;
    // A grant gives no level in the organization: Ann may neither open nor delete the project.
    let [path, _] = private.paths();
    private.ann.patch(&path, json!({ "name": "Secret" })).await.ok();
    private.ann.patch(&path, json!({ "access_control": false })).await.assert_denied(
        "Your organization access level is insufficient to configure project access restrictions.",
    );
    private.ann.delete(&path).await.assert_denied(TOO_LOW);
    private.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn current_project_that_becomes_private_is_no_longer_current() {
    let private = Private::new().await;
    let (owner, [path, _]) = (&private.workspace.owner, private.paths());
    owner.patch(&path, json!({ "access_control": false })).await.ok();
    assert_eq!(private.ann.get(&path).await.ok()["effective_membership_level"], 1);
    private.ann.patch(ME, json!({ "set_current_team": private.id })).await.ok();
    assert_eq!(private.ann.get("/api/projects/@current/").await.ok()["name"], "Secret");
    owner.patch(&path, json!({ "access_control": true })).await.ok();
    private.is_absent_for(&private.ann).await;
    assert_eq!(private.ann.get("/api/projects/@current/").await.ok()["name"], "Web");
}

#[tokio::test]
async fn filtered_project_list_counts_and_pages_only_visible_projects() {
    let private = Private::new().await;
    for (name, secret) in [("A", false), ("B", true), ("C", false)] {
        private.workspace.add_project(json!({ "name": name, "access_control": secret })).await;
    }
    for path in [private.workspace.organization("projects/").as_str(), "/api/projects/"] {
        let mut seen = Vec::new();
        for offset in 0..3 {
            let page = private.ann.get(&format!("{path}?limit=1&offset={offset}")).await.ok();
            assert_eq!((&page["count"], page["next"].is_null()), (&json!(3), offset == 2));
            seen.extend(names(&page["results"]).into_iter().map(str::to_owned));
        }
        assert_eq!(seen, ["Web", "A", "C"], "{path}");
    }
}

#[tokio::test]
async fn key_limited_to_a_private_project_needs_its_users_grant() {
    let private = Private::new().await;
    private.grant(json!("member")).await;
    let limits = json!({ "projects": [private.id] });
    let limited = private.workspace.limited_key(ANN, &["*"], limits).await;
    assert_eq!(names(&limited.get("/api/projects/").await.ok()["results"]), ["Secret"]);
    private.grant(Value::Null).await;
    assert_eq!(limited.get("/api/projects/").await.ok()["count"], 0);
    for path in private.paths() {
        limited.get(&path).await.assert_not_found("Not found.");
    }
    limited.get(&private.dashboards()).await.assert_denied(NO_ACCESS);
    private.grant(json!("member")).await;
    assert_eq!(limited.get("/api/projects/").await.ok()["count"], 1);
    limited.get(&private.dashboards()).await.ok();
}
