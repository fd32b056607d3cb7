//! Reads of bounded cost: a short read stops after a fixed amount of work, a long read when its client
//! disconnects or its time limit expires.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::base::error::{Error, Result};
use crate::store::disk::engine::RETRY_AFTER;
use crate::store::values::raw::{KeySpan, Raw, Visit, VisitValue};
use crate::store::values::schema::Table;

use super::snapshot::Snapshot;

/// The cost limit of a short read, about one or two milliseconds.
const MAX_SHORT_COST: usize = 2_000;
/// How much cost a long read may add before it checks its [`CancelToken`] again.
const CHECK_EVERY: usize = 1_000;
/// Each row costs 1, plus 1 for each full `BYTES_PER_COST` bytes of its value.
const BYTES_PER_COST: usize = 256;

/// Cancels a long read when its client disconnects or its time limit expires.
#[derive(Debug)]
pub struct CancelToken {
    /// `None` if the deadline is too far in the future to be represented.
    deadline: Option<Instant>,
    is_cancelled: AtomicBool,
}

impl CancelToken {
    /// Creates a token that expires after `time`.
    pub fn with_timeout(time: Duration) -> Self {
        Self { deadline: Instant::now().checked_add(time), is_cancelled: AtomicBool::new(false) }
    }

    /// Stops the read: its client no longer waits.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::overloaded(RETRY_AFTER, "the client of this read disconnected"));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let text = "a read exceeded the time limit of a request";
            return Err(Error::overloaded(RETRY_AFTER, text));
        }
        Ok(())
    }
}

/// A snapshot for a read of bounded cost. Every rule can read through it. Once the limit is reached, each
/// access fails, which stops the rule.
pub struct BoundedRead<'s> {
    snapshot: &'s Snapshot,
    /// Set for a long read only.
    cancel_token: Option<&'s CancelToken>,
    remaining: Cell<usize>,
    is_exceeded: Cell<bool>,
}

impl<'s> BoundedRead<'s> {
    /// Creates a read that is cheap enough for a thread that serves requests. If it exceeds its cost limit,
    /// it fails and [`is_exceeded`](Self::is_exceeded) returns true.
    pub fn short(snapshot: &'s Snapshot) -> Self {
        let remaining = Cell::new(MAX_SHORT_COST);
        Self { snapshot, cancel_token: None, remaining, is_exceeded: Cell::new(false) }
    }

    /// Creates a read that continues until `cancel_token` is cancelled or expires. It checks the token at least
    /// every 1,000 rows, and more often if the rows are large.
    pub fn long(snapshot: &'s Snapshot, cancel_token: &'s CancelToken) -> Self {
        let cancel_token = Some(cancel_token);
        Self { snapshot, cancel_token, remaining: Cell::new(0), is_exceeded: Cell::new(false) }
    }

    /// Whether a short read exceeded its cost limit. The caller must then discard its result.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    /// Adds the cost of work on `bytes` bytes that is not reading, such as rendering them.
    ///
    /// # Errors
    /// 503 when the limit is reached.
    pub fn spend(&self, bytes: usize) -> Result<()> {
        match self.remaining.get().checked_sub(1 + bytes / BYTES_PER_COST) {
            Some(left) => {
                self.remaining.set(left);
                Ok(())
            }
            None => self.check_cancelled(),
        }
    }

    #[cold]
    fn check_cancelled(&self) -> Result<()> {
        let Some(cancel_token) = self.cancel_token else {
            self.remaining.set(0);
            self.is_exceeded.set(true);
            return Err(Error::overloaded(RETRY_AFTER, "a short read exceeded its cost limit"));
        };
        cancel_token.check()?;
        self.remaining.set(CHECK_EVERY);
        Ok(())
    }
}

impl Raw for BoundedRead<'_> {
    fn raw_get(&self, table: Table, key: &[u8], visit: &mut VisitValue<'_>) -> Result<()> {
        self.spend(0)?;
        self.snapshot.raw_get(table, key, &mut |payload| {
            self.spend(payload.len())?;
            visit(payload)
        })
    }

    fn raw_between(&self, table: Table, span: KeySpan<'_>, visit: &mut Visit<'_>) -> Result<()> {
        self.snapshot.between_spending(table, span, |bytes| self.spend(bytes), visit)
    }

    fn as_dyn(&self) -> &dyn Raw {
        self
    }
}
