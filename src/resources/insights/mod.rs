//! Insights of a project: stored queries, which dashboards can show. See `docs/spec/insights.md`.
//!
//! The record is [`Insight`], which belongs to dashboards because their
//! tiles show it.

mod api;
mod dashboards;
mod filter;
pub mod http;
mod list;
mod order;

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::InsightId;
use crate::resources::access_controls::levels::{self, AccessLevel};
use crate::resources::access_controls::shared::{Shared, level_on, require_can_create};
use crate::resources::dashboards::deletions::{self, Deletion};
use crate::resources::dashboards::insights::body::{InsightRights, ListedTile};
use crate::resources::dashboards::insights::{
    self, Insight, InsightRef, Meta, RestrictionOfInsight,
};
use crate::resources::dashboards::{VisibleDashboards, tiles};
use crate::resources::shared::access_objects::Object;
use crate::resources::shared::registration::RegisteredRecord;
use crate::secret::SeededRng;
use crate::store::{Record, Tx, WriteTx};
use crate::time::Timestamp;

pub use api::{InsightFields, ParsedBody, ResponseOptions, body};
use dashboards::DashboardChanges;
pub use list::list;

/// Insights have no records besides those that dashboards register.
pub const RECORDS: &[&dyn RegisteredRecord] = &[];

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
    api::apply(new.clone(), &mut insight.fields);
    let id = insight.meta.id;
    tx.log_about::<Insight>(&(tenant.project.id, id));
    tx.put(&insight)?;
    let mut dashboards = VisibleDashboards::of(tx, tenant)?;
    let wanted = new.dashboards.as_ref();
    DashboardChanges::between(tx, tenant, id, wanted, &mut dashboards)?.apply(tx, tenant, id)?;
    Ok(id)
}

/// Updates an insight and the set of its dashboards. `deleted: true` deletes the insight with its tiles, `deleted: false`
/// restores it without them. Returns its ID.
///
/// # Errors
/// 404 if the insight does not exist, or is deleted and the request does not restore it; 403 if the caller may not edit
/// it or a dashboard that is added or removed; 400 for an invalid field.
pub fn update(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    named: &InsightRef,
    patch: &ParsedBody,
    now: Timestamp,
) -> Result<InsightId> {
    let found = Insight::find_named(tx, tenant.project.id, named)?;
    let found = found.filter(|meta| !meta.deleted || patch.restores());
    let meta = found.ok_or_else(Error::not_found)?;
    let (id, key) = (meta.id, (tenant.project.id, meta.id));
    let mut dashboards = VisibleDashboards::of(tx, tenant)?;
    let level = level_on::<Insight>(tx, tenant, &meta)?;
    require_edit(&InsightView::of(tx, &meta, level, &mut dashboards, 0)?.rights)?;
    let before: Insight = tx.get(&key)?;
    let patch = patch.get(before.fields.description.as_deref())?;
    let mut after = before.clone();
    api::apply(patch.clone(), &mut after.fields);
    after.fields.deleted = patch.deleted.unwrap_or(false);
    let wanted = patch.dashboards.as_ref();
    let mut changes = DashboardChanges::between(tx, tenant, id, wanted, &mut dashboards)?;
    if after.fields.deleted {
        changes = DashboardChanges::removal(tx, tenant.project.id, id)?;
    }
    if after == before && changes.is_empty() {
        return Ok(id);
    }
    after.fields.is_sample = false;
    after.fields.updated_at = now;
    after.fields.last_modified_at = now;
    after.meta.last_modified_by = Some(tenant.member.user);
    tx.log_about::<Insight>(&key);
    tiles::resizing_insight(tx, key, &mut dashboards, |tx| put(tx, &after))?;
    changes.apply(tx, tenant, id)?;
    changes.bump_kept(tx, tenant.project.id)?;
    if after.fields.deleted {
        deletions::record(tx, Insight::shared(&after.meta), tenant.member.user, now)?;
    } else if before.fields.deleted {
        tx.remove::<Deletion>(&(tenant.project.id, Object::Insight(id)))?;
    }
    Ok(id)
}

/// Stores the insight. Increments its version even if only its tiles change.
fn put(tx: &mut WriteTx<'_>, insight: &Insight) -> Result<()> {
    let before = tx.version::<Insight>(&insight.key())?;
    tx.put(insight)?;
    if tx.version::<Insight>(&insight.key())? == before {
        tx.bump_version::<Insight>(&insight.key())?;
    }
    Ok(())
}

/// The text of the error for an insight that a restricted dashboard shows.
const RESTRICTED: &str = "This insight is on a dashboard that can only be edited by its owner, team members invited to \
editing the dashboard, and project admins.";

/// The live tiles of an insight that the caller may see, and what the caller may do with the insight.
struct InsightView {
    tiles: Vec<ListedTile>,
    rights: InsightRights,
}

impl InsightView {
    /// Reads at most `limit` tiles. `level` is what access rules give the caller on the insight.
    fn of(
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
fn require_edit(rights: &InsightRights) -> Result<()> {
    rights.user_access_level.require(AccessLevel::Editor)?;
    if levels::can_edit(rights.effective_restriction_level, rights.effective_privilege_level) {
        return Ok(());
    }
    Err(Error::denied(RESTRICTED))
}
