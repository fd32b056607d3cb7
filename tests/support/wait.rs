//! Waiting for events. Tests read no clock and do not sleep, except here: `tidy` checks it.

use std::thread;
use std::time::{Duration, Instant};

/// Ends a test that hangs. No working code comes near it, even on a machine that is busy with other work.
pub const TEST_TIMEOUT: Duration = Duration::from_mins(5);

/// The time between two looks.
const INTERVAL: Duration = Duration::from_millis(5);

/// Polls `ready` until it returns a value. Panics with `what` after a timeout.
#[track_caller]
pub fn until<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        require_time(begun, what);
        thread::sleep(INTERVAL);
    }
}

/// Does what [`until`] does, while other tasks run.
pub async fn eventually<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        require_time(begun, what);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Does what [`eventually`] does if the look itself waits, for example for a response.
pub async fn eventually_async<T>(what: &str, mut ready: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ready().await {
            return found;
        }
        require_time(begun, what);
        tokio::time::sleep(INTERVAL).await;
    }
}

#[track_caller]
fn require_time(begun: Instant, what: &str) {
    assert!(begun.elapsed() < TEST_TIMEOUT, "timed out: {what}");
}
