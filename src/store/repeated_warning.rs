//! Warnings about something that lasts: logged at once, and again from time to time.

use std::time::{Duration, Instant};

/// How often a warning is repeated while its reason lasts.
const INTERVAL: Duration = Duration::from_secs(30);

/// Decides when to log a warning about something that lasts.
#[derive(Debug, Default)]
pub struct RepeatedWarning {
    logged: Option<(String, Instant)>,
}

impl RepeatedWarning {
    /// Whether to log this text now: it is new, or was logged a while ago.
    pub fn is_due(&mut self, text: &str) -> bool {
        let is_known = |(known, at): &(String, Instant)| known == text && at.elapsed() < INTERVAL;
        if self.logged.as_ref().is_some_and(is_known) {
            return false;
        }
        self.logged = Some((text.to_owned(), Instant::now()));
        true
    }
}
