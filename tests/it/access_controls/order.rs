//! Which of several rules decides: random rules of members, roles and everyone, compared with the order of precedence
//! written as one expression.

use std::collections::{BTreeMap, BTreeSet};

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as Cases, TestRunner};
use serde_json::{Value, json};
use steward::testing::ids::{ProjectId, RoleId, UserId};
use steward::testing::resources::access_controls::levels::AccessLevel;
use steward::testing::resources::access_controls::rules::AccessRule;
use steward::testing::resources::access_objects::Kind;
use steward::testing::resources::access_subject::Subject;

use crate::dashboards::access::{EDITOR, Scene, VIEWER, allows};
use crate::dashboards::make;

/// The dashboards of the workspace, and all of them together.
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
    let each = proptest::collection::vec(level(), TARGETS.len() * SUBJECTS);
    each.prop_map(|levels| {
        let keys = TARGETS.iter().flat_map(|target| (0..SUBJECTS).map(|of| (*target, of)));
        keys.zip(levels).filter_map(|(key, level)| Some((key, level?))).collect()
    })
}

/// The level of a member with these names in rules on a dashboard that another user created.
fn expected(rules: &Rules, names: &[usize], dashboard: usize) -> AccessLevel {
    let of = |target, names: &[usize]| {
        names.iter().filter_map(|name| rules.get(&(target, *name)).copied()).max()
    };
    let one = Some(dashboard);
    of(one, names)
        .or_else(|| of(None, names))
        .or_else(|| of(None, &[EVERYONE]))
        .or_else(|| of(one, &[EVERYONE]))
        .unwrap_or(AccessLevel::Editor)
}

/// A workspace with three dashboards: the owner created the first two, and Ann the third.
struct World {
    scene: Scene,
    dashboards: Vec<(u64, String)>,
    subjects: Vec<Subject>,
}

impl World {
    async fn new() -> Self {
        let scene = Scene::new().await;
        scene.owner().patch(&scene.one, json!({ "deleted": true })).await.ok();
        let mut dashboards = Vec::new();
        for maker in [scene.owner(), scene.owner(), &scene.ann] {
            dashboards.push(make(&scene.workspace, maker, json!({})).await);
        }
        let user = async |client: &crate::support::TestClient| {
            let me = client.get("/api/users/@me/").await.ok();
            Subject::User(UserId(me["id"].as_u64().expect("an id")))
        };
        let mut subjects = vec![Subject::Everyone];
        for (name, members) in [("A", ["ann"]), ("B", ["ann"]), ("C", ["bob"])] {
            let role = scene.role(name, &members).await;
            subjects.push(Subject::Role(RoleId(role.as_str().unwrap().parse().expect("a uuid"))));
        }
        subjects.push(user(&scene.ann).await);
        subjects.push(user(&scene.bob).await);
        Self { scene, dashboards, subjects }
    }

    fn rule(
        &self,
        kind: Kind,
        target: Option<usize>,
        subject: usize,
        level: AccessLevel,
    ) -> AccessRule {
        let now = self.scene.workspace.app.now();
        AccessRule {
            organization: self.scene.workspace.made.organization_id,
            project: self.scene.workspace.made.project_id,
            kind,
            object: target.map(|at| self.dashboards[at].0),
            subject: self.subjects[subject],
            level,
            created_at: now,
            updated_at: now,
        }
    }

    /// Replaces all rules. Rules on all objects of another kind must not matter.
    async fn put(&self, rules: &Rules, decoys: &Rules) {
        let mut records: Vec<_> = rules
            .iter()
            .map(|((target, subject), level)| self.rule(Kind::Dashboard, *target, *subject, *level))
            .collect();
        for ((target, subject), level) in decoys {
            if target.is_none() {
                records.push(self.rule(Kind::Insight, None, *subject, *level));
            }
        }
        let project: ProjectId = self.scene.workspace.made.project_id;
        let written = self.scene.workspace.app.store().write(move |tx| {
            tx.remove_some::<AccessRule>(&project, usize::MAX)?;
            records.iter().try_for_each(|rule| tx.put(rule))
        });
        written.await.expect("written");
    }

    /// Asserts that each response to a member agrees with the expected level of each dashboard.
    async fn shows(&self, rules: &Rules, caller: &crate::support::TestClient, names: &[usize]) {
        let owns = names.contains(&ANN).then_some(2);
        let level = |at| match at {
            _ if owns == Some(at) => AccessLevel::Manager,
            at => expected(rules, names, at),
        };
        let mut seen = BTreeSet::new();
        for (at, (id, path)) in self.dashboards.iter().enumerate() {
            let detail = caller.get(path).await;
            let level = level(at);
            if level == AccessLevel::None {
                detail.assert_denied(VIEWER);
            } else {
                assert_eq!(
                    detail.ok()["user_access_level"],
                    level.as_str(),
                    "{names:?} {at} {rules:?}"
                );
                seen.insert((*id, level.as_str()));
            }
            let patched = caller.patch(path, json!({})).await;
            allows(&patched, level >= AccessLevel::Editor, EDITOR);
        }
        let list = caller.get(&self.scene.workspace.dashboards("")).await;
        if list.status == 403 {
            assert!(seen.is_empty(), "{names:?} {rules:?}");
            return;
        }
        let list = list.ok();
        let listed: Vec<&Value> = list["results"].as_array().expect("a list").iter().collect();
        let found: BTreeSet<_> = listed
            .iter()
            .map(|row| (row["id"].as_u64().unwrap(), row["user_access_level"].as_str().unwrap()))
            .collect();
        assert_eq!(found, seen, "{names:?} {rules:?}");
        assert_eq!(list["count"], seen.len(), "{names:?} {rules:?}");
        self.creates(rules, caller, names).await;
    }

    /// Asserts that the level on all dashboards is shown, and decides who may create a dashboard.
    async fn creates(&self, rules: &Rules, caller: &crate::support::TestClient, names: &[usize]) {
        let of = |names: &[usize]| names.iter().filter_map(|name| rules.get(&(None, *name))).max();
        let level = of(names).or_else(|| of(&[EVERYONE])).copied();
        let level = level.unwrap_or(AccessLevel::Editor);
        let shown = caller.get(&self.scene.of_all()).await.ok();
        assert_eq!(shown["user_access_level"], level.as_str(), "{names:?} {rules:?}");
        let template = json!({ "name": [] });
        let refused = caller.post(&self.scene.workspace.dashboards(""), template).await;
        if level >= AccessLevel::Editor {
            assert_eq!(refused.status, 400);
        } else {
            refused.assert_denied(EDITOR);
        }
    }
}

#[test]
fn rules_decide_in_the_documented_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let world = runtime.block_on(World::new());
    let names = |own: usize, roles: &[usize]| [&[own], roles].concat();
    let cases = Cases { cases: 96, failure_persistence: None, ..Cases::default() };
    let held = TestRunner::new(cases).run(&(rules(), rules()), |(rules, decoys)| {
        runtime.block_on(async {
            world.put(&rules, &decoys).await;
            world.shows(&rules, &world.scene.ann, &names(ANN, &ROLES_OF_ANN)).await;
            world.shows(&rules, &world.scene.bob, &names(BOB, &ROLES_OF_BOB)).await;
            world.shows(&rules, &world.scene.max, &[]).await;
        });
        Ok(())
    });
    held.expect("every case");
    runtime.block_on(world.scene.workspace.assert_file_valid());
}
