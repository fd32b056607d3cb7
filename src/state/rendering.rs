//! Changes whose answers may be large: such an answer is rendered after the commit, from the state that it left, off
//! the writer and the request threads.
//!
//! A small answer is rendered inside the write. A large one needs a slot, which is taken before the write is queued:
//! what waits for a slot has changed nothing and holds no snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::access::gate::{Caller, authorize};
use crate::access::{Changing, Place};
use crate::background::in_background;
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::fair::{Consumer, FairLimits, FairQueue, Slot};
use crate::http::answer::Answer;
use crate::idempotency::Reply;
use crate::store::{Snapshot, WriteTx};
use crate::time::Timestamp;

use super::App;
use super::changes::{Done, Tenant, Written, do_once, known};

/// How long a client is told to stay away if too many large answers wait, in seconds.
const RETRY_AFTER: u32 = 2;
/// How many changes with a large answer wait for a slot, of one tenant and in all.
const WAITING: (usize, usize) = (256, 2048);

/// The slots of changes with a large answer: as many as there are cores, and at least two, so that no tenant has all.
/// A change waits half of the time that a request may take.
pub(super) fn slots(cores: usize, time_limit: Duration) -> FairQueue {
    let (waiting_each, waiting) = WAITING;
    let slots = cores.max(2);
    let longest_wait = Some(time_limit / 2);
    FairQueue::new(FairLimits { slots, slots_each: slots / 2, waiting_each, waiting, longest_wait })
}

/// Renders off the request threads. The slot is given back when that is done, even if the client has gone.
async fn aside(
    slot: Option<Slot>,
    render: impl FnOnce() -> Result<Versioned> + Send + 'static,
) -> Result<Versioned> {
    let rendered = in_background(move || {
        let _slot = slot;
        render()
    });
    rendered.await?
}

/// Whether a change may have a large answer.
#[derive(Debug, Default)]
pub struct LargeAnswer {
    has_slot: bool,
    wanted: AtomicBool,
}

impl LargeAnswer {
    /// Lets only a change with a slot go on. The others are run again, once they have one: a rule that knows early
    /// that its answer is large says so before it writes anything.
    ///
    /// # Errors
    /// 503 if the change has no slot, which no client sees.
    pub fn require_slot(&self) -> Result<()> {
        if self.has_slot {
            return Ok(());
        }
        self.wanted.store(true, Ordering::Relaxed);
        Err(Error::overloaded(RETRY_AFTER, "a large answer needs a slot"))
    }
}

/// An object that a POST created.
#[derive(Debug)]
pub struct Created {
    /// The status of the answer: 200 or 201.
    pub status: u16,
    /// The object's number.
    pub id: u64,
    /// Its body; none if that is large.
    pub body: Option<Versioned>,
}

impl Created {
    fn reply(&self) -> Reply {
        let (version, body) = match &self.body {
            Some(one) => (Some(one.version), one.json.clone()),
            None => (None, Vec::new()),
        };
        Reply { status: self.status, version, body, object: Some(self.id) }
    }
}

impl App {
    /// Changes something for a caller, as [`change`](Self::change) does. `rule` returns the body of the answer, or none
    /// if that is large: then `rule` has ended its batch, and `render` makes the body from the state that the commit
    /// left.
    ///
    /// # Errors
    /// What the gate, `rule` or `render` refuses; 503 if too many large answers wait, or when the change could not be
    /// committed.
    pub async fn change_and_render<P: Place>(
        &self,
        asked: &Changing<P>,
        rule: impl Fn(
            &mut WriteTx<'_>,
            &Caller,
            &P,
            Timestamp,
            &LargeAnswer,
        ) -> Result<Option<Versioned>>
        + Send
        + Sync
        + 'static,
        render: impl FnOnce(&Snapshot, &Caller, &P) -> Result<Versioned> + Send + 'static,
    ) -> Result<Versioned> {
        let (rule, ask) = (Arc::new(rule), Arc::clone(&asked.ask));
        let write = move |tx: &mut WriteTx<'_>, now, large: &LargeAnswer| {
            let granted = authorize(tx, &ask, now)?;
            let place = P::of(&granted)?;
            let body = rule(tx, &granted.caller, &place, now, large)?;
            Ok((Some(granted.caller.user.clone()), (body, granted.caller, place)))
        };
        let (((body, caller, place), snapshot), slot) =
            self.with_slot(asked.consumer, write).await?;
        match body {
            Some(body) => Ok(body),
            None => aside(slot, move || render(&snapshot, &caller, &place)).await,
        }
    }

    /// Does for a caller what a POST asks, as [`post`](Self::post) does, and answers with the object that `rule`
    /// created. The rule for `render` is that of [`change_and_render`](Self::change_and_render); a request that was
    /// done before and whose answer was large is answered with the object as it is now.
    ///
    /// # Errors
    /// As [`change_and_render`](Self::change_and_render); 422 for a repeated request with another body.
    pub async fn post_and_render<P: Place>(
        &self,
        asked: &Changing<P>,
        rule: impl Fn(&mut WriteTx<'_>, &Caller, &P, Timestamp, &LargeAnswer) -> Result<Created>
        + Send
        + Sync
        + 'static,
        render: impl FnOnce(&Snapshot, &P, u64) -> Result<Versioned> + Send + 'static,
    ) -> Result<Answer> {
        let (rule, ask, once) = (Arc::new(rule), Arc::clone(&asked.ask), asked.once.clone());
        let write = move |tx: &mut WriteTx<'_>, now, large: &LargeAnswer| {
            let granted = authorize(tx, &ask, now)?;
            let (caller, place) = (&granted.caller, P::of(&granted)?);
            let once = known(once.as_ref(), &granted)?;
            let rule = |tx: &mut WriteTx<'_>| rule(tx, caller, &place, now, large);
            let done = do_once(tx, once.as_ref(), now, rule, Created::reply)?;
            if matches!(&done, Done::Before(Reply { object: Some(_), .. })) {
                large.require_slot()?;
            }
            Ok((Some(granted.caller.user), (done, place)))
        };
        let (((done, place), snapshot), slot) = self.with_slot(asked.consumer, write).await?;
        let render = |id| aside(slot, move || render(&snapshot, &place, id));
        match done {
            Done::Now(Created { status, id, body }) => {
                let body = match body {
                    Some(body) => body,
                    None => render(id).await?,
                };
                Ok(if status == 201 { Answer::Created(body) } else { Answer::Shown(body) })
            }
            Done::Before(Reply { status, object: Some(id), .. }) => {
                let Versioned { version, json } = render(id).await?;
                let version = Some(version);
                Ok(Answer::Replayed(Reply { status, version, body: json, object: None }))
            }
            Done::Before(reply) => Ok(Answer::Replayed(reply)),
        }
    }

    /// Runs a write, and runs it again with a slot if its answer is large.
    async fn with_slot<T: Send + 'static>(
        &self,
        consumer: Consumer,
        write: impl Fn(&mut WriteTx<'_>, Timestamp, &LargeAnswer) -> Result<Written<T>>
        + Send
        + Sync
        + 'static,
    ) -> Result<((T, Arc<Snapshot>), Option<Slot>)> {
        let write = Arc::new(write);
        let attempt = |large: Arc<LargeAnswer>| {
            let write = Arc::clone(&write);
            self.write(Tenant::of(self, consumer), move |tx, now| write(tx, now, &large))
        };
        let large = Arc::new(LargeAnswer::default());
        let written = attempt(Arc::clone(&large)).await;
        if written.is_ok() || !large.wanted.load(Ordering::Relaxed) {
            return Ok((written?, None));
        }
        let slot = self.rendering_slot(consumer).await?;
        let large = LargeAnswer { has_slot: true, ..LargeAnswer::default() };
        Ok((attempt(Arc::new(large)).await?, Some(slot)))
    }

    async fn rendering_slot(&self, consumer: Consumer) -> Result<Slot> {
        let full = |_| Error::overloaded(RETRY_AFTER, "too many large answers wait");
        self.0.renderings.acquire(consumer).await.map_err(full)
    }
}
