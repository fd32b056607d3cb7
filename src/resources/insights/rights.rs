//! What a caller may do with insights. An insight has access rules of its own, and the restriction levels of the dashboards
//! that show it.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::resources::access_controls::levels::{
    self, AccessLevel, COLLABORATORS_EDIT, EVERYONE_EDITS,
};
use crate::resources::access_controls::rules;
use crate::resources::access_objects::Kind;
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::insights::Meta;
use crate::resources::dashboards::insights::body::{InsightRights, ListedTile};
use crate::resources::dashboards::tiles;
use crate::store::Tx;

/// The text of the error for an insight that only restricted dashboards show.
const RESTRICTED: &str = "This insight is on a dashboard that can only be edited by its owner, team members invited to \
editing the dashboard, and project admins.";

/// Requires that the caller may create insights.
///
/// # Errors
/// 403 otherwise.
pub(super) fn require_can_create(tx: &impl Tx, tenant: &InProject) -> Result<()> {
    levels::require_create(&tenant.member, rules::level_on_all(tx, tenant, Kind::Insight)?)
}

/// The live tiles of an insight that the caller may see, and what the caller may do with the insight.
pub(super) struct Standing {
    pub(super) tiles: Vec<ListedTile>,
    pub(super) rights: InsightRights,
}

impl Standing {
    /// Reads at most `limit` tiles. `level` is what access rules give the caller on the insight.
    pub(super) fn of(
        tx: &impl Tx,
        insight: &Meta,
        level: AccessLevel,
        dashboards: &mut VisibleDashboards<'_>,
        limit: usize,
    ) -> Result<Self> {
        let keys = tiles::live_tiles(tx, (insight.project, insight.id))?;
        let mut rights = InsightRights {
            effective_restriction_level: EVERYONE_EDITS,
            effective_privilege_level: EVERYONE_EDITS,
            user_access_level: level,
        };
        if keys.is_empty() {
            rights.effective_privilege_level = COLLABORATORS_EDIT;
        }
        let mut listed = Vec::new();
        for key in keys {
            let Some(on) = dashboards.rights(tx, key.1)? else { continue };
            let (restriction, privilege) =
                (on.effective_restriction_level, on.effective_privilege_level);
            rights.effective_restriction_level =
                rights.effective_restriction_level.max(restriction);
            rights.effective_privilege_level = rights.effective_privilege_level.max(privilege);
            if on.can_view() && listed.len() < limit {
                listed.push(tiles::listed(tx, key)?);
            }
        }
        Ok(Self { tiles: listed, rights })
    }
}

/// Requires that the caller may change an insight with these rights.
///
/// # Errors
/// 403 if access rules do not allow it, or if the caller may edit none of the dashboards that show the insight.
pub(super) fn require_edit(rights: &InsightRights) -> Result<()> {
    rights.user_access_level.require(AccessLevel::Editor)?;
    if levels::can_edit(rights.effective_restriction_level, rights.effective_privilege_level) {
        return Ok(());
    }
    Err(Error::denied(RESTRICTED))
}
