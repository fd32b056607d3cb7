//! The postman: sends what waits in the outbox, one letter at a time, for as long as the service is there.
//!
//! Each round reads what may go by the schedule, sends it, and sleeps until the next moment at which something may go
//! or something is posted. What became of a letter is on disk before the next one is looked at; so the limits
//! and the retries are the file's, and a restart forgets neither.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::meters::{Counter, Meters, Series};
use crate::secret::Seed;
use crate::store::{Snapshot, Store, WriteTx};
use crate::time::{Clock, Timestamp};

use super::compose::{Compose, Message};
use super::notices::{Notices, Posted};
use super::outbox::Letter;
use super::round::{Outcome, Step};
use super::schedule::Schedule;
use super::sent;
use super::smtp::Mailer;

/// After how long a round begins no further attempt: letters that were posted meanwhile get their turn.
const LONGEST_ROUND: Duration = Duration::from_secs(5);
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
    notices: Arc<Notices>,
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
        let notices = Arc::new(Notices::default());
        let (stop, stopped) = watch::channel(());
        let rounds = Rounds {
            store,
            clock,
            mailer,
            composer,
            meters,
            schedule: Schedule::default(),
            notices: Arc::clone(&notices),
            stopped,
        };
        Self { notices, task: Mutex::new(Some((stop, tokio::spawn(rounds.walk())))) }
    }

    /// Has the postman look through the whole outbox, whatever it knew of it.
    pub fn wake(&self) {
        self.notices.add(Posted::anything());
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

/// Tells the postman what a write posted when it is dropped.
///
/// A write's rule owns one: so it is dropped when the write is on disk, whether or not anybody still waits
/// for the answer.
pub struct Bell {
    notices: Option<Arc<Notices>>,
    heard: OnceLock<Posted>,
}

impl Bell {
    /// A bell for this postman, or for nobody.
    pub fn new(postman: Option<&Postman>) -> Self {
        let notices = postman.map(|postman| Arc::clone(&postman.notices));
        Self { notices, heard: OnceLock::new() }
    }

    /// Listens whether the write under way posted something.
    pub fn listen(&self, tx: &WriteTx<'_>) {
        if let Some(posted) = Posted::by(tx) {
            // A rule that runs twice does the same twice.
            let _ = self.heard.set(posted);
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if let (Some(notices), Some(posted)) = (&self.notices, self.heard.take()) {
            notices.add(posted);
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
    schedule: Schedule,
    notices: Arc<Notices>,
    stopped: watch::Receiver<()>,
}

impl Rounds {
    async fn walk(mut self) {
        while !self.is_stopped() {
            match self.round().await {
                Ok(next) => {
                    let (clock, notices) = (self.clock.clone(), Arc::clone(&self.notices));
                    tokio::select! {
                        _ = self.stopped.changed() => {}
                        () = notices.arrived() => {}
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
        // What fails on the way leaves a new schedule, by which everything is looked at again.
        let mut schedule = std::mem::take(&mut self.schedule);
        self.notices.take_into(&mut schedule);
        let planned = self.read(move |tx| Ok((schedule.plan(tx, now)?, schedule))).await?;
        let (round, mut schedule) = planned;
        if round.forget {
            self.store.write(move |tx| sent::forget(tx, now)).await?;
        }
        let next = if round.letters.is_empty() { round.next } else { Some(now) };
        for letter in round.letters {
            if self.is_stopped() {
                break;
            }
            let (organization, begun) = (letter.organization, self.clock.now());
            let held = if begun >= now.plus(LONGEST_ROUND) {
                Some(now)
            } else if let Some(paused) = schedule.pauses.letter_free_at(&letter, begun) {
                Some(paused)
            } else {
                // A clock that is set meanwhile says nothing of how long it took.
                let stopwatch = Instant::now();
                let held = self.serve(letter.clone()).await?;
                schedule.pauses.add(&letter, stopwatch.elapsed(), self.clock.now());
                held
            };
            match held {
                Some(moment) => schedule.wait(organization, moment),
                // Behind what was posted meanwhile.
                None => schedule.add(organization, self.clock.now()),
            }
        }
        self.schedule = schedule;
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

    /// Looks at a letter once more, by the present state, and does what is to be done. Returns when the limits let it go,
    /// if they hold it.
    async fn serve(&mut self, letter: Letter) -> Result<Option<Timestamp>> {
        let (composer, now) = (Arc::clone(&self.composer), self.clock.now());
        let looked_at = letter.clone();
        let step = self.read(move |tx| Step::of(tx, &looked_at, &*composer, now)).await;
        let outcome = match step {
            Ok(Step::Leave) => return Ok(None),
            Ok(Step::Wait(moment)) => return Ok(Some(moment)),
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
        Ok(None)
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
