//! The steps of a sequence, and how the model takes them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::world::{
    ADMIN, Board, DAY, Expected, Id, Key, MEMBER, NAMES, NEWCOMER, OWNER, Organization, PEOPLE,
    SCOPES, Subject, World,
};

/// The kind of a step. Most are requests; the last five concern the service and its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    CreateOrganization,
    DeleteOrganization,
    LetInvite,
    SetLevel,
    RemoveMember,
    ListMembers,
    Invite,
    Withdraw,
    ListInvites,
    Accept,
    AcceptAsSomebodyNew,
    CreateProject,
    DeleteProject,
    CloseProject,
    Grant,
    GetProject,
    ListProjects,
    AddDomain,
    RemoveDomain,
    ListDomains,
    AddExport,
    Pause,
    Unpause,
    GetExport,
    CreateKey,
    DeleteKey,
    CreateBoard,
    GetBoard,
    ListBoards,
    Rename,
    Pin,
    Restrict,
    AddText,
    Remove,
    BringBack,
    AddEditor,
    RemoveEditor,
    Rule,
    Share,
    OpenShared,
    CreateInsight,
    GetInsight,
    ListInsights,
    RenameInsight,
    PlaceInsight,
    RemoveInsight,
    RestoreInsight,
    RuleInsight,
    CreateRole,
    DeleteRole,
    ListRoles,
    JoinRole,
    LeaveRole,
    GrantRole,
    RuleRole,
    Wait,
    Restart,
    Backup,
    RestoreServing,
    RestoreClosed,
}

use What::*;

/// What a sequence is about. A narrow theme reaches rare states sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Everything,
    People,
    Projects,
    Boards,
    Insights,
    Roles,
    Pages,
    Keys,
}

use Theme::{Boards, Everything, Insights, Keys, Pages, People, Projects, Roles};

/// The weight of each kind of step, and the themes that include it besides `Everything`.
const OFTEN: [(u32, What, &[Theme]); 60] = [
    (1, CreateOrganization, &[]),
    (1, DeleteOrganization, &[]),
    (2, LetInvite, &[People]),
    (6, SetLevel, &[People, Projects]),
    (5, RemoveMember, &[People, Projects, Roles]),
    (2, ListMembers, &[People]),
    (8, Invite, &[People, Projects, Roles]),
    (2, Withdraw, &[People]),
    (2, ListInvites, &[People]),
    (6, Accept, &[People, Projects, Roles]),
    (4, AcceptAsSomebodyNew, &[People]),
    (3, CreateProject, &[Projects]),
    (1, DeleteProject, &[Projects]),
    (4, CloseProject, &[Projects, Boards, Roles]),
    (5, Grant, &[Projects]),
    (2, GetProject, &[Projects, Roles]),
    (2, ListProjects, &[Projects, Roles]),
    (4, AddDomain, &[Keys]),
    (2, RemoveDomain, &[Keys]),
    (1, ListDomains, &[Keys]),
    (3, AddExport, &[Projects]),
    (2, Pause, &[Projects]),
    (2, Unpause, &[Projects]),
    (2, GetExport, &[Projects]),
    (6, CreateKey, &[Keys]),
    (4, DeleteKey, &[Keys]),
    (10, CreateBoard, &[Boards, Insights, Roles, Pages]),
    (4, GetBoard, &[Boards, Insights, Roles, Keys]),
    (4, ListBoards, &[Boards, Roles]),
    (4, Rename, &[Boards, Keys]),
    (3, Pin, &[Boards]),
    (5, Restrict, &[Boards, Insights, Pages]),
    (3, AddText, &[Boards]),
    (3, Remove, &[Boards, Insights, Pages]),
    (3, BringBack, &[Boards, Insights, Pages]),
    (6, AddEditor, &[Boards, Insights]),
    (2, RemoveEditor, &[Boards]),
    (5, Rule, &[Boards, Insights, Pages]),
    (8, Share, &[Pages]),
    (4, OpenShared, &[Pages]),
    (8, CreateInsight, &[Insights]),
    (4, GetInsight, &[Insights]),
    (2, ListInsights, &[Insights]),
    (4, RenameInsight, &[Insights]),
    (8, PlaceInsight, &[Insights]),
    (3, RemoveInsight, &[Insights]),
    (3, RestoreInsight, &[Insights]),
    (4, RuleInsight, &[Insights]),
    (4, CreateRole, &[Roles]),
    (1, DeleteRole, &[Roles]),
    (2, ListRoles, &[Roles]),
    (8, JoinRole, &[Roles]),
    (3, LeaveRole, &[Roles]),
    (4, GrantRole, &[Roles]),
    (4, RuleRole, &[Roles]),
    (2, Wait, &[People, Keys]),
    (2, Restart, &[People, Projects, Boards, Insights, Roles, Pages, Keys]),
    (1, Backup, &[People, Projects, Boards, Insights, Roles, Pages, Keys]),
    (1, RestoreServing, &[People, Boards, Roles, Keys]),
    (1, RestoreClosed, &[Projects, Insights, Pages]),
];

pub fn themes() -> impl Strategy<Value = Theme> {
    prop_oneof![
        2 => Just(Everything),
        2 => Just(People),
        2 => Just(Projects),
        2 => Just(Boards),
        2 => Just(Insights),
        2 => Just(Roles),
        1 => Just(Pages),
        1 => Just(Keys),
    ]
}

/// One step. Its numbers select from what exists when the step is taken, so that it stays meaningful when earlier
/// steps are left out.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub what: What,
    /// The key of the request.
    pub by: usize,
    /// The organization or the project.
    pub at: usize,
    /// The dashboard, insight, role, invite, domain, export or key.
    pub which: usize,
    /// The person that the step is about; the role of a rule; the first dashboard of an insight, or 0.
    pub whom: usize,
    /// The variant of the step; the second dashboard of an insight, or 0.
    pub how: usize,
    /// Whether to choose a caller and a person that belong to the object. Otherwise most requests are refused for lack
    /// of access.
    pub fits: bool,
}

/// Returns the steps of a sequence with this theme.
pub fn steps(theme: Theme) -> impl Strategy<Value = Step> + use<> {
    let about =
        |(_, _, themes): &&(u32, What, &[Theme])| theme == Everything || themes.contains(&theme);
    let what = OFTEN.iter().filter(about).map(|(weight, what, _)| (*weight, Just(*what)));
    let what = proptest::strategy::Union::new_weighted(what.collect());
    // The first keys belong to people with many permissions.
    let by = prop_oneof![4 => 0..5_usize, 2 => 0..16_usize];
    let at = prop_oneof![4 => 0..2_usize, 1 => 0..6_usize];
    let fits = prop_oneof![1 => Just(false), 3 => Just(true)];
    (what, by, at, 0..6_usize, 0..5_usize, 0..8_usize, fits).prop_map(
        |(what, by, at, which, whom, how, fits)| Step { what, by, at, which, whom, how, fits },
    )
}

impl Step {
    pub fn level(&self) -> i64 {
        [MEMBER, MEMBER, ADMIN, OWNER][self.how % 4]
    }

    pub fn yes(&self) -> bool {
        self.how % 2 == 1
    }

    pub fn scopes(&self) -> usize {
        self.which % SCOPES.len()
    }

    pub fn days(&self) -> Option<i64> {
        [None, None, Some(1), Some(2)][self.how % 4]
    }

    /// The access to grant: as an admin, as a member, or none.
    pub fn granted(&self) -> Option<bool> {
        [None, Some(false), Some(true)][self.how % 3]
    }

    /// The person that a rule names; `None` for the default rule.
    pub fn ruled(&self) -> Option<usize> {
        (!self.how.is_multiple_of(4)).then_some(self.whom)
    }

    pub fn access(&self) -> Option<usize> {
        [None, Some(0), Some(1), Some(2), Some(3)][(self.how + self.which) % 5]
    }

    /// The dashboards of an insight.
    pub fn boards(&self) -> BTreeSet<Id> {
        [self.whom, self.how].into_iter().filter(|board| *board > 0).collect()
    }

    pub fn hours(&self) -> u64 {
        [1, 25, 80][self.how % 3]
    }

    pub fn name(&self) -> usize {
        self.how % NAMES.len()
    }
}

impl World {
    /// Replaces the numbers of a step with those of existing objects, mostly in the right place.
    pub fn resolve(&self, mut step: Step) -> Step {
        let (file, made) = (&self.file, &self.made);
        step.by %= made.keys;
        let organization = step.at % made.organizations;
        let project = 1 + step.at % file.next_project;
        let elsewhere = step.how == 7;
        let place = |own: Option<Id>, other| own.filter(|_| !elsewhere).unwrap_or(other);
        match step.what {
            CreateProject | DeleteOrganization | LetInvite | SetLevel | RemoveMember
            | ListMembers | Invite | ListInvites | ListProjects | AddDomain | ListDomains
            | CreateRole | ListRoles => {
                step.at = organization;
            }
            Withdraw | Accept | AcceptAsSomebodyNew => {
                step.which %= made.invites.max(1);
                // The newest invite is the most likely to exist.
                step.which = made.invites.max(1) - 1 - step.which;
                let own = file.invites.get(&step.which).map(|invite| invite.organization);
                step.at = place(own, organization);
            }
            RemoveDomain => {
                step.which %= made.domains.max(1);
                step.at = place(file.domains.get(&step.which).map(|domain| domain.0), organization);
            }
            Pause | Unpause => {
                step.which %= made.exports.max(1);
                let own = file.exports.get(&step.which);
                let own = own.and_then(|export| file.projects.get(&export.project));
                step.at = place(own.map(|project| project.organization), organization);
            }
            GetExport => {
                step.which %= made.exports.max(1);
                step.at =
                    place(file.exports.get(&step.which).map(|export| export.project), project);
            }
            DeleteKey => step.which %= made.keys,
            DeleteRole | JoinRole | LeaveRole => {
                step.which %= made.roles.max(1);
                let own = file.roles.get(&step.which).map(|role| role.organization);
                step.at = place(own, organization);
            }
            DeleteProject | CloseProject | Grant | GetProject | AddExport | CreateBoard
            | ListBoards | ListInsights => step.at = project,
            GrantRole => {
                step.at = project;
                self.choose_role(&mut step);
            }
            CreateInsight => {
                step.at = project;
                self.choose_boards(&mut step);
            }
            GetInsight | RenameInsight | PlaceInsight | RemoveInsight | RestoreInsight
            | RuleInsight => {
                step.which = 1 + step.which % (file.next_insight - 1).max(1);
                let own = file.insights.get(&step.which).map(|insight| insight.project);
                step.at = place(own, project);
                if step.what == PlaceInsight {
                    self.choose_boards(&mut step);
                }
            }
            GetBoard | Rename | Pin | Restrict | AddText | Remove | BringBack | AddEditor
            | RemoveEditor | Rule | RuleRole | Share | OpenShared => {
                step.which = 1 + step.which % (file.next_board - 1).max(1);
                let own = file.boards.get(&step.which).map(|board| board.project);
                step.at = place(own, project);
                if step.what == RuleRole {
                    self.choose_role(&mut step);
                }
            }
            CreateOrganization | CreateKey | Wait | Restart | Backup | RestoreServing
            | RestoreClosed => {}
        }
        if step.fits {
            self.fit(&mut step);
        }
        step
    }

    /// Chooses the dashboards of an insight, mostly of its project.
    fn choose_boards(&self, step: &mut Step) {
        let own = |board: &Board| board.project == step.at && !board.deleted;
        let boards = self.file.boards.iter().filter(|(_, board)| own(board));
        let boards: Vec<_> = boards.map(|(id, _)| *id).collect();
        let pick = |choice: usize| match choice {
            0 | 7 => choice,
            choice => boards.get(choice % boards.len().max(1)).copied().unwrap_or(0),
        };
        (step.whom, step.how) = (pick(step.whom), pick(step.how));
    }

    /// Chooses the role of a rule in a project, mostly of its organization.
    fn choose_role(&self, step: &mut Step) {
        let project = self.file.projects.get(&step.at);
        let organization = project.map_or(0, |project| project.organization);
        let own = self.file.roles.iter().filter(|(_, role)| role.organization == organization);
        let roles: Vec<_> = own.map(|(id, _)| *id).collect();
        let chosen = roles.get(step.whom % roles.len().max(1)).filter(|_| step.how != 7);
        step.whom = chosen.copied().unwrap_or(step.whom % self.made.roles.max(1));
    }

    /// Chooses a caller and a person that belong to the object.
    fn fit(&self, step: &mut Step) {
        let file = &self.file;
        let of_project = file.projects.get(&step.at);
        let organization = match step.what {
            CreateOrganization | CreateKey | DeleteKey | Wait | Restart | Backup
            | RestoreServing | RestoreClosed => return,
            DeleteProject | CloseProject | Grant | GetProject | AddExport | GetExport
            | CreateBoard | ListBoards | GetBoard | Rename | Pin | Restrict | AddText | Remove
            | BringBack | AddEditor | RemoveEditor | Rule | Share | OpenShared | CreateInsight
            | GetInsight | ListInsights | RenameInsight | PlaceInsight | RemoveInsight
            | RestoreInsight | RuleInsight | GrantRole | RuleRole => {
                of_project.map_or(0, |project| project.organization)
            }
            _ => step.at,
        };
        let Some(found) = file.organizations.get(&organization) else { return };
        let is_member = |person: &usize| found.members.contains_key(person);
        let invited = |step: &Step| file.invites.get(&step.which).map(|invite| invite.person);
        if step.what == AcceptAsSomebodyNew {
            let newest = file.invites.iter().rev().find(|(_, one)| one.person == NEWCOMER);
            step.which = newest.map_or(step.which, |(number, _)| *number);
        }
        let asks = |person: &usize| match step.what {
            Accept => invited(step) == Some(*person),
            _ => is_member(person),
        };
        let keys: Vec<_> =
            file.keys.iter().filter(|(_, key)| asks(&key.person)).map(|(key, _)| *key).collect();
        if let Some(key) = keys.get(step.by % keys.len().max(1)) {
            step.by = *key;
        }
        if matches!(step.what, CreateInsight | PlaceInsight | GrantRole | RuleRole) {
            return;
        }
        let people = (0..PEOPLE.len()).filter(|person| is_member(person) != (step.what == Invite));
        let people: Vec<_> = people.collect();
        if let Some(person) = people.get(step.whom % people.len().max(1)) {
            step.whom = *person;
        }
    }

    /// Takes a resolved step. Returns `None` for steps that are not requests.
    pub fn take(&mut self, step: &Step) -> Option<Expected> {
        let &Step { by, at, which, whom, .. } = step;
        let (project, board) = (at, (at, which));
        let outcome = match step.what {
            CreateOrganization => self.create_organization(by),
            DeleteOrganization => self.delete_organization(by, at),
            LetInvite => self.let_invite(by, at, step.yes()),
            SetLevel => self.set_level(by, at, whom, step.level()),
            RemoveMember => self.remove_member(by, at, whom),
            ListMembers => self.list_members(by, at),
            Invite => self.invite(by, at, (whom, step.level(), step.which % 2 == 1)),
            Withdraw => self.withdraw(by, at, which),
            ListInvites => self.list_invites(by, at),
            Accept => self.accept(Some(by), which),
            AcceptAsSomebodyNew => self.accept(None, which),
            CreateProject => self.create_project(by, at, step.yes()),
            DeleteProject => self.delete_project(by, project),
            CloseProject => self.close_project(by, project, step.yes()),
            Grant => self.grant(by, project, Subject::Person(whom), step.granted()),
            GetProject => self.get_project(by, project),
            ListProjects => self.list_projects(by, at),
            AddDomain => self.add_domain(by, at, step.name()),
            RemoveDomain => self.remove_domain(by, at, which),
            ListDomains => self.list_domains(by, at),
            AddExport => self.add_export(by, project),
            Pause => self.pause(by, at, which, true),
            Unpause => self.pause(by, at, which, false),
            GetExport => self.get_export(by, project, which),
            CreateKey => self.create_key(by, step.scopes(), step.days()),
            DeleteKey => self.delete_key(by, which),
            CreateBoard => self.create_board(by, project, step.name(), step.yes()),
            GetBoard => self.get_board(by, project, which),
            ListBoards => self.list_boards(by, project),
            Rename => {
                let name = NAMES[step.name()].to_owned();
                self.change_board(by, board, false, |board| board.name = name)
            }
            Pin => self.change_board(by, board, false, |board| board.pinned = step.yes()),
            Restrict => self.change_board(by, board, true, |board| board.restricted = step.yes()),
            AddText => self.change_board(by, board, false, |board| board.texts += 1),
            Remove => self.change_board(by, board, false, |board| board.deleted = true),
            BringBack => self.bring_back(by, board),
            AddEditor => self.add_editor(by, board, whom),
            RemoveEditor => self.remove_editor(by, board, whom),
            Rule => self.rule_board(by, board, (Subject::of(step.ruled()), step.access())),
            Share => self.share(by, board, step.yes()),
            OpenShared => self.open_shared(which, step.how / 4),
            CreateInsight => self.add_insight(by, project, step.name(), &step.boards()),
            GetInsight => self.get_insight(by, project, which),
            ListInsights => self.list_insights(by, project),
            RenameInsight => self.rename_insight(by, board, step.name()),
            PlaceInsight => self.place_insight(by, board, &step.boards()),
            RemoveInsight => self.remove_insight(by, board),
            RestoreInsight => self.restore_insight(by, board),
            RuleInsight => self.rule_insight(by, board, (Subject::of(step.ruled()), step.access())),
            CreateRole => self.create_role(by, at, step.name()),
            DeleteRole => self.delete_role(by, at, which),
            ListRoles => self.list_roles(by, at),
            JoinRole => self.join_role(by, at, which, whom),
            LeaveRole => self.leave_role(by, at, which, whom),
            GrantRole => self.grant(by, project, Subject::Role(whom), step.granted()),
            RuleRole => self.rule_board(by, board, (Subject::Role(whom), step.access())),
            Wait => {
                self.now += step.hours().cast_signed() * DAY / 24;
                return None;
            }
            Restart => return None,
            Backup => {
                self.backup = Some(self.file.clone());
                return None;
            }
            RestoreServing | RestoreClosed => {
                self.file = self.backup.clone().unwrap_or_else(|| self.file.clone());
                return None;
            }
        };
        Some(outcome.unwrap_or_else(|refused| refused))
    }

    /// Returns every read by every key, and every public page with every token so far.
    pub fn questions(&self) -> Vec<Step> {
        let mut asked = Vec::new();
        let mut ask = |what, by, at, which, how| {
            asked.push(Step { what, by, at, which, whom: 0, how, fits: false });
        };
        for by in self.file.keys.keys() {
            for at in 0..self.made.organizations {
                for what in [ListMembers, ListInvites, ListProjects, ListDomains, ListRoles] {
                    ask(what, *by, at, 0, 0);
                }
            }
            for at in self.file.projects.keys() {
                for what in [GetProject, ListBoards, ListInsights] {
                    ask(what, *by, *at, 0, 0);
                }
            }
            for (id, insight) in &self.file.insights {
                ask(GetInsight, *by, insight.project, *id, 0);
            }
            for (id, board) in &self.file.boards {
                ask(GetBoard, *by, board.project, *id, 0);
            }
            for (id, export) in &self.file.exports {
                ask(GetExport, *by, export.project, *id, 0);
            }
        }
        for (id, board) in &self.file.boards {
            for serial in 0..=board.serial {
                ask(OpenShared, 0, board.project, *id, 4 * serial);
            }
        }
        asked
    }

    /// Returns a live key of this person with all scopes.
    fn key_of(&self, person: usize) -> Option<usize> {
        let live = |key: &Key| key.ends.is_none_or(|end| self.now < end);
        let all = |key: &Key| key.person == person && key.scopes == 0 && live(key);
        self.file.keys.iter().find(|(_, key)| all(key)).map(|(number, _)| *number)
    }

    /// Returns a step that accepts each invite so far, by the person that it was for.
    pub fn acceptances(&self) -> Vec<Step> {
        let accept = |which| {
            let whom = self.file.invites.get(&which).map_or(0, |invite| invite.person);
            let by = self.key_of(whom).unwrap_or(0);
            Step { what: Accept, by, at: 0, which, whom, how: 0, fits: false }
        };
        (0..self.made.invites).map(accept).collect()
    }

    /// Returns the key of an owner for each organization that has one.
    fn owners(&self) -> BTreeMap<usize, usize> {
        let owner = |found: &Organization| {
            let mut owners = found.members.iter().filter(|(_, level)| **level == OWNER);
            owners.find_map(|(person, _)| self.key_of(*person))
        };
        let all = self.file.organizations.iter();
        all.filter_map(|(at, found)| Some((*at, owner(found)?))).collect()
    }

    /// Returns steps that make every project private, restrict every dashboard, and remove all members except owners.
    /// After that no other person has any right, so a remaining right shows.
    pub fn exodus(&self) -> Vec<Step> {
        let (owners, mut steps) = (self.owners(), Vec::new());
        let mut add = |what, by: &usize, at, which, whom| {
            steps.push(Step { what, by: *by, at, which, whom, how: 1, fits: false });
        };
        for (id, project) in &self.file.projects {
            if let Some(by) = owners.get(&project.organization) {
                add(CloseProject, by, *id, 0, 0);
            }
        }
        for (id, board) in &self.file.boards {
            let project = self.file.projects.get(&board.project);
            if let Some(by) = project.and_then(|project| owners.get(&project.organization)) {
                add(Restrict, by, board.project, *id, 0);
            }
        }
        for (at, by) in &owners {
            for whom in self.file.organizations[at].members.keys() {
                add(RemoveMember, by, *at, 0, *whom);
            }
        }
        steps
    }

    /// Returns steps that invite a person with an account to an organization that they are not a member of, and accept
    /// the invite. The person must not regain earlier access.
    pub fn homecoming(&self) -> Option<[Step; 2]> {
        self.owners().into_iter().find_map(|(at, by)| {
            let members = &self.file.organizations[&at].members;
            let mut strangers = self.file.accounts.iter().filter(|one| !members.contains_key(one));
            let (whom, own) = strangers.find_map(|one| Some((*one, self.key_of(*one)?)))?;
            let which = self.made.invites;
            let step = Step { what: Invite, by, at, which: 0, whom, how: 0, fits: false };
            Some([step, Step { what: Accept, by: own, which, ..step }])
        })
    }
}
