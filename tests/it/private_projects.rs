//! Private projects: who sees them, and how they look to those who do not.

use axum::http::Method;
use serde_json::{Value, json};
use steward::ids::{ProjectId, UserId};
use steward::operator::Operation;
use steward::resources::members::Level;
use steward::resources::projects::grants::{Grant, GrantLevel};
use steward::store::{Order, Tx, Window};

use crate::support::{Caller, Workspace};

const NO_ACCESS: &str = "You don't have access to the project.";

/// A workspace whose second project is private, and a plain member.
struct Private {
    workspace: Workspace,
    id: ProjectId,
    ann: Caller,
}

impl Private {
    async fn new() -> Self {
        let workspace = Workspace::new().await;
        let sent = json!({ "name": "Secret", "access_control": true });
        let made = workspace.owner.post(&workspace.organization("projects/"), sent).await.ok();
        let id = ProjectId(made["id"].as_u64().expect("an id"));
        let ann = workspace.member("ann", Level::Member).await;
        Self { workspace, id, ann }
    }

    /// The project's two paths.
    fn paths(&self) -> [String; 2] {
        let id = self.id;
        [self.workspace.organization(&format!("projects/{id}/")), format!("/api/projects/{id}/")]
    }

    /// The project's dashboards.
    fn dashboards(&self) -> String {
        format!("/api/projects/{}/dashboards/", self.id)
    }

    async fn user(&self, caller: &Caller) -> UserId {
        UserId(caller.get("/api/users/@me/").await.ok()["id"].as_u64().expect("an id"))
    }

    async fn grant(&self, caller: &Caller, level: GrantLevel) {
        let organization = self.workspace.made.organization_id;
        let grant = Grant { organization, project: self.id, user: self.user(caller).await, level };
        let written = self.workspace.app.store().write(move |tx| tx.put(&grant)).await;
        written.expect("written");
    }

    /// How many grants there are.
    fn grants(&self) -> usize {
        let tx = self.workspace.app.store().snapshot().expect("a snapshot");
        let all = Window { offset: 0, limit: usize::MAX, order: Order::Ascending };
        let mut count = 0;
        let counted = tx.scan::<Grant, _>(&(), all, |_| {
            count += 1;
            Ok(())
        });
        counted.expect("counted");
        count
    }

    /// Asserts that the project is absent for the caller wherever projects are shown.
    async fn is_absent_for(&self, caller: &Caller) {
        for list in [self.workspace.organization("projects/"), "/api/projects/".to_owned()] {
            let list = caller.get(&list).await.ok();
            assert_eq!((names(&list["results"]), &list["count"]), (vec!["Web"], &json!(1)));
        }
        for path in self.paths() {
            for method in [Method::GET, Method::PATCH, Method::DELETE, Method::PUT] {
                let body = json!({ "name": "" });
                caller.send(method, &path, Some(body)).await.misses("Not found.");
            }
        }
        caller.get(&self.dashboards()).await.denies(NO_ACCESS);
        caller.post(&self.dashboards(), json!({ "pinned": "x" })).await.denies(NO_ACCESS);
        let me = caller.get("/api/users/@me/").await.ok();
        let organization = caller.get(&self.workspace.organization("")).await.ok();
        assert_eq!(me["organization"], organization);
        for list in ["teams", "projects"] {
            assert_eq!(names(&organization[list]), ["Web"], "{list}");
        }
        assert_eq!(me["team"]["name"], "Web");
    }

    /// Asserts that the project is there for the caller, at this level.
    async fn is_shown_to(&self, caller: &Caller, level: i64) {
        for list in [self.workspace.organization("projects/"), "/api/projects/".to_owned()] {
            let list = caller.get(&list).await.ok();
            assert_eq!(
                (names(&list["results"]), &list["count"]),
                (vec!["Web", "Secret"], &json!(2))
            );
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
async fn a_private_project_is_absent_for_plain_members_and_there_for_admins() {
    let private = Private::new().await;
    let admin = private.workspace.member("adam", Level::Admin).await;
    private.is_absent_for(&private.ann).await;
    private.is_shown_to(&admin, 8).await;
    private.is_shown_to(&private.workspace.owner, 15).await;
    private.workspace.check().await;
}

#[tokio::test]
async fn a_grant_shows_it_at_the_level_of_the_grant() {
    let private = Private::new().await;
    let bob = private.workspace.member("bob", Level::Member).await;
    private.grant(&private.ann, GrantLevel::Member).await;
    private.is_shown_to(&private.ann, 1).await;
    private.is_absent_for(&bob).await;
    private.grant(&private.ann, GrantLevel::Admin).await;
    private.is_shown_to(&private.ann, 8).await;
    // A grant is no level in the organization: neither who sees it nor its end is the member's to say.
    let [path, _] = private.paths();
    private.ann.patch(&path, json!({ "name": "Secret" })).await.ok();
    let open = private.ann.patch(&path, json!({ "access_control": false })).await;
    open.denies(
        "Your organization access level is insufficient to configure project access restrictions.",
    );
    private.ann.delete(&path).await.denies("Your organization access level is insufficient.");
    private.workspace.check().await;
}

#[tokio::test]
async fn it_follows_the_members_level_and_its_own_switch_at_once() {
    let private = Private::new().await;
    let ann = private.user(&private.ann).await;
    let me = private.ann.get("/api/users/@me/").await.ok();
    let member = format!("members/{}/", me["uuid"].as_str().expect("a uuid"));
    let member = private.workspace.organization(&member);
    let owner = &private.workspace.owner;
    owner.patch(&member, json!({ "level": 8 })).await.ok();
    private.is_shown_to(&private.ann, 8).await;
    owner.patch(&member, json!({ "level": 1 })).await.ok();
    private.is_absent_for(&private.ann).await;

    let [path, _] = private.paths();
    owner.patch(&path, json!({ "access_control": false })).await.ok();
    assert_eq!(private.ann.get(&path).await.ok()["effective_membership_level"], 1);
    assert_eq!(private.ann.get("/api/projects/").await.ok()["count"], 2);
    let chosen = json!({ "set_current_team": private.id });
    private.ann.patch("/api/users/@me/", chosen).await.ok();
    assert_eq!(private.ann.get("/api/projects/@current/").await.ok()["name"], "Secret");
    owner.patch(&path, json!({ "access_control": true })).await.ok();
    private.is_absent_for(&private.ann).await;
    assert_eq!(private.ann.get("/api/projects/@current/").await.ok()["name"], "Web");
    assert_eq!(private.user(&private.ann).await, ann);
}

#[tokio::test]
async fn a_list_that_leaves_projects_out_counts_and_pages_what_is_left() {
    let private = Private::new().await;
    let list = private.workspace.organization("projects/");
    for (name, secret) in [("A", false), ("B", true), ("C", false)] {
        let sent = json!({ "name": name, "access_control": secret });
        private.workspace.owner.post(&list, sent).await.ok();
    }
    for path in [list.as_str(), "/api/projects/"] {
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
async fn a_member_who_leaves_loses_the_grants_for_good() {
    let private = Private::new().await;
    private.grant(&private.ann, GrantLevel::Admin).await;
    assert_eq!(private.grants(), 1);
    private.ann.delete(&private.workspace.organization("members/@me/")).await.is_empty(204);
    assert_eq!(private.grants(), 0);
    private.workspace.check().await;
    let back = Operation::UserCreate {
        email: "ann@corp.example".to_owned(),
        first_name: String::new(),
        last_name: String::new(),
        organization: Some(private.workspace.made.organization_id),
        level: Level::Member,
        existing: true,
    };
    private.workspace.operate(back).await;
    private.is_absent_for(&private.ann).await;
}

#[tokio::test]
async fn a_key_limited_to_it_is_shut_out_with_its_user() {
    let private = Private::new().await;
    private.grant(&private.ann, GrantLevel::Member).await;
    let limits = json!({ "projects": [private.id] });
    let limited = private.workspace.limited_key("ann@corp.example", &["*"], limits).await;
    assert_eq!(names(&limited.get("/api/projects/").await.ok()["results"]), ["Secret"]);
    let user = private.user(&private.ann).await;
    let key = (private.workspace.made.organization_id, private.id, user);
    let revoke = private.workspace.app.store().write(move |tx| tx.remove::<Grant>(&key).map(drop));
    revoke.await.expect("revoked");
    assert_eq!(limited.get("/api/projects/").await.ok()["count"], 0);
    for path in private.paths() {
        limited.get(&path).await.misses("Not found.");
    }
    limited.get(&private.dashboards()).await.denies(NO_ACCESS);
}
