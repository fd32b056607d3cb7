//! How far something long is.

use std::fmt;
use std::sync::Arc;

/// Hears how far something long is: how many values are done, of how many.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(u64, u64) + Send + Sync>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

impl Progress {
    /// Tells `hear` now and then.
    pub fn new(hear: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Tells how many values are done, of how many.
    pub fn tell(&self, done: u64, of: u64) {
        (self.0)(done, of);
    }

    /// Nobody hears.
    pub fn unheard() -> Self {
        Self::new(|_, _| ())
    }
}

/// How many values are done before that is told.
const TOLD_EACH: u64 = 4096;

/// Counts what is done.
pub(super) struct Steps<'p> {
    progress: &'p Progress,
    done: u64,
    of: u64,
}

impl<'p> Steps<'p> {
    pub(super) fn new(progress: &'p Progress, of: u64) -> Self {
        progress.tell(0, of);
        Self { progress, done: 0, of }
    }

    /// Counts one value.
    pub(super) fn done(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(TOLD_EACH) || self.done == self.of {
            self.progress.tell(self.done, self.of);
        }
    }
}
