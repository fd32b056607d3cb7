//! What every new dashboard begins with.

use crate::auth::{Caller, InProject};
use crate::error::Result;
use crate::ids::DashboardId;
use crate::resources::access_controls::levels;
use crate::store::{Table, WriteTx};
use crate::time::Timestamp;

use super::{Dashboard, Fields, Meta};

/// Returns a new dashboard of the caller with default fields. Does not store it.
pub(super) fn blank(
    tx: &mut WriteTx<'_>,
    caller: &Caller,
    tenant: &InProject,
    now: Timestamp,
) -> Result<Dashboard> {
    let id = DashboardId(tx.next_number(Table::Dashboards)?);
    let meta = Meta {
        organization: tenant.project.organization,
        project: tenant.project.id,
        id,
        created_by: Some(caller.user.id),
        restriction_level: levels::EVERYONE_EDITS,
        deleted: false,
        detailed: false,
        #[cfg(test)]
        rank: 7,
    };
    let fields = Fields {
        id,
        name: None,
        description: String::new(),
        pinned: false,
        created_at: now,
        is_shared: false,
        deleted: false,
        creation_mode: "default".to_owned(),
        tags: Vec::new(),
        restriction_level: levels::EVERYONE_EDITS,
        #[cfg(test)]
        color: super::GROWN_COLOR.to_owned(),
    };
    Ok(Dashboard { meta, fields })
}
