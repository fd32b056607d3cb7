//! Creating an insight. See `docs/spec/insights.md`.

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::InsightId;
use crate::resources::access_controls::caller_levels::require_can_create;
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::insights::{self, Insight};
use crate::secret::SeededRng;
use crate::store::WriteTx;
use crate::time::Timestamp;

use super::dashboards::DashboardChanges;
use super::{ParsedBody, input};

/// Creates an insight, and puts it on the dashboards that the request names.
///
/// # Errors
/// 403 if the caller may not create insights or may not edit one of the dashboards; 400 for an invalid field.
pub fn create(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    new: &ParsedBody,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<InsightId> {
    require_can_create::<Insight>(tx, tenant)?;
    let new = new.get(None)?;
    let mut insight = insights::blank(tx, tenant, rng, now)?;
    input::apply(new.clone(), &mut insight.fields);
    let id = insight.meta.id;
    tx.log_about::<Insight>(&(tenant.project.id, id));
    tx.put(&insight)?;
    let mut dashboards = VisibleDashboards::of(tx, tenant)?;
    let wanted = new.dashboards.as_ref();
    DashboardChanges::between(tx, tenant, id, wanted, &mut dashboards)?.apply(tx, tenant, id)?;
    Ok(id)
}
