//! Lists of insights. See `docs/spec/insights.md`.

use crate::auth::InProject;
use crate::error::Result;
use crate::resources::access_controls::levels;
use crate::resources::access_controls::rules::CallerRules;
use crate::resources::access_objects::Kind;
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::insights::{Insight, Meta};
use crate::store::{Tx, Window};

use super::body::InsightItems;
use super::rights::Standing;

/// Maximum number of dashboards that an insight in a list names.
const MAX_LISTED: usize = 100;

/// Lists the live insights of a project that the caller may see, ordered by ID. Returns their total count, and those in
/// `window` as the items of a JSON array.
///
/// # Errors
/// 403 if access rules hide all insights from the caller; 500 or 503 when the file cannot be read.
pub fn list(
    tx: &impl Tx,
    tenant: &InProject,
    basic: bool,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let project = tenant.project.id;
    let rules = CallerRules::of(tx, tenant, Kind::Insight)?;
    let mut dashboards = VisibleDashboards::of(tx, tenant)?;
    let count = tx.count::<Insight>(&project)?;
    let mut items = InsightItems::new(basic, window.limit);
    if window.begins_within(count) {
        let live = |meta: &Meta| !meta.deleted;
        tx.scan_where::<Insight, _>(&project, window, live, |row| {
            let ruled = rules.on(row.meta.id.0);
            let level = levels::on_object(&tenant.member, row.meta.created_by, ruled);
            let standing = Standing::of(tx, &row.meta, level, &mut dashboards, MAX_LISTED)?;
            items.push(tx, &row, &standing)
        })?;
    }
    Ok((count, items.into_bytes()))
}
