//! The mail worker: a task that sends the mails in the outbox, one at a time, while the service runs.
//!
//! Each batch reads the mails that the schedule allows, sends them, and sleeps until the next mail is due or a new
//! one arrives. The outcome of a mail is on disk before the next mail is sent. So limits and retries survive a
//! restart. Of the nodes of a shared database, the one with the lease sends the mails of all.

use std::sync::{Arc, Mutex as StdMutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::ids::OutboxMessageId;
use crate::leases::LeaseWatch;
use crate::metrics::{Counter, Metrics, Series};
use crate::secret::Seed;
use crate::store::{Snapshot, Store, Table, WriteTx};
use crate::time::{Clock, Timestamp};

use super::attempt::{NextAction, Outcome};
use super::compose::{ComposeMail, MailContent, NOT_COMPOSED};
use super::notifier::{NewMessages, Notifier};
use super::outbox::OutboxMessage;
use super::pauses::Pauses;
use super::schedule::Schedule;
use super::sent_log;
use super::smtp::Mailer;

/// The time after which a batch starts no further attempt, so that new mails get their turn.
const MAX_BATCH_TIME: Duration = Duration::from_secs(5);
/// For how long the lease must last when an attempt begins. An attempt is mostly shorter, and the lease is renewed meanwhile.
const MIN_LEASE: Duration = Duration::from_secs(30);
/// The wait after an error of the data file.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The metrics of the mail worker.
struct MailMetrics {
    sent: Counter,
    failed: Counter,
    abandoned: Counter,
}

impl MailMetrics {
    fn of(metrics: &Metrics) -> Self {
        Self {
            sent: metrics.counter(Series::MAILS_SENT, &[]),
            failed: metrics.counter(Series::MAILS_FAILED, &[]),
            abandoned: metrics.counter(Series::MAILS_ABANDONED, &[]),
        }
    }

    fn count(&self, message: &OutboxMessage, outcome: &Outcome, now: Timestamp) {
        match outcome {
            Outcome::Accepted => self.sent.increment(1),
            Outcome::Failed { .. } => self.failed.increment(1),
            Outcome::Dropped(_) if message.is_expired(now) => self.abandoned.increment(1),
            Outcome::Dropped(_) | Outcome::Replaced(_) => {}
        }
    }
}

/// A mail that is being sent, and the number of its failed attempts. When the outcome of the attempt is recorded, the
/// outbox has no such mail any more.
pub type CurrentAttempt = (OutboxMessageId, u32);

/// The mail that is being sent.
#[derive(Default)]
struct CurrentMail(StdMutex<Option<CurrentAttempt>>);

impl CurrentMail {
    fn set(&self, attempt: Option<CurrentAttempt>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = attempt;
    }

    fn get(&self) -> Option<CurrentAttempt> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running mail worker. When it is dropped, it stops after the current attempt.
pub struct MailWorker {
    notices: Arc<Notifier>,
    current: Arc<CurrentMail>,
    /// The task, and the channel that stops it when dropped.
    task: Mutex<Option<(watch::Sender<()>, JoinHandle<()>)>>,
}

impl MailWorker {
    /// Starts sending the mails in the outbox of `store` while this process has the lease. Must be called within a tokio
    /// runtime.
    pub fn start(
        store: Store,
        clock: Clock,
        mailer: Mailer,
        composer: Arc<dyn ComposeMail>,
        lease: LeaseWatch,
        metrics: &Metrics,
    ) -> Self {
        let metrics = MailMetrics::of(metrics);
        let notices = Arc::new(Notifier::default());
        let listener = Arc::clone(&notices);
        store.on_taken(&[Table::Outbox], move |_| listener.add(NewMessages::of_other_node()));
        let current = Arc::new(CurrentMail::default());
        let (stop, stopped) = watch::channel(());
        let rounds = WorkerTask {
            store,
            clock,
            mailer,
            composer,
            lease,
            metrics,
            schedule: Schedule::default(),
            notices: Arc::clone(&notices),
            current: Arc::clone(&current),
            stopped,
        };
        Self { notices, current, task: Mutex::new(Some((stop, tokio::spawn(rounds.run())))) }
    }

    /// Returns the mails that are being sent.
    pub fn current(&self) -> Vec<CurrentAttempt> {
        self.current.get().into_iter().collect()
    }

    /// Makes the worker search the whole outbox again.
    pub fn wake(&self) {
        self.notices.add(NewMessages::unknown());
    }

    /// Stops the worker after the current attempt is finished and recorded. Concurrent calls wait too.
    pub async fn stop(&self) {
        let mut task = self.task.lock().await;
        if let Some((stop, task)) = task.take() {
            drop(stop);
            let _ = task.await;
        }
    }
}

/// Notifies the mail worker of a write's new mails when it is dropped.
///
/// The rule of the write owns it, so it is dropped when the write is on disk, even if the client has disconnected.
pub struct WakeOnCommit {
    notices: Option<Arc<Notifier>>,
    new_messages: OnceLock<NewMessages>,
}

impl WakeOnCommit {
    /// Creates a notifier for this worker, or one that does nothing.
    pub fn new(worker: Option<&MailWorker>) -> Self {
        let notices = worker.map(|worker| Arc::clone(&worker.notices));
        Self { notices, new_messages: OnceLock::new() }
    }

    /// Remembers what the write added to the outbox.
    pub fn listen(&self, tx: &WriteTx<'_>) {
        if let Some(posted) = NewMessages::of_write(tx) {
            // A rule that runs twice adds the same mails.
            let _ = self.new_messages.set(posted);
        }
    }
}

impl Drop for WakeOnCommit {
    fn drop(&mut self) {
        if let (Some(notices), Some(posted)) = (&self.notices, self.new_messages.take()) {
            notices.add(posted);
        }
    }
}

/// The state of the worker's task.
struct WorkerTask {
    store: Store,
    clock: Clock,
    mailer: Mailer,
    composer: Arc<dyn ComposeMail>,
    lease: LeaseWatch,
    metrics: MailMetrics,
    schedule: Schedule,
    notices: Arc<Notifier>,
    current: Arc<CurrentMail>,
    stopped: watch::Receiver<()>,
}

impl WorkerTask {
    async fn run(mut self) {
        while !self.is_stopped() {
            if !self.has_lease() {
                // Another node sends mails meanwhile: the next batch searches the whole outbox.
                self.schedule = Schedule::default();
                self.wait_for_lease().await;
                continue;
            }
            match self.run_batch().await {
                Ok(next) => {
                    let (clock, notices) = (self.clock.clone(), Arc::clone(&self.notices));
                    tokio::select! {
                        _ = self.stopped.changed() => {}
                        () = notices.arrived() => {}
                        () = wait_until(&clock, next) => {}
                    }
                }
                Err(error) => {
                    // The store itself reports a closed file.
                    if error.status() != 503 {
                        tracing::error!(%error, "could not process the outbox");
                    }
                    self.pause().await;
                }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.has_changed().is_err()
    }

    /// Whether an attempt may begin now.
    fn has_lease(&self) -> bool {
        self.lease.is_held_for(MIN_LEASE, self.clock.now())
    }

    /// Waits until this process has the lease, or the worker is stopped.
    async fn wait_for_lease(&mut self) {
        let has_lease = tokio::select! {
            _ = self.stopped.changed() => true,
            has_lease = self.lease.wait_until_held_for(MIN_LEASE, &self.clock) => has_lease,
        };
        if !has_lease {
            let _ = self.stopped.changed().await;
        }
    }

    async fn pause(&mut self) {
        // Stopping the worker ends the wait early.
        let _ = tokio::time::timeout(RETRY_DELAY, self.stopped.changed()).await;
    }

    /// Sends a batch. Returns when the next one is due.
    async fn run_batch(&mut self) -> Result<Option<Timestamp>> {
        let now = self.clock.now();
        // If this fails, the empty schedule stays, and the next batch searches the whole outbox.
        let mut schedule = std::mem::take(&mut self.schedule);
        self.notices.take_into(&mut schedule);
        let planned = self.read(move |tx| Ok((schedule.plan(tx, now)?, schedule))).await?;
        let (batch, mut schedule) = planned;
        if batch.has_expired_records {
            self.store.write(move |tx| sent_log::delete_expired(tx, now)).await?;
        }
        let next = if batch.messages.is_empty() { batch.next_at } else { Some(now) };
        for message in batch.messages {
            if self.is_stopped() {
                break;
            }
            if !self.has_lease() {
                // The empty schedule stays.
                return Ok(Some(now));
            }
            let (organization, begun) = (message.organization, self.clock.now());
            let held = if begun >= now.plus(MAX_BATCH_TIME) {
                Some(now)
            } else if let Some(paused) = schedule.pauses.message_free_at(&message, begun) {
                Some(paused)
            } else {
                self.process(message, &mut schedule.pauses).await?
            };
            match held {
                Some(moment) => schedule.wait(organization, moment),
                // The turn comes after the mails that arrived during this attempt.
                None => schedule.add(organization, self.clock.now()),
            }
        }
        self.schedule = schedule;
        Ok(next)
    }

    /// Reads from a new snapshot, off the request threads.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let tx = self.store.fresh().await?;
        tokio::task::spawn_blocking(move || read(&tx)).await.map_err(Error::internal)?
    }

    /// Checks a mail against the current state and performs its next step. Adds a pause after a slow one. Returns when the limits
    /// allow the mail, if they do not now.
    async fn process(
        &mut self,
        outbox_message: OutboxMessage,
        pauses: &mut Pauses,
    ) -> Result<Option<Timestamp>> {
        let (begun, stopwatch) = (Instant::now(), self.clock.stopwatch());
        let (composer, now) = (Arc::clone(&self.composer), self.clock.now());
        let message = outbox_message.clone();
        let step = self.read(move |tx| NextAction::of(tx, &message, &*composer, now)).await;
        if !self.has_lease() {
            // In the state that was read, another node has it.
            return Ok(Some(now));
        }
        let outcome = match step {
            Ok(NextAction::Skip) => return Ok(None),
            Ok(NextAction::Wait(moment)) => return Ok(Some(moment)),
            Ok(NextAction::Record(outcome)) => outcome,
            Ok(NextAction::Send(message)) => {
                self.current.set(Some((outbox_message.id, outbox_message.attempts)));
                self.send(&outbox_message, &message).await
            }
            Err(error) if error.status() == 503 => return Err(error),
            Err(error) => {
                let OutboxMessage { id, organization, .. } = &outbox_message;
                tracing::error!(outbox_message = %id, %organization, %error, "could not compose a mail");
                Outcome::Failed { unsure: false, reason: NOT_COMPOSED.to_owned() }
            }
        };
        // A manual clock may stand still during a slow attempt, and be advanced during a fast one.
        let took = begun.elapsed().min(stopwatch.elapsed());
        pauses.add(&outbox_message, took, self.clock.now());
        self.metrics.count(&outbox_message, &outcome, now);
        self.record(outbox_message, outcome).await;
        self.current.set(None);
        Ok(None)
    }

    async fn send(&self, outbox_message: &OutboxMessage, message: &MailContent) -> Outcome {
        let OutboxMessage { id, organization, attempts, about, .. } = outbox_message;
        let to = about.address().unwrap_or_default();
        match self.mailer.send(*id, to, message, self.clock.now()).await {
            Ok(_) => Outcome::Accepted,
            Err(failure) => {
                let (unsure, error) = (failure.may_be_delivered, failure.redacted(to));
                tracing::warn!(outbox_message = %id, %organization, attempts, unsure, %error, "could not send a mail");
                Outcome::Failed { unsure, reason: failure.reason }
            }
        }
    }

    /// Records the outcome of a mail, and retries until it succeeds: without the record, a mail that the server
    /// accepted would be sent twice.
    async fn record(&mut self, message: OutboxMessage, outcome: Outcome) {
        let (now, seed, id) = (self.clock.now(), Seed::generate(), message.id);
        let mut warned = false;
        loop {
            let (message, outcome, seed) = (message.clone(), outcome.clone(), seed.clone());
            let composer = Arc::clone(&self.composer);
            let write =
                move |tx: &mut WriteTx<'_>| outcome.record(tx, &message, &*composer, &seed, now);
            let written = self.store.write(write).await;
            match written {
                Ok(()) => return,
                Err(error) if self.is_stopped() => {
                    tracing::error!(outbox_message = %id, %error, "could not record the outcome of a mail");
                    return;
                }
                Err(error) => {
                    if !std::mem::replace(&mut warned, true) {
                        tracing::warn!(outbox_message = %id, %error, "could not record the outcome of a mail; retrying");
                    }
                    self.pause().await;
                }
            }
        }
    }
}

/// The longest wait for the next batch.
const MAX_WAIT: Duration = Duration::from_hours(1);

/// Waits until the clock shows `moment`, or forever if there is none.
async fn wait_until(clock: &Clock, moment: Option<Timestamp>) {
    match moment {
        Some(moment) => {
            clock.wait_until(moment.min(clock.now().plus(MAX_WAIT)), MAX_WAIT).await;
        }
        None => std::future::pending().await,
    }
}
