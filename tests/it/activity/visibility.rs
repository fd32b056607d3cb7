//! Tests which entries a caller may read: the log must not reveal objects that are hidden from the caller, nor their
//! number.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as Cases, TestRunner};
use serde_json::{Value, json};
use steward::testing::operator::{KeyOptions, Operation};
use steward::testing::resources::activity::Entry;
use steward::testing::resources::members::Level;

use crate::activity::entries;
use crate::activity::log::{logs, told, walked};
use crate::dashboards::access::Scene;
use crate::dashboards::{embedded, make};
use crate::support::{TestClient, Workspace, eventually};

const REMOVED: &str = "Project not found.";

/// Creates a key that is limited to the first organization.
async fn limited_key(workspace: &Workspace, label: &str) {
    let made = Operation::KeyCreate(KeyOptions {
        email: "ann@corp.example".to_owned(),
        label: label.to_owned(),
        scopes: vec!["*".to_owned()],
        organizations: vec![workspace.made.organization_id],
        projects: Vec::new(),
        expires_in: None,
        existing: false,
    });
    workspace.run_operation(made).await;
}

/// Asserts that every text, or none, occurs in the pages of a log, with and without filters.
async fn mentions(caller: &TestClient, path: &str, texts: &[&str], expected: bool) {
    let queries = [
        "",
        "limit=1000",
        "scope=Dashboard,Project,AccessControl,PersonalAPIKey,DashboardCollaborator",
    ];
    for query in queries {
        let page = caller.get(&format!("{path}?{query}")).await.ok();
        for text in texts {
            assert_eq!(page.to_string().contains(text), expected, "{path}?{query}: {text} {page}");
        }
    }
}

#[tokio::test]
async fn private_project_entries_are_hidden_without_a_grant() {
    let workspace = Workspace::new().await;
    let (owner, ann) = (&workspace.owner, workspace.member("ann", Level::Member).await);
    let ada = workspace.member("ada", Level::Admin).await;
    let sent = json!({ "name": "SECRET project", "access_control": true });
    let made = owner.post(&workspace.organization("projects/"), sent).await.ok();
    let path = format!("/api/projects/{}/", made["id"]);
    owner.post(&format!("{path}dashboards/"), json!({ "name": "SECRET dashboard" })).await.ok();
    let [whole, _] = logs(&workspace);
    let before = ann.get(&whole).await.ok();
    let secrets = ["SECRET project", "SECRET dashboard"];
    mentions(&ann, &whole, &secrets, false).await;
    mentions(&ada, &whole, &secrets, true).await;
    let own = format!("{path}activity_log/");
    ann.get(&own).await.assert_denied("You don't have access to the project.");

    let member = workspace.membership("ann@corp.example").await;
    let grant = |level: Value| json!({ "organization_member": member, "access_level": level });
    let controls = format!("{path}access_controls/");
    for (level, sees) in [(json!("none"), false), (json!("member"), true), (json!(null), false)] {
        owner.put(&controls, grant(level)).await.ok();
        mentions(&ann, &whole, &secrets, sees).await;
        if sees {
            mentions(&ann, &own, &secrets, true).await;
        } else {
            assert_eq!(ann.get(&whole).await.ok(), before, "the count must not change");
        }
    }
    // The current permissions decide, also for entries from before they changed.
    owner.patch(&path, json!({ "access_control": false })).await.ok();
    mentions(&ann, &whole, &secrets, true).await;
    owner.patch(&path, json!({ "access_control": true })).await.ok();
    assert_eq!(ann.get(&whole).await.ok(), before);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn hidden_dashboard_entries_stay_hidden_after_deletion() {
    let scene = Scene::new().await;
    let (workspace, owner) = (&scene.workspace, scene.owner());
    let (id, one) = make(workspace, owner, json!({ "name": "SECRET 1" })).await;
    let sent = json!({ "name": "SECRET 2", "tiles": [{ "text": { "body": "SECRET 3" } }] });
    let before: Vec<Value> = {
        let mut pages = Vec::new();
        for path in logs(workspace) {
            pages.push(scene.creator.get(&format!("{path}?after=2025-01-02T03:04:06Z")).await.ok());
        }
        pages
    };
    scene.clock.advance(std::time::Duration::from_secs(1));
    owner.patch(&one, sent).await.ok();
    owner.patch(&one, json!({ "restriction_level": 37 })).await.ok();
    let bob = embedded(&scene.bob).await;
    let collaborator = json!({ "user_uuid": bob["uuid"], "level": 37 });
    owner.post(&format!("{one}collaborators/"), collaborator).await.ok();
    owner.patch(&format!("{one}sharing/"), json!({ "enabled": true })).await.ok();
    scene.rule_on(&one, None, "none").await;
    scene.rule_on(&one, Some("max"), "viewer").await;
    for removed in [false, true] {
        if removed {
            owner.patch(&one, json!({ "deleted": true })).await.ok();
        }
        for (path, before) in logs(workspace).iter().zip(&before) {
            // The entries are also hidden from a collaborator that may not see the dashboard.
            for caller in [&scene.ann, &scene.bob, &scene.creator] {
                mentions(caller, path, &["SECRET"], false).await;
                let page = caller.get(&format!("{path}?after=2025-01-02T03:04:06Z")).await.ok();
                assert_eq!(page, *before, "{removed}");
                let found = caller.get(&format!("{path}?item_id={id}&scope=Dashboard")).await.ok();
                assert_eq!(found["count"], 0);
            }
            for caller in [owner, &scene.admin, &scene.max] {
                mentions(caller, path, &["SECRET 1", "SECRET 2", "SECRET 3"], true).await;
                let page = caller.get(&format!("{path}?after=2025-01-02T03:04:06Z")).await.ok();
                assert_eq!(page["count"], 6 + u64::from(removed), "{page}");
            }
        }
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn creators_and_granted_users_read_entries_of_their_hidden_dashboards() {
    let scene = Scene::new().await;
    let (workspace, owner) = (&scene.workspace, scene.owner());
    let (_, other) = make(workspace, owner, json!({ "name": "B" })).await;
    scene.rule_on_all(None, "none").await;
    scene.rule_on(&other, Some("ann"), "viewer").await;
    let path = &logs(workspace)[1];
    for (caller, items) in [
        (owner, vec!["1:dashboard:2:3", "1:dashboard:*:*", "2", "1"]),
        (&scene.creator, vec!["1:dashboard:*:*", "1"]),
        (&scene.ann, vec!["1:dashboard:2:3", "1:dashboard:*:*", "2"]),
        (&scene.bob, vec!["1:dashboard:*:*"]),
    ] {
        let page = caller.get(path).await.ok();
        assert_eq!(page["count"], items.len());
        let found: Vec<_> = told(&page).into_iter().map(|[_, item, _]| item).collect();
        let sorted = |mut items: Vec<String>| {
            items.sort();
            items
        };
        assert_eq!(sorted(found), sorted(items.into_iter().map(str::to_owned).collect()));
    }
}

#[tokio::test]
async fn only_admins_see_log_entries_about_keys() {
    let workspace = Workspace::new().await;
    let (owner, ann) = (&workspace.owner, workspace.member("ann", Level::Member).await);
    let [whole, _] = logs(&workspace);
    let before = ann.get(&whole).await.ok();
    limited_key(&workspace, "SECRET label").await;
    assert_eq!(ann.get(&whole).await.ok(), before);
    mentions(&ann, &whole, &["SECRET label"], false).await;
    mentions(owner, &whole, &["SECRET label"], true).await;
    assert_eq!(ann.get(&format!("{whole}?scope=PersonalAPIKey")).await.ok()["count"], 0);
}

#[tokio::test]
async fn only_admins_see_entries_of_deleted_projects() {
    let workspace = Workspace::new().await;
    let (owner, ann) = (&workspace.owner, workspace.member("ann", Level::Member).await);
    let [whole, _] = logs(&workspace);
    let before = ann.get(&whole).await.ok();
    let sent = json!({ "name": "GONE project" });
    let made = owner.post(&workspace.organization("projects/"), sent).await.ok();
    let path = format!("/api/projects/{}/", made["id"]);
    owner.post(&format!("{path}dashboards/"), json!({ "name": "GONE dashboard" })).await.ok();
    mentions(&ann, &whole, &["GONE project", "GONE dashboard"], true).await;
    owner.delete(&path).await.assert_empty(204);
    for caller in [owner, &ann] {
        caller.get(&format!("{path}activity_log/")).await.assert_not_found(REMOVED);
    }
    for _ in 0..2 {
        assert_eq!(ann.get(&whole).await.ok(), before);
        mentions(owner, &whole, &["GONE project", "GONE dashboard"], true).await;
        let log = told(&owner.get(&format!("{whole}?scope=Project")).await.ok());
        let item = made["id"].to_string();
        let told = ["deleted", "created"].map(|done| ["Project", &item, done].map(str::to_owned));
        assert_eq!(log, told);
        // The entries stay hidden after the project's records are deleted.
        eventually("the records are deleted", || {
            use steward::testing::resources::dashboards::Dashboard;
            use steward::testing::store::Tx;
            let tx = workspace.app.store().snapshot().expect("a snapshot");
            let of = steward::testing::ids::ProjectId(made["id"].as_u64().expect("an id"));
            (tx.count::<Dashboard>(&of).expect("a count") == 0).then_some(())
        })
        .await;
    }
    workspace.assert_file_valid().await;
}

/// A request by the owner, or by a member if the step contains one.
#[derive(Debug, Clone)]
enum Step {
    Make(usize, usize),
    Change(usize, Value),
    Rule(usize, Option<usize>, Option<&'static str>),
    RuleOnAll(usize, Option<usize>, Option<&'static str>),
    Collaborate(usize, usize),
    Grant(usize, usize, Option<&'static str>),
    Restrict(usize, bool),
    RemoveLast,
    Key,
    Rename,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let whom = || proptest::option::of(0_usize..2);
    let level = || select(vec![Some("none"), Some("none"), Some("viewer"), Some("manager"), None]);
    let change = select(vec![
        json!({ "name": "renamed" }),
        json!({ "deleted": true }),
        json!({ "deleted": false }),
        json!({ "restriction_level": 37 }),
        json!({ "tiles": [{ "text": { "body": "text" } }] }),
    ]);
    let step = prop_oneof![
        6 => (0_usize..3, 0_usize..3).prop_map(|(who, project)| Step::Make(who, project)),
        6 => (0_usize..9, change).prop_map(|(one, sent)| Step::Change(one, sent)),
        5 => (0_usize..9, whom(), level()).prop_map(|(one, whom, level)| Step::Rule(one, whom, level)),
        1 => (0_usize..3, whom(), level()).prop_map(|(of, whom, level)| Step::RuleOnAll(of, whom, level)),
        1 => (0_usize..9, 0_usize..2).prop_map(|(one, whom)| Step::Collaborate(one, whom)),
        2 => (0_usize..3, 0_usize..2, select(vec![Some("member"), Some("admin"), Some("none"), None]))
            .prop_map(|(of, whom, level)| Step::Grant(of, whom, level)),
        2 => (0_usize..3, any::<bool>()).prop_map(|(of, private)| Step::Restrict(of, private)),
        1 => Just(Step::RemoveLast),
        1 => Just(Step::Key),
        1 => Just(Step::Rename),
    ];
    proptest::collection::vec(step, 4..28)
}

/// A workspace with three projects and two members, and the dashboards created so far.
struct World {
    workspace: Workspace,
    projects: Vec<u64>,
    members: Vec<(TestClient, Value, Value)>,
    dashboards: Vec<(u64, u64)>,
}

impl World {
    async fn new() -> Self {
        let workspace = Workspace::new().await;
        let mut projects = vec![workspace.made.project_id.0];
        for access_control in [true, false] {
            let sent = json!({ "access_control": access_control });
            let made = workspace.owner.post(&workspace.organization("projects/"), sent).await.ok();
            projects.push(made["id"].as_u64().expect("an id"));
        }
        let mut members = Vec::new();
        for name in ["ann", "bob"] {
            let caller = workspace.member(name, Level::Member).await;
            let member = workspace.membership(&format!("{name}@corp.example")).await;
            let uuid = embedded(&caller).await["uuid"].clone();
            members.push((caller, member, uuid));
        }
        Self { workspace, projects, members, dashboards: Vec::new() }
    }

    /// Runs a step if its target exists. A request that fails must not record an entry.
    async fn take(&mut self, step: Step) {
        let owner = &self.workspace.owner;
        let project = |of: usize| format!("/api/projects/{}/", self.projects[of]);
        let member =
            |whom: Option<usize>| whom.map_or(Value::Null, |whom| self.members[whom].1.clone());
        let one = |at: usize| {
            let (of, id) = self.dashboards.get(at % self.dashboards.len().max(1))?;
            Some(format!("/api/projects/{of}/dashboards/{id}/"))
        };
        let rule = |whom, level| {
            json!({
                "organization_member": member(whom), "access_level": level, "resource": "dashboard",
            })
        };
        match step {
            Step::Make(who, of) => {
                let maker = self.members.get(who).map_or(owner, |(caller, ..)| caller);
                let made = maker.post(&format!("{}dashboards/", project(of)), json!({})).await;
                let of = self.projects[of];
                self.dashboards.extend(made.body["id"].as_u64().map(|id| (of, id)));
            }
            Step::Change(at, sent) => {
                if let Some(one) = one(at) {
                    owner.patch(&one, sent).await;
                }
            }
            Step::Rule(at, whom, level) => {
                if let Some(one) = one(at) {
                    owner.put(&format!("{one}access_controls/"), rule(whom, level)).await;
                }
            }
            Step::RuleOnAll(of, whom, level) => {
                let path = format!("{}resource_access_controls/", project(of));
                owner.put(&path, rule(whom, level)).await;
            }
            Step::Collaborate(at, whom) => {
                if let Some(one) = one(at) {
                    let sent = json!({ "user_uuid": self.members[whom].2, "level": 37 });
                    owner.post(&format!("{one}collaborators/"), sent).await;
                }
            }
            Step::Grant(of, whom, level) => {
                let sent =
                    json!({ "organization_member": member(Some(whom)), "access_level": level });
                owner.put(&format!("{}access_controls/", project(of)), sent).await;
            }
            Step::Restrict(of, private) => {
                owner.patch(&project(of), json!({ "access_control": private })).await;
            }
            Step::RemoveLast => drop(owner.delete(&project(2)).await),
            Step::Key => limited_key(&self.workspace, "a key").await,
            Step::Rename => {
                owner.patch(&self.workspace.organization(""), json!({ "name": "Renamed" })).await;
            }
        }
    }

    /// Returns the projects and dashboards that lists show to a caller.
    async fn seen_by(&self, caller: &TestClient) -> BTreeMap<u64, BTreeSet<u64>> {
        let ids = |page: &Value| -> Vec<u64> {
            let rows = page["results"].as_array().into_iter().flatten();
            rows.map(|row| row["id"].as_u64().expect("an id")).collect()
        };
        let mut seen = BTreeMap::new();
        for project in ids(&caller.get("/api/projects/").await.ok()) {
            let mut dashboards = BTreeSet::new();
            for deleted in [false, true] {
                let path =
                    format!("/api/projects/{project}/dashboards/?limit=1000&deleted={deleted}");
                dashboards.extend(ids(&caller.get(&path).await.body));
            }
            seen.insert(project, dashboards);
        }
        seen
    }

    /// Asserts that the logs show a caller exactly the entries for objects that lists show.
    async fn shows(&self, caller: &TestClient, user: u64) {
        let seen = self.seen_by(caller).await;
        let is_admin = user == 1;
        let mut log = entries(&self.workspace);
        log.reverse();
        log.retain(|entry| entry.meta.organization == self.workspace.made.organization_id);
        log.retain(|entry| is_admin || is_theirs(entry, &seen));
        let [whole, _] = logs(&self.workspace);
        self.finds(caller, user, &whole, &log).await;
        for project in seen.keys() {
            let mut log = log.clone();
            log.retain(|entry| entry.meta.project.is_some_and(|id| id.0 == *project));
            let path = format!("/api/projects/{project}/activity_log/");
            self.finds(caller, user, &path, &log).await;
        }
    }

    /// Asserts that a log shows a caller exactly these entries, with and without filters.
    async fn finds(&self, caller: &TestClient, user: u64, path: &str, log: &[Entry]) {
        let is = |scopes: &[&str], entry: &Entry| scopes.contains(&entry.fields.scope.as_str());
        let item = self.dashboards.first().map_or(1, |(_, id)| *id).to_string();
        let middle = log.get(log.len() / 2).map(|entry| entry.meta.created_at);
        let expect = |keep: &dyn Fn(&Entry) -> bool| -> Vec<Value> {
            log.iter().filter(|entry| keep(entry)).map(|entry| json!(entry.meta.id)).collect()
        };
        let mut asked = vec![
            ("limit=3".to_owned(), expect(&|_| true)),
            ("limit=1000".to_owned(), expect(&|_| true)),
            (
                "limit=4&scope=Dashboard,AccessControl".to_owned(),
                expect(&|one| is(&["Dashboard", "AccessControl"], one)),
            ),
            (
                "limit=2&scope=PersonalAPIKey".to_owned(),
                expect(&|one| is(&["PersonalAPIKey"], one)),
            ),
            (format!("limit=2&item_id={item}"), expect(&|one| one.fields.item_id == item)),
            (
                "limit=2&user=@me".to_owned(),
                expect(&|one| one.meta.user.is_some_and(|id| id.0 == user)),
            ),
        ];
        if let Some(middle) = middle {
            asked.push((
                format!("limit=5&after={middle}"),
                expect(&|one| one.meta.created_at >= middle),
            ));
            asked.push((
                format!("limit=5&before={middle}"),
                expect(&|one| one.meta.created_at < middle),
            ));
        }
        for (query, ids) in asked {
            assert_eq!(
                walked(caller, &format!("{path}?{query}")).await,
                ids,
                "{user} {path}?{query}"
            );
        }
    }
}

/// Returns whether a plain member that sees these projects and dashboards may read an entry.
fn is_theirs(entry: &Entry, seen: &BTreeMap<u64, BTreeSet<u64>>) -> bool {
    let Some(project) = entry.meta.project else { return entry.fields.scope != "PersonalAPIKey" };
    let Some(dashboards) = seen.get(&project.0) else { return false };
    let parts: Vec<&str> = entry.fields.item_id.split(':').collect();
    let dashboard = match (entry.fields.scope.as_str(), parts.as_slice()) {
        ("Dashboard", [id]) | ("DashboardCollaborator", [id, _]) => id,
        ("AccessControl", [_, "dashboard", id, _]) if *id != "*" => id,
        ("AccessControl" | "Project", _) => return true,
        other => panic!("{other:?}"),
    };
    dashboards.contains(&dashboard.parse().expect("an id"))
}

#[test]
fn log_shows_and_counts_only_entries_visible_to_the_reader() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let cases = Cases { cases: 16, failure_persistence: None, ..Cases::default() };
    let held = TestRunner::new(cases).run(&steps(), |steps| {
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in steps {
                world.take(step).await;
            }
            world.shows(&world.workspace.owner, 1).await;
            for (at, (caller, ..)) in world.members.iter().enumerate() {
                world.shows(caller, at as u64 + 2).await;
            }
            world.workspace.assert_file_valid().await;
        });
        Ok(())
    });
    held.expect("every case");
}
