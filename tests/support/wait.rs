//! Waiting, with a timeout.

use std::thread;
use std::time::{Duration, Instant};

/// A timeout that working code never reaches, even on a busy machine.
pub const TEST_TIMEOUT: Duration = Duration::from_mins(2);

/// The timeout of a read from a socket. It is shorter than the default time limits of a connection in the server, 30 s, so
/// that a test which waits for the end of a connection does not wait for those.
pub const READ_TIMEOUT: Duration = Duration::from_secs(25);

/// Polls `ready` until it returns a value. Panics with `what` after a timeout.
#[track_caller]
pub fn until<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "timed out: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
