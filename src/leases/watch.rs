//! What a worker knows of the lease of its duty.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;

use crate::time::{Clock, Timestamp};

use super::Duty;

/// The duties whose leases this process has, and when these end.
pub(super) type HeldLeases = BTreeMap<Duty, Timestamp>;

/// Tells a worker whether this process has the lease of its duty.
#[derive(Debug, Clone)]
pub struct LeaseWatch {
    /// `None` if the work needs no lease.
    held: Option<(Duty, watch::Receiver<HeldLeases>)>,
}

impl LeaseWatch {
    /// Returns the watch of a worker on a data file, which needs no lease.
    pub const fn unneeded() -> Self {
        Self { held: None }
    }

    pub(super) const fn of(duty: Duty, held: watch::Receiver<HeldLeases>) -> Self {
        Self { held: Some((duty, held)) }
    }

    /// Whether this process may work at `now`, and for this time afterwards.
    pub fn is_held_for(&self, time: Duration, now: Timestamp) -> bool {
        let lasts = |end: &Timestamp| now.plus(time) < *end;
        self.held.as_ref().is_none_or(|(duty, held)| held.borrow().get(duty).is_some_and(lasts))
    }

    /// Waits until this process may work for this time. Returns false if it never will, because it stops or leaves the work
    /// to others.
    pub async fn wait_until_held_for(&mut self, time: Duration, clock: &Clock) -> bool {
        let Some((duty, held)) = &mut self.held else { return true };
        let lasts = |end: &Timestamp| clock.now().plus(time) < *end;
        held.wait_for(|held| held.get(duty).is_some_and(lasts)).await.is_ok()
    }
}
