//! Scheduled checks of the data file, for damage that requests would not notice.

use std::sync::Arc;
use std::time::Duration;

use crate::base::time::Timestamp;
use crate::resources::record_registry;
use crate::store::{CheckReport, Progress};

use super::App;

/// The result of the last check of the data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrubResult {
    /// The time at which the check ended.
    pub at: Timestamp,
    /// The number of values read.
    pub values: u64,
    /// The number of problems found.
    pub problems: u64,
}

/// The wait after a check that could not read or copy the file.
const RETRY_DELAY: Duration = Duration::from_mins(1);

impl App {
    /// Returns the result of the last check, or `None` before the first one has finished.
    #[doc(hidden)]
    pub fn last_scrub(&self) -> Option<ScrubResult> {
        self.0.last_scrub.load().as_deref().copied()
    }

    /// Starts the scheduled checks, if they are enabled. The first one runs at once.
    pub(super) fn start_scrubber(&self) {
        let Some(every) = self.0.config.scrub else { return };
        let (inner, clock) = (Arc::downgrade(&self.0), self.0.clock.clone());
        tokio::spawn(async move {
            while let Some(app) = inner.upgrade().map(Self) {
                let (store, room) = (app.store().clone(), app.require_room_for_copy());
                drop(app);
                let checked = match room {
                    Ok(()) => store.scrub(record_registry(), Progress::silent()).await,
                    Err(full) => Err(full),
                };
                drop(store);
                let Some(app) = inner.upgrade() else { return };
                let pause = match checked {
                    Ok(report) => {
                        app.last_scrub.store(Some(Arc::new(log(&report, clock.now()))));
                        every
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the data file could not be checked");
                        every.min(RETRY_DELAY)
                    }
                };
                drop(app);
                clock.wait_until(clock.now().plus(pause), pause).await;
            }
        });
    }
}

/// Logs what a check found, and returns its result.
fn log(report: &CheckReport, at: Timestamp) -> ScrubResult {
    for problem in &report.problems {
        tracing::error!(problem, "the data file is inconsistent");
    }
    let (values, problems) = (report.values, report.problem_count);
    tracing::info!(values, problems, "data file checked");
    ScrubResult { at, values, problems }
}
