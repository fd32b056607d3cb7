//! The caller's access levels on insights.

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::{InsightId, ProjectId, UserId};
use crate::resources::access_controls::caller_levels::RuledRecord;
use crate::resources::access_controls::levels::{
    self, AccessLevel, COLLABORATORS_EDIT, DashboardRights, EVERYONE_EDITS,
};
use crate::resources::access_controls::rules;
use crate::resources::access_objects::{Kind, Object};
use crate::store::Tx;

use super::{Insight, Meta};

impl RuledRecord for Insight {
    fn object(number: u64) -> Object {
        Object::Insight(InsightId(number))
    }

    fn key_of(project: ProjectId, number: u64) -> Self::Key {
        (project, InsightId(number))
    }

    fn number(meta: &Meta) -> u64 {
        meta.id.0
    }

    fn created_by(meta: &Meta) -> Option<UserId> {
        meta.created_by
    }
}

/// Returns the caller's level on one insight.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn level_on(tx: &impl Tx, tenant: &InProject, insight: &Meta) -> Result<AccessLevel> {
    let ruled = rules::level_on(tx, tenant, Object::Insight(insight.id))?;
    Ok(levels::on_object(&tenant.member, insight.created_by, ruled))
}

/// Requires that the caller may create insights.
///
/// # Errors
/// 403 otherwise.
pub fn require_can_create(tx: &impl Tx, tenant: &InProject) -> Result<()> {
    levels::require_create(&tenant.member, rules::level_on_all(tx, tenant, Kind::Insight)?)
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
    /// Adds a dashboard. It restricts its insights even if it is hidden from the caller.
    pub fn add(&mut self, on: &DashboardRights) {
        self.restriction = on.effective_restriction_level.max(self.restriction);
        if on.can_view() {
            self.privilege = on.effective_privilege_level.max(self.privilege);
        }
    }

    /// Returns the effective restriction level, and the effective privilege level of the caller.
    pub const fn levels(self) -> (i64, i64) {
        let is_open = self.restriction == EVERYONE_EDITS;
        (self.restriction, if is_open { COLLABORATORS_EDIT } else { self.privilege })
    }
}
