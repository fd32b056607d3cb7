//! Whether the service takes writes: a real one shows it, now and then.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{timeout, timeout_at};

use crate::error::{Error, Result};
use crate::store::Store;

/// How long an answer of the disk counts, be it to a probe or to somebody's write.
const FRESH: Duration = Duration::from_secs(5);
/// How long a probe may take; a disk that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// What a client is told to wait, in seconds.
const RETRY_AFTER: u32 = 1;

/// Whether the service takes writes.
#[derive(Default)]
pub(super) struct Readiness {
    draining: AtomicBool,
    probe: Mutex<Option<Probe>>,
}

/// A commit that only shows whether the disk takes one.
#[derive(Clone)]
struct Probe {
    begun: Instant,
    verdict: watch::Receiver<Option<bool>>,
}

impl Probe {
    /// Begins one. It goes on when nobody waits for it any more, so that a disk that hangs is asked once.
    fn begin(store: &Store) -> Self {
        let (tell, verdict) = watch::channel(None);
        let store = store.clone();
        tokio::spawn(async move {
            let mut proving = pin!(store.prove());
            let proven = match timeout(PATIENCE, &mut proving).await {
                Ok(proven) => proven,
                Err(_) => late(proving).await,
            };
            tell.send_replace(Some(proven.is_ok()));
        });
        Self { begun: Instant::now(), verdict }
    }

    fn verdict(&self) -> Option<bool> {
        *self.verdict.borrow()
    }

    /// Whether another may begin: this one has ended, and its answer counts no longer.
    fn is_over(&self) -> bool {
        let ended = self.verdict().is_some() || self.verdict.has_changed().is_err();
        ended && self.begun.elapsed() >= FRESH
    }

    /// Whether the disk took it, as far as is known in time.
    async fn succeeds(mut self) -> bool {
        let until = self.begun + PATIENCE;
        let verdict = self.verdict.wait_for(Option::is_some);
        matches!(timeout_at(until.into(), verdict).await, Ok(Ok(verdict)) if *verdict == Some(true))
    }
}

/// Says once that the disk lets a probe wait, and once that it does no more.
async fn late(proving: impl Future<Output = Result<()>>) -> Result<()> {
    tracing::error!(limit = ?PATIENCE, "the data file takes no write in time; the service is not ready");
    let proven = proving.await;
    tracing::info!(taken = proven.is_ok(), "the data file answers again");
    proven
}

impl Readiness {
    /// From now on the service is not ready: it is about to stop.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// What is known without trying.
    pub(super) fn known(&self, store: &Store) -> Result<()> {
        let refused = |cause| Err(Error::unavailable(RETRY_AFTER, cause));
        if self.draining.load(Ordering::Acquire) {
            return refused("the service is stopping");
        }
        if !store.ready() {
            return refused("the data file is closed");
        }
        let failed = self.last().is_some_and(|probe| match probe.verdict() {
            Some(taken) => !taken,
            None => probe.begun.elapsed() >= PATIENCE,
        });
        if failed && !committed_lately(store) {
            return refused("the data file took no write");
        }
        Ok(())
    }

    /// Tries where nothing was written lately: however many ask, there is one probe, and its answer counts for a
    /// while.
    pub(super) async fn require(&self, store: &Store) -> Result<()> {
        if self.draining.load(Ordering::Acquire) || !store.ready() || committed_lately(store) {
            return self.known(store);
        }
        if self.current(store).succeeds().await && store.ready() {
            return Ok(());
        }
        Err(Error::unavailable(RETRY_AFTER, "the data file took no write"))
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

/// Whether a commit, of whosoever's, has shown that the disk takes one.
fn committed_lately(store: &Store) -> bool {
    store.committed_at().is_some_and(|moment| moment.elapsed() < FRESH)
}
