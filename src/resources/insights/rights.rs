//! What a caller may do with insights. An insight has access rules of its own, and the restriction levels of the dashboards
//! that show it and that the caller may view.

use crate::error::{Error, Result};
use crate::resources::access_controls::levels::{
    self, AccessLevel, COLLABORATORS_EDIT, DashboardRights, EVERYONE_EDITS,
};
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::insights::Meta;
use crate::resources::dashboards::insights::body::{InsightRights, ListedTile};
use crate::resources::dashboards::tiles;
use crate::store::Tx;

/// The text of the error for an insight that only restricted dashboards show.
const RESTRICTED: &str = "This insight is on a dashboard that can only be edited by its owner, team members invited to \
editing the dashboard, and project admins.";

/// The live tiles of an insight that the caller may see, and what the caller may do with the insight.
pub(super) struct InsightView {
    pub(super) tiles: Vec<ListedTile>,
    pub(super) rights: InsightRights,
}

impl InsightView {
    /// Reads at most `limit` tiles. `level` is what access rules give the caller on the insight.
    pub(super) fn of(
        tx: &impl Tx,
        insight: &Meta,
        level: AccessLevel,
        dashboards: &mut VisibleDashboards<'_>,
        limit: usize,
    ) -> Result<Self> {
        let keys = tiles::live_tiles(tx, (insight.project, insight.id))?;
        let (mut listed, mut highest) = (Vec::new(), None);
        for key in keys {
            let Some(on) = dashboards.rights(tx, key.1)?.filter(DashboardRights::can_view) else {
                continue;
            };
            let (restriction, privilege) = highest.unwrap_or((EVERYONE_EDITS, EVERYONE_EDITS));
            highest = Some((
                on.effective_restriction_level.max(restriction),
                on.effective_privilege_level.max(privilege),
            ));
            if listed.len() < limit {
                listed.push(tiles::listed(tx, key)?);
            }
        }
        // An insight that only hidden dashboards show is to the caller like one that none shows.
        let (restriction, privilege) = highest.unwrap_or((EVERYONE_EDITS, COLLABORATORS_EDIT));
        let rights = InsightRights {
            effective_restriction_level: restriction,
            effective_privilege_level: privilege,
            user_access_level: level,
        };
        Ok(Self { tiles: listed, rights })
    }
}

/// Requires that the caller may change an insight with these rights.
///
/// # Errors
/// 403 if access rules do not allow it, or if dashboards that the caller may view show the insight, one of them is
/// restricted, and the caller may edit none.
pub(super) fn require_edit(rights: &InsightRights) -> Result<()> {
    rights.user_access_level.require(AccessLevel::Editor)?;
    if levels::can_edit(rights.effective_restriction_level, rights.effective_privilege_level) {
        return Ok(());
    }
    Err(Error::denied(RESTRICTED))
}
