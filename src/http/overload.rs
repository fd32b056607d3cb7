//! Requests that were refused because a limit is in use, in the log: a line a second at most, however many they are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;

/// How far apart two lines are.
const EVERY: Duration = Duration::from_secs(1);
/// How many limits one line tells apart.
const LIMITS: usize = 16;

/// Counts refused requests, and logs their number. Clones count together.
#[derive(Clone, Default)]
pub(super) struct OverloadLog(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    counts: Counts,
    /// Whether a task is under way that will log what is counted.
    is_scheduled: bool,
}

/// How many requests each limit refused.
#[derive(Default)]
struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn add(&mut self, limit: &str) {
        if let Some(count) = self.0.get_mut(limit) {
            *count += 1;
            return;
        }
        let limit = if self.0.len() < LIMITS { limit } else { "other limits" };
        *self.0.entry(limit.to_owned()).or_default() += 1;
    }

    fn log(&self) {
        let count: u64 = self.0.values().sum();
        tracing::warn!(target: super::around::TARGET, count, limits = %self, "requests refused: limits are in use");
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
    /// Counts a request that this limit refused. The first one is logged at once, those of each second after it
    /// in one line.
    pub(super) fn count(&self, limit: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.counts.add(limit);
        if state.is_scheduled {
            return;
        }
        let counts = std::mem::take(&mut state.counts);
        // Outside of a runtime nothing can be scheduled, and each is logged.
        state.is_scheduled = Handle::try_current().is_ok_and(|runtime| {
            runtime.spawn(self.clone().log_each_second());
            true
        });
        drop(state);
        counts.log();
    }

    async fn log_each_second(self) {
        loop {
            sleep(EVERY).await;
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
