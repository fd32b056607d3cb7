//! Warnings about something that lasts: logged at once, and again from time to time.

use std::time::{Duration, Instant};

/// How often a warning is repeated while its reason lasts.
const INTERVAL: Duration = Duration::from_secs(30);
/// How often a reason that changes is logged.
const CHANGE_INTERVAL: Duration = Duration::from_secs(1);

/// Decides when to log a warning about something that lasts.
#[derive(Debug, Default)]
pub struct RepeatedWarning {
    logged: Option<(String, Instant)>,
}

impl RepeatedWarning {
    /// Whether to log this text now: it is new, or the last one was logged a while ago.
    pub fn is_due(&mut self, text: &str) -> bool {
        if let Some((known, at)) = &self.logged
            && at.elapsed() < if known == text { INTERVAL } else { CHANGE_INTERVAL }
        {
            return false;
        }
        self.logged = Some((text.to_owned(), Instant::now()));
        true
    }
}
