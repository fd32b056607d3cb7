//! Lists of insights. See `docs/spec/insights.md`.

use std::collections::{BTreeSet, HashSet};

use crate::auth::InProject;
use crate::resources::access_controls::shared::CallerLevels;
use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::deletions::{self, Deletion};
use crate::resources::dashboards::insights::{BY_SHORT_ID, Insight, Meta};
use crate::resources::dashboards::tiles::{self, MAX_LISTED, Tile};
use crate::resources::shared::prelude::*;

use super::InsightView;
use super::api::InsightItems;
use super::filter::Filter;
use super::order::{Column, ListOrder, Sorted};

/// What a list shows, besides its page.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// The criteria.
    pub filter: Filter,
    /// The order.
    pub order: ListOrder,
    /// Whether to show the basic form.
    pub basic: bool,
}

impl ListOptions {
    /// Returns whether the list reads insights that it does not show.
    pub fn scans(&self) -> bool {
        self.filter.narrows() || self.order.column != Column::Id && !self.filter.deleted
    }
}

/// What decides the caller's rights on each insight of a project, read once.
struct InsightAccess<'p> {
    levels: CallerLevels<'p, Insight>,
    dashboards: VisibleDashboards<'p>,
}

impl InsightAccess<'_> {
    /// Returns the tiles that a list shows of an insight, and what the caller may do with it.
    fn view(&mut self, tx: &dyn Raw, insight: &Meta) -> Result<InsightView> {
        let ruled = self.levels.ruled(insight);
        InsightView::of(tx, insight, ruled, &mut self.dashboards, MAX_LISTED)
    }
}

/// Lists the insights of a project that the caller may see and that match the filter. Returns their total count, and those
/// in `window` as the items of a JSON array. Deleted insights are ordered by deletion, the last deleted first.
///
/// # Errors
/// 403 if access rules hide all insights from the caller.
pub fn list(
    tx: &dyn Raw,
    tenant: &InProject,
    options: &ListOptions,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let levels = CallerLevels::of(tx, tenant)?;
    let mut access = InsightAccess { levels, dashboards: VisibleDashboards::of(tx, tenant)? };
    access.levels.require_list(tx)?;
    if options.filter.deleted {
        return list_deleted(tx, &mut access, options, window);
    }
    let window = Window { order: options.order.direction, ..window };
    if options.scans() || !access.levels.default_level().can_view() {
        list_filtered(tx, &mut access, options, window)
    } else {
        list_all(tx, &mut access, options, window)
    }
}

/// Lists without a filter, ordered by ID. Uses the stored count, and skips the few hidden insights.
fn list_all(
    tx: &dyn Raw,
    access: &mut InsightAccess<'_>,
    options: &ListOptions,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let project = access.levels.tenant.project.id;
    let live = |meta: &Meta| (!meta.deleted).then_some(meta.id);
    let hidden = access.levels.hidden(tx, live)?;
    let count = tx.count::<Insight>(&project)?.saturating_sub(hidden.len() as u64);
    let mut items = InsightItems::new(options.basic, window.limit);
    if window.begins_within(count) {
        let show = |row: Row<'_, Insight>| items.push(tx, &row, &access.view(tx, &row.meta)?, None);
        let keep = |meta: &Meta| !meta.deleted && !hidden.contains(&meta.id);
        tx.scan_where::<Insight, _>(&project, window, keep, show)?;
    }
    Ok((count, items.items.into_bytes()))
}

/// Lists insights by checking each one against the caller's rights and the filter.
fn list_filtered(
    tx: &dyn Raw,
    access: &mut InsightAccess<'_>,
    ListOptions { filter, order, basic }: &ListOptions,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let project = access.levels.tenant.project.id;
    let live = tx.count::<Insight>(&project)?;
    let mut sorted = Sorted::new(*order, window, live);
    let count = loop {
        let mut count = 0_u64;
        walk_candidates(tx, project, filter, |row| {
            if matches(tx, access, filter, row)? {
                sorted.add(row)?;
                count += 1;
            }
            Ok(())
        })?;
        if !sorted.needs_more() {
            break count;
        }
    };
    let mut items = InsightItems::new(*basic, window.limit);
    for id in sorted.into_ids() {
        tx.view::<Insight, _>(&(project, id), |row| {
            items.push(tx, &row, &access.view(tx, &row.meta)?, None)
        })?;
    }
    Ok((count, items.items.into_bytes()))
}

/// Lists the deleted insights of a project that the caller may see and that match the filter, the last deleted first.
/// Returns their total count, and those in `window` as the items of a JSON array.
fn list_deleted(
    tx: &dyn Raw,
    access: &mut InsightAccess<'_>,
    ListOptions { filter, basic, .. }: &ListOptions,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let project = access.levels.tenant.project.id;
    let mut items = InsightItems::new(*basic, window.limit);
    if access.levels.sees_all() && !filter.narrows() {
        let count = tx.count::<Deletion>(&(project, Kind::Insight))?;
        if window.begins_within(count) {
            deletions::walk::<Insight>(tx, project, window, |row, removal| {
                items.push(tx, row, &access.view(tx, &row.meta)?, Some(removal))
            })?;
        }
        return Ok((count, items.items.into_bytes()));
    }
    let short_id = filter.short_id.as_ref();
    let named = short_id.map(|id| tx.lookup(&BY_SHORT_ID, &(project, id.clone()))).transpose()?;
    let is_named = |row: &Row<'_, Insight>| {
        named.is_none_or(|found| found.is_some_and(|(_, id)| id == row.meta.id))
    };
    let mut count = 0;
    let all = Window::all(Order::Descending);
    deletions::walk::<Insight>(tx, project, all, |row, removal| {
        if is_named(row) && matches(tx, access, filter, row)? {
            if window.shows(count) {
                items.push(tx, row, &access.view(tx, &row.meta)?, Some(removal))?;
            }
            count += 1;
        }
        Ok(())
    })?;
    Ok((count as u64, items.items.into_bytes()))
}

/// Returns whether an insight matches the filter, except for the short ID, and the caller may see it.
fn matches(
    tx: &dyn Raw,
    access: &mut InsightAccess<'_>,
    filter: &Filter,
    row: &Row<'_, Insight>,
) -> Result<bool> {
    let meta = &row.meta;
    if meta.deleted != filter.deleted
        || !filter.matches_creator(meta, access.levels.tenant.member.user)
        || !access.levels.level(meta).can_view()
    {
        return Ok(false);
    }
    if !filter.dashboards.is_empty() && !filter.dashboards.is_subset(&shown_on(tx, access, meta)?) {
        return Ok(false);
    }
    filter.matches_fields(row, || Ok(!shown_on(tx, access, meta)?.is_empty()))
}

/// Returns the dashboards that show the insight and that the caller may see.
fn shown_on(
    tx: &dyn Raw,
    access: &mut InsightAccess<'_>,
    insight: &Meta,
) -> Result<BTreeSet<DashboardId>> {
    let mut shown = BTreeSet::new();
    for (_, dashboard, _) in tiles::live_tiles(tx, (insight.project, insight.id))? {
        if access.dashboards.shows(tx, dashboard)? {
            shown.insert(dashboard);
        }
    }
    Ok(shown)
}

/// Visits every insight of the project that may match. A short ID or a dashboard leads to few.
fn walk_candidates(
    tx: &dyn Raw,
    project: ProjectId,
    filter: &Filter,
    mut visit: impl FnMut(&Row<'_, Insight>) -> Result<()>,
) -> Result<()> {
    let found: HashSet<InsightId> = match (&filter.short_id, filter.dashboards.first()) {
        (Some(short_id), _) => tx
            .lookup(&BY_SHORT_ID, &(project, short_id.clone()))?
            .into_iter()
            .map(|key| key.1)
            .collect(),
        (None, Some(dashboard)) => {
            collect::<Tile, _, _>(tx, &(project, *dashboard), |tile| tile.content.insight())?
        }
        (None, None) => {
            let all = Window::all(Order::Ascending);
            return tx.scan::<Insight, _>(&project, all, |row| visit(&row));
        }
    };
    for id in found {
        tx.view::<Insight, _>(&(project, id), |row| visit(&row))?;
    }
    Ok(())
}
