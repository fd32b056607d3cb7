//! Logs requests that were refused because a limit was reached, at most one line per second.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;

use super::log_context::LOG_TARGET;

/// The time between two lines.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// The most limits that one line names.
const MAX_NAMED_LIMITS: usize = 16;

/// Counts refused requests and logs their number. Clones share the counts.
#[derive(Clone, Default)]
pub(super) struct OverloadLog(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    counts: Counts,
    /// Whether a task is scheduled to log the counts.
    is_scheduled: bool,
}

/// The number of refused requests per limit.
#[derive(Default)]
struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn add(&mut self, limit: &str) {
        if let Some(count) = self.0.get_mut(limit) {
            *count += 1;
            return;
        }
        let limit = if self.0.len() < MAX_NAMED_LIMITS { limit } else { "other limits" };
        *self.0.entry(limit.to_owned()).or_default() += 1;
    }

    fn log(&self) {
        let count: u64 = self.0.values().sum();
        tracing::warn!(target: LOG_TARGET, count, limits = %self, "requests refused: limits reached");
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (limit, count)) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            write!(f, "{limit} ({count})")?;
        }
        Ok(())
    }
}

impl OverloadLog {
    /// Counts a request that `limit` refused. The first one is logged at once, later ones in one line per second.
    pub(super) fn count(&self, limit: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.counts.add(limit);
        if state.is_scheduled {
            return;
        }
        let counts = std::mem::take(&mut state.counts);
        // Without a runtime nothing can be scheduled, so every refusal is logged.
        state.is_scheduled = Handle::try_current().is_ok_and(|runtime| {
            runtime.spawn(self.clone().log_each_second());
            true
        });
        drop(state);
        counts.log();
    }

    async fn log_each_second(self) {
        loop {
            sleep(LOG_INTERVAL).await;
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let counts = std::mem::take(&mut state.counts);
            state.is_scheduled = !counts.0.is_empty();
            drop(state);
            if counts.0.is_empty() {
                return;
            }
            counts.log();
        }
    }
}
