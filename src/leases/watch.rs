//! What a worker knows of the lease of its duty.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;

use crate::time::{Clock, Timestamp};

use super::{Duty, LEASE_TIME};

/// The leases that this process has.
#[derive(Debug, Default)]
pub(super) struct HeldLeases {
    /// When the lease of each duty ends.
    pub(super) ends: BTreeMap<Duty, Timestamp>,
    /// How often other nodes changed leases.
    pub(super) foreign_changes: u64,
}

impl HeldLeases {
    /// Whether the lease of `duty` lasts for this time from `now` on.
    fn lasts_for(&self, duty: Duty, time: Duration, now: Timestamp) -> bool {
        self.ends.get(&duty).is_some_and(|end| end.is_end_of_current(LEASE_TIME, now.plus(time)))
    }
}

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
        let lasts = |(duty, held): &(Duty, watch::Receiver<HeldLeases>)| {
            held.borrow().lasts_for(*duty, time, now)
        };
        self.held.as_ref().is_none_or(lasts)
    }

    /// Waits until this process may work for this time. Returns false if it never will, because it stops or leaves the work
    /// to others.
    pub async fn wait_until_held_for(&mut self, time: Duration, clock: &Clock) -> bool {
        let Some((duty, held)) = &mut self.held else { return true };
        held.wait_for(|held| held.lasts_for(*duty, time, clock.now())).await.is_ok()
    }
}
