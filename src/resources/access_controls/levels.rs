//! Restriction and privilege levels of dashboards, and access levels of objects. No other module compares them. See
//! `docs/spec/dashboards.md` and `docs/spec/access-controls.md`.

use crate::input::{choices, named_values};
use crate::resources::members::Membership;
use crate::resources::shared::prelude::*;

/// As a restriction: all members of the project can edit. As a privilege: can view.
pub const EVERYONE_EDITS: i64 = 21;
/// As a restriction: only collaborators can edit. As a privilege: can edit.
pub const COLLABORATORS_EDIT: i64 = 37;

choices! {
    /// The values of `restriction_level`.
    pub struct Restriction: i64 = [EVERYONE_EDITS, COLLABORATORS_EDIT];
}

named_values! {
    /// The level that access rules grant on a resource. A higher level includes the lower ones.
    #[derive(Serialize, ToSchema)]
    pub enum AccessLevel {
        /// No access, not even to view.
        None = "none",
        /// Can view.
        Viewer = "viewer",
        /// Can view and edit. This is the default without access rules.
        Editor = "editor",
        /// Can view, edit and change access rules.
        Manager = "manager",
    }
}

impl AccessLevel {
    /// Returns whether the level allows to view the resource.
    pub fn can_view(self) -> bool {
        self >= Self::Viewer
    }

    /// Checks that the level is at least `least`.
    ///
    /// # Errors
    /// 403 if it is lower.
    pub fn require(self, least: Self) -> Result<()> {
        if self >= least {
            return Ok(());
        }
        let word = least.as_str();
        Err(Error::denied(format!("You do not have {word} access to this resource.")))
    }

    /// Returns whether the caller with this level on an object may change its access rules: its managers may, and
    /// the project's admins.
    pub fn can_manage(self, runs_project: bool) -> bool {
        runs_project || self >= Self::Manager
    }

    /// Checks that the caller may change the access rules of an object of this kind.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_manage(self, runs_project: bool, kind: Kind) -> Result<()> {
        if self.can_manage(runs_project) {
            return Ok(());
        }
        let kind = kind.as_str();
        Err(Error::denied(format!("Must be manager to modify {kind} permissions.")))
    }
}

/// What decides a member's level on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The member is an admin or owner of the organization.
    Admin,
    /// The member created the object.
    Creator,
    /// An access rule.
    Rule,
    /// No access rule applies.
    NoRule,
    /// Only collaborators may edit, and the member is not one.
    Restriction,
    /// Only collaborators may edit, and the member is one. For an insight: the restriction of a dashboard that shows it
    /// lets the member edit.
    Collaborator,
}

impl DecidedBy {
    /// Returns whether the member manages the object regardless of its rules.
    const fn is_inherent(self) -> bool {
        matches!(self, Self::Admin | Self::Creator)
    }
}

/// A member's rights on a dashboard or an insight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectRights {
    /// `effective_restriction_level`.
    pub effective_restriction_level: i64,
    /// `effective_privilege_level`.
    pub effective_privilege_level: i64,
    /// `user_access_level`: the level without regard to a restriction.
    pub user_access_level: AccessLevel,
    /// What decides [`Self::level`].
    pub decided_by: DecidedBy,
}

/// Returns a member's rights on a dashboard that `created_by` created. `restriction` is [`EVERYONE_EDITS`] or
/// [`COLLABORATORS_EDIT`], `collaborator` the member's level as a collaborator, if the member is one, and `ruled` the level
/// that access rules grant on the dashboard, if a rule applies.
pub fn on_dashboard(
    member: &Membership,
    created_by: Option<UserId>,
    restriction: i64,
    collaborator: Option<i64>,
    ruled: Option<AccessLevel>,
) -> ObjectRights {
    let decided = decide(member, created_by, ruled);
    let is_exempt = decided.1.is_inherent();
    let privilege = if restriction <= EVERYONE_EDITS || is_exempt {
        COLLABORATORS_EDIT
    } else {
        collaborator.unwrap_or(EVERYONE_EDITS)
    };
    ObjectRights::new(decided, (restriction, privilege), is_exempt)
}

/// The restriction of an insight by the dashboards that show it, while they are visited.
pub struct RestrictionOfInsight {
    restriction: i64,
    privilege: i64,
}

impl Default for RestrictionOfInsight {
    fn default() -> Self {
        Self { restriction: EVERYONE_EDITS, privilege: EVERYONE_EDITS }
    }
}

impl RestrictionOfInsight {
    /// Adds a dashboard. It restricts its insights even if it is hidden from the member.
    pub fn add(&mut self, on: &ObjectRights) {
        self.restriction = on.effective_restriction_level.max(self.restriction);
        if on.can_view() {
            self.privilege = on.effective_privilege_level.max(self.privilege);
        }
    }
}

/// Returns a member's rights on an insight that `created_by` created. `ruled` is the level that access rules grant on
/// it, if a rule applies. Unlike the creator of a dashboard, the creator of an insight is not exempt from a restriction.
pub fn on_insight(
    member: &Membership,
    created_by: Option<UserId>,
    ruled: Option<AccessLevel>,
    RestrictionOfInsight { restriction, privilege }: RestrictionOfInsight,
) -> ObjectRights {
    let decided = decide(member, created_by, ruled);
    let is_open = restriction == EVERYONE_EDITS;
    let privilege = if is_open { COLLABORATORS_EDIT } else { privilege };
    ObjectRights::new(decided, (restriction, privilege), decided.1 == DecidedBy::Admin)
}

/// Returns the caller's level on an object that `created_by` created, and what decides it. `ruled` is the level that
/// access rules grant on the object, if a rule applies.
fn decide(
    caller: &Membership,
    created_by: Option<UserId>,
    ruled: Option<AccessLevel>,
) -> (AccessLevel, DecidedBy) {
    match ruled {
        _ if caller.level.is_admin() => (AccessLevel::Manager, DecidedBy::Admin),
        _ if created_by == Some(caller.user) => (AccessLevel::Manager, DecidedBy::Creator),
        Some(level) => (level, DecidedBy::Rule),
        None => (AccessLevel::Editor, DecidedBy::NoRule),
    }
}

/// Returns whether a member manages an object that `created_by` created, regardless of the rules on it.
pub fn manages_inherently(member: &Membership, created_by: Option<UserId>) -> bool {
    decide(member, created_by, None).1.is_inherent()
}

/// Checks that a rule on all objects of a kind may give this level.
///
/// # Errors
/// 400 if the level is lower or higher than the kind allows.
pub fn require_within(level: AccessLevel, kind: Kind) -> Result<()> {
    let (least, most) = match kind {
        Kind::Action => (AccessLevel::Viewer, AccessLevel::Manager),
        Kind::ActivityLog => (AccessLevel::None, AccessLevel::Viewer),
        _ => (AccessLevel::None, AccessLevel::Manager),
    };
    let kind = kind.as_str();
    let detail = if level < least {
        format!("below the minimum '{}' for {kind}.", least.as_str())
    } else if level > most {
        format!("above the maximum '{}' for {kind}.", most.as_str())
    } else {
        return Ok(());
    };
    let detail = format!("Access level cannot be set {detail}");
    Err(Error::field("access_level", "invalid_input", detail))
}

/// Returns the caller's level on an object that `created_by` created, or on all objects of a kind without a creator.
/// `ruled` is the level that access rules grant, if a rule applies.
pub fn on_object(
    caller: &Membership,
    created_by: Option<UserId>,
    ruled: Option<AccessLevel>,
) -> AccessLevel {
    decide(caller, created_by, ruled).0
}

impl ObjectRights {
    fn new(
        (user_access_level, decided_by): (AccessLevel, DecidedBy),
        (effective_restriction_level, effective_privilege_level): (i64, i64),
        is_exempt: bool,
    ) -> Self {
        let mut rights = Self {
            effective_restriction_level,
            effective_privilege_level,
            user_access_level,
            decided_by,
        };
        if rights.is_restricted() && !is_exempt && user_access_level >= AccessLevel::Editor {
            rights.decided_by =
                if rights.can_edit() { DecidedBy::Collaborator } else { DecidedBy::Restriction };
        }
        rights
    }

    /// Returns what the member may do with the object in the end: the level that access rules give, and at most to view
    /// the object if the restriction does not allow the member to edit.
    pub fn level(&self) -> AccessLevel {
        if self.can_edit() {
            self.user_access_level
        } else {
            self.user_access_level.min(AccessLevel::Viewer)
        }
    }

    /// Returns whether a restriction limits who may edit.
    pub const fn is_restricted(&self) -> bool {
        self.effective_restriction_level > EVERYONE_EDITS
    }

    /// Returns whether a restriction of the object counts for the member: one who may edit without it, unless the
    /// member manages the object regardless of any restriction.
    pub fn restriction_counts(&self) -> bool {
        self.user_access_level >= AccessLevel::Editor && !self.decided_by.is_inherent()
    }

    /// Returns whether the restriction allows the member to edit. Access rules are a separate check.
    pub const fn can_edit(&self) -> bool {
        self.effective_restriction_level < COLLABORATORS_EDIT
            || self.effective_privilege_level >= COLLABORATORS_EDIT
    }

    /// Returns whether access rules allow the member to view the object.
    pub fn can_view(&self) -> bool {
        self.user_access_level.can_view()
    }

    /// Checks that the caller may view the dashboard.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_view(&self) -> Result<()> {
        self.user_access_level.require(AccessLevel::Viewer)
    }

    /// Checks that the caller may edit the dashboard.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_edit(&self) -> Result<()> {
        self.require_edit_of("this dashboard")
    }

    /// Checks that the caller may edit. The error's text names the dashboard with `dashboard`.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_edit_of(&self, dashboard: &str) -> Result<()> {
        self.user_access_level.require(AccessLevel::Editor)?;
        if self.can_edit() {
            return Ok(());
        }
        Err(Error::denied(format!("You don't have edit permissions for {dashboard}.")))
    }

    /// Checks that the caller may restrict editing: the creator and the organization's admins may.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_restrict(&self) -> Result<()> {
        if self.decided_by.is_inherent() {
            return Ok(());
        }
        Err(Error::denied(
            "Only the dashboard owner and project admins have the restriction rights required to change the dashboard's restriction level.",
        ))
    }
}
