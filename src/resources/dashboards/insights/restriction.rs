//! The restriction of insights by the dashboards that show them.

use crate::resources::access_controls::levels::{
    COLLABORATORS_EDIT, DashboardRights, EVERYONE_EDITS,
};

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
