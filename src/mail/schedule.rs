//! The order in which mails are sent. Organizations take turns. Each turn reads a limited number of rows, however
//! many mails are in the outbox.
//!
//! The schedule is in memory. It is built from the index by organization when the mail worker starts. After that,
//! notifications add the organizations with new mails.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use uuid::Uuid;

use crate::error::Result;
use crate::ids::{OrganizationId, OutboxMessageId};
use crate::store::{Row, Tx};
use crate::time::Timestamp;

use super::mailbox::mailbox;
use super::outbox::{BY_ORGANIZATION, MAX_RETRY_DELAY, OutboxMessage};
use super::pauses::Pauses;
use super::send_limits::SendLimits;
use super::sent_log;

/// The maximum number of organizations in one batch.
const MAX_ORGANIZATIONS_PER_BATCH: usize = 20;
/// The maximum number of an organization's mails that one turn reads.
const MAX_READ_PER_ORGANIZATION: usize = 100;
/// The maximum number of an organization's mails that one turn sends. With one, the turn ends after each attempt.
const MAX_SENT_PER_ORGANIZATION: usize = 1;
/// The maximum number of organizations that one batch adds from the index.
const MAX_SEARCHED_PER_BATCH: usize = 100;

/// The mails of a batch, and when the next batch is due.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) messages: Vec<OutboxMessage>,
    /// Whether some records of sent mails have expired. They must be deleted before the next mail is sent.
    pub(super) has_expired_records: bool,
    pub(super) next_at: Option<Timestamp>,
    /// The mailboxes of `messages`.
    mailboxes: HashSet<String>,
}

/// The organizations that have mails, ordered by their next turns.
pub(super) struct Schedule {
    queues: HashMap<OrganizationId, OrganizationQueue>,
    /// Ordered by time, then by how long ago the organization's last turn was.
    due_order: BTreeMap<(Timestamp, u64), OrganizationId>,
    next_position: u64,
    /// The organization from which the index is still to be searched; `None` when the search is complete.
    search_from: Option<OrganizationId>,
    planned_at: Option<Timestamp>,
    /// The pauses after slow attempts.
    pub(super) pauses: Pauses,
}

/// An empty schedule. It begins with a search of the index.
impl Default for Schedule {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            due_order: BTreeMap::new(),
            next_position: 0,
            search_from: Some(OrganizationId(Uuid::nil())),
            planned_at: None,
            pauses: Pauses::default(),
        }
    }
}

/// The state of an organization's mails.
#[derive(Default)]
struct OrganizationQueue {
    /// The organization's key in [`Schedule::due_order`].
    position: Option<(Timestamp, u64)>,
    /// The last mail that was read, in the order of the index. The limits do not yet allow the remaining mails up to
    /// it.
    last_seen: Option<(Timestamp, OutboxMessageId)>,
    /// The earliest time at which the limits allow one of those mails.
    free_at: Option<Timestamp>,
}

impl Schedule {
    /// Records a new mail of `organization` that is due at `due_at`.
    pub(super) fn add(&mut self, organization: OrganizationId, due_at: Timestamp) {
        let queue = self.queues.entry(organization).or_default();
        if queue.last_seen.is_some_and(|(seen, _)| due_at <= seen) {
            let before = Timestamp::from_micros(due_at.micros().saturating_sub(1));
            queue.last_seen = Some((before, OutboxMessageId(Uuid::max())));
        }
        self.schedule_at(organization, due_at);
    }

    /// Searches the whole index again, because the outbox changed in an unknown way. The pauses stay.
    pub(super) fn search_again(&mut self) {
        self.search_from = Self::default().search_from;
        for queue in self.queues.values_mut() {
            (queue.last_seen, queue.free_at) = (None, None);
        }
    }

    /// Records that a mail of `organization` that was read may be sent at `free_at`.
    pub(super) fn wait(&mut self, organization: OrganizationId, free_at: Timestamp) {
        let queue = self.queues.entry(organization).or_default();
        queue.free_at = queue.free_at.into_iter().chain([free_at]).min();
        self.schedule_at(organization, free_at);
    }

    /// Gives `organization` a turn at `moment`, after the others with that time.
    fn schedule_at(&mut self, organization: OrganizationId, moment: Timestamp) {
        let queue = self.queues.entry(organization).or_default();
        if queue.position.is_some_and(|(known, _)| known <= moment) {
            return;
        }
        if let Some(turn) = queue.position.replace((moment, self.next_position)) {
            self.due_order.remove(&turn);
        }
        self.due_order.insert((moment, self.next_position), organization);
        self.next_position += 1;
    }

    /// Returns the mails that may be sent at `now`.
    pub(super) fn plan(&mut self, tx: &impl Tx, now: Timestamp) -> Result<Batch> {
        let clock_was_set_back = self.planned_at.is_some_and(|at| now < at);
        if clock_was_set_back {
            *self = Self::default();
        }
        self.planned_at = Some(now);
        let (mut batch, mut limits) = (Batch::default(), SendLimits::default());
        let expires_at = sent_log::expires_at(tx, now)?;
        if expires_at.is_some_and(|moment| moment <= now) {
            // The limits are correct only after the expired records are deleted.
            return Ok(Batch { has_expired_records: true, next_at: Some(now), ..batch });
        }
        self.search(tx, now)?;
        self.pauses.forget(now);
        let first_turn = self.next_position;
        for _ in 0..MAX_ORGANIZATIONS_PER_BATCH {
            let Some((&turn, &organization)) = self.due_order.first_key_value() else { break };
            // An organization has at most one turn in a batch.
            if turn.0 > now || turn.1 >= first_turn {
                break;
            }
            self.due_order.remove(&turn);
            let mut queue = self.queues.remove(&organization).unwrap_or_default();
            queue.position = None;
            let pauses = &self.pauses;
            let looked = queue.scan(tx, organization, now, (&mut limits, pauses), &mut batch)?;
            if let Some(moment) = looked {
                self.queues.insert(organization, queue);
                self.schedule_at(organization, moment);
            }
        }
        let next_turn = self.due_order.first_key_value().map(|((moment, _), _)| *moment);
        let next_search = self.search_from.map(|_| now);
        batch.next_at = [expires_at, next_turn, next_search].into_iter().flatten().min();
        Ok(batch)
    }

    /// Continues the search of the index for organizations with mails.
    fn search(&mut self, tx: &impl Tx, now: Timestamp) -> Result<()> {
        for _ in 0..MAX_SEARCHED_PER_BATCH {
            let Some(from) = self.search_from else { break };
            let mut found = None;
            tx.walk_from(&BY_ORGANIZATION, &(), &from, |row| {
                found = Some(row.meta.organization);
                Ok(ControlFlow::Break(()))
            })?;
            let after = |found: OrganizationId| found.0.as_u128().checked_add(1);
            self.search_from =
                found.and_then(after).map(|next| OrganizationId(Uuid::from_u128(next)));
            if let Some(found) = found {
                self.schedule_at(found, now);
            }
        }
        Ok(())
    }
}

impl OrganizationQueue {
    /// Adds mails that may be sent to the batch. Returns when the next turn is due, or `None` if no mail is left.
    ///
    /// For an organization that has used up its limit, this takes one look-up, however many mails it has.
    fn scan(
        &mut self,
        tx: &impl Tx,
        organization: OrganizationId,
        now: Timestamp,
        (limits, pauses): (&mut SendLimits, &Pauses),
        batch: &mut Batch,
    ) -> Result<Option<Timestamp>> {
        let held = limits.organization_free_at(tx, organization, now)?;
        let held = held.max(pauses.organization_free_at(organization, now));
        if held.is_some() {
            return Ok(held);
        }
        if self.free_at.is_some_and(|moment| moment <= now) {
            (self.last_seen, self.free_at) = (None, None);
        }
        let mut scan = QueueScan { queue: self, limits, pauses, batch, now, read: 0, sent: 0 };
        let (due_at, id) =
            scan.queue.last_seen.unwrap_or((Timestamp::MIN, OutboxMessageId(Uuid::nil())));
        let mut next_due = None;
        let mut all_read = true;
        tx.walk_from(&BY_ORGANIZATION, &organization, &(organization, due_at, id), |row| {
            let at = (row.meta.due_at, row.meta.id);
            if scan.queue.last_seen == Some(at) {
                return Ok(ControlFlow::Continue(()));
            }
            if at.0 > now {
                next_due = Some(at.0);
                return Ok(ControlFlow::Break(()));
            }
            if scan.is_full() {
                all_read = false;
                return Ok(ControlFlow::Break(()));
            }
            scan.read(tx, row)?;
            scan.queue.last_seen = Some(at);
            Ok(ControlFlow::Continue(()))
        })?;
        // A mail that is due later than the longest wait was delayed by a clock that has since been set back.
        let (ahead, read) = (now.plus(MAX_RETRY_DELAY), scan.read);
        tx.walk_from(&BY_ORGANIZATION, &organization, &(organization, ahead), |row| {
            if scan.is_full() {
                // The mails that were read before need not be read again next time.
                all_read &= read == 0;
                return Ok(ControlFlow::Break(()));
            }
            if row.meta.due_at > ahead {
                scan.read(tx, row)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if !all_read || scan.sent > 0 {
            return Ok(Some(now));
        }
        Ok(scan.queue.free_at.into_iter().chain(next_due).min())
    }
}

/// One turn of an organization.
struct QueueScan<'l> {
    queue: &'l mut OrganizationQueue,
    limits: &'l mut SendLimits,
    pauses: &'l Pauses,
    batch: &'l mut Batch,
    now: Timestamp,
    read: usize,
    sent: usize,
}

impl QueueScan<'_> {
    fn is_full(&self) -> bool {
        self.read >= MAX_READ_PER_ORGANIZATION || self.sent >= MAX_SENT_PER_ORGANIZATION
    }

    /// Adds a mail to the batch if the limits allow it. A second mail to the same mailbox waits for the outcome of
    /// the first.
    fn read(&mut self, tx: &impl Tx, row: Row<'_, OutboxMessage>) -> Result<()> {
        self.read += 1;
        let message = row.meta;
        let held = self.limits.message_free_at(tx, &message, self.now)?;
        let held = held.max(self.pauses.message_free_at(&message, self.now));
        let mut held = held.filter(|_| !message.is_expired(self.now));
        if held.is_none()
            && let Some(address) = message.about.address()
            && !self.batch.mailboxes.insert(mailbox(address))
        {
            held = Some(self.now);
        }
        if held.is_some() {
            self.queue.free_at = self.queue.free_at.into_iter().chain(held).min();
        } else {
            self.sent += 1;
            self.batch.messages.push(message);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
