//! The state of the service: whether it accepts writes, which it tests with real commits, whether it answers reads, and what
//! its operator wants to know. A node of a shared database answers reads while a synchronous standby is away, and accepts no
//! writes.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{timeout, timeout_at};

use crate::base::error::{Error, Result};
use crate::base::tasks::{run_blocking, spawn};
use crate::base::time::Timestamp;
use crate::mail::outbox;
use crate::metrics::resident_memory;
use crate::store::{SpaceUsage, Store, StoreMetrics};

use super::{App, ScrubResult};

/// The time for which a successful commit, of a probe or of a request, proves readiness.
const VALID_FOR: Duration = Duration::from_secs(5);
/// The time limit of a probe. A disk that hangs takes longer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The `Retry-After` while the service is not ready, in seconds.
const RETRY_AFTER: u32 = 1;

const NO_WRITE: &str = "the data file did not accept a write";

/// What is known about the readiness of the service.
#[derive(Default)]
pub(super) struct Readiness {
    draining: AtomicBool,
    probe: Mutex<Option<Probe>>,
}

/// A commit that only tests whether the disk accepts one.
#[derive(Clone)]
struct Probe {
    started: Instant,
    verdict: watch::Receiver<Option<bool>>,
}

impl Probe {
    /// Starts a probe. It continues if its caller stops waiting, so that a hanging disk gets a single probe.
    fn begin(store: &Store) -> Self {
        let (tell, verdict) = watch::channel(None);
        let store = store.clone();
        spawn(async move {
            let mut proving = pin!(store.probe_commit());
            let proven = if let Ok(proven) = timeout(PROBE_TIMEOUT, &mut proving).await {
                proven
            } else {
                tracing::warn!(limit = ?PROBE_TIMEOUT, "no write was accepted in time; the service is not ready for writes");
                let proven = proving.await;
                tracing::info!(taken = proven.is_ok(), "writes are accepted again");
                proven
            };
            tell.send_replace(Some(proven.is_ok()));
        });
        Self { started: Instant::now(), verdict }
    }

    fn verdict(&self) -> Option<bool> {
        *self.verdict.borrow()
    }

    /// Whether another probe may start: this one has finished and its result is too old.
    fn is_over(&self) -> bool {
        let ended = self.verdict().is_some() || self.verdict.has_changed().is_err();
        ended && self.started.elapsed() >= VALID_FOR
    }

    /// Waits for the result, at most until the time limit.
    async fn succeeds(mut self) -> bool {
        let until = self.started + PROBE_TIMEOUT;
        let verdict = self.verdict.wait_for(Option::is_some);
        matches!(timeout_at(until.into(), verdict).await, Ok(Ok(verdict)) if *verdict == Some(true))
    }
}

impl App {
    /// Reports the service as not ready from now on, because it is about to stop. It still serves requests.
    pub fn drain(&self) {
        self.0.readiness.draining.store(true, Ordering::Release);
    }

    /// Whether the service accepts writes, judged by earlier writes alone.
    pub fn known_ready(&self) -> bool {
        self.require_known_ready().is_ok()
    }

    /// Whether the service answers reads, as far as it knows.
    pub(crate) fn known_ready_for_reads(&self) -> bool {
        self.require_no_drain().is_ok() && self.store().answers_reads()
    }

    /// Checks that the service answers reads: a node of a shared database does so while the database takes no durable write.
    ///
    /// # Errors
    /// 503 if the data file is closed or the shared database does not answer, and always after [`drain`](Self::drain).
    pub(crate) async fn require_ready_for_reads(&self) -> Result<()> {
        self.require_no_drain()?;
        let store = self.store();
        store.refresh().await.and_then(|()| store.snapshot().map(drop)).map_err(|error| {
            let cause = error.cause().unwrap_or("the data file cannot be read");
            unready(store, cause)
        })
    }

    /// Checks that the service accepts writes. If no write succeeded within the last seconds, tries one. Concurrent callers
    /// share that attempt.
    ///
    /// # Errors
    /// 503 if the data file is closed or rejects writes, and always after [`drain`](Self::drain).
    #[doc(hidden)]
    pub async fn require_ready(&self) -> Result<()> {
        let store = self.store();
        let is_proven = committed_recently(store) && store.seems_in_place();
        if self.is_draining() || !store.ready() || is_proven {
            return self.require_known_ready();
        }
        if self.current_probe().succeeds().await && store.ready() {
            return Ok(());
        }
        Err(unready(store, NO_WRITE))
    }

    fn require_known_ready(&self) -> Result<()> {
        self.require_no_drain()?;
        let store = self.store();
        if !store.ready() {
            return Err(unready(store, "the data file is closed"));
        }
        let last = self.0.readiness.probe.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let failed = last.is_some_and(|probe| match probe.verdict() {
            Some(taken) => !taken,
            None => probe.started.elapsed() >= PROBE_TIMEOUT,
        });
        if failed && !committed_recently(store) {
            return Err(unready(store, NO_WRITE));
        }
        Ok(())
    }

    fn is_draining(&self) -> bool {
        self.0.readiness.draining.load(Ordering::Acquire)
    }

    fn require_no_drain(&self) -> Result<()> {
        if self.is_draining() {
            return Err(Error::unavailable(RETRY_AFTER, "the service is stopping"));
        }
        Ok(())
    }

    fn current_probe(&self) -> Probe {
        let mut last = self.0.readiness.probe.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(probe) if !probe.is_over() => probe.clone(),
            _ => last.insert(Probe::begin(self.store())).clone(),
        }
    }
}

/// Returns the error of a service that is not ready. A node knows more of the reason than `otherwise`.
fn unready(store: &Store, otherwise: &str) -> Error {
    let troubles = store.troubles();
    let mut grave = troubles.iter().filter(|(trouble, _)| trouble.stops_serving());
    Error::unavailable(RETRY_AFTER, grave.next().map_or(otherwise, |(_, text)| text.as_str()))
}

/// Whether a recent commit, of any request, succeeded.
fn committed_recently(store: &Store) -> bool {
    store.committed_at().is_some_and(|moment| moment.elapsed() < VALID_FOR)
}

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
        let read = move || {
            let mails = || outbox::queued_count(&*app.store().snapshot()?);
            let queued_mails = app.sends_mail().then(mails).transpose()?;
            Ok::<_, Error>((app.store().metrics(u64::MAX), queued_mails, resident_memory()))
        };
        let (metrics, queued_mails, memory_bytes) = run_blocking(read).await??;
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
}
