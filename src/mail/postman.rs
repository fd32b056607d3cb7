//! The postman: sends what waits in the outbox, one letter at a time, for as long as the service is there.
//!
//! Each round reads what may go, sends it, and sleeps until the next moment at which something may go or
//! something is posted. What became of a letter is on disk before the next one is looked at; so the limits
//! and the retries are the file's, and a restart forgets neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::meters::{Counter, Meters, Series};
use crate::secret::Seed;
use crate::store::{Snapshot, Store, WriteTx};
use crate::time::{Clock, Timestamp};

use super::compose::{Compose, Message};
use super::outbox::{self, Letter};
use super::round::{Outcome, Round, Step};
use super::sent;
use super::smtp::Mailer;

/// How long the postman waits when the file cannot be read or written.
const RETRY: Duration = Duration::from_secs(1);

/// Where the postman counts.
struct MailMeters {
    sent: Counter,
    failed: Counter,
    abandoned: Counter,
}

impl MailMeters {
    fn of(meters: &Meters) -> Self {
        Self {
            sent: meters.counter(Series::MAILS_SENT, &[]),
            failed: meters.counter(Series::MAILS_FAILED, &[]),
            abandoned: meters.counter(Series::MAILS_ABANDONED, &[]),
        }
    }

    fn count(&self, letter: &Letter, outcome: &Outcome, now: Timestamp) {
        match outcome {
            Outcome::Accepted => self.sent.increment(1),
            Outcome::Failed { .. } => self.failed.increment(1),
            Outcome::Dropped if letter.is_stale(now) => self.abandoned.increment(1),
            Outcome::Dropped | Outcome::Replaced(_) => {}
        }
    }
}

/// A postman at work. Dropped, it stops after the sending under way.
pub struct Postman {
    posted: Arc<Notify>,
    /// The task, and what tells it to stop by being dropped.
    task: Mutex<Option<(watch::Sender<()>, JoinHandle<()>)>>,
}

impl Postman {
    /// Sends what waits in the outbox of `store`, and what is posted from now on. Must be called within a
    /// tokio runtime.
    pub fn start(
        store: Store,
        clock: Clock,
        mailer: Mailer,
        composer: Arc<dyn Compose>,
        meters: &Meters,
    ) -> Self {
        let meters = MailMeters::of(meters);
        let posted = Arc::new(Notify::new());
        let (stop, stopped) = watch::channel(());
        let rounds =
            Rounds { store, clock, mailer, composer, meters, posted: Arc::clone(&posted), stopped };
        Self { posted, task: Mutex::new(Some((stop, tokio::spawn(rounds.walk())))) }
    }

    /// Has the postman look whether something was posted.
    pub fn wake(&self) {
        self.posted.notify_one();
    }

    /// Stops; waits until a sending under way is finished and recorded. Whoever else stops it waits too.
    pub async fn stop(&self) {
        let mut task = self.task.lock().await;
        if let Some((stop, task)) = task.take() {
            drop(stop);
            let _ = task.await;
        }
    }
}

/// Wakes the postman when it is dropped, if it heard that something was posted.
///
/// A write's rule owns one: so it is dropped when the write is on disk, whether or not anybody still waits
/// for the answer.
pub struct Bell {
    posted: Option<Arc<Notify>>,
    heard: AtomicBool,
}

impl Bell {
    /// A bell for this postman, or for nobody.
    pub fn new(postman: Option<&Postman>) -> Self {
        let posted = postman.map(|postman| Arc::clone(&postman.posted));
        Self { posted, heard: AtomicBool::new(false) }
    }

    /// Listens whether the write under way posted something.
    pub fn listen(&self, tx: &WriteTx<'_>) {
        if outbox::was_posted_to(tx) {
            self.heard.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if let Some(posted) = self.posted.as_ref().filter(|_| *self.heard.get_mut()) {
            posted.notify_one();
        }
    }
}

/// What the task has.
struct Rounds {
    store: Store,
    clock: Clock,
    mailer: Mailer,
    composer: Arc<dyn Compose>,
    meters: MailMeters,
    posted: Arc<Notify>,
    stopped: watch::Receiver<()>,
}

impl Rounds {
    async fn walk(mut self) {
        while !self.is_stopped() {
            match self.round().await {
                Ok(next) => {
                    let (clock, posted) = (self.clock.clone(), Arc::clone(&self.posted));
                    tokio::select! {
                        _ = self.stopped.changed() => {}
                        () = posted.notified() => {}
                        () = reaches(&clock, next) => {}
                    }
                }
                Err(error) => {
                    // While the file is closed the store says so itself.
                    if error.status() != 503 {
                        tracing::error!(%error, "the outbox could not be served");
                    }
                    self.pause().await;
                }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.has_changed().is_err()
    }

    async fn pause(&mut self) {
        // It ends early where the postman is stopped.
        let _ = tokio::time::timeout(RETRY, self.stopped.changed()).await;
    }

    /// Sends what may go; answers when to look again.
    async fn round(&mut self) -> Result<Option<Timestamp>> {
        let now = self.clock.now();
        let round = self.read(move |tx| Round::plan(tx, now)).await?;
        if round.forget {
            self.store.write(move |tx| sent::forget(tx, now)).await?;
        }
        let next = if round.letters.is_empty() && !round.forget { round.next } else { Some(now) };
        for letter in round.letters {
            if self.is_stopped() {
                break;
            }
            self.serve(letter).await?;
        }
        Ok(next)
    }

    /// Reads from a snapshot of its own, off the threads that serve requests.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let tx = self.store.snapshot()?;
        tokio::task::spawn_blocking(move || read(&tx)).await.map_err(Error::internal)?
    }

    /// Looks at a letter once more, by the present state, and does what is to be done.
    async fn serve(&mut self, letter: Letter) -> Result<()> {
        let (composer, now) = (Arc::clone(&self.composer), self.clock.now());
        let looked_at = letter.clone();
        let step = self.read(move |tx| Step::of(tx, &looked_at, &*composer, now)).await;
        let outcome = match step {
            Ok(Step::Leave) => return Ok(()),
            Ok(Step::Settle(outcome)) => outcome,
            Ok(Step::Send(message)) => self.send(&letter, &message).await,
            Err(error) if error.status() == 503 => return Err(error),
            Err(error) => {
                let Letter { id, organization, .. } = &letter;
                tracing::error!(letter = %id, %organization, %error, "a mail could not be composed");
                Outcome::Failed { unsure: false }
            }
        };
        self.meters.count(&letter, &outcome, now);
        self.settle(letter, outcome).await;
        Ok(())
    }

    async fn send(&self, letter: &Letter, message: &Message) -> Outcome {
        let Letter { id, organization, attempts, about, .. } = letter;
        let to = about.address().unwrap_or_default();
        match self.mailer.send(*id, to, message, self.clock.now()).await {
            Ok(_) => Outcome::Accepted,
            Err(failure) => {
                let (unsure, error) = (failure.unsure, failure.without(to));
                tracing::warn!(letter = %id, %organization, attempts, unsure, %error, "a mail was not sent");
                Outcome::Failed { unsure }
            }
        }
    }

    /// Writes down what became of a letter, as often as it takes: what the server has accepted must not be
    /// sent once more because the file took no writes for a moment.
    async fn settle(&mut self, letter: Letter, outcome: Outcome) {
        let (now, seed, id) = (self.clock.now(), Seed::take(), letter.id);
        let mut told = false;
        loop {
            let (letter, outcome, seed) = (letter.clone(), outcome.clone(), seed.clone());
            let written = self.store.write(move |tx| outcome.settle(tx, &letter, &seed, now)).await;
            match written {
                Ok(()) => return,
                Err(error) if self.is_stopped() => {
                    tracing::error!(letter = %id, %error, "what became of a mail was not recorded");
                    return;
                }
                Err(error) => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(letter = %id, %error, "what became of a mail is not recorded yet");
                    }
                    self.pause().await;
                }
            }
        }
    }
}

/// Waits until the clock shows `moment`; for ever where there is none.
async fn reaches(clock: &Clock, moment: Option<Timestamp>) {
    match moment {
        Some(moment) => clock.reaches(moment).await,
        None => std::future::pending().await,
    }
}
