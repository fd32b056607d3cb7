//! The part of `check` for a shared database: the copy must have exactly its values.

use std::cmp::Ordering;

use tempfile::TempDir;

use crate::base::error::{Error, Result};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::store::disk::engine::{DEFAULT_CACHE, close, unavailable};
use crate::store::disk::file::{self, folder_of};
use crate::store::disk::open_error::OpenError;
use crate::store::origin::Fault;
use crate::store::origin::copy_source::{CopySource, stored_rows, take_turn};
use crate::store::reads::report::{CheckReport, Progress};
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::payload::HexKey;
use crate::store::writer::Store;

use super::shared_database::keep;

impl Store {
    /// Adds to `report` what differs between the copy and the shared database, at one moment. A data file has nothing to
    /// compare with.
    ///
    /// # Errors
    /// When the database is away, or the folder of the copy has no space for another one.
    pub(in crate::store) async fn compare(
        &self,
        report: CheckReport,
        progress: Progress,
    ) -> Result<CheckReport> {
        let Some(source) = self.shared.origin.clone() else { return Ok(report) };
        let store = self.clone();
        let compare = move || {
            let mut report = report;
            progress.begin("comparing", 0);
            store.compare_with(&source, &mut report).map(|()| report)
        };
        run_low_priority(Priority::Upkeep, compare).await?
    }

    /// Copies the database a second time, and compares both copies.
    fn compare_with(&self, source: &CopySource, report: &mut CheckReport) -> Result<()> {
        let unusable = |why: String| Error::internal(format!("a second copy: {why}"));
        let folder = TempDir::new_in(folder_of(self.path())).map_err(Error::internal)?;
        let path = folder.path().join("second.redb");
        let known = keep(&self.fs, source, &path).map_err(|error| match error {
            OpenError::Unreachable { .. } => unavailable(error),
            error => unusable(error.to_string()),
        })?;
        let second = file::open(&self.fs, &path, DEFAULT_CACHE).map_err(Error::internal)?;
        // While the turn lasts, no node commits. So both copies get the same state.
        let (head, turn) = take_turn(&second, source, known).map_err(|fault| match fault {
            Fault::Copy(error) => unusable(error.to_string()),
            fault => unavailable(fault),
        })?;
        let own = source.state.wait_until_fresh()?;
        drop(turn);
        if own.position != head {
            return Err(unavailable("the database ended the comparison; try again"));
        }
        compare_rows(&own, &Snapshot::begin(&second)?, report)?;
        close(second)
    }
}

/// Reports each value that only one of two states has, or that differs.
fn compare_rows(copy: &Snapshot, database: &Snapshot, report: &mut CheckReport) -> Result<()> {
    let (mut copy, mut database) = (stored_rows(copy), stored_rows(database));
    let (mut own, mut other) = (copy.next().transpose()?, database.next().transpose()?);
    loop {
        let order = match (&own, &other) {
            (None, None) => return Ok(()),
            (Some(row), Some(with)) => (row.table, &row.key).cmp(&(with.table, &with.key)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        let (row, what) = match order {
            Ordering::Less => (&own, "is only in the copy"),
            Ordering::Greater => (&other, "is only in the database"),
            Ordering::Equal => (&own, "differs between the copy and the database"),
        };
        if let Some(row) = row
            && own != other
        {
            report.problem(row.table, format_args!("the value of {} {what}", HexKey(&row.key)));
        }
        if order != Ordering::Greater {
            own = copy.next().transpose()?;
        }
        if order != Ordering::Less {
            other = database.next().transpose()?;
        }
    }
}
