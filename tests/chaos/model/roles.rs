//! Roles in the model: their members, and the rules that name them.

use super::world::{
    ADMIN, Id, MEMBER, NAMES, Outcome, PEOPLE, Subject, World, answer, invalid, missing,
};
use crate::prelude::*;

#[derive(Debug, Clone)]
pub struct Role {
    pub organization: Id,
    pub name: usize,
    pub members: BTreeSet<usize>,
}

impl World {
    /// Returns the roles of a person in an organization.
    pub fn roles_of(&self, organization: Id, person: Id) -> BTreeSet<usize> {
        let holds =
            |role: &Role| role.organization == organization && role.members.contains(&person);
        self.file.roles.iter().filter(|(_, role)| holds(role)).map(|(id, _)| *id).collect()
    }

    /// Returns whether the organization has the role.
    pub fn has_role(&self, organization: Id, role: Id) -> bool {
        self.file.roles.get(&role).is_some_and(|role| role.organization == organization)
    }

    pub fn create_role(&mut self, by: Id, organization: Id, name: usize) -> Outcome {
        self.in_organization(by, organization, "organization:write", ADMIN)?;
        let taken = |role: &Role| (role.organization, role.name) == (organization, name);
        if self.file.roles.values().any(taken) {
            return invalid("unique", "There is already a role with this name.");
        }
        let role = Role { organization, name, members: BTreeSet::new() };
        self.file.roles.insert(self.made.roles, role);
        self.made.roles += 1;
        answer(201, vec![("/name", json!(NAMES[name])), ("/members", json!([]))])
    }

    pub fn delete_role(&mut self, by: Id, organization: Id, role: Id) -> Outcome {
        self.in_organization(by, organization, "organization:write", ADMIN)?;
        if !self.has_role(organization, role) {
            return missing("Not found.");
        }
        self.file.roles.remove(&role);
        self.forget(organization, Subject::Role(role));
        answer(204, vec![])
    }

    /// Lists each role with the number of its members.
    pub fn list_roles(&self, by: Id, organization: Id) -> Outcome {
        self.in_organization(by, organization, "organization:read", MEMBER)?;
        let of = self.file.roles.values().filter(|role| role.organization == organization);
        let mut roles: Vec<_> = of.map(|role| (NAMES[role.name], role.members.len())).collect();
        roles.sort_unstable();
        answer(200, vec![("/count", json!(roles.len())), ("roles", json!(roles))])
    }

    pub fn join_role(&mut self, by: Id, organization: Id, role: Id, whom: Id) -> Outcome {
        self.in_organization(by, organization, "organization:write", ADMIN)?;
        if !self.has_role(organization, role) {
            return invalid("invalid_input", "Role does not exist.");
        }
        if !self.file.organizations[&organization].members.contains_key(&whom) {
            return invalid("invalid_input", "User does not exist.");
        }
        let found = self.file.roles.get_mut(&role).expect("an object found before");
        if !found.members.insert(whom) {
            return invalid("invalid_input", "User is already part of the role.");
        }
        answer(201, vec![("/user/email", json!(PEOPLE[whom]))])
    }

    pub fn leave_role(&mut self, by: Id, organization: Id, role: Id, whom: Id) -> Outcome {
        self.in_organization(by, organization, "organization:write", ADMIN)?;
        let found = self.file.roles.get_mut(&role).filter(|role| role.organization == organization);
        let is_removed = found.is_some_and(|role| role.members.remove(&whom));
        if is_removed { answer(204, vec![]) } else { missing("Not found.") }
    }
}
