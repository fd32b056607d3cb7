//! Logs requests that were refused because a limit was reached, at most one line per second.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::log_context::LOG_TARGET;

/// The shortest time between two lines.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Counts refused requests and logs their number. Clones share the count.
#[derive(Clone, Default)]
pub(super) struct OverloadLog(Arc<Mutex<Refusals>>);

#[derive(Default)]
struct Refusals {
    /// The requests refused since the last line.
    count: u64,
    /// The time of the last line.
    logged: Option<Instant>,
}

impl Refusals {
    /// Counts a request. Returns the count if a line is due.
    fn add(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged.is_some_and(|logged| now.duration_since(logged) < LOG_INTERVAL) {
            return None;
        }
        self.logged = Some(now);
        Some(mem::take(&mut self.count))
    }
}

impl OverloadLog {
    /// Counts a request that `limit` refused. Logs the count and this limit, unless a line was logged within the last
    /// second.
    pub(super) fn count(&self, limit: &str) {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = refusals.add(Instant::now());
        drop(refusals);
        if let Some(count) = due {
            tracing::warn!(target: LOG_TARGET, count, limit, "requests refused: limits reached");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_is_logged_at_once_and_then_at_most_once_a_second() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        let due = [0, 0, 999, 1000, 1999, 5000]
            .map(|millis| refusals.add(start + Duration::from_millis(millis)));
        assert_eq!(due, [Some(1), None, None, Some(3), None, Some(2)]);
    }
}
