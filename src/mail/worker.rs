//! The mail worker: a task that sends the mails in the outbox while the service runs, four at once and one of an
//! organization.
//!
//! It begins the mails that are due, and sleeps until the next one is due, a new one arrives or an attempt ends. The
//! outcome of a mail is on disk before the next mail of its organization, its user or its mailbox begins. So limits and
//! retries survive a restart. Of the nodes of a shared database, the one with the lease sends the mails of all.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::base::error::Result;
use crate::base::secret::SeedSource;
use crate::base::tasks::spawn;
use crate::base::time::{Clock, Timestamp};
use crate::ids::{OrganizationId, OutboxMessageId};
use crate::leases::LeaseWatch;
use crate::metrics::Metrics;
use crate::store::{Row, Store, Table, Tx, WakeOnCommit, Watch, WriteTx, continue_if};

use super::attempt::{MIN_LEASE, MailMetrics, OutboxSender};
use super::compose::ComposeMail;
use super::mailer::Mailer;
use super::outbox::{self, BY_DUE_AT, OutboxMessage};
use super::pace::{self, MAX_WAIT, Paces};

/// The maximum number of mails that are being sent at once.
const MAX_CONCURRENT_MAILS: usize = 4;

/// A mail that is being sent, and the number of its failed attempts. When the outcome of the attempt is recorded, the
/// outbox has no such mail any more.
pub type CurrentAttempt = (OutboxMessageId, u32);

/// Learns when no mail is due any more, and when the next one is.
type Settling = oneshot::Sender<Option<Timestamp>>;

/// The mails that are being sent.
type CurrentMails = Arc<StdMutex<Vec<OutboxMessage>>>;

fn lock(current: &CurrentMails) -> MutexGuard<'_, Vec<OutboxMessage>> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running mail worker. When it is dropped, it stops after the current attempts.
pub struct MailWorker {
    outbox: Watch,
    current: CurrentMails,
    /// Asks when no mail is due any more.
    settling: mpsc::Sender<Settling>,
    /// The task, and the channel that stops it when dropped.
    task: Mutex<Option<(watch::Sender<()>, JoinHandle<()>)>>,
}

impl MailWorker {
    /// Starts sending the mails in the outbox of `store` while this process has the lease. Must be called within a tokio
    /// runtime.
    pub fn start(
        store: Store,
        clock: Clock,
        seeds: SeedSource,
        mailer: Mailer,
        composer: Arc<dyn ComposeMail>,
        lease: LeaseWatch,
        metrics: &Metrics,
    ) -> Self {
        let metrics = MailMetrics::of(metrics);
        let outbox = store.watch(&[Table::Outbox]);
        let current = CurrentMails::default();
        let (stop, stopped) = watch::channel(());
        let sender =
            OutboxSender { store, clock, seeds, mailer, composer, lease, metrics, stopped };
        let (sender, mails) = (Arc::new(sender), Arc::clone(&current));
        let (settling, asked) = mpsc::channel(1);
        let worker = WorkerTask { sender, outbox: outbox.clone(), current: mails };
        let task = Mutex::new(Some((stop, spawn(worker.run(asked)))));
        Self { outbox, current, settling, task }
    }

    /// Returns the mails that are being sent.
    pub fn current(&self) -> Vec<CurrentAttempt> {
        lock(&self.current).iter().map(|message| (message.id, message.attempts)).collect()
    }

    /// Makes the worker look for mails that are due.
    pub fn wake(&self) {
        self.outbox.wake();
    }

    /// Waits until no mail is due. Returns when the next one is, if there is one and the worker still runs.
    pub async fn settle(&self) -> Option<Timestamp> {
        let (settling, settled) = oneshot::channel();
        self.settling.send(settling).await.ok()?;
        settled.await.ok().flatten()
    }

    /// Returns what wakes the worker after a write, if that adds mails.
    pub(crate) fn on_commit(&self) -> WakeOnCommit {
        self.outbox.on_commit()
    }

    /// Stops the worker after the current attempts are finished and recorded. Concurrent calls wait too.
    pub async fn stop(&self) {
        let mut task = self.task.lock().await;
        if let Some((stop, task)) = task.take() {
            drop(stop);
            let _ = task.await;
        }
    }
}

/// The state of the worker's task.
struct WorkerTask {
    sender: Arc<OutboxSender>,
    outbox: Watch,
    current: CurrentMails,
}

impl WorkerTask {
    async fn run(self, mut asked: mpsc::Receiver<Settling>) {
        let (mut attempts, mut settling) = (JoinSet::new(), Vec::new());
        while !self.sender.is_stopped() {
            if !self.sender.has_lease() {
                self.wait_for_lease().await;
                continue;
            }
            match self.begin_attempts(&mut attempts).await {
                Ok(next_at) => {
                    let is_due = |at: Timestamp| at <= self.sender.clock.now();
                    if attempts.is_empty() && !next_at.is_some_and(is_due) {
                        for one in settling.drain(..) {
                            let _ = Settling::send(one, next_at);
                        }
                    }
                    tokio::select! {
                        () = self.sender.stopped() => {}
                        () = self.outbox.woken() => {}
                        Some(_) = attempts.join_next() => {}
                        Some(one) = asked.recv() => settling.push(one),
                        () = wait_until(&self.sender.clock, next_at) => {}
                    }
                }
                Err(error) => {
                    // The store itself reports a closed file.
                    if error.status() != 503 {
                        tracing::error!(%error, "could not process the outbox");
                    }
                    self.sender.pause().await;
                }
            }
        }
        while attempts.join_next().await.is_some() {}
    }

    /// Waits until this process has the lease, or the worker is stopped.
    async fn wait_for_lease(&self) {
        let mut lease = self.sender.lease.clone();
        let has_lease = tokio::select! {
            () = self.sender.stopped() => true,
            has_lease = lease.wait_until_held_for(MIN_LEASE, &self.sender.clock) => has_lease,
        };
        if !has_lease {
            self.sender.stopped().await;
        }
    }

    /// Begins attempts to send the mails that are due. Returns when to look again, or `None` if that is only when an
    /// attempt ends or a mail arrives.
    async fn begin_attempts(&self, attempts: &mut JoinSet<()>) -> Result<Option<Timestamp>> {
        let count = MAX_CONCURRENT_MAILS.saturating_sub(attempts.len());
        if count == 0 {
            return Ok(None);
        }
        let (now, current) = (self.sender.clock.now(), lock(&self.current).clone());
        let planned = self.sender.read(move |tx| Plan::new(tx, &current, count, now)).await?;
        let Plan { messages, postponed, has_expired_paces, next_at } = planned;
        let is_partial = has_expired_paces || !postponed.is_empty();
        if is_partial {
            let write = move |tx: &mut WriteTx<'_>| {
                outbox::postpone(tx, &postponed)?;
                pace::delete_expired(tx, now)
            };
            self.sender.store.write(write).await?;
        }
        for message in messages {
            let (sender, current) = (Arc::clone(&self.sender), Arc::clone(&self.current));
            let id = message.id;
            lock(&current).push(message.clone());
            let attempt = async move {
                // A mail whose attempt panicked is tried again.
                let _ = AssertUnwindSafe(sender.process(message)).catch_unwind().await;
                lock(&current).retain(|message| message.id != id);
            };
            attempts.spawn(attempt.boxed());
        }
        Ok(if is_partial { Some(now) } else { next_at })
    }
}

/// Waits until the clock shows `moment`, or forever if there is none.
async fn wait_until(clock: &Clock, moment: Option<Timestamp>) {
    match moment {
        Some(moment) => {
            clock.wait_until(moment.min(clock.now().plus(MAX_WAIT)), MAX_WAIT).await;
        }
        None => std::future::pending().await,
    }
}

/// The maximum number of due mails that one plan reads.
const MAX_READ: usize = 1_000;
/// How many of these stay due if more are due, those that come first. The others wait, so that the next plan reads further.
const MAX_KEPT: usize = MAX_READ / 2;
/// How long the others wait.
const CROWDED_WAIT: Duration = Duration::from_mins(1);

/// What to do with the mails that are due.
#[derive(Default)]
pub(super) struct Plan {
    /// The mails to send. No two of these and of the current mails have an organization, a user or a mailbox in common.
    pub(super) messages: Vec<OutboxMessage>,
    /// The mails to delay, with their new times: those that the limits do not allow yet, and those that would keep others
    /// out of the next plan.
    pub(super) postponed: Vec<(OutboxMessage, Timestamp)>,
    /// Whether records of attempts have expired.
    pub(super) has_expired_paces: bool,
    /// When a mail is due or a record expires next.
    pub(super) next_at: Option<Timestamp>,
}

impl Plan {
    /// Plans up to `count` mails beside `current`, the mails that are being sent.
    pub(super) fn new(
        tx: &impl Tx,
        current: &[OutboxMessage],
        count: usize,
        now: Timestamp,
    ) -> Result<Self> {
        let (mut paces, mut taken) = (Paces::new(tx, now), HashSet::new());
        for message in current {
            let keys = message.pace_keys();
            // Otherwise its attempt is counted already, or the mail was cancelled.
            if outbox::find(tx, message.id)?.as_ref() == Some(message) {
                paces.reserve(&keys)?;
            }
            taken.extend(keys);
        }
        let (due, next_due) = due_messages(tx, current, now)?;
        let is_crowded = due.len() >= MAX_READ;
        let (mut plan, mut later) = (Self::default(), Vec::new());
        for (place, message) in take_turns(due, &mut paces)?.into_iter().enumerate() {
            let keys = message.pace_keys();
            let free_at = if message.is_expired(now) { now } else { paces.reserve(&keys)? };
            if free_at > now {
                plan.postponed.push((message, free_at));
            } else if plan.messages.len() < count && keys.iter().all(|key| !taken.contains(key)) {
                taken.extend(keys);
                plan.messages.push(message);
            } else if place >= MAX_KEPT {
                later.push((message, now.plus(CROWDED_WAIT)));
            }
        }
        if is_crowded && plan.postponed.is_empty() {
            plan.postponed = later;
        }
        let expires_at = pace::expires_at(tx, now)?;
        plan.has_expired_paces = expires_at.is_some_and(|expires_at| expires_at <= now);
        plan.next_at = next_due.into_iter().chain(expires_at).min();
        Ok(plan)
    }
}

/// Returns the first mails that are due, without the current ones, and when the next one is due.
fn due_messages(
    tx: &impl Tx,
    current: &[OutboxMessage],
    now: Timestamp,
) -> Result<(Vec<OutboxMessage>, Option<Timestamp>)> {
    let (mut due, mut next_due) = (Vec::new(), None);
    let mut add = |message: OutboxMessage| {
        if current.iter().all(|current| current.id != message.id) {
            due.push(message);
        }
        continue_if(due.len() < MAX_READ)
    };
    tx.walk_from(&BY_DUE_AT, &(), &(), |row: Row<'_, OutboxMessage>| {
        if row.meta.due_at > now {
            next_due = Some(row.meta.due_at);
            return Ok(ControlFlow::Break(()));
        }
        Ok(add(row.meta))
    })?;
    // A mail that is due later than the longest wait was delayed before the clock was set back.
    let last = now.plus(MAX_WAIT);
    tx.walk_from(&BY_DUE_AT, &(), &last, |row: Row<'_, OutboxMessage>| {
        if row.meta.due_at > last { Ok(add(row.meta)) } else { Ok(ControlFlow::Continue(())) }
    })?;
    Ok((due, next_due))
}

/// Orders mails so that the organizations take turns, and those whose last attempt is the longest ago come first.
fn take_turns<T: Tx>(
    messages: Vec<OutboxMessage>,
    paces: &mut Paces<'_, T>,
) -> Result<Vec<OutboxMessage>> {
    let mut rounds: HashMap<OrganizationId, usize> = HashMap::new();
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
        let round = rounds.entry(message.organization).or_default();
        turns.push((*round, paces.last_attempt(message.organization)?, message));
        *round += 1;
    }
    turns.sort_by_key(|(round, last_attempt, _)| (*round, *last_attempt));
    Ok(turns.into_iter().map(|(_, _, message)| message).collect())
}
