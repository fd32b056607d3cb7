//! What long operations report: their progress, and what `check` and the scrub found.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::error::Result;
use crate::store::disk::engine::unavailable;
use crate::store::values::schema::Table;

use super::snapshot::Snapshot;

/// A stage of an operation, and how much of it is done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The name of the stage, such as `checking`.
    pub doing: Cow<'static, str>,
    /// How many values are done.
    pub done: u64,
    /// How many values there are; 0 if unknown.
    pub of: u64,
}

/// A callback that receives the progress of an operation.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&Stage) + Send + Sync>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

impl Progress {
    /// Creates a callback that is called when a stage begins and at intervals after that.
    pub fn new(hear: impl Fn(&Stage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Creates a callback that does nothing.
    pub fn silent() -> Self {
        Self::new(|_| ())
    }

    /// Reports a stage.
    pub fn report(&self, stage: &Stage) {
        (self.0)(stage);
    }

    /// Begins a stage of `of` values; 0 if their number is unknown.
    pub(crate) fn begin(&self, doing: &'static str, of: u64) -> Steps {
        let stage = Stage { doing: doing.into(), done: 0, of };
        self.report(&stage);
        Steps { progress: self.clone(), stage }
    }
}

/// How many values are done between two reports.
const REPORT_INTERVAL: u64 = 4096;

/// Counts the values of a stage and reports them.
#[derive(Debug)]
pub(crate) struct Steps {
    progress: Progress,
    stage: Stage,
}

impl Default for Steps {
    fn default() -> Self {
        Self { progress: Progress::silent(), stage: Stage::default() }
    }
}

impl Steps {
    /// Counts one value.
    pub(crate) fn advance(&mut self) {
        self.stage.done += 1;
        if self.stage.done.is_multiple_of(REPORT_INTERVAL) || self.stage.done == self.stage.of {
            self.progress.report(&self.stage);
        }
    }
}

/// How many problems are listed; further problems are only counted.
const MAX_REPORTED: usize = 100;

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
        Err(unavailable(text))
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
