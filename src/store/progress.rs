//! How far something long is.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What is being done, and how far it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// In a word, such as `checking`.
    pub doing: Cow<'static, str>,
    /// How many values are done.
    pub done: u64,
    /// Of how many; 0 where that is not known.
    pub of: u64,
}

/// Hears how far something long is.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&Stage) + Send + Sync>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

impl Progress {
    /// Tells `hear` when a stage begins, and now and then.
    pub fn new(hear: impl Fn(&Stage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Nobody hears.
    pub fn unheard() -> Self {
        Self::new(|_| ())
    }

    /// Tells how far it is.
    pub fn tell(&self, stage: &Stage) {
        (self.0)(stage);
    }

    /// Begins a stage of `of` values; 0 where their number is not known.
    pub(super) fn begin(&self, doing: &'static str, of: u64) -> Steps {
        let stage = Stage { doing: doing.into(), done: 0, of };
        self.tell(&stage);
        Steps { progress: self.clone(), stage }
    }
}

/// How many values are done before that is told.
const TOLD_EACH: u64 = 4096;

/// Counts what is done of a stage.
#[derive(Debug)]
pub(super) struct Steps {
    progress: Progress,
    stage: Stage,
}

impl Default for Steps {
    fn default() -> Self {
        Self { progress: Progress::unheard(), stage: Stage::default() }
    }
}

impl Steps {
    /// Counts one value.
    pub(super) fn done(&mut self) {
        self.stage.done += 1;
        if self.stage.done.is_multiple_of(TOLD_EACH) || self.stage.done == self.stage.of {
            self.progress.tell(&self.stage);
        }
    }
}
