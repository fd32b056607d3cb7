//! The weight of a dashboard: the size in bytes of the JSON of its tiles, live and deleted, and of their
//! insights and texts.
//!
//! Its limit bounds both the size of a response and the work of one request. The store maintains the weight
//! as a running sum.

use crate::resources::dashboards::VisibleDashboards;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::resources::shared::prelude::*;
use crate::store::Sum;

use super::{BY_INSIGHT, BY_TEXT, Content, Tile};

/// Maximum weight of a dashboard, in bytes.
const MAX_WEIGHT: u64 = 8 * 1024 * 1024;
/// Maximum weight of a dashboard that is hidden from the caller, after the caller changes an insight on it. It is
/// higher, because the caller cannot make room on that dashboard.
const MAX_HIDDEN_WEIGHT: u64 = 2 * MAX_WEIGHT;
/// Maximum number of bytes of JSON that one request may copy.
const MAX_COPIED: u64 = 1024 * 1024;
/// A dashboard of a greater weight, in bytes, is large.
const LARGE_BYTES: u64 = 64 * 1024;
/// A dashboard with more tiles, deleted ones included, is large.
const LARGE_TILE_COUNT: u64 = 64;
/// Approximate number of bytes that a response adds to the JSON of each tile.
const TILE_OVERHEAD: u64 = 1024;

/// The sum of the weights of the tiles of each dashboard.
pub(super) const WEIGHT: Sum<Tile> = Sum::per("tile bytes", |tx, row| {
    let weight = row.fields.len() as u64 + of(tx, row.meta.project, row.meta.content)?;
    Ok(((row.meta.project, row.meta.dashboard).encoded(), weight))
});

/// Returns the approximate size in bytes of a response with this dashboard if the dashboard is large, that
/// is, slow to render.
pub fn large_answer(
    tx: &dyn Raw,
    project: ProjectId,
    dashboard: DashboardId,
) -> Result<Option<usize>> {
    let dashboard = (project, dashboard);
    let (tiles, weight) = (tx.count::<Tile>(&dashboard)?, WEIGHT.read(tx, &dashboard)?);
    let size = usize::try_from(weight + tiles * TILE_OVERHEAD).unwrap_or(usize::MAX);
    Ok((tiles > LARGE_TILE_COUNT || weight > LARGE_BYTES).then_some(size))
}

/// Requires that the weight of a dashboard is within the limit.
///
/// # Errors
/// 400 `max_length` for `field` otherwise.
pub(super) fn require_bounded(
    tx: &dyn Raw,
    dashboard: (ProjectId, DashboardId),
    field: &str,
) -> Result<()> {
    require(WEIGHT.read(tx, &dashboard)?, MAX_WEIGHT, field)
}

/// Runs `change`, and requires that the weight is then within the limit or not greater than before. A
/// dashboard can be over the limit because a text that it shows grew through another dashboard.
///
/// # Errors
/// 400 `max_length` for `tiles` if the dashboard is too heavy; the errors of `change`.
pub(super) fn bounding<T>(
    tx: &mut WriteTx<'_>,
    dashboard: (ProjectId, DashboardId),
    change: impl FnOnce(&mut WriteTx<'_>) -> Result<T>,
) -> Result<T> {
    let before = WEIGHT.read(tx, &dashboard)?;
    let changed = change(tx)?;
    let after = WEIGHT.read(tx, &dashboard)?;
    require(after, MAX_WEIGHT.max(before), "tiles").map(|()| changed)
}

/// Runs `change`, which may change the JSON of a text, and adjusts the weight of every dashboard that shows the text.
///
/// # Errors
/// The errors of `change`.
pub(super) fn resizing_text(
    tx: &mut WriteTx<'_>,
    (project, text): (ProjectId, TextId),
    change: impl FnOnce(&mut WriteTx<'_>) -> Result<()>,
) -> Result<()> {
    let before = of(tx, project, Content::Text(text))?;
    change(tx)?;
    let after = of(tx, project, Content::Text(text))?;
    for tile in tx.keys(&BY_TEXT, &(project, text), usize::MAX)? {
        tx.adjust(&WEIGHT, &(tile.0, tile.1), before, after)?;
    }
    Ok(())
}

/// Runs `change`, which may change the JSON of an insight, and adjusts the weight of every dashboard that shows the
/// insight. A dashboard that becomes heavier must stay within the limit, or within [`MAX_HIDDEN_WEIGHT`] if it is hidden
/// from the caller.
///
/// # Errors
/// 400 `max_length` for `dashboards` if a dashboard becomes too heavy; the errors of `change`.
pub fn resizing_insight<T>(
    tx: &mut WriteTx<'_>,
    insight: (ProjectId, InsightId),
    visible: &mut VisibleDashboards<'_>,
    change: impl FnOnce(&mut WriteTx<'_>) -> Result<T>,
) -> Result<T> {
    let (project, content) = (insight.0, Content::Insight(insight.1));
    let before = of(tx, project, content)?;
    let changed = change(tx)?;
    let after = of(tx, project, content)?;
    if after != before {
        for tile in tx.keys(&BY_INSIGHT, &insight, usize::MAX)? {
            let (project, dashboard, _) = tile;
            tx.adjust(&WEIGHT, &(project, dashboard), before, after)?;
            if after > before {
                let is_seen = visible.shows(tx, dashboard)?;
                let heaviest = if is_seen { MAX_WEIGHT } else { MAX_HIDDEN_WEIGHT };
                require(WEIGHT.read(tx, &(project, dashboard))?, heaviest, "dashboards")?;
            }
        }
    }
    Ok(changed)
}

/// Counts the bytes that a request copies, up to the limit.
pub(super) struct CopyBudget {
    pub(super) bytes: u64,
    /// The request field that asks for the copies.
    pub(super) field: &'static str,
}

impl CopyBudget {
    /// Adds the JSON of an insight or a text.
    ///
    /// # Errors
    /// 400 `max_length` for the request field if the sum exceeds the limit.
    pub(super) fn add_content(
        &mut self,
        tx: &dyn Raw,
        project: ProjectId,
        content: Content,
    ) -> Result<()> {
        self.add(of(tx, project, content)?)
    }

    /// Adds the bytes of a tile's JSON.
    ///
    /// # Errors
    /// 400 `max_length` for the request field if the sum exceeds the limit.
    pub(super) fn add(&mut self, bytes: u64) -> Result<()> {
        self.bytes += bytes;
        require(self.bytes, MAX_COPIED, self.field)
    }
}

fn require(weight: u64, heaviest: u64, attr: &str) -> Result<()> {
    if weight <= heaviest {
        return Ok(());
    }
    let most = heaviest.min(MAX_WEIGHT);
    let detail = format!("Ensure the tiles have no more than {most} bytes of JSON in total.");
    Err(Error::field(attr, "max_length", detail))
}

/// Returns the weight of an insight or a text, in bytes.
fn of(tx: &dyn Raw, project: ProjectId, content: Content) -> Result<u64> {
    let weight = match content {
        Content::Insight(id) => {
            tx.view::<Insight, _>(&(project, id), |row| Ok(weight_of_insight(&row)))?
        }
        Content::Text(id) => {
            tx.view::<Text, _>(&(project, id), |row| Ok(row.fields.len() as u64))?
        }
    };
    Ok(weight.unwrap_or(0))
}

/// Returns the number of bytes that an insight adds to the weight of each dashboard that shows it. Leaves
/// out what deletion changes, so that deleting an insight changes no weight.
fn weight_of_insight(row: &Row<'_, Insight>) -> u64 {
    const UPDATED_AT: &[u8] = br#","updated_at":""#;
    // The insight's own member is the last with this name: `query` and `filters` come before it.
    let found = row.fields.windows(UPDATED_AT.len()).rposition(|window| window == UPDATED_AT);
    let value = found.and_then(|at| row.fields.get(at + UPDATED_AT.len()..)).unwrap_or_default();
    let updated_at = value.iter().position(|byte| *byte == b'"').unwrap_or(0) as u64;
    // `true` is a byte shorter than `false`.
    (row.fields.len() as u64 + u64::from(row.meta.deleted)).saturating_sub(updated_at)
}
