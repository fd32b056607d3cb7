//! The upkeep of the data file: it is compacted when much of its space is unused, and checked for damage that requests would
//! not notice.

use std::sync::Arc;
use std::time::Duration;

use crate::base::time::Timestamp;
use crate::resources::record_registry;
use crate::store::{CheckReport, Compacted, Progress, SpaceUsage, Store};

use super::App;

/// How often to look at the size of the file.
const INTERVAL: Duration = Duration::from_mins(1);
/// How long a measurement of the used space is valid while the size of the file stays about the same.
const MEASURED_FOR: Duration = Duration::from_mins(10);
/// A smaller file is not compacted, in bytes.
const MIN_SIZE: u64 = 32 * 1024 * 1024;
/// How long no commit must have happened, so that the compaction competes with no request.
const IDLE_TIME: Duration = Duration::from_secs(5);
/// How often a file that is never idle is looked at before it is compacted anyway.
const MAX_BUSY_LOOKS: u32 = 5;
/// How long the file is left alone after a compaction that failed or freed little. Doubles each time, up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_hours(1);
const MAX_PAUSE: Duration = Duration::from_hours(24);

impl App {
    /// Returns the used space of the data file. Measures it now if the file is small; otherwise it is at most some minutes
    /// old. `None` before the first measurement and while the file is closed.
    pub(crate) async fn space_usage(&self) -> Option<SpaceUsage> {
        if self.store().size_on_disk().ok()? < MIN_SIZE {
            return self.store().space().await.ok();
        }
        self.0.space_usage.load().as_deref().copied()
    }

    /// Starts to look at the size of the file.
    pub(super) fn start_compaction(&self) {
        let (inner, clock) = (Arc::downgrade(&self.0), self.0.clock.clone());
        self.spawn_upkeep(async move {
            let mut watch = SpaceWatch::default();
            loop {
                clock.wait_until(clock.now().plus(INTERVAL), INTERVAL).await;
                let Some(app) = inner.upgrade().map(App) else { return };
                let is_on = app.config().auto_compact.is_on();
                let (store, reserve) = (app.store().clone(), is_on.then(|| app.disk_reserve()));
                drop(app);
                watch.look(&store, reserve, clock.now()).await;
                if let (Some(inner), Some((_, space))) = (inner.upgrade(), watch.measured) {
                    inner.space_usage.store(Some(Arc::new(space)));
                }
            }
        });
    }
}

/// What is known about the size of the file.
#[derive(Default)]
struct SpaceWatch {
    measured: Option<(Timestamp, SpaceUsage)>,
    /// How often the file had much unused space and was not idle.
    busy_looks: u32,
    pause: Pause,
}

/// For how long the file is left alone, and until when, after compactions that failed or freed little: each copies the whole
/// file.
#[derive(Default)]
struct Pause(Option<(Duration, Timestamp)>);

impl Pause {
    fn is_over(&self, now: Timestamp) -> bool {
        self.0.is_none_or(|(pause, until)| !until.is_end_of_current(pause, now))
    }

    /// Returns the pause after a further compaction that failed or freed little.
    fn longer(&self, now: Timestamp) -> Self {
        let pause = self.0.map_or(MIN_PAUSE, |(last, _)| (last * 2).min(MAX_PAUSE));
        Self(Some((pause, now.plus(pause))))
    }
}

impl SpaceWatch {
    /// Measures the file, and compacts it if that is due and leaves `reserve` bytes of the disk free. `None`: never.
    async fn look(&mut self, store: &Store, reserve: Option<u64>, now: Timestamp) {
        let space = self.measure(store, now).await.filter(SpaceUsage::is_half_unused);
        let (Some(_), Some(reserve)) = (space, reserve) else {
            self.busy_looks = 0;
            return;
        };
        if !self.pause.is_over(now) {
            return;
        }
        let is_idle = store.committed_at().is_none_or(|last| last.elapsed() >= IDLE_TIME);
        self.busy_looks += 1;
        if !is_idle && self.busy_looks < MAX_BUSY_LOOKS {
            return;
        }
        self.busy_looks = 0;
        let is_small = match store.compact_while_serving(reserve).await {
            Ok(Compacted { bytes_before, bytes }) => {
                tracing::info!(bytes_before, bytes, "compacted the data file");
                self.measured = None;
                !self.measure(store, now).await.is_some_and(|space| space.is_half_unused())
            }
            Err(error) => {
                tracing::warn!(%error, "the data file was not compacted");
                false
            }
        };
        self.pause = if is_small { Pause::default() } else { self.pause.longer(now) };
    }

    /// Returns the used space, or `None` if the file is small or cannot be read.
    async fn measure(&mut self, store: &Store, now: Timestamp) -> Option<SpaceUsage> {
        let bytes = store.size_on_disk().ok().filter(|bytes| *bytes >= MIN_SIZE)?;
        if let Some((at, space)) = self.measured {
            let is_similar = bytes.abs_diff(space.bytes) < space.bytes / 4;
            if is_similar && at.is_begin_of_current(MEASURED_FOR, now) {
                return Some(space);
            }
        }
        let space = store.space().await.ok()?;
        self.measured = Some((now, space));
        Some(space)
    }
}

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
        self.spawn_upkeep(async move {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_after_useless_compactions_doubles_up_to_a_day() {
        let (start, mut pause) = (Timestamp::from_micros(0), Pause::default());
        assert!(pause.is_over(start));
        for hours in [1, 2, 4, 8, 16, 24, 24] {
            pause = pause.longer(start);
            let end = start.plus(Duration::from_hours(hours));
            assert!(!pause.is_over(end.minus(Duration::from_secs(1))), "{hours}");
            assert!(pause.is_over(end), "{hours}");
        }
    }
}
