//! `scrub`: what `check` finds in a snapshot, looked for slowly beside the service.

use std::time::Duration;

use crate::error::Result;

use super::Store;
use super::check::{Checks, Findings, check_snapshot};
use super::progress::Progress;
use crate::background::{Priority, in_background};

/// How long it pauses whenever it tells how far it is, each few thousand values: about as long as it worked. Not longer:
/// while a snapshot is held, no space that writes free is used again.
const PAUSE: Duration = Duration::from_millis(20);

impl Store {
    /// Reads everything that the last commit left, with pauses and on a thread of low priority: checksums, indexes,
    /// counts, references, and the way to every key. What is read comes from the page cache where it is there.
    /// Unlike [`check`](Store::check) it holds up no write.
    ///
    /// # Errors
    /// 503 when the file cannot be read.
    pub async fn scrub(&self, checks: Checks) -> Result<Findings> {
        let (walk_begun, snapshot) = self.begin_walk().await?;
        let pausing = Progress::new(|_| std::thread::sleep(PAUSE));
        let walk = move || {
            let _under_way = walk_begun;
            check_snapshot(&snapshot, &checks, &pausing)
        };
        in_background(Priority::Upkeep, walk).await?.whole()
    }
}
