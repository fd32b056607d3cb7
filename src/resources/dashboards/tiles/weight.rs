//! The weight of a dashboard: how many bytes of JSON its tiles have, live and removed, with what they show. An
//! answer shows all of it, and one request must not write without bound. The weight is kept, not recounted.

use crate::error::{Error, Result};
use crate::ids::{DashboardId, ProjectId, TextId};
use crate::resources::dashboards::insights::{self, Insight};
use crate::resources::dashboards::texts::Text;
use crate::store::{Key, Sum, Tx, WriteTx};

use super::{BY_TEXT, Content, Tile};

/// The largest weight of a dashboard, in bytes.
const HEAVIEST: u64 = 8 * 1024 * 1024;
/// The most that one request copies, in bytes of JSON.
const HEAVIEST_COPY: u64 = 1024 * 1024;
/// A dashboard of more bytes is heavy.
const HEAVY: u64 = 64 * 1024;
/// A dashboard of more tiles, removed ones included, is heavy.
const MANY: u64 = 64;
/// What an answer shows of each tile besides its JSON, in bytes; about.
const AROUND_TILE: u64 = 1024;

/// The weight of each dashboard.
pub(super) const WEIGHT: Sum<Tile> = Sum::per("tile bytes", |tx, row| {
    let weight = bytes(row.shown) + of(tx, row.head.project, row.head.content)?;
    Ok(((row.head.project, row.head.dashboard).encoded(), weight))
});

/// About how many bytes an answer with a dashboard has, if rendering it takes long.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn large_answer(
    tx: &impl Tx,
    project: ProjectId,
    dashboard: DashboardId,
) -> Result<Option<usize>> {
    let dashboard = (project, dashboard);
    let (tiles, weight) = (tx.count::<Tile>(&dashboard)?, WEIGHT.read(tx, &dashboard)?);
    let size = usize::try_from(weight + tiles * AROUND_TILE).unwrap_or(usize::MAX);
    Ok((tiles > MANY || weight > HEAVY).then_some(size))
}

/// Lets only so much be on a dashboard as its answers can show.
///
/// # Errors
/// 400 `max_length` at `tiles` for more.
pub(super) fn require_bounded(
    tx: &impl Tx,
    project: ProjectId,
    dashboard: DashboardId,
) -> Result<()> {
    require(WEIGHT.read(tx, &(project, dashboard))?, HEAVIEST, "tiles")
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
    let before = WEIGHT.read(tx, &dashboard)?;
    let changed = change(tx)?;
    let after = WEIGHT.read(tx, &dashboard)?;
    require(after, HEAVIEST.max(before), "tiles").map(|()| changed)
}

/// Moves the weight of every dashboard that shows a text by what its JSON grew or shrank.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(in crate::resources::dashboards) fn resize_text(
    tx: &mut WriteTx<'_>,
    text: (ProjectId, TextId),
    before: usize,
    after: usize,
) -> Result<()> {
    for (project, dashboard, _) in tx.keys(&BY_TEXT, &text, usize::MAX)? {
        tx.adjust(&WEIGHT, &(project, dashboard), before as u64, after as u64)?;
    }
    Ok(())
}

/// How much one request has copied.
pub(super) struct Copied {
    bytes: u64,
    /// The field that asks for the copies.
    field: &'static str,
}

impl Copied {
    /// Nothing yet.
    pub(super) const fn new(field: &'static str) -> Self {
        Self { bytes: 0, field }
    }

    /// Adds a tile's own JSON.
    ///
    /// # Errors
    /// 400 `max_length` at the field when that is too much.
    pub(super) fn add_tile(&mut self, shown: &[u8]) -> Result<()> {
        self.add(bytes(shown))
    }

    /// Adds what a tile shows.
    ///
    /// # Errors
    /// 400 `max_length` at the field when that is too much.
    pub(super) fn add_content(
        &mut self,
        tx: &impl Tx,
        project: ProjectId,
        content: Content,
    ) -> Result<()> {
        self.add(of(tx, project, content)?)
    }

    fn add(&mut self, bytes: u64) -> Result<()> {
        self.bytes += bytes;
        require(self.bytes, HEAVIEST_COPY, self.field)
    }
}

fn require(weight: u64, heaviest: u64, attr: &str) -> Result<()> {
    if weight <= heaviest {
        return Ok(());
    }
    let most = heaviest.min(HEAVIEST);
    let detail = format!("Ensure the tiles have no more than {most} bytes of JSON together.");
    Err(Error::field(attr, "max_length", detail))
}

/// The bytes of what a tile shows.
fn of<X: Tx + ?Sized>(tx: &X, project: ProjectId, content: Content) -> Result<u64> {
    let weight = match content {
        Content::Insight(id) => {
            tx.view::<Insight, _>(&(project, id), |row| Ok(insights::weight(&row)))?
        }
        Content::Text(id) => tx.view::<Text, _>(&(project, id), |row| Ok(bytes(row.shown)))?,
    };
    Ok(weight.unwrap_or(0))
}

const fn bytes(shown: &[u8]) -> u64 {
    shown.len() as u64
}
