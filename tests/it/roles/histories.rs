//! Random histories of roles, their members and the rules on a project match a small model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as ProptestConfig, TestRunner};
use serde_json::{Value, json};

use crate::support::{Level, TestClient, Workspace};

const NAMES: [&str; 2] = ["ann", "bob"];

/// A request by the owner. Roles and members are positions.
#[derive(Debug, Clone)]
enum Step {
    Make(usize),
    Drop(usize),
    Join(usize, usize),
    Leave(usize, usize),
    SetDefaultRole(Option<usize>),
    RuleOfRole(usize, Option<&'static str>),
    RuleOfMember(usize, Option<&'static str>),
    RuleOfEveryone(Option<&'static str>),
    Restrict(bool),
    /// The member leaves the organization and joins it again.
    Return(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let level = || select(vec![Some("none"), Some("member"), Some("admin"), None]);
    let (role, member) = (|| 0_usize..3, || 0_usize..2);
    let step = prop_oneof![
        4 => role().prop_map(Step::Make),
        2 => role().prop_map(Step::Drop),
        6 => (role(), member()).prop_map(|(role, member)| Step::Join(role, member)),
        2 => (role(), member()).prop_map(|(role, member)| Step::Leave(role, member)),
        2 => proptest::option::of(role()).prop_map(Step::SetDefaultRole),
        6 => (role(), level()).prop_map(|(role, level)| Step::RuleOfRole(role, level)),
        2 => (member(), level()).prop_map(|(member, level)| Step::RuleOfMember(member, level)),
        4 => level().prop_map(Step::RuleOfEveryone),
        2 => any::<bool>().prop_map(Step::Restrict),
        1 => member().prop_map(Step::Return),
    ];
    proptest::collection::vec(step, 4..32)
}

/// What the model knows of a role.
#[derive(Debug)]
struct Role {
    id: Value,
    /// The paths of the role memberships, by member.
    members: BTreeMap<usize, String>,
    level: Option<&'static str>,
}

/// A workspace, and the state that its responses must show.
struct World {
    workspace: Workspace,
    callers: Vec<TestClient>,
    roles: BTreeMap<usize, Role>,
    default_role: Option<usize>,
    everyone: Option<&'static str>,
    own: BTreeMap<usize, &'static str>,
}

impl World {
    async fn new() -> Self {
        let workspace = Workspace::new().await;
        let mut callers = Vec::new();
        for name in NAMES {
            callers.push(workspace.member(name, Level::Member).await);
        }
        let (roles, own) = (BTreeMap::new(), BTreeMap::new());
        Self { workspace, callers, roles, default_role: None, everyone: None, own }
    }

    fn role_path(&self, role: usize, rest: &str) -> Option<String> {
        let id = self.roles.get(&role)?.id.as_str()?;
        Some(self.workspace.organization(&format!("roles/{id}/{rest}")))
    }

    async fn rule(&self, mut subject: Value, level: Option<&'static str>) {
        subject["access_level"] = json!(level);
        let path = self.workspace.access_controls();
        let status = self.workspace.owner.put(&path, subject).await.status;
        assert_eq!(status, if level.is_some() { 200 } else { 204 });
    }

    /// Runs a step if its target exists, and changes the model as the step must change the service.
    async fn take(&mut self, step: &Step) {
        match *step {
            Step::Make(role) => self.make(role).await,
            Step::Drop(role) => {
                if let Some(path) = self.role_path(role, "") {
                    self.workspace.owner.delete(&path).await.assert_empty(204);
                    self.roles.remove(&role);
                    self.default_role = self.default_role.filter(|default| *default != role);
                }
            }
            Step::Join(role, member) => self.join(role, member).await,
            Step::Leave(role, member) => {
                let path = self.roles.get_mut(&role).and_then(|role| role.members.remove(&member));
                if let Some(path) = path {
                    self.workspace.owner.delete(&path).await.assert_empty(204);
                }
            }
            Step::SetDefaultRole(role) => {
                let id = role.and_then(|role| Some(self.roles.get(&role)?.id.clone()));
                self.default_role = role.filter(|_| id.is_some());
                let sent = json!({ "default_role_id": id });
                self.workspace.owner.patch(&self.workspace.organization(""), sent).await.ok();
            }
            Step::RuleOfRole(role, level) => {
                if let Some(id) = self.roles.get(&role).map(|role| role.id.clone()) {
                    self.rule(json!({ "role": id }), level).await;
                    self.roles.get_mut(&role).expect("a role").level = level;
                }
            }
            Step::RuleOfMember(member, level) => {
                let email = format!("{}@corp.example", NAMES[member]);
                let id = self.workspace.membership(&email).await;
                self.rule(json!({ "organization_member": id }), level).await;
                self.own.remove(&member);
                self.own.extend(level.map(|level| (member, level)));
            }
            Step::RuleOfEveryone(level) => {
                self.rule(json!({}), level).await;
                self.everyone = level;
            }
            Step::Restrict(private) => {
                let project = format!("/api/projects/{}/", self.workspace.made.project_id);
                let sent = json!({ "access_control": private });
                self.workspace.owner.patch(&project, sent).await.ok();
                self.everyone = match self.everyone {
                    _ if private => Some("none"),
                    Some("none") => None,
                    open => open,
                };
            }
            Step::Return(member) => self.come_back(member).await,
        }
    }

    async fn make(&mut self, role: usize) {
        let sent = json!({ "name": format!("Role {role}") });
        let made = self.workspace.owner.post(&self.workspace.organization("roles/"), sent).await;
        if self.roles.contains_key(&role) {
            made.assert_invalid("name", "unique", super::TAKEN);
            return;
        }
        let id = made.ok()["id"].clone();
        self.roles.insert(role, Role { id, members: BTreeMap::new(), level: None });
    }

    async fn join(&mut self, role: usize, member: usize) {
        let Some(list) = self.role_path(role, "role_memberships/") else { return };
        let uuid = self.workspace.uuid(&format!("{}@corp.example", NAMES[member])).await;
        let added = self.workspace.owner.post(&list, json!({ "user_uuid": uuid })).await;
        let members = &mut self.roles.get_mut(&role).expect("a role").members;
        if members.contains_key(&member) {
            added.assert_invalid_body("invalid_input", "User is already part of the role.");
            return;
        }
        let id = added.ok()["id"].clone();
        members.insert(member, format!("{list}{}/", id.as_str().expect("an id")));
    }

    async fn come_back(&mut self, member: usize) {
        let myself = self.workspace.organization("members/@me/");
        self.callers[member].delete(&myself).await.assert_empty(204);
        let email = format!("{}@corp.example", NAMES[member]);
        self.workspace.rejoin(&email, Level::Member).await;
        self.own.remove(&member);
        self.roles.values_mut().for_each(|role| drop(role.members.remove(&member)));
        let Some(role) = self.default_role else { return };
        let list = self.role_path(role, "role_memberships/").expect("a role");
        let shown = self.workspace.owner.get(&list).await.ok();
        let rows = shown["results"].as_array().expect("results");
        let row = rows.iter().find(|row| row["user"]["email"] == json!(email)).expect("a member");
        let path = format!("{list}{}/", row["id"].as_str().expect("an id"));
        self.roles.get_mut(&role).expect("a role").members.insert(member, path);
    }

    /// The level of a member on the project: the highest that applies.
    fn level_of(&self, member: usize) -> &'static str {
        let roles = self.roles.values().filter(|role| role.members.contains_key(&member));
        let levels = roles.filter_map(|role| role.level).chain(self.own.get(&member).copied());
        let levels: BTreeSet<_> = levels.chain([self.everyone.unwrap_or("member")]).collect();
        let highest = ["admin", "member"].into_iter().find(|level| levels.contains(level));
        highest.unwrap_or("none")
    }

    /// Asserts that the service shows the state of the model.
    async fn assert_matches(&self) {
        let owner = &self.workspace.owner;
        let shown = owner.get(&self.workspace.organization("roles/")).await.ok();
        let found = shown["results"].as_array().expect("results").iter().map(|role| {
            let members = role["members"].as_array().expect("members").iter();
            let members: BTreeSet<_> =
                members.map(|one| one["user"]["first_name"].as_str()).collect();
            json!([role["id"], members, role["is_default"]])
        });
        let expected = self.roles.iter().map(|(at, role)| {
            let members: BTreeSet<_> = role.members.keys().map(|at| NAMES[*at]).collect();
            json!([role.id, members, self.default_role == Some(*at)])
        });
        assert_eq!(found.collect::<Value>(), expected.collect::<Value>());
        let organization = owner.get(&self.workspace.organization("")).await.ok();
        let default = self.default_role.map(|role| self.roles[&role].id.clone());
        assert_eq!(organization["default_role_id"], json!(default));
        let is_private = self.everyone == Some("none");
        assert_eq!(organization["teams"][0]["access_control"], is_private);
        let rules = owner.get(&self.workspace.access_controls()).await.ok();
        let count = self.roles.values().filter(|role| role.level.is_some()).count()
            + self.own.len()
            + usize::from(self.everyone.is_some());
        assert_eq!(rules["access_controls"].as_array().expect("rules").len(), count);
        assert_eq!(rules["default_access_level"], self.everyone.unwrap_or("member"));
        for (member, caller) in self.callers.iter().enumerate() {
            let level = self.level_of(member);
            let sees = level != "none";
            assert_eq!(caller.get("/api/projects/").await.ok()["count"], u8::from(sees));
            let controls = caller.get(&self.workspace.access_controls()).await;
            if sees {
                assert_eq!(controls.ok()["user_access_level"], level);
            } else {
                controls.assert_denied("You don't have access to the project.");
            }
        }
    }
}

#[test]
fn random_histories_of_roles_and_rules_match_the_model() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let config =
        ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
    let run = |steps: Vec<Step>| {
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in &steps {
                world.take(step).await;
                world.assert_matches().await;
            }
            world.workspace.assert_file_valid().await;
        });
        Ok(())
    };
    TestRunner::new(config).run(&steps(), run).unwrap_or_else(|error| panic!("{error}"));
}
