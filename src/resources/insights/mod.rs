//! Insights of a project: stored queries, which dashboards can show. See `docs/spec/insights.md`.
//!
//! The record is [`Insight`], which belongs to dashboards because their
//! tiles show it.

mod api;
mod filter;
pub mod http;
mod list;
mod order;

use std::collections::BTreeSet;

use crate::auth::InProject;
use crate::input::ParsedWithKept;
use crate::resources::access_controls::levels::{
    self, AccessLevel, ObjectRights, RestrictionOfInsight,
};
use crate::resources::access_controls::rules;
use crate::resources::access_controls::shared::{Shared, require_can_create};
use crate::resources::dashboards::deletions::{self, Deletion};
use crate::resources::dashboards::insights::{self, Insight, InsightRef, ListedTile, Meta};
use crate::resources::dashboards::{Dashboard, VisibleDashboards, tiles};
use crate::resources::shared::prelude::*;

use api::no_dashboard;
pub use api::{InsightFields, ResponseOptions, body, parse};
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
    new: &ParsedWithKept<InsightFields>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<InsightId> {
    require_can_create::<Insight>(tx, tenant)?;
    let new = new.get(None)?;
    let mut fields = insights::Fields::default();
    api::apply(new.clone(), &mut fields);
    let id = insights::create(tx, tenant, fields, rng, now)?;
    tx.log_about::<Insight>(&(tenant.project.id, id));
    let mut dashboards = VisibleDashboards::of(tx, tenant)?;
    let wanted = new.dashboards.as_ref();
    DashboardChanges::between(tx, tenant, id, wanted, &mut dashboards)?.apply(tx, tenant, id)?;
    Ok(id)
}

/// Updates an insight and the set of its dashboards. `deleted: true` deletes the insight with its tiles, `deleted: false`
/// restores it without them. That is known even if another field is invalid. Returns the ID of the insight.
///
/// # Errors
/// 404 if the insight does not exist, or is deleted and the request does not restore it; 403 if the caller may not edit
/// it or a dashboard that is added or removed; 400 for an invalid field.
pub fn update(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    named: &InsightRef,
    patch: &ParsedWithKept<InsightFields>,
    deleted: Option<bool>,
    now: Timestamp,
) -> Result<InsightId> {
    let found = Insight::find_named(tx, tenant.project.id, named)?;
    let found = found.filter(|meta| !meta.deleted || deleted == Some(false));
    let meta = found.ok_or_else(Error::not_found)?;
    let (id, key) = (meta.id, (tenant.project.id, meta.id));
    let mut dashboards = VisibleDashboards::of(tx, tenant)?;
    let ruled = rules::level_on(tx, tenant, Object::Insight(id))?;
    require_edit(&InsightView::of(tx, &meta, ruled, &mut dashboards, 0)?.rights)?;
    let before: Insight = tx.get(&key)?;
    let patch = patch.get(before.fields.description.as_deref())?;
    let mut after = before.clone();
    api::apply(patch.clone(), &mut after.fields);
    after.fields.deleted = deleted.unwrap_or(false);
    let wanted = patch.dashboards.as_ref();
    let mut changes = DashboardChanges::between(tx, tenant, id, wanted, &mut dashboards)?;
    if after.fields.deleted {
        let remove = tiles::live_tiles(tx, key)?;
        changes = DashboardChanges { remove, ..DashboardChanges::default() };
    }
    if after == before && changes.add.is_empty() && changes.remove.is_empty() {
        return Ok(id);
    }
    after.fields.is_sample = false;
    after.fields.updated_at = now;
    after.fields.last_modified_at = now;
    after.meta.last_modified_by = Some(tenant.member.user);
    tx.log_about::<Insight>(&key);
    tiles::resizing_insight(tx, key, &mut dashboards, |tx| put(tx, &after))?;
    changes.apply(tx, tenant, id)?;
    // The other dashboards show the changed insight.
    for dashboard in changes.keep {
        tx.bump_version::<Dashboard>(&(tenant.project.id, dashboard))?;
    }
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
    rights: ObjectRights,
}

impl InsightView {
    /// Reads at most `limit` tiles. `ruled` is the level that access rules give the caller on the insight, if a rule applies.
    fn of(
        tx: &dyn Raw,
        insight: &Meta,
        ruled: Option<AccessLevel>,
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
        let member = &dashboards.tenant.member;
        let rights = levels::on_insight(member, insight.created_by, ruled, restriction);
        Ok(Self { tiles: listed, rights })
    }
}

/// Requires that the caller may change an insight with these rights.
///
/// # Errors
/// 403 if access rules do not allow it, or if a dashboard that shows the insight is restricted, and the caller may edit none
/// of the dashboards that the caller may view.
fn require_edit(rights: &ObjectRights) -> Result<()> {
    rights.user_access_level.require(AccessLevel::Editor)?;
    if rights.can_edit() {
        return Ok(());
    }
    Err(Error::denied(RESTRICTED))
}

/// How the dashboards of an insight change. Dashboards that are hidden from the caller are only in `keep`.
#[derive(Debug, Default)]
struct DashboardChanges {
    add: Vec<DashboardId>,
    remove: Vec<(ProjectId, DashboardId, TileId)>,
    keep: Vec<DashboardId>,
}

impl DashboardChanges {
    /// Returns the changes after which the insight is on the dashboards `wanted`. Without `wanted` nothing changes.
    ///
    /// # Errors
    /// 400 if a dashboard does not exist, is deleted or is hidden from the caller; 403 if the caller may not edit a
    /// dashboard that changes.
    fn between(
        tx: &dyn Raw,
        tenant: &InProject,
        insight: InsightId,
        wanted: Option<&BTreeSet<DashboardId>>,
        dashboards: &mut VisibleDashboards<'_>,
    ) -> Result<Self> {
        let shown = tiles::live_tiles(tx, (tenant.project.id, insight))?;
        let mut changes = Self::default();
        let Some(wanted) = wanted else {
            changes.keep.extend(shown.into_iter().map(|tile| tile.1));
            return Ok(changes);
        };
        for id in wanted {
            let found = Dashboard::find_live(tx, tenant.project.id, id)?;
            if found.is_none() || !dashboards.shows(tx, *id)? {
                return Err(no_dashboard(id).with_attr_prefix("dashboards"));
            }
        }
        for tile in shown {
            if wanted.contains(&tile.1) || !dashboards.shows(tx, tile.1)? {
                changes.keep.push(tile.1);
            } else {
                require_edit_of_dashboard(tx, tile.1, "remove insights from", dashboards)?;
                changes.remove.push(tile);
            }
        }
        for id in wanted.iter().filter(|id| !changes.keep.contains(id)) {
            require_edit_of_dashboard(tx, *id, "add insights to", dashboards)?;
            changes.add.push(*id);
        }
        Ok(changes)
    }

    /// Adds and deletes the tiles.
    ///
    /// # Errors
    /// 400 `max_length` if a dashboard or the insight is full.
    fn apply(&self, tx: &mut WriteTx<'_>, tenant: &InProject, insight: InsightId) -> Result<()> {
        for tile in &self.remove {
            tiles::withdraw(tx, *tile)?;
        }
        for dashboard in &self.add {
            tiles::place(tx, tenant, *dashboard, insight)?;
        }
        Ok(())
    }
}

fn require_edit_of_dashboard(
    tx: &dyn Raw,
    id: DashboardId,
    what: &str,
    dashboards: &mut VisibleDashboards<'_>,
) -> Result<()> {
    let rights = dashboards.rights(tx, id)?;
    if rights.is_some_and(|rights| rights.require_edit().is_ok()) {
        return Ok(());
    }
    Err(Error::denied(format!("You don't have permission to {what} dashboard: {id}")))
}
