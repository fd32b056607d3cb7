//! A model of the API on a few maps. It shares no code with the service; see `docs/spec/` for its rules.

use std::cmp::Reverse;

use super::insights::Insight;
use super::roles::Role;
use crate::prelude::*;

/// The addresses of the people, by number. The first three belong to the first organization from the
/// beginning, the fourth owns the second organization, and the last has no account yet.
pub const PEOPLE: [&str; 5] =
    ["p0@corp.example", "p1@corp.example", "p2@corp.example", "p3@other.example", "p4@new.example"];
/// The person without an account at first.
pub const NEWCOMER: usize = 4;
pub const MEMBER: i64 = 1;
pub const ADMIN: i64 = 8;
pub const OWNER: i64 = 15;
/// The number of a person, or of an object.
pub type Id = usize;
/// The scopes of keys, by number.
pub const SCOPES: [&[&str]; 6] = [
    &["*"],
    &["dashboard:read", "insight:write"],
    &["dashboard:write", "personal_api_key:write"],
    &["organization:read", "organization_member:write", "user:write"],
    &["access_control:write", "project:write", "sharing_configuration:write"],
    &["batch_export:read", "organization:write", "personal_api_key:write"],
];
/// The names of domains, dashboards, insights and roles.
pub const NAMES: [&str; 3] = ["a.example", "b.example", "c.example"];
pub const DAY: i64 = 86_400;
/// The lifetime of an invite in seconds.
const INVITE: i64 = 3 * DAY;
/// The name under which the model gives the number of the shown token; responses do not contain it.
pub const SERIAL: &str = "serial";
/// The levels of access rules, lowest first.
pub const ACCESS: [&str; 4] = ["none", "viewer", "editor", "manager"];
pub const VIEWER: usize = 1;
pub const EDITOR: usize = 2;
const MANAGER: usize = 3;

/// The expected response.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    pub status: u16,
    /// Members of the body, by JSON pointer.
    pub body: Vec<(&'static str, Value)>,
}

/// A value, or the refusal of a request.
pub type Checked<T> = Result<T, Expected>;

/// The result of a request in the model: a success or a refusal.
pub type Outcome = Checked<Expected>;

#[expect(clippy::unnecessary_wraps, reason = "callers use `?` before it")]
pub fn answer(status: u16, body: Vec<(&'static str, Value)>) -> Outcome {
    Ok(Expected { status, body })
}

pub fn refuse<T>(status: u16, code: &str, detail: &str) -> Checked<T> {
    Err(Expected { status, body: vec![("/code", json!(code)), ("/detail", json!(detail))] })
}

pub fn deny<T>(detail: &str) -> Checked<T> {
    refuse(403, "permission_denied", detail)
}

pub fn missing<T>(detail: &str) -> Checked<T> {
    refuse(404, "not_found", detail)
}

pub fn invalid<T>(code: &str, detail: &str) -> Checked<T> {
    refuse(400, code, detail)
}

#[derive(Debug, Clone)]
pub struct Key {
    pub person: Id,
    pub scopes: usize,
    pub ends: Option<i64>,
}

#[derive(Debug, Clone)]
pub struct Organization {
    pub members: BTreeMap<usize, i64>,
    pub members_can_invite: bool,
}

#[derive(Debug, Clone)]
pub struct Invite {
    pub organization: Id,
    pub person: Id,
    pub level: i64,
    pub by: Id,
    pub ends: i64,
    /// How many invites were created before.
    pub order: usize,
}

/// To whom an access rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Everyone,
    Person(usize),
    Role(usize),
}

impl Subject {
    pub fn of(person: Option<usize>) -> Self {
        person.map_or(Self::Everyone, Self::Person)
    }
}

/// The access rules on an object.
pub type Rules = BTreeMap<Subject, usize>;

/// Returns the level of a caller on an object with these rules.
pub fn level_on(rules: &Rules, maker: usize, at: &At) -> usize {
    if at.administers() || maker == at.person {
        return MANAGER;
    }
    let roles = at.roles.iter().filter_map(|role| rules.get(&Subject::Role(*role)));
    let named = rules.get(&Subject::Person(at.person)).into_iter().chain(roles).max();
    named.or_else(|| rules.get(&Subject::Everyone)).copied().unwrap_or(EDITOR)
}

/// Sets or removes a rule. `shown` is the level in the response.
fn set<T>(
    rules: &mut BTreeMap<Subject, T>,
    (subject, level): (Subject, Option<T>),
    shown: impl FnOnce(&T) -> &'static str,
) -> Outcome {
    let Some(level) = level else {
        rules.remove(&subject);
        return answer(204, vec![]);
    };
    let shown = shown(&level);
    rules.insert(subject, level);
    answer(200, vec![("/access_level", json!(shown))])
}

#[derive(Debug, Clone)]
pub struct Project {
    pub organization: Id,
    pub private: bool,
    /// The people and roles with access, and whether it is access as an admin.
    pub grants: BTreeMap<Subject, bool>,
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a dashboard has as many flags")]
pub struct Board {
    pub project: Id,
    pub name: String,
    pub maker: usize,
    pub pinned: bool,
    pub deleted: bool,
    pub restricted: bool,
    pub texts: usize,
    pub editors: BTreeSet<usize>,
    pub rules: Rules,
    pub shared: bool,
    /// How many tokens the dashboard had before.
    pub serial: Id,
}

#[derive(Debug, Clone)]
pub struct Export {
    pub project: Id,
    pub paused: bool,
}

/// The content of the data file. Numbers that the service does not assign count created objects.
#[derive(Debug, Clone, Default)]
pub struct File {
    pub accounts: BTreeSet<usize>,
    pub keys: BTreeMap<usize, Key>,
    pub organizations: BTreeMap<usize, Organization>,
    pub invites: BTreeMap<usize, Invite>,
    pub domains: BTreeMap<usize, (usize, usize)>,
    pub projects: BTreeMap<Id, Project>,
    pub boards: BTreeMap<Id, Board>,
    pub exports: BTreeMap<usize, Export>,
    pub insights: BTreeMap<Id, Insight>,
    pub roles: BTreeMap<usize, Role>,
    /// The ids of the next project, the next dashboard and the next insight.
    pub next_project: Id,
    pub next_board: Id,
    pub next_insight: Id,
    pub next_invite: usize,
}

/// How many of each were ever created, including objects that a restore removed.
#[derive(Debug, Clone, Default)]
pub struct CreatedIds {
    pub keys: usize,
    pub organizations: usize,
    pub invites: usize,
    pub domains: usize,
    pub exports: usize,
    pub roles: usize,
}

#[derive(Debug, Clone)]
pub struct World {
    pub now: i64,
    pub file: File,
    pub backup: Option<File>,
    pub made: CreatedIds,
}

/// The caller inside an organization or project.
#[derive(Debug, Clone)]
pub struct At {
    pub person: Id,
    pub level: i64,
    /// The caller's roles in the organization.
    pub roles: BTreeSet<usize>,
}

impl At {
    pub fn administers(&self) -> bool {
        self.level >= ADMIN
    }
}

fn allows(held: usize, wanted: &str) -> bool {
    let writes = wanted.replace(":read", ":write");
    SCOPES[held].iter().any(|scope| *scope == "*" || *scope == wanted || *scope == writes)
}

const UNKNOWN_INVITE: &str = "The provided invite ID is not valid.";
const NOT_YOURS: &str = "You do not have permission to perform this action.";
const NO_PROJECT: &str = "You don't have access to the project.";
const NO_LEVEL: &str = "Your organization access level is insufficient.";
const NO_EDIT: &str = "You don't have edit permissions for this dashboard.";

impl World {
    pub fn new() -> Self {
        let organization = |members: &[(usize, i64)]| Organization {
            members: members.iter().copied().collect(),
            members_can_invite: true,
        };
        let project =
            |organization| Project { organization, private: false, grants: BTreeMap::new() };
        let key = |person| Key { person, scopes: 0, ends: None };
        let file = File {
            accounts: (0..NEWCOMER).collect(),
            keys: (0..NEWCOMER).map(|person| (person, key(person))).collect(),
            organizations: BTreeMap::from([
                (0, organization(&[(0, OWNER), (1, ADMIN), (2, MEMBER)])),
                (1, organization(&[(3, OWNER)])),
            ]),
            projects: BTreeMap::from([(1, project(0)), (2, project(1))]),
            next_project: 3,
            next_board: 1,
            next_insight: 1,
            ..File::default()
        };
        let made = CreatedIds { keys: NEWCOMER, organizations: 2, ..CreatedIds::default() };
        Self { now: 0, file, backup: None, made }
    }

    /// Sets the numbers for the objects that the next step creates. `id` is the service's id, if it assigns
    /// numbers.
    pub fn number(&mut self, number: Id, id: Option<Id>) {
        let made = &mut self.made;
        made.keys = number;
        made.organizations = number;
        made.invites = number;
        made.domains = number;
        made.exports = number;
        made.roles = number;
        if let Some(id) = id {
            let file = &mut self.file;
            (file.next_project, file.next_board, file.next_insight) = (id, id, id);
        }
    }

    /// Returns the key, if it is valid.
    fn key(&self, by: Id) -> Checked<&Key> {
        let live = |key: &&Key| key.ends.is_none_or(|end| self.now < end);
        let text = "Personal API key found in request Authorization header is invalid.";
        let found = self.file.keys.get(&by).filter(live);
        found.map_or_else(|| refuse(401, "authentication_failed", text), Ok)
    }

    fn require_scope(&self, by: Id, scope: &str) -> Checked<()> {
        if allows(self.key(by)?.scopes, scope) {
            return Ok(());
        }
        deny(&format!("API key missing required scope '{scope}'"))
    }

    pub fn in_organization(&self, by: Id, organization: Id, scope: &str, min: i64) -> Checked<At> {
        let person = self.key(by)?.person;
        let Some(found) = self.file.organizations.get(&organization) else {
            return missing("Organization not found.");
        };
        self.require_scope(by, scope)?;
        let Some(level) = found.members.get(&person).copied() else { return deny(NOT_YOURS) };
        if level < min {
            return deny(NO_LEVEL);
        }
        Ok(At { person, level, roles: self.roles_of(organization, person) })
    }

    /// Returns the project, if its organization exists.
    fn live_project(&self, id: Id) -> Option<&Project> {
        let project = self.file.projects.get(&id)?;
        self.file.organizations.contains_key(&project.organization).then_some(project)
    }

    fn sees(&self, project: &Project, person: Id) -> Option<At> {
        let level = *self.file.organizations.get(&project.organization)?.members.get(&person)?;
        let at = At { person, level, roles: self.roles_of(project.organization, person) };
        let granted = self.granted(project, person).is_some();
        (!project.private || at.administers() || granted).then_some(at)
    }

    /// Returns the access to a project that rules give a person and their roles, and whether it is access as an admin.
    pub fn granted(&self, project: &Project, person: Id) -> Option<bool> {
        let roles = self.roles_of(project.organization, person).into_iter().map(Subject::Role);
        let subjects = roles.chain([Subject::Person(person)]);
        subjects.filter_map(|subject| project.grants.get(&subject).copied()).max()
    }

    /// Checks access to what is inside a project.
    pub fn in_project(&self, by: Id, id: Id, scope: &str) -> Checked<At> {
        let person = self.key(by)?.person;
        let Some(project) = self.live_project(id) else { return missing("Project not found.") };
        self.require_scope(by, scope)?;
        self.sees(project, person).map_or_else(|| deny(NO_PROJECT), Ok)
    }

    /// Checks access to the project itself.
    fn at_project(&self, by: Id, id: Id, scope: &str) -> Checked<At> {
        let person = self.key(by)?.person;
        let Some(project) = self.live_project(id) else { return missing("Not found.") };
        self.require_scope(by, scope)?;
        self.sees(project, person).map_or_else(|| missing("Not found."), Ok)
    }

    /// Returns the access level of the caller on a dashboard.
    pub fn access(board: &Board, at: &At) -> usize {
        level_on(&board.rules, board.maker, at)
    }

    pub fn may_edit(board: &Board, at: &At) -> bool {
        let free = !board.restricted || at.administers() || board.maker == at.person;
        free || board.editors.contains(&at.person)
    }

    pub fn require_edit(board: &Board, at: &At) -> Checked<()> {
        if Self::access(board, at) < EDITOR {
            return deny("You do not have editor access to this resource.");
        }
        if Self::may_edit(board, at) { Ok(()) } else { deny(NO_EDIT) }
    }

    /// Returns a dashboard of the project that is not deleted.
    pub fn board(&self, project: Id, id: Id) -> Option<&Board> {
        self.file.boards.get(&id).filter(|board| board.project == project && !board.deleted)
    }

    fn edited(&mut self, by: Id, (project, id): (Id, Id), none: &str) -> Checked<(At, &mut Board)> {
        let at = self.in_project(by, project, "dashboard:write")?;
        let Some(board) = self.board(project, id) else { return missing(none) };
        Self::require_edit(board, &at)?;
        Ok((at, self.file.boards.get_mut(&id).expect("an object found before")))
    }
}

// Organizations, members, invites.
impl World {
    pub fn create_organization(&mut self, by: Id) -> Outcome {
        let person = self.key(by)?.person;
        self.require_scope(by, "organization:write")?;
        let members = BTreeMap::from([(person, OWNER)]);
        let organization = Organization { members, members_can_invite: true };
        let number = self.made.organizations;
        self.made.organizations += 1;
        self.file.organizations.insert(number, organization);
        self.add_project(number, false);
        answer(201, vec![("/membership_level", json!(OWNER))])
    }

    pub fn delete_organization(&mut self, by: Id, organization: Id) -> Outcome {
        self.in_organization(by, organization, "organization:write", OWNER)?;
        self.file.organizations.remove(&organization);
        answer(204, vec![])
    }

    pub fn let_invite(&mut self, by: Id, organization: Id, may: bool) -> Outcome {
        self.in_organization(by, organization, "organization:write", ADMIN)?;
        let found = self.file.organizations.get_mut(&organization).expect("an object found before");
        found.members_can_invite = may;
        answer(200, vec![("/members_can_invite", json!(may))])
    }

    pub fn set_level(&mut self, by: Id, organization: Id, whom: Id, level: i64) -> Outcome {
        let at = self.in_organization(by, organization, "organization_member:write", MEMBER)?;
        let members = &mut self.file.organizations.get_mut(&organization).expect("found").members;
        let Some(old) = members.get(&whom).copied() else { return missing("Not found.") };
        Self::require_reach(&at, whom, old)?;
        if whom == at.person && level != old {
            return deny("You can't change your own access level.");
        }
        if level == OWNER && at.level < OWNER {
            let text =
                "You can only make another member owner if you're this organization's owner.";
            return deny(text);
        }
        members.insert(whom, level);
        answer(200, vec![("/level", json!(level)), ("/user/email", json!(PEOPLE[whom]))])
    }

    fn require_reach(at: &At, whom: Id, level: i64) -> Checked<()> {
        if whom == at.person || (at.administers() && level <= at.level) {
            return Ok(());
        }
        if !at.administers() {
            return deny("You can only edit others if you are an admin.");
        }
        deny("You can only edit others with level lower or equal to you.")
    }

    pub fn remove_member(&mut self, by: Id, organization: Id, whom: Id) -> Outcome {
        let at = self.in_organization(by, organization, "organization_member:write", MEMBER)?;
        let members = &mut self.file.organizations.get_mut(&organization).expect("found").members;
        let Some(level) = members.get(&whom).copied() else { return missing("Not found.") };
        Self::require_reach(&at, whom, level)?;
        if level == OWNER {
            return invalid("invalid_input", "Cannot leave the organization as its owner!");
        }
        members.remove(&whom);
        let by_them = |invite: &Invite| invite.organization == organization && invite.by == whom;
        self.file.invites.retain(|_, invite| !by_them(invite));
        self.forget(organization, Subject::Person(whom));
        answer(204, vec![])
    }

    /// Removes what names a person or a role in an organization.
    pub fn forget(&mut self, organization: Id, subject: Subject) {
        let File { projects, boards, insights, roles, .. } = &mut self.file;
        let mut own = BTreeSet::new();
        for (id, project) in projects.iter_mut().filter(|(_, one)| one.organization == organization)
        {
            project.grants.remove(&subject);
            own.insert(*id);
        }
        for board in boards.values_mut().filter(|board| own.contains(&board.project)) {
            board.rules.remove(&subject);
            if let Subject::Person(whom) = subject {
                board.editors.remove(&whom);
            }
        }
        for insight in insights.values_mut().filter(|insight| own.contains(&insight.project)) {
            insight.rules.remove(&subject);
        }
        if let Subject::Person(whom) = subject {
            let own = roles.values_mut().filter(|role| role.organization == organization);
            own.for_each(|role| _ = role.members.remove(&whom));
        }
    }

    pub fn list_members(&self, by: Id, organization: Id) -> Outcome {
        self.in_organization(by, organization, "organization_member:read", MEMBER)?;
        let members = &self.file.organizations[&organization].members;
        let mut shown: Vec<_> =
            members.iter().map(|(person, level)| json!([PEOPLE[*person], level])).collect();
        shown.sort_by_key(Value::to_string);
        answer(200, vec![("/count", json!(shown.len())), ("members", json!(shown))])
    }

    pub fn invite(&mut self, by: Id, organization: Id, sent: (usize, i64, bool)) -> Outcome {
        let (whom, mut level, combine) = sent;
        let at = self.in_organization(by, organization, "organization_member:write", MEMBER)?;
        let found = &self.file.organizations[&organization];
        if !at.administers() && !found.members_can_invite {
            return deny(NOT_YOURS);
        }
        if level > at.level {
            return deny("You cannot invite a user with a higher permission level than your own.");
        }
        if found.members.contains_key(&whom) {
            let text = "A user with this email address already belongs to the organization.";
            return invalid("invalid_input", text);
        }
        let pending = self.pending(organization, whom);
        if let Some(old) = pending.and_then(|number| self.file.invites.remove(&number))
            && combine
            && self.now < old.ends
        {
            level = level.max(old.level.min(at.level));
        }
        let number = self.made.invites;
        self.made.invites += 1;
        let ends = self.now + INVITE;
        let order = self.file.next_invite;
        self.file.next_invite += 1;
        let invite = Invite { organization, person: whom, level, by: at.person, ends, order };
        self.file.invites.insert(number, invite);
        let address = ("/target_email", json!(PEOPLE[whom]));
        answer(201, vec![address, ("/level", json!(level)), ("/is_expired", json!(false))])
    }

    fn pending(&self, organization: Id, whom: Id) -> Option<usize> {
        let of = |invite: &Invite| (invite.organization, invite.person) == (organization, whom);
        self.file.invites.iter().find(|(_, invite)| of(invite)).map(|(number, _)| *number)
    }

    pub fn withdraw(&mut self, by: Id, organization: Id, invite: Id) -> Outcome {
        self.in_organization(by, organization, "organization_member:write", MEMBER)?;
        let found = self.file.invites.get(&invite);
        if found.is_none_or(|found| found.organization != organization) {
            return missing("Not found.");
        }
        self.file.invites.remove(&invite);
        answer(204, vec![])
    }

    pub fn list_invites(&self, by: Id, organization: Id) -> Outcome {
        self.in_organization(by, organization, "organization_member:read", MEMBER)?;
        let of = |invite: &&Invite| invite.organization == organization;
        let mut found: Vec<_> = self.file.invites.values().filter(of).collect();
        found.sort_by_key(|invite| Reverse(invite.order));
        let shown = |invite: &&Invite| {
            json!([PEOPLE[invite.person], invite.level, self.now >= invite.ends])
        };
        let shown: Vec<_> = found.iter().map(shown).collect();
        answer(200, vec![("/count", json!(shown.len())), ("invites", json!(shown))])
    }

    /// Accepts an invite, with a key or without one.
    pub fn accept(&mut self, by: Option<usize>, number: usize) -> Outcome {
        let mut visitor = None;
        if let Some(by) = by {
            visitor = Some(self.key(by)?.person);
            self.require_scope(by, "user:write")?;
        }
        let Some(invite) = self.file.invites.get(&number).cloned() else {
            return invalid("invalid_input", UNKNOWN_INVITE);
        };
        let organization = self.file.organizations.get(&invite.organization);
        let inviter = organization.and_then(|found| found.members.get(&invite.by));
        if inviter.is_none_or(|level| *level < invite.level) {
            return invalid("invalid_input", UNKNOWN_INVITE);
        }
        let person = invite.person;
        if visitor.is_some_and(|visitor| visitor != person) {
            let text = "This invite is intended for another email address.";
            return invalid("invalid_recipient", text);
        }
        if self.now >= invite.ends {
            let text = "This invite has expired. Please ask your admin for a new one.";
            return invalid("expired", text);
        }
        if visitor.is_none() && self.file.accounts.contains(&person) {
            return Err(Expected { status: 400, body: vec![("/code", json!("account_exists"))] });
        }
        if visitor.is_none() {
            self.file.accounts.insert(person);
            self.file.keys.insert(self.made.keys, Key { person, scopes: 0, ends: None });
            self.made.keys += 1;
        }
        let found = self.file.organizations.get_mut(&invite.organization).expect("found");
        found.members.insert(person, invite.level);
        self.file.invites.remove(&number);
        answer(201, vec![("/email", json!(PEOPLE[person]))])
    }
}

// Projects, domains, exports, keys.
impl World {
    fn add_project(&mut self, organization: Id, private: bool) -> Id {
        let id = self.file.next_project;
        self.file.next_project += 1;
        self.file.projects.insert(id, Project { organization, private, grants: BTreeMap::new() });
        id
    }

    pub fn create_project(&mut self, by: Id, organization: Id, private: bool) -> Outcome {
        self.in_organization(by, organization, "project:write", ADMIN)?;
        let id = self.add_project(organization, private);
        answer(201, vec![("/id", json!(id)), ("/access_control", json!(private))])
    }

    pub fn delete_project(&mut self, by: Id, id: Id) -> Outcome {
        if !self.at_project(by, id, "project:write")?.administers() {
            return deny(NO_LEVEL);
        }
        self.file.projects.remove(&id);
        answer(204, vec![])
    }

    pub fn close_project(&mut self, by: Id, id: Id, private: bool) -> Outcome {
        let administers = self.at_project(by, id, "project:write")?.administers();
        let project = self.file.projects.get_mut(&id).expect("an object found before");
        // Everybody may send what the project has.
        if !administers && project.private != private {
            let what = "to configure project access restrictions.";
            return deny(&format!("Your organization access level is insufficient {what}"));
        }
        project.private = private;
        answer(200, vec![("/access_control", json!(private))])
    }

    /// Grants access to a project, as an admin or a member, or removes it.
    pub fn grant(&mut self, by: Id, id: Id, subject: Subject, level: Option<bool>) -> Outcome {
        let at = self.in_project(by, id, "access_control:write")?;
        let project = &self.file.projects[&id];
        if !at.administers() && self.granted(project, at.person) != Some(true) {
            return deny("Must be admin to modify project permissions.");
        }
        self.require_subject(project.organization, subject)?;
        let grants = &mut self.file.projects.get_mut(&id).expect("an object found before").grants;
        set(grants, (subject, level), |admin| if *admin { "admin" } else { "member" })
    }

    pub fn get_project(&self, by: Id, id: Id) -> Outcome {
        self.at_project(by, id, "project:read")?;
        let private = self.file.projects[&id].private;
        answer(200, vec![("/id", json!(id)), ("/access_control", json!(private))])
    }

    pub fn list_projects(&self, by: Id, organization: Id) -> Outcome {
        let at = self.in_organization(by, organization, "project:read", MEMBER)?;
        let seen = |(_, project): &(&Id, &Project)| {
            project.organization == organization && self.sees(project, at.person).is_some()
        };
        let ids: Vec<_> = self.file.projects.iter().filter(seen).map(|(id, _)| *id).collect();
        answer(200, vec![("/count", json!(ids.len())), ("ids", json!(ids))])
    }

    pub fn add_domain(&mut self, by: Id, organization: Id, name: usize) -> Outcome {
        self.in_organization(by, organization, "organization:write", ADMIN)?;
        let live = |of: &usize| self.file.organizations.contains_key(of);
        if self.file.domains.values().any(|(of, taken)| *taken == name && live(of)) {
            return invalid("unique", "domain with this domain already exists.");
        }
        self.file.domains.insert(self.made.domains, (organization, name));
        self.made.domains += 1;
        answer(201, vec![("/domain", json!(NAMES[name])), ("/is_verified", json!(false))])
    }

    pub fn remove_domain(&mut self, by: Id, organization: Id, domain: Id) -> Outcome {
        self.in_organization(by, organization, "organization:write", ADMIN)?;
        if self.file.domains.get(&domain).is_none_or(|(of, _)| *of != organization) {
            return missing("Not found.");
        }
        self.file.domains.remove(&domain);
        answer(204, vec![])
    }

    pub fn list_domains(&self, by: Id, organization: Id) -> Outcome {
        self.in_organization(by, organization, "organization:read", MEMBER)?;
        let of = self.file.domains.values().filter(|(of, _)| *of == organization);
        let mut names: Vec<_> = of.map(|(_, name)| NAMES[*name]).collect();
        names.sort_unstable();
        answer(200, vec![("/count", json!(names.len())), ("domains", json!(names))])
    }

    pub fn add_export(&mut self, by: Id, project: Id) -> Outcome {
        self.in_project(by, project, "batch_export:write")?;
        self.file.exports.insert(self.made.exports, Export { project, paused: false });
        self.made.exports += 1;
        answer(201, vec![("/paused", json!(false)), ("/team_id", json!(project))])
    }

    /// Pauses or unpauses an export of an organization.
    pub fn pause(&mut self, by: Id, organization: Id, export: Id, paused: bool) -> Outcome {
        let at = self.in_organization(by, organization, "batch_export:write", MEMBER)?;
        let project = self.file.exports.get(&export).map(|export| export.project);
        let project = project.and_then(|id| self.live_project(id));
        let seen = project.filter(|project| {
            project.organization == organization && self.sees(project, at.person).is_some()
        });
        if seen.is_none() {
            return missing("Not found.");
        }
        self.file.exports.get_mut(&export).expect("an object found before").paused = paused;
        answer(200, vec![])
    }

    pub fn get_export(&self, by: Id, project: Id, export: Id) -> Outcome {
        self.in_project(by, project, "batch_export:read")?;
        let found = self.file.exports.get(&export).filter(|export| export.project == project);
        let Some(export) = found else { return missing("Not found.") };
        answer(200, vec![("/paused", json!(export.paused))])
    }

    fn lies_within(scopes: usize, ends: Option<i64>, holder: &Key) -> bool {
        let outlives = holder.ends.is_some_and(|limit| ends.is_none_or(|end| end > limit));
        !outlives && SCOPES[scopes].iter().all(|scope| allows(holder.scopes, scope))
    }

    pub fn create_key(&mut self, by: Id, scopes: usize, days: Option<i64>) -> Outcome {
        let holder = self.key(by)?.clone();
        self.require_scope(by, "personal_api_key:write")?;
        let ends = days.map_or(holder.ends, |days| Some(self.now + days * DAY));
        if !Self::lies_within(scopes, ends, &holder) {
            return Err(Expected { status: 403, body: vec![] });
        }
        self.file.keys.insert(self.made.keys, Key { person: holder.person, scopes, ends });
        self.made.keys += 1;
        answer(201, vec![("/scopes", json!(SCOPES[scopes]))])
    }

    pub fn delete_key(&mut self, by: Id, key: Id) -> Outcome {
        let holder = self.key(by)?.clone();
        self.require_scope(by, "personal_api_key:write")?;
        let own = self.file.keys.get(&key).filter(|key| key.person == holder.person);
        let Some(Key { scopes, ends, .. }) = own else { return missing("Not found.") };
        if !Self::lies_within(*scopes, *ends, &holder) {
            return Err(Expected { status: 403, body: vec![] });
        }
        self.file.keys.remove(&key);
        answer(204, vec![])
    }
}

// Dashboards.
impl World {
    fn shown(&self, id: Id, at: &At) -> Vec<(&'static str, Value)> {
        let board = &self.file.boards[&id];
        vec![
            ("/id", json!(id)),
            ("/name", json!(board.name)),
            ("/pinned", json!(board.pinned)),
            ("/deleted", json!(board.deleted)),
            ("/is_shared", json!(board.shared)),
            ("/restriction_level", json!(if board.restricted { 37 } else { 21 })),
            ("/effective_privilege_level", json!(if Self::may_edit(board, at) { 37 } else { 21 })),
            ("/user_access_level", json!(ACCESS[Self::access(board, at)])),
            // The tiles of a dashboard are deleted and restored with it.
            ("tiles", json!(if board.deleted { 0 } else { board.texts + self.insight_tiles(id) })),
        ]
    }

    pub fn create_board(&mut self, by: Id, project: Id, name: usize, restricted: bool) -> Outcome {
        let at = self.in_project(by, project, "dashboard:write")?;
        let id = self.file.next_board;
        self.file.next_board += 1;
        let (name, maker) = (NAMES[name].to_owned(), at.person);
        self.file.boards.insert(id, Board { project, name, maker, restricted, ..Board::default() });
        answer(201, self.shown(id, &at))
    }

    pub fn get_board(&self, by: Id, project: Id, id: Id) -> Outcome {
        let at = self.in_project(by, project, "dashboard:read")?;
        let Some(board) = self.board(project, id) else { return missing("Not found.") };
        if Self::access(board, &at) < VIEWER {
            return deny("You do not have viewer access to this resource.");
        }
        answer(200, self.shown(id, &at))
    }

    pub fn list_boards(&self, by: Id, project: Id) -> Outcome {
        let at = self.in_project(by, project, "dashboard:read")?;
        let seen = |(_, board): &(&Id, &Board)| {
            board.project == project && !board.deleted && Self::access(board, &at) >= VIEWER
        };
        let mut boards: Vec<_> = self.file.boards.iter().filter(seen).collect();
        boards.sort_by_key(|(id, board)| (!board.pinned, board.name.clone(), **id));
        let ids: Vec<_> = boards.into_iter().map(|(id, _)| *id).collect();
        answer(200, vec![("/count", json!(ids.len())), ("ids", json!(ids))])
    }

    /// Changes a dashboard. `restricts` is true if the change affects its restriction level.
    pub fn change_board(
        &mut self,
        by: Id,
        of: (Id, Id),
        restricts: bool,
        change: impl FnOnce(&mut Board),
    ) -> Outcome {
        let (at, board) = self.edited(by, of, "Not found.")?;
        if restricts && !at.administers() && board.maker != at.person {
            let text = "Only the dashboard owner and project admins have the restriction rights required to change the dashboard's restriction level.";
            return deny(text);
        }
        change(board);
        if board.deleted {
            self.remove_tiles(of.1);
        }
        answer(200, self.shown(of.1, &at))
    }

    pub fn bring_back(&mut self, by: Id, (project, id): (Id, Id)) -> Outcome {
        let at = self.in_project(by, project, "dashboard:write")?;
        let found = self.file.boards.get_mut(&id).filter(|board| board.project == project);
        let Some(board) = found else { return missing("Not found.") };
        Self::require_edit(board, &at)?;
        if board.deleted {
            board.deleted = false;
            self.restore_tiles(id, &at);
        }
        answer(200, self.shown(id, &at))
    }

    pub fn add_editor(&mut self, by: Id, of: (Id, Id), whom: Id) -> Outcome {
        let known = self.file.accounts.contains(&whom);
        let project = self.live_project(of.0).cloned();
        let other = project.and_then(|project| self.sees(&project, whom));
        let (_, board) = self.edited(by, of, "Dashboard not found.")?;
        if !board.restricted {
            let text = "Cannot add collaborators to a dashboard on the lowest restriction level.";
            return invalid("invalid_input", text);
        }
        if !known {
            return invalid("invalid_input", "User does not exist.");
        }
        let Some(other) = other else {
            let text = "Cannot add collaborators that have no access to the project.";
            return invalid("invalid_input", text);
        };
        if other.administers() || board.maker == whom {
            let text = "Cannot add collaborators that already have inherent access (the dashboard owner or a project admins).";
            return invalid("invalid_input", text);
        }
        if !board.editors.insert(whom) {
            return invalid("invalid_input", "User already is a collaborator.");
        }
        answer(201, vec![("/level", json!(37)), ("/user/email", json!(PEOPLE[whom]))])
    }

    pub fn remove_editor(&mut self, by: Id, of: (Id, Id), whom: Id) -> Outcome {
        let (_, board) = self.edited(by, of, "Dashboard not found.")?;
        if !board.editors.contains(&whom) {
            return missing("Not found.");
        }
        if !board.restricted {
            let text =
                "Cannot remove collaborators from a dashboard on the lowest restriction level.";
            return invalid("invalid_input", text);
        }
        board.editors.remove(&whom);
        answer(204, vec![])
    }

    /// Sets or removes an access rule on a dashboard.
    pub fn rule_board(&mut self, by: Id, of: (Id, Id), new: (Subject, Option<usize>)) -> Outcome {
        let (project, id) = of;
        let at = self.in_project(by, project, "access_control:write")?;
        let Some(board) = self.board(project, id) else { return missing("Not found.") };
        self.require_manage(project, Self::access(board, &at), new.0, &at)?;
        let rules = &mut self.file.boards.get_mut(&id).expect("an object found before").rules;
        set(rules, new, |level| ACCESS[*level])
    }

    /// Sets or removes an access rule on an insight.
    pub fn rule_insight(&mut self, by: Id, of: (Id, Id), new: (Subject, Option<usize>)) -> Outcome {
        let (project, id) = of;
        let at = self.in_project(by, project, "access_control:write")?;
        let insight = self.insight(project, id)?;
        if insight.deleted {
            return missing("Not found.");
        }
        self.require_manage(project, level_on(&insight.rules, insight.maker, &at), new.0, &at)?;
        let rules = &mut self.file.insights.get_mut(&id).expect("an object found before").rules;
        set(rules, new, |level| ACCESS[*level])
    }

    /// Requires that the caller, who has this level on an object of the project, may set a rule for the subject.
    fn require_manage(&self, project: Id, level: usize, subject: Subject, at: &At) -> Checked<()> {
        let found = &self.file.projects[&project];
        if level < MANAGER && self.granted(found, at.person) != Some(true) {
            return Err(Expected { status: 403, body: vec![] });
        }
        self.require_subject(found.organization, subject)
    }

    /// Requires that a person is a member of the organization, and that a role is one of it.
    fn require_subject(&self, organization: Id, subject: Subject) -> Checked<()> {
        let members = &self.file.organizations[&organization].members;
        match subject {
            Subject::Person(whom) if !members.contains_key(&whom) => {
                Err(Expected { status: 400, body: vec![] })
            }
            Subject::Role(role) if !self.has_role(organization, role) => {
                Err(Expected { status: 400, body: vec![("/code", json!("does_not_exist"))] })
            }
            _ => Ok(()),
        }
    }

    pub fn share(&mut self, by: Id, (project, id): (Id, Id), enabled: bool) -> Outcome {
        let at = self.in_project(by, project, "sharing_configuration:write")?;
        let Some(board) = self.board(project, id) else { return missing("Dashboard not found.") };
        if Self::require_edit(board, &at).is_err() {
            return deny(NO_EDIT);
        }
        let board = self.file.boards.get_mut(&id).expect("an object found before");
        if board.shared && !enabled {
            board.serial += 1;
        }
        board.shared = enabled;
        answer(200, vec![("/enabled", json!(enabled)), (SERIAL, json!(board.serial))])
    }

    /// Opens the public page with the token of this number.
    pub fn open_shared(&self, id: Id, serial: Id) -> Outcome {
        let board = self.file.boards.get(&id).filter(|board| {
            let there = !board.deleted && self.live_project(board.project).is_some();
            there && board.shared && board.serial == serial
        });
        let Some(board) = board else { return missing("Not found.") };
        answer(200, vec![("/dashboard/name", json!(board.name))])
    }
}
