//! Readiness: whether the service accepts writes, which it tests with real commits, and whether it answers reads. A node of a
//! shared database answers reads while a synchronous standby is away, and accepts no writes.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{timeout, timeout_at};

use crate::base::error::{Error, Result};
use crate::store::Store;

/// The time for which a successful commit, of a probe or of a request, proves readiness.
const VALID_FOR: Duration = Duration::from_secs(5);
/// The time limit of a probe. A disk that hangs takes longer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The `Retry-After` while the service is not ready, in seconds.
const RETRY_AFTER: u32 = 1;

const NO_WRITE: &str = "the data file did not accept a write";
const NO_READ: &str = "the data file cannot be read";

/// Whether the service accepts writes and answers reads.
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
        tokio::spawn(async move {
            let mut proving = pin!(store.probe_commit());
            let proven = match timeout(PROBE_TIMEOUT, &mut proving).await {
                Ok(proven) => proven,
                Err(_) => warn_if_slow(proving).await,
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

/// Logs that a probe is late, and again when it finishes.
async fn warn_if_slow(proving: impl Future<Output = Result<()>>) -> Result<()> {
    tracing::warn!(limit = ?PROBE_TIMEOUT, "no write was accepted in time; the service is not ready for writes");
    let proven = proving.await;
    tracing::info!(taken = proven.is_ok(), "writes are accepted again");
    proven
}

impl Readiness {
    /// Makes the service permanently unready, because it is about to stop.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Checks readiness without a new probe.
    pub(super) fn check_known(&self, store: &Store) -> Result<()> {
        self.require_no_drain()?;
        if !store.ready() {
            return Err(unready(store, "the data file is closed"));
        }
        let failed = self.last().is_some_and(|probe| match probe.verdict() {
            Some(taken) => !taken,
            None => probe.started.elapsed() >= PROBE_TIMEOUT,
        });
        if failed && !committed_recently(store) {
            return Err(unready(store, NO_WRITE));
        }
        Ok(())
    }

    /// Checks whether the service answers reads, without a question to a shared database.
    pub(super) fn check_known_for_reads(&self, store: &Store) -> Result<()> {
        self.require_no_drain()?;
        if store.answers_reads() { Ok(()) } else { Err(unready(store, NO_READ)) }
    }

    /// Checks whether the service answers reads. A node asks its shared database.
    pub(super) async fn require_for_reads(&self, store: &Store) -> Result<()> {
        self.require_no_drain()?;
        store.refresh().await.and_then(|()| store.snapshot().map(drop)).map_err(|error| {
            let cause = error.cause().unwrap_or(NO_READ);
            unready(store, cause)
        })
    }

    fn require_no_drain(&self) -> Result<()> {
        if self.draining.load(Ordering::Acquire) {
            return Err(Error::unavailable(RETRY_AFTER, "the service is stopping"));
        }
        Ok(())
    }

    /// Checks readiness, with a probe if there was no recent commit. Concurrent callers share one probe, and its
    /// result counts for a while.
    pub(super) async fn require(&self, store: &Store) -> Result<()> {
        let is_proven = committed_recently(store) && store.seems_in_place();
        if self.draining.load(Ordering::Acquire) || !store.ready() || is_proven {
            return self.check_known(store);
        }
        if self.current(store).succeeds().await && store.ready() {
            return Ok(());
        }
        Err(unready(store, NO_WRITE))
    }

    fn last(&self) -> Option<Probe> {
        self.probe.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn current(&self, store: &Store) -> Probe {
        let mut last = self.probe.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(probe) if !probe.is_over() => probe.clone(),
            _ => last.insert(Probe::begin(store)).clone(),
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
