//! Which mails are sent next.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::time::Duration;

use crate::error::Result;
use crate::ids::OrganizationId;
use crate::store::{Order, Row, Tx};
use crate::time::Timestamp;

use super::outbox::{self, BY_DUE_AT, OutboxMessage};
use super::pace::{self, MAX_WAIT, Paces};

/// The maximum number of due mails that one plan reads.
const MAX_READ: usize = 1_000;
/// How many of these stay due if more are due, those that come first. The others wait, so that the next plan reads further.
const MAX_KEPT: usize = MAX_READ / 2;
/// How long the others wait.
const CROWDED_WAIT: Duration = Duration::from_mins(1);

/// What to do with the mails that are due.
#[derive(Default)]
pub(super) struct Plan {
    /// The mails to send. No two of these and of the current mails have an organization, a user or a mailbox in common.
    pub(super) messages: Vec<OutboxMessage>,
    /// The mails to delay, with their new times: those that the limits do not allow yet, and those that would keep others
    /// out of the next plan.
    pub(super) postponed: Vec<(OutboxMessage, Timestamp)>,
    /// Whether records of attempts have expired.
    pub(super) has_expired_paces: bool,
    /// When a mail is due or a record expires next.
    pub(super) next_at: Option<Timestamp>,
}

impl Plan {
    /// Plans up to `count` mails beside `current`, the mails that are being sent.
    pub(super) fn new(
        tx: &impl Tx,
        current: &[OutboxMessage],
        count: usize,
        now: Timestamp,
    ) -> Result<Self> {
        let (mut paces, mut taken) = (Paces::new(tx, now), HashSet::new());
        for message in current {
            let keys = message.pace_keys();
            // Otherwise its attempt is counted already, or the mail was cancelled.
            if outbox::find(tx, message.id)?.as_ref() == Some(message) {
                paces.reserve(&keys)?;
            }
            taken.extend(keys);
        }
        let (due, next_due) = due_messages(tx, current, now)?;
        let is_crowded = due.len() >= MAX_READ;
        let (mut plan, mut later) = (Self::default(), Vec::new());
        for (place, message) in take_turns(due, &mut paces)?.into_iter().enumerate() {
            let keys = message.pace_keys();
            let free_at = if message.is_expired(now) { now } else { paces.reserve(&keys)? };
            if free_at > now {
                plan.postponed.push((message, free_at));
            } else if plan.messages.len() < count && keys.iter().all(|key| !taken.contains(key)) {
                taken.extend(keys);
                plan.messages.push(message);
            } else if place >= MAX_KEPT {
                later.push((message, now.plus(CROWDED_WAIT)));
            }
        }
        if is_crowded && plan.postponed.is_empty() {
            plan.postponed = later;
        }
        let expires_at = pace::expires_at(tx, now)?;
        plan.has_expired_paces = expires_at.is_some_and(|expires_at| expires_at <= now);
        plan.next_at = next_due.into_iter().chain(expires_at).min();
        Ok(plan)
    }
}

/// Returns the first mails that are due, without the current ones, and when the next one is due.
fn due_messages(
    tx: &impl Tx,
    current: &[OutboxMessage],
    now: Timestamp,
) -> Result<(Vec<OutboxMessage>, Option<Timestamp>)> {
    let (mut due, mut next_due) = (Vec::new(), None);
    let mut add = |message: OutboxMessage| {
        if current.iter().all(|current| current.id != message.id) {
            due.push(message);
        }
        if due.len() < MAX_READ { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    tx.walk_until(&BY_DUE_AT, &(), 0, Order::Ascending, |row: Row<'_, OutboxMessage>| {
        if row.meta.due_at > now {
            next_due = Some(row.meta.due_at);
            return Ok(ControlFlow::Break(()));
        }
        Ok(add(row.meta))
    })?;
    // A mail that is due later than the longest wait was delayed before the clock was set back.
    let last = now.plus(MAX_WAIT);
    tx.walk_from(&BY_DUE_AT, &(), &last, |row: Row<'_, OutboxMessage>| {
        if row.meta.due_at > last { Ok(add(row.meta)) } else { Ok(ControlFlow::Continue(())) }
    })?;
    Ok((due, next_due))
}

/// Orders mails so that the organizations take turns, and those whose last attempt is the longest ago come first.
fn take_turns<T: Tx>(
    messages: Vec<OutboxMessage>,
    paces: &mut Paces<'_, T>,
) -> Result<Vec<OutboxMessage>> {
    let mut rounds: HashMap<OrganizationId, usize> = HashMap::new();
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
        let round = rounds.entry(message.organization).or_default();
        turns.push((*round, paces.last_attempt(message.organization)?, message));
        *round += 1;
    }
    turns.sort_by_key(|(round, last_attempt, _)| (*round, *last_attempt));
    Ok(turns.into_iter().map(|(_, _, message)| message).collect())
}
