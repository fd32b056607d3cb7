//! What a dashboard's tiles show may weigh: an answer shows all of it, and one request must not write without
//! bound.

use crate::error::{Error, Result};
use crate::ids::{DashboardId, ProjectId};
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::store::{Order, Record, Row, Tx, Window, WriteTx};

use super::{Content, Head, Tile};

/// How many bytes of JSON the tiles of a dashboard may have at the most, with what they show.
const HEAVIEST: usize = 8 * 1024 * 1024;
/// How many of them may be copied at once.
const HEAVIEST_COPY: usize = 1024 * 1024;

/// Lets only so much be on a dashboard as its answers can show.
///
/// # Errors
/// 400 `max_length` at `tiles` for more.
pub(super) fn require_bounded(
    tx: &impl Tx,
    project: ProjectId,
    dashboard: DashboardId,
) -> Result<()> {
    require(of_tiles(tx, (project, dashboard), |_| true)?, HEAVIEST, "tiles")
}

/// Lets only so much be copied to a new dashboard as that one can show.
///
/// # Errors
/// 400 `max_length` at `tiles` for more.
pub(super) fn require_live_bounded(
    tx: &impl Tx,
    project: ProjectId,
    dashboard: DashboardId,
) -> Result<()> {
    require(of_tiles(tx, (project, dashboard), |tile| !tile.deleted)?, HEAVIEST, "tiles")
}

/// Lets a change make a dashboard no heavier than it may be; one that is, since texts grew elsewhere, may lose.
///
/// # Errors
/// 400 `max_length` at `tiles` for more; what `change` answers.
pub(super) fn bounding<T>(
    tx: &mut WriteTx<'_>,
    dashboard: (ProjectId, DashboardId),
    change: impl FnOnce(&mut WriteTx<'_>) -> Result<T>,
) -> Result<T> {
    let before = of_tiles(tx, dashboard, |_| true)?;
    let changed = change(tx)?;
    let after = of_tiles(tx, dashboard, |_| true)?;
    require(after, HEAVIEST.max(before), "tiles").map(|()| changed)
}

/// What those tiles of a dashboard weigh that `counts` names.
fn of_tiles(
    tx: &impl Tx,
    (project, dashboard): (ProjectId, DashboardId),
    counts: impl Fn(&Head) -> bool,
) -> Result<usize> {
    let mut weight = 0;
    tx.scan::<Tile, _>(&(project, dashboard), Window::all(Order::Ascending), |row| {
        if counts(&row.head) {
            weight += row.shown.len() + of(tx, project, row.head.content)?;
        }
        Ok(())
    })?;
    Ok(weight)
}

/// What is copied by one request.
#[derive(Default)]
pub(super) struct Copied(usize);

impl Copied {
    /// Adds what a tile shows.
    ///
    /// # Errors
    /// 400 `max_length` at `duplicate_tiles` where that is too much.
    pub(super) fn add(&mut self, tx: &impl Tx, project: ProjectId, content: Content) -> Result<()> {
        self.0 += of(tx, project, content)?;
        require(self.0, HEAVIEST_COPY, "duplicate_tiles")
    }
}

fn require(weight: usize, heaviest: usize, attr: &str) -> Result<()> {
    if weight <= heaviest {
        return Ok(());
    }
    let most = heaviest.min(HEAVIEST);
    let detail = format!("Ensure the tiles have no more than {most} bytes of JSON together.");
    Err(Error::field(attr, "max_length", detail))
}

fn of(tx: &impl Tx, project: ProjectId, content: Content) -> Result<usize> {
    let weight = match content {
        Content::Insight(id) => tx.view(&(project, id), |row: Row<'_, Insight>| weigh(&row))?,
        Content::Text(id) => tx.view(&(project, id), |row: Row<'_, Text>| weigh(&row))?,
    };
    Ok(weight.unwrap_or(0))
}

#[expect(clippy::unnecessary_wraps, reason = "it is handed to a view")]
fn weigh<R: Record>(row: &Row<'_, R>) -> Result<usize> {
    Ok(row.shown.len())
}
