//! What `check` and the scrub found.

use std::fmt::Display;

use serde::Serialize;

use crate::base::error::{Error, Result};
use crate::store::disk::engine::RETRY_AFTER;
use crate::store::values::schema::Table;

use super::progress::Steps;
use super::snapshot::Snapshot;

/// How many problems are listed; further problems are only counted.
pub const MAX_REPORTED: usize = 100;

/// The result of a check.
#[derive(Debug, Default, Serialize)]
pub struct CheckReport {
    /// How many values were read.
    pub values: u64,
    /// How many problems were found.
    pub problem_count: u64,
    /// The first problems, one line each.
    pub problems: Vec<String>,
    /// Whether the file could not be read completely.
    #[serde(skip)]
    pub(in crate::store) interrupted: bool,
    #[serde(skip)]
    pub(in crate::store) steps: Steps,
}

impl CheckReport {
    /// Counts a value that was read.
    pub(in crate::store) fn count_value(&mut self) {
        self.values += 1;
        self.steps.advance();
    }

    /// Returns the findings if the whole file was read. A failed read is not damage.
    ///
    /// # Errors
    /// 503 when a read failed.
    pub(in crate::store) fn require_complete(self) -> Result<Self> {
        if !self.interrupted {
            return Ok(self);
        }
        let why = self.problems.last().map_or("", String::as_str);
        let text = format!("the file could not be read to its end: {why}");
        Err(Error::unavailable(RETRY_AFTER, text))
    }

    /// Adds a problem of `table`.
    pub(in crate::store) fn problem(&mut self, table: Table, what: impl Display) {
        self.problem_count += 1;
        if self.problems.len() < MAX_REPORTED {
            self.problems.push(format!("{}: {what}", table.name()));
        }
    }
}

/// Verifies the checksum of every value of `table` and returns their number.
pub fn check_sums(tx: &Snapshot, table: Table, report: &mut CheckReport) -> Result<u64> {
    let mut found = 0;
    tx.each(table, &mut |_, payload| {
        found += 1;
        report.count_value();
        if let Err(error) = payload {
            report.problem(table, error);
        }
        Ok(())
    })?;
    Ok(found)
}
