//! `scrub`: what `check` finds in a snapshot, looked for slowly beside the service.

use std::time::Duration;

use crate::error::{Error, Result};

use super::Store;
use super::check::{Checks, Findings, Pace, check_paced};
use super::engine::RETRY_AFTER;
use super::progress::Progress;

/// After how many values it pauses.
const VALUES: u64 = 256;
/// How long it pauses: so it takes a small part of one processor, and a million values take less than a minute.
const PAUSE: Duration = Duration::from_millis(10);

impl Store {
    /// Reads everything that the last commit left, with pauses and off the threads of requests: checksums, indexes,
    /// counts, references, and the way to every key. What is read comes from the page cache where it is there.
    /// Unlike [`check`](Store::check) it holds up no write.
    ///
    /// # Errors
    /// 503 when the file cannot be read.
    pub async fn scrub(&self, checks: Checks) -> Result<Findings> {
        let snapshot = self.snapshot()?;
        let pace = Pace { values: VALUES, pause: PAUSE };
        let walk = move || check_paced(&snapshot, &checks, &Progress::unheard(), pace);
        let findings = tokio::task::spawn_blocking(walk).await.map_err(Error::internal)?;
        if findings.interrupted {
            return Err(Error::unavailable(RETRY_AFTER, "the file could not be read to its end"));
        }
        Ok(findings)
    }
}
