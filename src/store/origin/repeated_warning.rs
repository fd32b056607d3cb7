//! Warnings about something that lasts: logged at once, and again from time to time.

use std::time::{Duration, Instant};

/// How often a warning is repeated while its reason lasts.
const INTERVAL: Duration = Duration::from_secs(30);
/// The time without a warning after which the reason may change [`MAX_CHANGES`] times again.
const CHANGE_INTERVAL: Duration = Duration::from_secs(1);
/// How many reasons are logged that follow one another at once.
const MAX_CHANGES: u32 = 5;

/// Decides when to log a warning about something that lasts.
#[derive(Debug, Default)]
pub struct RepeatedWarning {
    logged: Option<(String, Instant)>,
    changes: u32,
}

impl RepeatedWarning {
    /// Whether to log this text now: it is new, or was logged a while ago.
    pub fn is_due(&mut self, text: &str) -> bool {
        if let Some((known, at)) = &self.logged {
            let age = at.elapsed();
            if age >= CHANGE_INTERVAL {
                self.changes = 0;
            }
            let is_due = if known == text { age >= INTERVAL } else { self.changes < MAX_CHANGES };
            if !is_due {
                return false;
            }
        }
        self.changes += 1;
        self.logged = Some((text.to_owned(), Instant::now()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_is_due_when_its_reason_changes_but_not_without_end() {
        let mut warning = RepeatedWarning::default();
        let due = ["a", "a", "b", "b", "a"].map(|reason| warning.is_due(reason));
        assert_eq!(due, [true, false, true, false, true]);
        let mut warning = RepeatedWarning::default();
        assert!(!(0..10_000_u32).all(|number| warning.is_due(&number.to_string())));
    }
}
