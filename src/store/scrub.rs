//! `scrub`: the checks of `check` that need only a snapshot, done slowly while the server runs.

use std::time::Duration;

use crate::error::Result;

use super::Store;
use super::check::check_snapshot;
use super::check_report::CheckReport;
use super::progress::Progress;
use super::record_registry::RecordRegistry;
use crate::low_priority::{Priority, run_low_priority};

/// The pause after every few thousand values, about as long as the work on them took. Not longer: while a
/// snapshot is held, space that writes free cannot be reused.
const PAUSE: Duration = Duration::from_millis(20);

impl Store {
    /// Reads the whole state of the last commit, with pauses and on a thread of low priority. Verifies
    /// checksums, indexes, counts, references, and that a lookup finds every key. Reads from the page cache
    /// when possible. Unlike [`check`](Store::check) it delays no write.
    ///
    /// # Errors
    /// 503 when the file cannot be read.
    #[doc(hidden)]
    pub async fn scrub(&self, registry: RecordRegistry) -> Result<CheckReport> {
        let (walk_begun, snapshot) = self.begin_walk().await?;
        let pausing = Progress::new(|_| std::thread::sleep(PAUSE));
        let walk = move || {
            let _under_way = walk_begun;
            check_snapshot(&snapshot, &registry, &pausing)
        };
        run_low_priority(Priority::Upkeep, walk).await?.require_complete()
    }
}
