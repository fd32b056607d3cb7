//! Which of several rules decides: random rules of members, roles and everyone, compared with the order of precedence
//! written as one expression.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::prelude::*;

/// The dashboards or insights of the workspace, and all of them together.
const TARGETS: [Option<usize>; 4] = [Some(0), Some(1), Some(2), None];
/// The subjects: everyone, three roles, Ann, Bob.
const SUBJECTS: usize = 6;
/// The roles of Ann and of Bob, by their position among the subjects.
const ROLES_OF_ANN: [usize; 2] = [1, 2];
const ROLES_OF_BOB: [usize; 1] = [3];
const EVERYONE: usize = 0;
const ANN: usize = 4;
const BOB: usize = 5;

/// The level of the rule on each target for each subject.
type Rules = BTreeMap<(Option<usize>, usize), AccessLevel>;

fn rules() -> impl Strategy<Value = Rules> {
    let level = || option::weighted(0.3, select(AccessLevel::ALL.to_vec()));
    proptest::collection::vec(level(), TARGETS.len() * SUBJECTS).prop_map(|levels| {
        let keys = TARGETS.iter().flat_map(|target| (0..SUBJECTS).map(|of| (*target, of)));
        keys.zip(levels).filter_map(|(key, level)| Some((key, level?))).collect()
    })
}

/// The level of a member with these names in rules on an object that another user created.
fn expected(rules: &Rules, names: &[usize], object: usize) -> AccessLevel {
    let of = |target, names: &[usize]| {
        names.iter().filter_map(|name| rules.get(&(target, *name)).copied()).max()
    };
    let one = Some(object);
    of(one, names)
        .or_else(|| of(None, names))
        .or_else(|| of(None, &[EVERYONE]))
        .or_else(|| of(one, &[EVERYONE]))
        .unwrap_or(AccessLevel::Editor)
}

/// Three dashboards and three insights with the same numbers. The owner created the first two of each, and Ann the third.
struct World {
    scene: Scene,
    numbers: Vec<u64>,
    subjects: Vec<Subject>,
}

impl World {
    async fn new() -> Self {
        let scene = Scene::new().await;
        scene.owner().patch(&scene.one, json!({ "deleted": true })).await.ok();
        let mut numbers = Vec::new();
        let insights = scene.workspace.project("insights/");
        let first = scene.owner().post(&insights, json!({})).await.ok()["id"].clone();
        scene.owner().patch(&format!("{insights}{first}/"), json!({ "deleted": true })).await.ok();
        for maker in [scene.owner(), scene.owner(), &scene.ann] {
            let (number, _) = make(&scene.workspace, maker, json!({})).await;
            assert_eq!(maker.post(&insights, json!({})).await.ok()["id"], number);
            numbers.push(number);
        }
        let user = async |client: &TestClient| {
            let me = client.get(ME).await.ok();
            Subject::User(UserId(me["id"].as_u64().expect("an id")))
        };
        let mut subjects = vec![Subject::Everyone];
        for (name, members) in [("A", ["ann"]), ("B", ["ann"]), ("C", ["bob"])] {
            let role = scene.role(name, &members).await;
            subjects.push(Subject::Role(RoleId(role.as_str().unwrap().parse().expect("a uuid"))));
        }
        subjects.push(user(&scene.ann).await);
        subjects.push(user(&scene.bob).await);
        Self { scene, numbers, subjects }
    }

    fn rules(&self, kind: Kind, rules: &Rules) -> Vec<AccessRule> {
        let now = self.scene.workspace.app.now();
        let rule =
            |((target, subject), level): (&(Option<usize>, usize), &AccessLevel)| AccessRule {
                organization: self.scene.workspace.made.organization_id,
                project: self.scene.workspace.made.project_id,
                kind,
                object: target.map(|at| self.numbers[at]),
                subject: self.subjects[*subject],
                level: *level,
                created_at: now,
                updated_at: now,
            };
        rules.iter().map(rule).collect()
    }

    /// Replaces all rules.
    async fn put(&self, on_dashboards: &Rules, on_insights: &Rules) {
        let mut records = self.rules(Kind::Dashboard, on_dashboards);
        records.extend(self.rules(Kind::Insight, on_insights));
        let project = self.scene.workspace.made.project_id;
        let written = self.scene.workspace.app.store().write(move |tx| {
            tx.remove_some::<AccessRule>(&project, usize::MAX)?;
            records.iter().try_for_each(|rule| tx.put(rule))
        });
        written.await.expect("written");
    }

    /// Asserts that each response to a member agrees with the expected level of each object below `path`. Returns the
    /// objects that the member may see, with the levels.
    async fn shows(
        &self,
        path: &str,
        rules: &Rules,
        caller: &TestClient,
        names: &[usize],
    ) -> BTreeSet<(u64, &'static str)> {
        let mut seen = BTreeSet::new();
        for (at, number) in self.numbers.iter().enumerate() {
            let one = format!("{path}{number}/");
            let detail = caller.get(&one).await;
            let owns = names.contains(&ANN) && at == 2;
            let level = if owns { AccessLevel::Manager } else { expected(rules, names, at) };
            if level == AccessLevel::None {
                detail.assert_denied(VIEWER);
            } else {
                let shown = detail.ok()["user_access_level"].clone();
                assert_eq!(shown, level.as_str(), "{names:?} {one} {rules:?}");
                seen.insert((*number, level.as_str()));
            }
            allows(&caller.patch(&one, json!({})).await, level >= AccessLevel::Editor, EDITOR);
        }
        seen
    }

    /// Asserts that the list at `path` shows the objects that the member may see, and counts no others.
    async fn lists(&self, path: &str, caller: &TestClient, seen: BTreeSet<(u64, &str)>) {
        let list = caller.get(path).await;
        if list.status == 403 {
            list.assert_denied(VIEWER);
            assert!(seen.is_empty(), "{path} {seen:?}");
            return;
        }
        let list = list.ok();
        let listed: BTreeSet<_> = list["results"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| (row["id"].as_u64().unwrap(), row["user_access_level"].as_str().unwrap()))
            .collect();
        assert_eq!(list["count"], seen.len(), "{path} {seen:?}");
        assert_eq!(listed, seen, "{path}");
    }

    /// Asserts that the level on all objects of a kind decides who may create one.
    async fn creates(&self, path: &str, rules: &Rules, caller: &TestClient, names: &[usize]) {
        let of = |names: &[usize]| names.iter().filter_map(|name| rules.get(&(None, *name))).max();
        let level = of(names).or_else(|| of(&[EVERYONE])).copied().unwrap_or(AccessLevel::Editor);
        // An invalid field, so that nothing is created.
        let answer = caller.post(path, json!({ "name": [] })).await;
        if level >= AccessLevel::Editor {
            assert_eq!(answer.status, 400, "{names:?} {path} {rules:?}");
        } else {
            answer.assert_denied(EDITOR);
        }
    }
}

#[test]
fn rules_decide_in_the_documented_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let world = runtime.block_on(World::new());
    let scene = &world.scene;
    let members = [
        (&scene.ann, [&[ANN], &ROLES_OF_ANN[..]].concat()),
        (&scene.bob, [&[BOB], &ROLES_OF_BOB[..]].concat()),
        (&scene.max, vec![]),
    ];
    let insights = scene.workspace.project("insights/");
    let paths = [scene.workspace.dashboards(""), insights];
    let cases = Cases { cases: 96, failure_persistence: None, ..Cases::default() };
    let held = TestRunner::new(cases).run(&[rules(), rules()], |rules| {
        runtime.block_on(async {
            let [on_dashboards, on_insights] = &rules;
            world.put(on_dashboards, on_insights).await;
            for (caller, names) in &members {
                for (path, rules) in paths.iter().zip(&rules) {
                    world.lists(path, caller, world.shows(path, rules, caller, names).await).await;
                    world.creates(path, rules, caller, names).await;
                }
            }
        });
        Ok(())
    });
    held.expect("every case");
    runtime.block_on(world.scene.workspace.assert_file_valid());
}
