//! The explanation of a member's access is what the service enforces: random worlds of rules, grants, restrictions and
//! collaborators, compared with the order of precedence written as one expression and with each member's requests.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use steward::testing::ids::CollaboratorId;
use steward::testing::resources::collaborators::Collaborator;
use steward::testing::resources::projects::grants::{Grant, GrantLevel};

use crate::support::prelude::*;

use super::decided;

/// The subjects, by position: everyone, a role of Ann, a role of Ann and Bob, Ann, Bob.
const SUBJECTS: usize = 5;
const EVERYONE: usize = 0;
const ANN: usize = 3;
const BOB: usize = 4;

/// The members in the order of the list, with their names in rules: their own, then their roles.
const MEMBERS: [(&str, &[usize]); 6] = [
    ("ada", &[]),
    ("max", &[]),
    ("bob", &[BOB, 2]),
    ("ann", &[ANN, 1, 2]),
    ("cleo", &[]),
    ("owner", &[]),
];

/// The level of the rule for each subject.
type Rules<L> = BTreeMap<usize, L>;

/// Everything that decides the access to the dashboard.
#[derive(Debug, Clone)]
struct World {
    on_dashboard: Rules<AccessLevel>,
    on_all: Rules<AccessLevel>,
    /// The rules on the project, for everyone too.
    on_project: Rules<GrantLevel>,
    restricted: bool,
    /// The collaborators among Ann and Bob.
    collaborators: Vec<usize>,
}

fn rules<L: Copy + std::fmt::Debug + 'static>(
    levels: &[L],
) -> impl Strategy<Value = Rules<L>> + use<L> {
    let level = option::weighted(0.35, select(levels.to_vec()));
    proptest::collection::vec(level, SUBJECTS).prop_map(|levels| {
        levels.into_iter().enumerate().filter_map(|(at, level)| Some((at, level?))).collect()
    })
}

fn worlds() -> impl Strategy<Value = World> {
    let collaborators = proptest::sample::subsequence(vec![ANN, BOB], 0..=2);
    let rules = (rules(&AccessLevel::ALL), rules(&AccessLevel::ALL), rules(&GrantLevel::ALL));
    (rules, any::<bool>(), collaborators).prop_map(|(rules, restricted, collaborators)| {
        let (on_dashboard, on_all, on_project) = rules;
        let collaborators = if restricted { collaborators } else { Vec::new() };
        World { on_dashboard, on_all, on_project, restricted, collaborators }
    })
}

/// The highest rule for these names. Of several equal ones, the first counts.
fn highest<L: Copy + Ord>(rules: &Rules<L>, names: &[usize]) -> Option<(L, usize)> {
    let found = names.iter().rev().filter_map(|name| Some((*rules.get(name)?, *name)));
    found.max_by_key(|(level, _)| *level)
}

/// What the model says about a member: the level, the rule that decides, the name in that rule, and whether the member
/// may edit the access rules.
#[derive(Debug, PartialEq)]
struct Expected {
    level: AccessLevel,
    rule: &'static str,
    name: Option<usize>,
    can_edit_rules: bool,
}

impl World {
    fn is_private(&self) -> bool {
        self.on_project.get(&EVERYONE) == Some(&GrantLevel::None)
    }

    fn expected(&self, who: &str, names: &[usize]) -> Expected {
        let manager =
            |rule| Expected { level: AccessLevel::Manager, rule, name: None, can_edit_rules: true };
        if ["ada", "owner"].contains(&who) {
            return manager("organization_admin");
        }
        let grant = highest(&self.on_project, names).map(|(level, _)| level);
        if self.is_private() && grant.is_none_or(|level| level == GrantLevel::None) {
            let (level, name) = (AccessLevel::None, Some(EVERYONE));
            return Expected { level, rule: "project_default", name, can_edit_rules: false };
        }
        if who == "cleo" {
            return manager("creator");
        }
        let tiers = [
            ("object_rule", highest(&self.on_dashboard, names)),
            ("kind_rule", highest(&self.on_all, names)),
            ("kind_rule", highest(&self.on_all, &[EVERYONE])),
            ("object_rule", highest(&self.on_dashboard, &[EVERYONE])),
        ];
        let ruled = tiers.iter().find_map(|(rule, found)| Some((*rule, (*found)?)));
        let (level, rule, name) = ruled
            .map_or((AccessLevel::Editor, "no_rule", None), |(rule, (level, name))| {
                (level, rule, Some(name))
            });
        let can_edit_rules = level == AccessLevel::Manager || grant == Some(GrantLevel::Admin);
        if !self.restricted || level < AccessLevel::Editor {
            return Expected { level, rule, name, can_edit_rules };
        }
        let (level, rule) = if self.collaborators.iter().any(|name| names.contains(name)) {
            (level, "collaborator")
        } else {
            (AccessLevel::Viewer, "restriction")
        };
        Expected { level, rule, name: None, can_edit_rules }
    }
}

/// A workspace whose rules are replaced for each world.
struct Service {
    scene: Scene,
    subjects: Vec<Subject>,
}

impl Service {
    async fn new() -> Self {
        let scene = Scene::new().await;
        let mut subjects = vec![Subject::Everyone];
        for (name, members) in [("A", &["ann"][..]), ("B", &["ann", "bob"])] {
            let role = scene.role(name, members).await;
            subjects.push(Subject::Role(RoleId(role.as_str().unwrap().parse().expect("a uuid"))));
        }
        for caller in [&scene.ann, &scene.bob] {
            let me = caller.get(ME).await.ok();
            subjects.push(Subject::User(UserId(me["id"].as_u64().expect("an id"))));
        }
        Self { scene, subjects }
    }

    /// Returns the names of a member in the order in which the first of several equal rules decides: the member, then the
    /// roles by id.
    fn in_precedence(&self, names: &[usize]) -> Vec<usize> {
        let mut names = names.to_vec();
        names.sort_by_key(|name| self.subjects[*name].role().map(|role| role.to_string()));
        names
    }

    /// Replaces all rules, the restriction and the collaborators.
    async fn put(&self, world: &World) {
        let owner = self.scene.owner();
        let level = world.on_project.get(&EVERYONE).map(|level| level.as_str());
        let path = self.scene.workspace.access_controls();
        let default = owner.put(&path, json!({ "access_level": level }));
        assert_eq!(default.await.status, if level.is_some() { 200 } else { 204 });
        let restriction = json!({ "restriction_level": if world.restricted { 37 } else { 21 } });
        owner.patch(&self.scene.one, restriction).await.ok();
        let organization = self.scene.workspace.made.organization_id;
        let project = self.scene.workspace.made.project_id;
        let (dashboard, now) = (DashboardId(self.scene.id), self.scene.workspace.app.now());
        let (world, subjects) = (world.clone(), self.subjects.clone());
        let (kind, created_at, updated_at) = (Kind::Dashboard, now, now);
        let rule = move |object, subject, level| AccessRule {
            organization,
            project,
            kind,
            object,
            subject,
            level,
            created_at,
            updated_at,
        };
        let written = self.scene.workspace.write(move |tx| {
            tx.remove_some::<AccessRule>(&project, usize::MAX)?;
            tx.remove_some::<Collaborator>(&(project, dashboard), usize::MAX)?;
            for (object, rules) in [(Some(dashboard.0), &world.on_dashboard), (None, &world.on_all)]
            {
                for (subject, level) in rules {
                    tx.put(&rule(object, subjects[*subject], *level))?;
                }
            }
            for (at, subject) in subjects.iter().enumerate().skip(1) {
                tx.remove::<Grant>(&(organization, project, *subject))?;
                if let Some(&level) = world.on_project.get(&at) {
                    let subject = *subject;
                    tx.put(&Grant {
                        organization,
                        project,
                        subject,
                        level,
                        created_at,
                        updated_at,
                    })?;
                }
            }
            for name in &world.collaborators {
                let user = subjects[*name].user().expect("a member");
                let (id, level) = (CollaboratorId(Uuid::from_u128(*name as u128)), 37);
                let (added_at, updated_at) = (now, now);
                tx.put(&Collaborator {
                    organization,
                    project,
                    dashboard,
                    user,
                    id,
                    level,
                    added_at,
                    updated_at,
                })?;
            }
            Ok(())
        });
        written.await;
    }

    /// Asserts that the entry of a member says what the model expects, and that one rule decides.
    fn explains(&self, entry: &Value, expected: &Expected, world: &World) {
        let decided = decided(entry);
        let subject = expected.name.map(|name| match self.subjects[name] {
            Subject::Everyone => "everyone",
            Subject::Role(_) => "role",
            Subject::User(_) => "member",
        });
        let role = expected.name.and_then(|name| self.subjects[name].role());
        let role = role.map(|role| role.to_string());
        let said = json!([
            entry["access_level"],
            entry["can_edit_access_levels"],
            decided["rule"],
            decided["subject"],
            decided["role"],
            decided["access_level"],
            decided["reached"],
        ]);
        let level = expected.level.as_str();
        let wanted =
            json!([level, expected.can_edit_rules, expected.rule, subject, role, level, true]);
        assert_eq!(said, wanted, "{entry} {world:?}");
    }

    /// Asserts that the service enforces the access of a member.
    async fn enforces(&self, who: &str, entry: &Value, expected: &Expected) {
        let (caller, one) = (self.scene.caller(who), &self.scene.one);
        let Expected { level, can_edit_rules, .. } = *expected;
        let edits = level >= AccessLevel::Editor;
        let status = |allowed, success| if allowed { success } else { 403 };
        assert_eq!(caller.get(one).await.status, status(level.can_view(), 200), "{who} {entry}");
        let renamed = caller.patch(one, json!({ "name": "B" })).await;
        assert_eq!(renamed.status, status(edits, 200), "{who} {entry}");
        let shared = caller.patch(&format!("{one}sharing/"), json!({ "enabled": false })).await;
        assert_eq!(shared.status, status(edits, 200), "{who} {entry}");
        // Without a level, so that the rule is not set.
        let ruled = caller.put(&self.scene.controls(), json!({})).await;
        assert_eq!(ruled.status, status(can_edit_rules, 400), "{who} {entry}");
        let reads = level.can_view() || can_edit_rules;
        assert_eq!(caller.get(&self.scene.controls()).await.status, status(reads, 200), "{who}");
        let own = caller.get(&format!("{one}access/?user=@me")).await;
        if reads {
            own.assert_is(200, page(json!([entry])));
        } else if expected.rule == "project_default" {
            own.assert_denied(NO_ACCESS);
        } else {
            own.assert_denied(VIEWER);
        }
    }

    async fn check(&self, world: &World) {
        self.put(world).await;
        let path = format!("{}access/", self.scene.one);
        let list = self.scene.owner().get(&path).await.ok();
        assert_eq!(list["count"], MEMBERS.len());
        let entries = list["results"].as_array().expect("a list");
        for (entry, (who, names)) in entries.iter().zip(MEMBERS) {
            assert_eq!(entry["user"]["email"], format!("{who}@corp.example"));
            let expected = world.expected(who, &self.in_precedence(names));
            self.explains(entry, &expected, world);
            self.enforces(who, entry, &expected).await;
        }
        for level in AccessLevel::ALL.map(AccessLevel::as_str) {
            let filtered = self.scene.owner().get(&format!("{path}?access_level={level}")).await;
            let of_level: Vec<_> =
                entries.iter().filter(|entry| entry["access_level"] == level).collect();
            filtered.assert_is(200, page(json!(of_level)));
        }
    }
}

#[test]
fn explanation_of_each_members_access_is_what_the_service_enforces() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let service = runtime.block_on(Service::new());
    let cases = Cases { cases: 96, failure_persistence: None, ..Cases::default() };
    let held = TestRunner::new(cases).run(&worlds(), |world| {
        runtime.block_on(service.check(&world));
        Ok(())
    });
    held.expect("every world");
    runtime.block_on(service.scene.workspace.assert_file_valid());
}
