//! What the operator wants to know about a running service.

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::mail::outbox;
use crate::metrics::resident_memory;
use crate::store::{SpaceUsage, StoreMetrics};

use super::{App, ScrubResult};

/// The state of a running service.
#[derive(Debug)]
pub struct Health {
    /// The time at which the data file was opened.
    pub running_since: Timestamp,
    /// Whether the service accepts writes.
    pub accepts_writes: bool,
    /// The size of the data file, in bytes.
    pub file_bytes: u64,
    /// The unused space of the data file, in bytes; `None` while it is not known.
    pub unused_bytes: Option<u64>,
    /// The number of writes that wait.
    pub queued_writes: usize,
    /// The number of mails that wait; `None` if no mail server is configured.
    pub queued_mails: Option<u64>,
    /// When the last scheduled backup was created; `None` before the first one.
    pub last_backup: Option<Timestamp>,
    /// The result of the last check of the data file.
    pub last_scrub: Option<ScrubResult>,
    /// The resident memory of the process, in bytes; `None` if the system does not report it.
    pub memory_bytes: Option<u64>,
}

impl App {
    /// Returns the state of the service.
    ///
    /// # Errors
    /// 503 while the data file is closed, 500 if it cannot be read.
    pub(crate) async fn health(&self) -> Result<Health> {
        let unused_bytes = self.space_usage().await.map(SpaceUsage::dead);
        let accepts_writes = self.require_ready().await.is_ok();
        let app = self.clone();
        let read = tokio::task::spawn_blocking(move || app.read_health());
        let (metrics, queued_mails, memory_bytes) = read.await.map_err(Error::internal)??;
        let StoreMetrics { bytes: file_bytes, queued: queued_writes, .. } = metrics;
        Ok(Health {
            running_since: self.0.started_at,
            accepts_writes,
            file_bytes,
            unused_bytes,
            queued_writes,
            queued_mails,
            last_backup: self.0.last_backup.load().as_deref().copied(),
            last_scrub: self.last_scrub(),
            memory_bytes,
        })
    }

    fn read_health(&self) -> Result<(StoreMetrics, Option<u64>, Option<u64>)> {
        let metrics = self.store().metrics(u64::MAX);
        let mails = || outbox::queued_count(&*self.store().snapshot()?);
        let queued_mails = self.sends_mail().then(mails).transpose()?;
        Ok((metrics, queued_mails, resident_memory()))
    }
}
