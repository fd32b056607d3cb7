//! Progress of long operations.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
