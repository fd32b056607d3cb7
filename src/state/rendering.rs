//! Changes whose answers may be large: such an answer is rendered after the commit, from the state that it left, off
//! the writer and the request threads.
//!
//! A small answer is rendered inside the write. A large one needs a slot and memory, which are taken before the write is
//! queued: what waits for a slot, or is refused for lack of memory, has changed nothing and holds no snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::access::gate::{Caller, authorize};
use crate::access::{Changing, Place};
use crate::background::{Priority, in_background};
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
/// By how much an answer may be larger than what is reserved for it, in bytes: what one request adds to a dashboard.
const GROWTH: usize = 2 * 1024 * 1024;
/// How often a change is run at the most: its answer may grow while it waits for what it needs.
const ATTEMPTS: usize = 4;

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
    let rendered = in_background(Priority::Answer, move || {
        let _slot = slot;
        render()
    });
    rendered.await?
}

/// Whether a change may have a large answer.
#[derive(Debug, Default)]
pub struct LargeAnswer {
    /// How many bytes are reserved for it; none if it has no slot.
    room: Option<usize>,
    /// How many bytes it needs; 0 if what it has is enough.
    wanted: AtomicUsize,
}

impl LargeAnswer {
    /// Lets only a change with a slot, and with memory for an answer of about so many bytes, go on. The others are run
    /// again, once they have both: a rule that knows early that its answer is large says so before it writes anything.
    ///
    /// # Errors
    /// 503 if the change lacks one of them, which no client sees.
    pub fn require_room(&self, bytes: usize) -> Result<()> {
        if self.room.is_some_and(|room| bytes <= room.saturating_add(GROWTH)) {
            return Ok(());
        }
        self.wanted.store(bytes.max(1), Ordering::Relaxed);
        Err(Error::overloaded(RETRY_AFTER, "a large answer needs a slot and memory"))
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
        let (((body, caller, place), snapshot), slot) = self.with_slot(asked, write).await?;
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
                large.require_room(0)?;
            }
            Ok((Some(granted.caller.user), (done, place)))
        };
        let (((done, place), snapshot), slot) = self.with_slot(asked, write).await?;
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
                let Versioned { version, json, .. } = render(id).await?;
                let version = Some(version);
                Ok(Answer::Replayed(Reply { status, version, body: json, object: None }))
            }
            Done::Before(reply) => Ok(Answer::Replayed(reply)),
        }
    }

    /// Runs a write, and runs it again with a slot, and with memory, if its answer is large.
    async fn with_slot<P, T: Send + 'static>(
        &self,
        asked: &Changing<P>,
        write: impl Fn(&mut WriteTx<'_>, Timestamp, &LargeAnswer) -> Result<Written<T>>
        + Send
        + Sync
        + 'static,
    ) -> Result<((T, Arc<Snapshot>), Option<Slot>)> {
        let (write, consumer) = (Arc::new(write), asked.consumer);
        let (mut slot, mut room) = (None, None);
        for _ in 1..ATTEMPTS {
            let large = Arc::new(LargeAnswer { room, ..LargeAnswer::default() });
            let (write, answer) = (Arc::clone(&write), Arc::clone(&large));
            let write = move |tx: &mut WriteTx<'_>, now| write(tx, now, &answer);
            let written = self.write(Tenant::of(self, consumer), write).await;
            let wanted = large.wanted.load(Ordering::Relaxed);
            if written.is_ok() || wanted == 0 {
                return Ok((written?, slot));
            }
            if slot.is_none() {
                slot = Some(self.rendering_slot(consumer).await?);
            }
            (asked.reserve)(wanted)?;
            room = Some(wanted);
        }
        Err(Error::overloaded(RETRY_AFTER, "an answer grew faster than memory was taken for it"))
    }

    async fn rendering_slot(&self, consumer: Consumer) -> Result<Slot> {
        let full = |_| Error::overloaded(RETRY_AFTER, "too many large answers wait");
        self.0.renderings.acquire(consumer).await.map_err(full)
    }
}
