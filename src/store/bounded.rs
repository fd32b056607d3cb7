//! Reads that end: short ones after a fixed amount of work, long ones when nobody waits for them any more.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

use super::engine::RETRY_AFTER;
use super::read::{Raw, Visit};
use super::schema::Table;
use super::snapshot::Snapshot;
use super::window::Order;

/// How much a short read may cost: one or two milliseconds.
const SHORT: usize = 2_000;
/// What a long read may cost before it looks again whether it is still wanted.
const BETWEEN_LOOKS: usize = 1_000;
/// Each row costs 1, and 1 more for so many bytes of its value.
const BYTES_PER_COST: usize = 256;

/// Whether somebody waits for a long read, and until when.
#[derive(Debug)]
pub struct Interest {
    /// None for a time too far off to be told.
    deadline: Option<Instant>,
    is_gone: AtomicBool,
}

impl Interest {
    /// Somebody waits from now on, for this time at the most.
    pub fn for_at_most(time: Duration) -> Self {
        Self { deadline: Instant::now().checked_add(time), is_gone: AtomicBool::new(false) }
    }

    /// Nobody waits from now on.
    pub fn withdraw(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    fn require(&self) -> Result<()> {
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(Error::overloaded(RETRY_AFTER, "nobody waits for this read any more"));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::overloaded(RETRY_AFTER, "a read took longer than a request may"));
        }
        Ok(())
    }
}

/// A snapshot, for a read whose cost is bounded: every rule can read through it. When the bound is reached, the
/// next access fails, which ends the rule.
pub struct BoundedRead<'s> {
    snapshot: &'s Snapshot,
    /// For a long read.
    interest: Option<&'s Interest>,
    left: Cell<usize>,
    is_exceeded: Cell<bool>,
}

impl<'s> BoundedRead<'s> {
    /// A read that costs so little that a thread which serves requests may do it. When it would cost more it fails, and
    /// [`is_exceeded`](Self::is_exceeded) holds.
    pub fn short(snapshot: &'s Snapshot) -> Self {
        Self { snapshot, interest: None, left: Cell::new(SHORT), is_exceeded: Cell::new(false) }
    }

    /// A read that goes on for as long as `interest` holds, which it looks at each 1,000 rows, or sooner where these
    /// are large.
    pub fn long(snapshot: &'s Snapshot, interest: &'s Interest) -> Self {
        let interest = Some(interest);
        Self { snapshot, interest, left: Cell::new(0), is_exceeded: Cell::new(false) }
    }

    /// Whether it was a short read that cost too much. What it answered then is not to be used.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    /// Counts work on so many bytes that is not done by reading, such as rendering them.
    ///
    /// # Errors
    /// 503 when the bound is reached.
    pub fn spend(&self, bytes: usize) -> Result<()> {
        match self.left.get().checked_sub(1 + bytes / BYTES_PER_COST) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => self.look(),
        }
    }

    #[cold]
    fn look(&self) -> Result<()> {
        let Some(interest) = self.interest else {
            self.left.set(0);
            self.is_exceeded.set(true);
            return Err(Error::overloaded(RETRY_AFTER, "a short read cost too much"));
        };
        interest.require()?;
        self.left.set(BETWEEN_LOOKS);
        Ok(())
    }
}

impl Raw for BoundedRead<'_> {
    fn raw_get(
        &self,
        table: Table,
        key: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.spend(0)?;
        self.snapshot.raw_get(table, key, &mut |payload| {
            self.spend(payload.len())?;
            visit(payload)
        })
    }

    fn raw_between(
        &self,
        table: Table,
        span: (&[u8], Option<&[u8]>),
        skip: usize,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let spend = |bytes| self.spend(bytes);
        self.snapshot.between_spending(table, span, (skip, order), spend, visit)
    }
}
