//! Restriction, privilege and access levels of dashboards: one module decides (decisions §3;
//! facts-dashboards §8, §9).

use crate::error::{Error, Result};
use crate::ids::UserId;
use crate::resources::members::Membership;

/// Everyone in the project edits; as a privilege: may view.
pub const EVERYONE_EDITS: i64 = 21;
/// Only collaborators edit; as a privilege: may edit.
pub const COLLABORATORS_EDIT: i64 = 37;

/// What a dashboard brings to the question who may do what with it.
#[derive(Debug, Clone, Copy)]
pub struct Guarded {
    /// Who made it.
    pub created_by: Option<UserId>,
    /// [`EVERYONE_EDITS`] or [`COLLABORATORS_EDIT`].
    pub restriction_level: i64,
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
    pub user_access_level: &'static str,
    /// `access_control_version`.
    pub access_control_version: &'static str,
}

/// What the caller may do with the dashboard.
pub fn rights(caller: &Membership, dashboard: Guarded) -> Rights {
    let restricted = dashboard.restriction_level > EVERYONE_EDITS;
    let can_restrict = dashboard.created_by == Some(caller.user) || caller.level.administers();
    let edits = !restricted || can_restrict;
    Rights {
        can_restrict,
        effective_restriction_level: dashboard.restriction_level,
        effective_privilege_level: if edits { COLLABORATORS_EDIT } else { EVERYONE_EDITS },
        user_access_level: if can_restrict { "manager" } else { "editor" },
        access_control_version: if restricted { "v1" } else { "v2" },
    }
}

impl Rights {
    /// Lets only those on who may edit.
    ///
    /// # Errors
    /// 403 for the others.
    pub fn require_edit(&self) -> Result<()> {
        if self.effective_restriction_level < COLLABORATORS_EDIT
            || self.effective_privilege_level >= COLLABORATORS_EDIT
        {
            return Ok(());
        }
        Err(Error::denied("You don't have edit permissions for this dashboard."))
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
