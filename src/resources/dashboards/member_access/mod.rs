//! What each member may do with a dashboard or an insight, and why. See `docs/spec/access-controls.md`.

mod reasons;

use crate::auth::InProject;
use crate::resources::access_controls::levels::{
    self, AccessLevel, ObjectRights, RestrictionOfInsight,
};
use crate::resources::access_controls::rules::{self, DecidingRule};
use crate::resources::access_controls::runs_project;
use crate::resources::access_controls::shared::{Shared, SharedMeta};
use crate::resources::dashboards::insights::{self, Insight};
use crate::resources::dashboards::{CallerAccess, Dashboard, Meta, tiles};
use crate::resources::members::{self, BY_JOINING, Membership};
use crate::resources::projects::grants::GrantLevel;
use crate::resources::projects::{self, NameVisibility};
use crate::resources::roles;
use crate::resources::shared::prelude::*;
use crate::resources::shared::reading::walk_page;
use crate::resources::users::{self, EmbeddedUser, UserFilter};

use reasons::reasons;

/// The filters of a list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only this user.
    pub user: Option<UserFilter>,
    /// Only members whose name or address matches.
    pub members: members::Filter,
    /// Only members with this level on the object.
    pub access_level: Option<AccessLevel>,
}

impl Filter {
    /// Returns whether the list must visit every member.
    pub fn scans(&self) -> bool {
        self.user.is_none() && (self.members.scans() || self.access_level.is_some())
    }
}

/// Lists the members of the project's organization with their access to an object, the newest member first. Returns the
/// total and the items in `window` as the items of a JSON array. The handler has checked that the caller may read the
/// access rules on the object.
///
/// # Errors
/// 404 if the object does not exist.
pub fn list(
    tx: &dyn Raw,
    tenant: &InProject,
    object: Object,
    visibility: NameVisibility,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let target = Target::of(tx, tenant.project.id, object)?;
    let (project, items) = (&tenant.project, JsonItems::default());
    let mut page = AccessPage { target, project, visibility, filter, window, count: 0, items };
    let Membership { organization, user: caller, .. } = tenant.member;
    match filter.user {
        None if visibility.other_members && filter.scans() => {
            let all = Window::all(window.order);
            tx.walk(&BY_JOINING, &organization, all, |row| page.add(tx, &row.meta))?;
        }
        None if visibility.other_members => {
            // The walk skips what precedes the page.
            page.window.offset = 0;
            let add = |row: Row<'_, Membership>| page.add(tx, &row.meta);
            let count = walk_page(tx, &BY_JOINING, &organization, window, add)?;
            return Ok((count, page.items.into_bytes()));
        }
        named => {
            let user = named.unwrap_or(UserFilter::Caller).resolve(tx, caller)?;
            if let Some(user) = user.filter(|user| visibility.other_members || *user == caller)
                && let Some(member) = members::find_listed(tx, organization, user)?
            {
                page.add(tx, &member)?;
            }
        }
    }
    Ok((page.count as u64, page.items.into_bytes()))
}

/// A page of the list while it is read.
struct AccessPage<'p> {
    target: Target,
    project: &'p projects::Meta,
    visibility: NameVisibility,
    filter: &'p Filter,
    window: Window,
    /// The number of members that match the filter.
    count: usize,
    items: JsonItems,
}

impl AccessPage<'_> {
    /// Counts a member that matches the filter, and appends the member if the window shows it.
    fn add(&mut self, tx: &dyn Raw, member: &Membership) -> Result<()> {
        if !self.filter.members.matches(tx, member)? {
            return Ok(());
        }
        let access = self.target.access(tx, self.project, member)?;
        if self.filter.access_level.is_none_or(|level| level == access.level()) {
            if self.window.shows(self.count) {
                self.render(tx, &access)?;
            }
            self.count += 1;
        }
        Ok(())
    }

    fn render(&mut self, tx: &dyn Raw, access: &MemberAccess) -> Result<()> {
        let Membership { organization, user, id, .. } = access.tenant.member;
        let Self { visibility, items, .. } = self;
        items.push(MemberAccessBody {
            user: EmbeddedUser::find(tx, Some(user))?,
            organization_member: id,
            access_level: access.level(),
            can_edit_access_levels: access.can_edit_access_levels(tx)?,
            because: WrittenBy(&mut |out| {
                Array::write(out, |array| {
                    for mut reason in reasons(tx, access)? {
                        if let Some(role) = reason.role.filter(|_| visibility.roles) {
                            reason.role_name = roles::find_name(tx, organization, role)?;
                        }
                        array.push(reason)?;
                    }
                    Ok(())
                })
            }),
        })
    }
}

output! {
    /// What a member may do with a dashboard or an insight, and why.
    pub struct MemberAccessBody<'a> as MemberAccess {
        /// The user.
        user: EmbeddedUser as users::Fields,
        /// The id of the membership, to name the member in an access rule.
        organization_member: MembershipId,
        /// What the member may do with the object, with regard to access rules, restriction and collaborators.
        access_level: AccessLevel,
        /// Whether the member may edit the access rules on the object.
        can_edit_access_levels: bool,
        /// Each rule that can decide the access, in the order of precedence. Exactly one decides.
        because: WrittenBy<'a> as Vec<Reason>,
    }
}

output! {
    /// A rule that can decide a member's access to a dashboard or an insight.
    pub struct Reason as AccessReason {
        /// The rule.
        rule: ReasonRule,
        /// Whom the rule names, for `project_default`, `project_rule`, `object_rule` and `kind_rule`.
        subject: Option<ReasonSubject>,
        /// ID of the role that the rule names. Of several roles of the member, the one with the highest level.
        role: Option<RoleId>,
        /// Name of the role. Null for a key that may not list roles.
        role_name: Option<String>,
        /// The level on the object that the rule gives, that of the member if the rule decides. Null if the rule does not
        /// exist or does not apply to the member.
        access_level: Option<AccessLevel>,
        /// The level on the project that the rule gives, for `project_default` and `project_rule`.
        project_level: Option<GrantLevel>,
        /// Whether the rule was considered. It was not if a rule of higher precedence decided.
        reached: bool,
        /// Whether the rule decides `access_level` of the member.
        decided: bool,
        /// The rule, in words.
        text: String,
    }
}

/// A kind of rule that can decide a member's access to a dashboard or an insight, in the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = AccessReasonRule)]
#[serde(rename_all = "snake_case")]
pub enum ReasonRule {
    /// The user is a member of the organization.
    OrganizationMember,
    /// Admins and owners of the organization manage every object.
    OrganizationAdmin,
    /// Whether the project is open to all members or private. It decides if no rule opens a private project.
    ProjectDefault,
    /// A rule on the project.
    ProjectRule,
    /// The creator manages the object.
    Creator,
    /// A rule on the object.
    ObjectRule,
    /// A rule on all objects of the kind.
    KindRule,
    /// Without a rule, everyone is an editor.
    NoRule,
    /// Only collaborators may edit a dashboard, or an insight because a restricted dashboard shows it. It decides for an
    /// editor who is not exempt.
    Restriction,
    /// Collaborators of a restricted dashboard keep the level that access rules give. Only for dashboards.
    Collaborator,
    /// Members whom the restriction of one of the dashboards with the insight lets edit keep the level that access rules
    /// give. Only for insights.
    DashboardEditor,
}

/// Whom a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = AccessReasonSubject)]
#[serde(rename_all = "snake_case")]
pub enum ReasonSubject {
    /// The member.
    Member,
    /// A role of the member.
    Role,
    /// Everyone.
    Everyone,
}

/// The object, and what restricts who may edit it.
enum Target {
    /// A dashboard.
    Dashboard(Meta),
    /// An insight, and the live dashboards that show it; none if no dashboard of them is restricted.
    Insight(insights::Meta, Vec<Meta>),
}

/// What one member may do with the object, and what decides it.
struct MemberAccess {
    tenant: InProject,
    object: Object,
    is_creator: bool,
    /// Whether the member sees the project. If not, nothing else counts.
    is_visible: bool,
    /// The access rule that applies, if one does.
    rule: Option<DecidingRule>,
    rights: ObjectRights,
    /// Whether the member is exempt from the restriction: a collaborator of the dashboard, or a member whom the
    /// restriction of a dashboard with the insight lets edit.
    is_exempt: bool,
}

impl Target {
    fn of(tx: &dyn Raw, project: ProjectId, object: Object) -> Result<Self> {
        match object {
            Object::Dashboard(id) => {
                let dashboard = tx.meta::<Dashboard>(&(project, id))?;
                dashboard.map(Self::Dashboard).ok_or_else(Error::not_found)
            }
            Object::Insight(id) => {
                let insight = tx.meta::<Insight>(&(project, id))?.ok_or_else(Error::not_found)?;
                let mut dashboards: Vec<Meta> = Vec::new();
                for (_, dashboard, _) in tiles::live_tiles(tx, (project, id))? {
                    dashboards.extend(tx.meta::<Dashboard>(&(project, dashboard))?);
                }
                // Then no member's rights on them need to be read.
                if !dashboards.iter().any(Meta::is_restricted) {
                    dashboards.clear();
                }
                Ok(Self::Insight(insight, dashboards))
            }
        }
    }

    fn shared(&self) -> SharedMeta {
        match self {
            Self::Dashboard(dashboard) => Dashboard::shared(dashboard),
            Self::Insight(insight, _) => Insight::shared(insight),
        }
    }

    /// Returns what a member of the organization may do with the object.
    fn access(
        &self,
        tx: &dyn Raw,
        project: &projects::Meta,
        member: &Membership,
    ) -> Result<MemberAccess> {
        let SharedMeta { object, created_by, .. } = self.shared();
        let tenant = InProject { member: member.clone(), project: project.clone() };
        let rule = rules::find_deciding(tx, &tenant, object)?;
        let ruled = rule.map(|rule| rule.level);
        let (rights, is_exempt) = match self {
            Self::Dashboard(dashboard) => {
                let collaborator = dashboard.collaborator_level(tx, &tenant)?;
                (dashboard.rights_given(member, collaborator, ruled), collaborator.is_some())
            }
            Self::Insight(_, dashboards) => {
                let mut restriction = RestrictionOfInsight::default();
                // The rules are read once: there may be a thousand dashboards.
                if !dashboards.is_empty() {
                    let access = CallerAccess::of(tx, &tenant)?;
                    for one in dashboards {
                        restriction.add(&access.rights(one));
                    }
                }
                let rights = levels::on_insight(member, created_by, ruled, restriction);
                (rights, rights.is_restricted() && rights.can_edit())
            }
        };
        let is_creator = created_by == Some(member.user);
        let is_visible = projects::is_visible(tx, member, project)?;
        Ok(MemberAccess { tenant, object, is_creator, is_visible, rule, rights, is_exempt })
    }
}

impl MemberAccess {
    /// Returns what the member may do with the object.
    fn level(&self) -> AccessLevel {
        if self.is_visible { self.rights.level() } else { AccessLevel::None }
    }

    /// Returns whether the member may edit the access rules on the object.
    fn can_edit_access_levels(&self, tx: &dyn Raw) -> Result<bool> {
        let level = self.rights.user_access_level;
        Ok(self.is_visible && level.can_manage(runs_project(tx, &self.tenant)?))
    }
}
