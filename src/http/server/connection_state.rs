//! Tracks whether a connection is idle, so that it may be closed to make room for another.
//!
//! A connection is active from the first byte of a request until the kernel has the last byte of the response. A
//! request updates one atomic value. It takes a lock only if the table found the connection active while it searched
//! for an idle one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hyper::body::Incoming;

/// The lowest bits of the state: the phase. The bits above [`OFF_LIST`] hold the time since which the connection is
/// idle.
const PHASE: u64 = 0b11;
/// No byte was received since the last response.
const IDLE: u64 = 0;
/// A request is arriving or in progress.
const ACTIVE: u64 = 1;
/// The response is complete, but the kernel may not have all of it yet.
const ANSWERED: u64 = 2;
/// The table gave the slot to another connection.
const CLOSED: u64 = 3;
/// The table found the connection active and removed it from the idle list. The connection adds itself when it is
/// idle.
const OFF_LIST: u64 = 0b100;
const TIME_SHIFT: u32 = 3;

/// The state of one connection.
#[derive(Debug)]
pub(super) struct ConnectionState(AtomicU64);

/// The result of an attempt to close an idle connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CloseAttempt {
    /// The connection is closed and accepts no further requests.
    Closed,
    /// The connection is idle, but since this later time.
    IdleSince(u64),
    /// The connection is active. [`Slot::flushed`](super::connection_table::Slot::flushed) lists it when it is idle.
    Active,
}

impl ConnectionState {
    /// Creates the state of a connection that is idle since `moment`.
    pub(super) fn idle(moment: u64) -> Self {
        Self(AtomicU64::new(moment << TIME_SHIFT | IDLE))
    }

    /// Marks the connection as active. Returns false if it is closed.
    pub(super) fn begin(&self) -> bool {
        let begun = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            matches!(state & PHASE, IDLE | ANSWERED).then_some(state & OFF_LIST | ACTIVE)
        });
        begun.is_ok() || self.0.load(Ordering::Acquire) & PHASE == ACTIVE
    }

    /// Marks the response as complete.
    pub(super) fn end(&self) {
        let end = |state| (state & PHASE == ACTIVE).then_some(state & OFF_LIST | ANSWERED);
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, end);
    }

    pub(super) fn is_answered(&self) -> bool {
        self.0.load(Ordering::Acquire) & PHASE == ANSWERED
    }

    /// Marks the connection as idle once the kernel has the response. Returns true if the connection must be added to
    /// the idle list.
    pub(super) fn finish(&self, moment: u64) -> bool {
        let before = self.0.swap(moment << TIME_SHIFT | IDLE, Ordering::AcqRel);
        before & OFF_LIST != 0
    }

    /// Closes the connection if it is idle since `moment`.
    pub(super) fn close(&self, moment: u64) -> CloseAttempt {
        let mut state = self.0.load(Ordering::Acquire);
        loop {
            let (next, attempt) = match (state & PHASE, state >> TIME_SHIFT) {
                (IDLE, since) if since > moment => return CloseAttempt::IdleSince(since),
                (IDLE, _) => (CLOSED, CloseAttempt::Closed),
                _ => (state | OFF_LIST, CloseAttempt::Active),
            };
            match self.0.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return attempt,
                Err(changed) => state = changed,
            }
        }
    }
}

/// What the service left of the body of a connection's current request.
#[derive(Default)]
pub(super) struct UnreadBody {
    rest: Mutex<Option<Incoming>>,
    is_arriving: AtomicBool,
}

impl UnreadBody {
    pub(super) fn keep(&self, rest: Incoming) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(rest);
    }

    pub(super) fn take(&self) -> Option<Incoming> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the bytes that arrive belong to a request that has its response.
    pub(super) fn is_arriving(&self) -> bool {
        self.is_arriving.load(Ordering::Relaxed)
    }

    pub(super) fn set_arriving(&self, is_arriving: bool) {
        self.is_arriving.store(is_arriving, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_connection_closes_and_accepts_no_more_requests() {
        let activity = ConnectionState::idle(5);
        assert_eq!(activity.close(5), CloseAttempt::Closed);
        assert!(!activity.begin());
    }

    #[test]
    fn connection_with_an_unsent_response_is_not_closed() {
        let activity = ConnectionState::idle(5);
        assert!(activity.begin() && activity.begin());
        assert_eq!(activity.close(5), CloseAttempt::Active);
        activity.end();
        assert_eq!(activity.close(5), CloseAttempt::Active);
        assert!(activity.is_answered() && activity.finish(9), "the table removed it from the list");
        assert_eq!(activity.close(5), CloseAttempt::IdleSince(9));
        assert!(activity.begin());
        activity.end();
        assert!(!activity.finish(12), "the table kept it on the list");
        assert_eq!(activity.close(12), CloseAttempt::Closed);
    }

    #[test]
    fn unmatched_end_of_response_changes_nothing() {
        let activity = ConnectionState::idle(5);
        activity.end();
        assert!(!activity.is_answered());
    }
}
