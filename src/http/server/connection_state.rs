//! Tracks whether a connection is idle, so that it may be closed to make room for another.
//!
//! A connection is active from the first byte of a request until the kernel has the last byte of the response.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hyper::body::Incoming;

/// A request is arriving or in progress.
const ACTIVE: u64 = u64::MAX;
/// The response is complete, but the kernel may not have all of it yet.
const ANSWERED: u64 = u64::MAX - 1;
/// The slot was given to another connection.
const CLOSED: u64 = u64::MAX - 2;

/// The state of one connection. An idle connection has a number below [`CLOSED`], which is smaller the longer it is idle.
pub(super) struct ConnectionState(AtomicU64);

impl ConnectionState {
    /// Creates the state of an idle connection with this number.
    pub(super) fn idle(number: u64) -> Self {
        Self(AtomicU64::new(number))
    }

    /// Marks the connection as active. Returns false if it is closed.
    pub(super) fn begin(&self) -> bool {
        let begin = |state: u64| (state != CLOSED).then_some(ACTIVE);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, begin).is_ok()
    }

    /// Marks the response as complete.
    pub(super) fn end(&self) {
        self.change(ACTIVE, ANSWERED);
    }

    pub(super) fn is_answered(&self) -> bool {
        self.0.load(Ordering::Acquire) == ANSWERED
    }

    /// Marks the connection as idle once the kernel has the response.
    pub(super) fn finish(&self, number: u64) {
        self.change(ANSWERED, number);
    }

    /// Returns the number of an idle connection, or `None` if the connection is not idle.
    pub(super) fn idle_number(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|state| *state < CLOSED)
    }

    /// Closes the connection if it is still idle with this number. A closed connection accepts no further requests.
    pub(super) fn close(&self, number: u64) -> bool {
        self.change(number, CLOSED)
    }

    /// Replaces the state `from`. Returns false if the connection is in another one.
    fn change(&self, from: u64, to: u64) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
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
