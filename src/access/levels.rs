//! Restriction, privilege and access levels of dashboards: one module decides (decisions §3;
//! facts-dashboards §8, §9).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::ids::UserId;
use crate::resources::members::Membership;

/// Everyone in the project edits; as a privilege: may view.
pub const EVERYONE_EDITS: i64 = 21;
/// Only collaborators edit; as a privilege: may edit.
pub const COLLABORATORS_EDIT: i64 = 37;

/// What access rules give on a dashboard. Levels compare by how much they allow.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum AccessLevel {
    /// Not even to see it.
    None,
    /// To see it.
    Viewer,
    /// To change it; what everyone has where no rule says otherwise.
    Editor,
    /// To say who may, besides.
    Manager,
}

impl AccessLevel {
    /// All of them, least first.
    pub const ALL: [Self; 4] = [Self::None, Self::Viewer, Self::Editor, Self::Manager];

    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Manager => "manager",
        }
    }

    /// Whether it is enough to see what it is on.
    pub fn lets_view(self) -> bool {
        self >= Self::Viewer
    }

    /// Lets only those on who have at least this level of a resource.
    ///
    /// # Errors
    /// 403 for the others.
    pub fn require(self, least: Self) -> Result<()> {
        if self >= least {
            return Ok(());
        }
        let word = least.word();
        Err(Error::denied(format!("You do not have {word} access to this resource.")))
    }
}

/// What a dashboard, and what is said of it and the caller, bring to the question who may do what with it.
#[derive(Debug, Clone, Copy)]
pub struct Guarded {
    /// Who made it.
    pub created_by: Option<UserId>,
    /// [`EVERYONE_EDITS`] or [`COLLABORATORS_EDIT`].
    pub restriction_level: i64,
    /// The caller's level as a collaborator, if they are one.
    pub collaborator: Option<i64>,
    /// What access rules give the caller, if any speaks of them.
    pub ruled: Option<AccessLevel>,
}

/// What one caller may do with one dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Whether the caller decides who edits: its maker and the organization's admins do.
    pub can_restrict: bool,
    /// `effective_restriction_level`.
    pub effective_restriction_level: i64,
    /// `effective_privilege_level`.
    pub effective_privilege_level: i64,
    /// `user_access_level`.
    pub user_access_level: AccessLevel,
    /// `access_control_version`.
    pub access_control_version: &'static str,
}

/// What the caller may do with the dashboard.
pub fn rights(caller: &Membership, dashboard: Guarded) -> Rights {
    let Guarded { created_by, restriction_level, collaborator, ruled } = dashboard;
    let restricted = restriction_level > EVERYONE_EDITS;
    let can_restrict = created_by == Some(caller.user) || caller.level.administers();
    let privilege = match collaborator {
        _ if !restricted || can_restrict => COLLABORATORS_EDIT,
        collaborator => collaborator.unwrap_or(EVERYONE_EDITS),
    };
    let access = ruled.unwrap_or(AccessLevel::Editor);
    Rights {
        can_restrict,
        effective_restriction_level: restriction_level,
        effective_privilege_level: privilege,
        user_access_level: if can_restrict { AccessLevel::Manager } else { access },
        access_control_version: if restricted { "v1" } else { "v2" },
    }
}

/// Lets only those on who may make dashboards in a project. `ruled` is what its access rules give the caller
/// on all its dashboards, if any speaks of them.
///
/// # Errors
/// 403 for the others.
pub fn require_create(caller: &Membership, ruled: Option<AccessLevel>) -> Result<()> {
    on_all(caller, ruled).require(AccessLevel::Editor)
}

/// What the caller has on the dashboards of a project by what holds for all of them. `ruled` is what its
/// access rules give the caller there, if any speaks of it.
pub fn on_all(caller: &Membership, ruled: Option<AccessLevel>) -> AccessLevel {
    match ruled {
        _ if caller.level.administers() => AccessLevel::Manager,
        ruled => ruled.unwrap_or(AccessLevel::Editor),
    }
}

impl Rights {
    /// Whether the restriction lets the caller edit. Access rules are asked apart.
    pub fn can_edit(&self) -> bool {
        self.effective_restriction_level < COLLABORATORS_EDIT
            || self.effective_privilege_level >= COLLABORATORS_EDIT
    }

    /// Whether access rules let the caller see it.
    pub fn can_view(&self) -> bool {
        self.user_access_level.lets_view()
    }

    /// Whether the caller makes its access rules: its managers do, and who runs the project by a grant.
    pub fn can_manage(&self, runs_project: bool) -> bool {
        runs_project || self.user_access_level >= AccessLevel::Manager
    }

    /// Lets only those on who may see it.
    ///
    /// # Errors
    /// 403 for the others.
    pub fn require_view(&self) -> Result<()> {
        self.user_access_level.require(AccessLevel::Viewer)
    }

    /// Lets only those on who may edit.
    ///
    /// # Errors
    /// 403 for the others.
    pub fn require_edit(&self) -> Result<()> {
        self.require_edit_of("this dashboard")
    }

    /// Lets only those on who may edit; the refusal calls the dashboard by these words.
    ///
    /// # Errors
    /// 403 for the others.
    pub fn require_edit_of(&self, dashboard: &str) -> Result<()> {
        self.user_access_level.require(AccessLevel::Editor)?;
        if self.can_edit() {
            return Ok(());
        }
        Err(Error::denied(format!("You don't have edit permissions for {dashboard}.")))
    }

    /// Whether the caller may share it: editors do.
    pub fn can_share(&self) -> bool {
        self.require_share().is_ok()
    }

    /// Lets only those on who may edit, and refuses all others in the same words, whichever rule keeps
    /// them from it (facts-dashboards §11).
    ///
    /// # Errors
    /// 403 for the others.
    pub fn require_share(&self) -> Result<()> {
        let denied = |_| Error::denied("You don't have edit permissions for this dashboard.");
        self.require_edit().map_err(denied)
    }

    /// Lets only those on who make its access rules.
    ///
    /// # Errors
    /// 403 for the others.
    pub fn require_manage(&self, runs_project: bool) -> Result<()> {
        if self.can_manage(runs_project) {
            return Ok(());
        }
        Err(Error::denied("Must be manager to modify dashboard permissions."))
    }

    /// Lets only those on who decide who edits.
    ///
    /// # Errors
    /// 403 for the others.
    pub fn require_restrict(&self) -> Result<()> {
        if self.can_restrict {
            return Ok(());
        }
        Err(Error::denied(
            "Only the dashboard owner and project admins have the restriction rights required to change the dashboard's restriction level.",
        ))
    }
}
