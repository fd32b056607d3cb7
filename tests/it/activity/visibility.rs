//! Tests which entries a caller may read: the log must not reveal objects that are hidden from the caller, nor their
//! number.

use proptest::prelude::*;
use proptest::sample::select;

use crate::activity::log::logs;
use crate::support::prelude::*;

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
            let made = workspace.add_project(json!({ "access_control": access_control })).await;
            projects.push(made.as_u64().expect("an id"));
        }
        let mut members = Vec::new();
        for name in ["ann", "bob"] {
            let caller = workspace.member(name, Level::Member).await;
            let email = format!("{name}@corp.example");
            let member = workspace.membership(&email).await;
            members.push((caller, member, json!(workspace.uuid(&email).await)));
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
            Step::Key => {
                let limits = json!({ "organizations": [self.workspace.made.organization_id] });
                self.workspace.limited_key(ANN, &["*"], limits).await;
            }
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
            self.finds(caller, user, &format!("/api/projects/{project}/activity_log/"), &log).await;
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
            ("limit=2&scope=PersonalAPIKey".to_owned(), expect(&|it| is(&["PersonalAPIKey"], it))),
            (format!("limit=2&item_id={item}"), expect(&|one| one.fields.item_id == item)),
            ("limit=2&user=@me".to_owned(), expect(&|it| it.meta.user == Some(UserId(user)))),
        ];
        if let Some(middle) = middle {
            asked.extend([
                (format!("limit=5&after={middle}"), expect(&|it| it.meta.created_at >= middle)),
                (format!("limit=5&before={middle}"), expect(&|it| it.meta.created_at < middle)),
            ]);
        }
        for (query, ids) in asked {
            let path = format!("{path}?{query}");
            assert_eq!(walked(caller, &path, "id").await, ids, "{user} {path}");
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
