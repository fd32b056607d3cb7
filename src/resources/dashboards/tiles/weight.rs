//! What a dashboard's tiles show may weigh: an answer shows all of it, and one request must not write without
//! bound.

use crate::error::{Error, Result};
use crate::ids::{DashboardId, ProjectId};
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::store::{Order, Record, Row, Tx, Window};

use super::{Content, Tile};

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
    let mut weight = 0;
    tx.scan::<Tile, _>(&(project, dashboard), Window::all(Order::Ascending), |row| {
        weight += row.shown.len() + of(tx, project, row.head.content)?;
        Ok(())
    })?;
    require(weight, HEAVIEST, "tiles")
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
    let detail = format!("Ensure the tiles have no more than {heaviest} bytes of JSON together.");
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
