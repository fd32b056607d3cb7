//! An attempt to send a mail: from the composition of its text to the record of its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::base::error::{Error, Result};
use crate::base::secret::{Seed, SeedSource};
use crate::base::tasks::run_blocking;
use crate::base::time::{Clock, Timestamp};
use crate::ids::OutboxMessageId;
use crate::leases::LeaseWatch;
use crate::metrics::{Counter, Metrics, Series};
use crate::store::{Snapshot, Store, Tx, WriteTx};

use super::compose::{ComposeMail, Composed, Delivery, MailContent, NOT_COMPOSED};
use super::mailer::Mailer;
use super::outbox::{self, Notification, OutboxMessage};
use super::pace;

/// For how long the lease must last when an attempt begins. An attempt is mostly shorter, and the lease is renewed meanwhile.
pub(super) const MIN_LEASE: Duration = Duration::from_secs(30);
/// The wait after an error of the data file.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The reason for giving up a mail that is too old to be retried.
const EXPIRED: &str = "The mail could not be sent in time.";
/// The reason for giving up a mail whose subject matter no longer exists or no longer needs it.
const OBSOLETE: &str = "The mail became obsolete before it was sent.";

/// The next step for a mail.
enum NextAction {
    /// Do nothing: the mail was removed.
    Skip,
    /// Send this text.
    Send(MailContent),
    /// Record this outcome.
    Record(Outcome),
}

impl NextAction {
    fn of(
        tx: &Snapshot,
        message: &OutboxMessage,
        composer: &dyn ComposeMail,
        now: Timestamp,
    ) -> Result<Self> {
        if !tx.exists::<OutboxMessage>(&message.id)? {
            return Ok(Self::Skip);
        }
        let OutboxMessage { id, organization, attempts, .. } = message;
        if message.is_expired(now) {
            tracing::error!(outbox_message = %id, %organization, attempts, "gave up a mail");
            return Ok(Self::Record(Outcome::Dropped(EXPIRED)));
        }
        match (composer.compose(tx, message, now)?, message.about.address()) {
            (Composed::Content(content), Some(_)) => Ok(Self::Send(content)),
            (Composed::Content(_), None) => Err(Error::internal("a mail has no recipient")),
            (Composed::Replace(abouts), _) => Ok(Self::Record(Outcome::Replaced(abouts))),
            (Composed::Obsolete, _) => Ok(Self::Record(Outcome::Dropped(OBSOLETE))),
        }
    }
}

/// The outcome of a mail.
enum Outcome {
    /// The server accepted the mail.
    Accepted,
    /// The attempt failed and is to be repeated. It counts against the organization and the user. If the server may
    /// have accepted the mail, it counts against the mailbox too.
    Failed {
        /// Whether the server may have accepted the mail.
        unsure: bool,
        /// The reason, for the users that may see the mail's state.
        reason: String,
    },
    /// The mail is not sent, for this reason.
    Dropped(&'static str),
    /// These mails replace it.
    Replaced(Vec<Notification>),
}

impl Outcome {
    /// Whether the mail may have reached the mailbox, or `None` if no attempt was made.
    fn may_be_delivered(&self) -> Option<bool> {
        match self {
            Self::Accepted => Some(true),
            Self::Failed { unsure, .. } => Some(*unsure),
            Self::Dropped(_) | Self::Replaced(_) => None,
        }
    }

    /// Returns what became of the mail, or `None` if other mails replace it.
    fn delivery(&self) -> Option<Delivery> {
        match self {
            Self::Accepted => Some(Delivery::Sent),
            Self::Failed { reason, .. } => Some(Delivery::Failed(reason.clone())),
            Self::Dropped(reason) => Some(Delivery::GivenUp(reason)),
            Self::Replaced(_) => None,
        }
    }
}

/// An outcome to record.
struct FinishedAttempt {
    message: OutboxMessage,
    outcome: Outcome,
    took: Duration,
    now: Timestamp,
    seed: Seed,
}

impl FinishedAttempt {
    /// Records the outcome. This may run twice, if the first commit was not acknowledged, and the mail may have been
    /// removed in between.
    fn record(&self, tx: &mut WriteTx<'_>, composer: &dyn ComposeMail) -> Result<()> {
        let Self { message, outcome, took, now, seed } = self;
        let waits = match outcome {
            Outcome::Failed { .. } => tx.exists::<OutboxMessage>(&message.id)?,
            _ => tx.remove::<OutboxMessage>(&message.id)?.is_some(),
        };
        if let Some(may_be_delivered) = outcome.may_be_delivered() {
            let mut keys = message.pace_keys();
            keys.retain(|key| may_be_delivered || !key.is_mailbox());
            pace::count_attempt(tx, keys, *took, *now)?;
        }
        if let Some(delivery) = outcome.delivery().filter(|_| waits) {
            match composer.record(tx, message, &delivery, *now) {
                // Without the outcome, this mail would stop all others.
                Err(error) if error.status() == 500 => {
                    let id = message.id;
                    tracing::error!(outbox_message = %id, %error, "could not store the state of a mail");
                }
                recorded => recorded?,
            }
        }
        match outcome {
            Outcome::Failed { .. } if waits => outbox::retry(tx, message, *now),
            Outcome::Replaced(abouts) if waits => {
                let mut rng = seed.rng();
                let messages =
                    abouts.iter().map(|about| (OutboxMessageId(rng.uuid(*now)), about.clone()));
                outbox::enqueue_announcements(tx, messages, message.organization, *now)
            }
            _ => Ok(()),
        }
    }
}

/// The metrics of outgoing mail.
pub(super) struct MailMetrics {
    sent: Counter,
    failed: Counter,
    abandoned: Counter,
}

impl MailMetrics {
    pub(super) fn of(metrics: &Metrics) -> Self {
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

/// Sends mails of the outbox. All attempts share it.
pub(super) struct OutboxSender {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) seeds: SeedSource,
    pub(super) mailer: Mailer,
    pub(super) composer: Arc<dyn ComposeMail>,
    pub(super) lease: LeaseWatch,
    pub(super) metrics: MailMetrics,
    /// Closed when the worker stops.
    pub(super) stopped: watch::Receiver<()>,
}

impl OutboxSender {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.has_changed().is_err()
    }

    /// Whether an attempt may begin now.
    pub(super) fn has_lease(&self) -> bool {
        self.lease.is_held_for(MIN_LEASE, self.clock.now())
    }

    /// Waits until the worker stops.
    pub(super) async fn stopped(&self) {
        let _ = self.stopped.clone().changed().await;
    }

    /// Waits after an error, unless the worker stops.
    pub(super) async fn pause(&self) {
        let _ = tokio::time::timeout(RETRY_DELAY, self.stopped()).await;
    }

    /// Reads from a new snapshot, off the request threads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let tx = self.store.fresh().await?;
        run_blocking(move || read(&tx)).await?
    }

    /// Checks a mail against the current state, performs its next step, and records the outcome.
    pub(super) async fn process(&self, message: OutboxMessage) {
        let (begun, stopwatch) = (Instant::now(), self.clock.stopwatch());
        let (composer, now) = (Arc::clone(&self.composer), self.clock.now());
        let read = message.clone();
        let step = self.read(move |tx| NextAction::of(tx, &read, &*composer, now)).await;
        // In the state that was read, another node may have the lease.
        if self.is_stopped() || !self.has_lease() {
            return;
        }
        let outcome = match step {
            Ok(NextAction::Skip) => return,
            Ok(NextAction::Record(outcome)) => outcome,
            Ok(NextAction::Send(content)) => self.send(&message, &content).await,
            Err(error) if error.status() == 503 => {
                self.pause().await;
                return;
            }
            Err(error) => {
                let OutboxMessage { id, organization, .. } = &message;
                tracing::error!(outbox_message = %id, %organization, %error, "could not compose a mail");
                Outcome::Failed { unsure: false, reason: NOT_COMPOSED.to_owned() }
            }
        };
        self.metrics.count(&message, &outcome, now);
        // A manual clock may stand still during a slow attempt, and be advanced during a fast one.
        let took = begun.elapsed().min(stopwatch.elapsed());
        let (now, seed) = (self.clock.now(), self.seeds.draw());
        self.record(FinishedAttempt { message, outcome, took, now, seed }).await;
    }

    async fn send(&self, message: &OutboxMessage, content: &MailContent) -> Outcome {
        let OutboxMessage { id, organization, attempts, about, .. } = message;
        let to = about.address().unwrap_or_default();
        match self.mailer.send(*id, to, content, self.clock.now()).await {
            Ok(_) => Outcome::Accepted,
            Err(failure) => {
                let (unsure, error) = (failure.may_be_delivered, failure.redacted(to));
                tracing::warn!(outbox_message = %id, %organization, attempts, unsure, %error, "could not send a mail");
                Outcome::Failed { unsure, reason: failure.reason }
            }
        }
    }

    /// Records the outcome of an attempt, and retries until it succeeds: without the record, a mail that the server
    /// accepted would be sent twice.
    async fn record(&self, attempt: FinishedAttempt) {
        let id = attempt.message.id;
        let attempt = Arc::new(attempt);
        let mut warned = false;
        loop {
            let (attempt, composer) = (Arc::clone(&attempt), Arc::clone(&self.composer));
            let write = move |tx: &mut WriteTx<'_>| attempt.record(tx, &*composer);
            match self.store.write(write).await {
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
