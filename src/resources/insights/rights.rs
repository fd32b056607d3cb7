//! What a caller may do with insights. An insight has access rules of its own, and the restriction levels of the dashboards
//! that show it.

use crate::error::{Error, Result};
use crate::resources::access_controls::levels::{self, AccessLevel};
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::insights::body::{InsightRights, ListedTile};
use crate::resources::dashboards::insights::{Meta, RestrictionOfInsight};
use crate::resources::dashboards::tiles;
use crate::store::Tx;

/// The text of the error for an insight that a restricted dashboard shows.
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
        let (mut listed, mut restriction) = (Vec::new(), RestrictionOfInsight::default());
        for key in keys {
            let Some(on) = dashboards.rights(tx, key.1)? else { continue };
            restriction.add(&on);
            if on.can_view() && listed.len() < limit {
                listed.push(tiles::listed(tx, key)?);
            }
        }
        let (restriction, privilege) = restriction.levels();
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
/// 403 if access rules do not allow it, or if a dashboard that shows the insight is restricted, and the caller may edit none
/// of the dashboards that the caller may view.
pub(super) fn require_edit(rights: &InsightRights) -> Result<()> {
    rights.user_access_level.require(AccessLevel::Editor)?;
    if levels::can_edit(rights.effective_restriction_level, rights.effective_privilege_level) {
        return Ok(());
    }
    Err(Error::denied(RESTRICTED))
}
