//! What the store tells the postman after a commit: which organizations have new letters.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::ids::OrganizationId;
use crate::store::{Row, Table, WriteTx};
use crate::time::Timestamp;

use super::outbox::Letter;
use super::schedule::Schedule;

/// What a write put into the outbox.
#[derive(Debug, Default)]
pub(super) struct Posted {
    /// Whether it is not known what changed.
    anything: bool,
    /// The first moment at which a new letter of an organization is due.
    organizations: HashMap<OrganizationId, Timestamp>,
}

impl Posted {
    /// Whatever may be in the outbox.
    pub(super) fn anything() -> Self {
        Self { anything: true, ..Self::default() }
    }

    /// What the write under way put into the outbox; `None` if it put nothing there.
    pub(super) fn by(tx: &WriteTx<'_>) -> Option<Self> {
        let mut posted = None;
        for change in tx.changes().iter().filter(|change| change.table == Table::Outbox) {
            let Some(after) = &change.after else { continue };
            let posted = posted.get_or_insert_with(Self::default);
            match Row::<Letter>::read(after) {
                Ok(Row { head, .. }) => posted.add(head.organization, head.due_at),
                Err(_) => posted.anything = true,
            }
        }
        posted
    }

    fn add(&mut self, organization: OrganizationId, due_at: Timestamp) {
        let first = self.organizations.entry(organization).or_insert(due_at);
        *first = due_at.min(*first);
    }
}

/// Hands what was posted to the postman, and wakes it.
#[derive(Debug, Default)]
pub(super) struct Notices {
    posted: Mutex<Posted>,
    arrived: Notify,
}

impl Notices {
    /// Adds a notice and wakes the postman.
    pub(super) fn add(&self, new: Posted) {
        let mut posted = self.posted.lock().unwrap_or_else(PoisonError::into_inner);
        posted.anything |= new.anything;
        for (organization, due_at) in new.organizations {
            posted.add(organization, due_at);
        }
        drop(posted);
        self.arrived.notify_one();
    }

    /// Waits for a notice.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Moves all notices into the schedule.
    pub(super) fn take_into(&self, schedule: &mut Schedule) {
        let posted =
            std::mem::take(&mut *self.posted.lock().unwrap_or_else(PoisonError::into_inner));
        if posted.anything {
            *schedule = Schedule::default();
        }
        for (organization, due_at) in posted.organizations {
            schedule.add(organization, due_at);
        }
    }
}
