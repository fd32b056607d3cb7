//! Notifications from committed writes to the mail worker: the organizations that have new mails.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::ids::OrganizationId;
use crate::store::{Row, Table, WriteTx};
use crate::time::Timestamp;

use super::outbox::OutboxMessage;
use super::schedule::Schedule;

/// The changes of the outbox since the worker last looked.
#[derive(Debug, Default)]
pub(super) struct NewMessages {
    /// Whether any organization may have new mails.
    is_unknown: bool,
    /// Whether another node changed the outbox.
    is_of_other_node: bool,
    /// The earliest time at which a new mail of each organization is due.
    organizations: HashMap<OrganizationId, Timestamp>,
}

impl NewMessages {
    /// Reports that any organization may have new mails.
    pub(super) fn unknown() -> Self {
        Self { is_unknown: true, ..Self::default() }
    }

    /// Reports that another node changed the outbox.
    pub(super) fn of_other_node() -> Self {
        Self { is_of_other_node: true, ..Self::default() }
    }

    /// Returns what the write added to the outbox, or `None` if it added nothing.
    pub(super) fn of_write(tx: &WriteTx<'_>) -> Option<Self> {
        let mut posted = None;
        for change in tx.changes().iter().filter(|change| change.table == Table::Outbox) {
            let Some(after) = &change.after else { continue };
            let posted = posted.get_or_insert_with(Self::default);
            let due = |row: Row<'_, OutboxMessage>| Ok((row.meta.organization, row.meta.due_at));
            match Row::visit(after, due) {
                Ok((organization, due_at)) => posted.add(organization, due_at),
                Err(_) => posted.is_unknown = true,
            }
        }
        posted
    }

    fn add(&mut self, organization: OrganizationId, due_at: Timestamp) {
        let first = self.organizations.entry(organization).or_insert(due_at);
        *first = due_at.min(*first);
    }
}

/// Collects notifications for the mail worker, and wakes it.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    pending: Mutex<NewMessages>,
    arrived: Notify,
}

impl Notifier {
    /// Adds a notification and wakes the mail worker.
    pub(super) fn add(&self, new: NewMessages) {
        let mut posted = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        posted.is_unknown |= new.is_unknown;
        posted.is_of_other_node |= new.is_of_other_node;
        for (organization, due_at) in new.organizations {
            posted.add(organization, due_at);
        }
        drop(posted);
        self.arrived.notify_one();
    }

    /// Waits for a notification.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Moves all notifications into the schedule.
    pub(super) fn take_into(&self, schedule: &mut Schedule) {
        let posted =
            std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        if posted.is_unknown {
            *schedule = Schedule::default();
        }
        if posted.is_of_other_node {
            schedule.search_again();
        }
        for (organization, due_at) in posted.organizations {
            schedule.add(organization, due_at);
        }
    }
}
