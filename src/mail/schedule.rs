//! Which organization's letters are looked at next. Organizations take turns, and each look reads a bounded number of
//! rows, however many letters wait.
//!
//! The schedule is in memory. It is built from the index by organization when the postman starts; from then on the
//! postman is told which organizations have new letters.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use uuid::Uuid;

use crate::error::Result;
use crate::ids::{LetterId, OrganizationId};
use crate::store::{Row, Tx};
use crate::time::Timestamp;

use super::limits::Limits;
use super::mailbox::mailbox;
use super::outbox::{BY_ORGANIZATION, LONGEST_RETRY, Letter};
use super::pauses::Pauses;
use super::sent;

/// How many organizations one round looks at.
const ORGANIZATIONS: usize = 20;
/// How many letters of one organization one look reads.
const LETTERS_READ: usize = 100;
/// How many letters of one organization one look sends. With one, an organization's turn ends with each attempt.
const LETTERS_SENT: usize = 1;
/// How many organizations one round searches the index for.
const SEARCHED: usize = 100;

/// What may go, and when to look again.
#[derive(Default)]
pub(super) struct Round {
    pub(super) letters: Vec<Letter>,
    /// Whether there are records of sent mails that no longer count. They are to be forgotten before any letter goes.
    pub(super) forget: bool,
    pub(super) next: Option<Timestamp>,
    /// The mailboxes of `letters`.
    mailboxes: HashSet<String>,
}

/// The organizations that have letters, by when to look at them.
pub(super) struct Schedule {
    queues: HashMap<OrganizationId, Queue>,
    /// By moment, then by how long ago the organization was looked at.
    turns: BTreeMap<(Timestamp, u64), OrganizationId>,
    next_turn: u64,
    /// From which organization on the index is still to be searched; `None` once it was searched to its end.
    search_from: Option<OrganizationId>,
    planned_at: Option<Timestamp>,
    /// Who waits after a slow attempt.
    pub(super) pauses: Pauses,
}

/// An empty schedule, which begins with a search of the index.
impl Default for Schedule {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            turns: BTreeMap::new(),
            next_turn: 0,
            search_from: Some(OrganizationId(Uuid::nil())),
            planned_at: None,
            pauses: Pauses::default(),
        }
    }
}

/// What is known of an organization's letters.
#[derive(Default)]
struct Queue {
    /// Its place in [`Schedule::turns`].
    turn: Option<(Timestamp, u64)>,
    /// The last letter looked at, in the order of the index. The limits held all up to it that are still there.
    seen: Option<(Timestamp, LetterId)>,
    /// The first moment at which the limits let one of those go.
    free_at: Option<Timestamp>,
}

impl Schedule {
    /// Notes that a letter of `organization` was written that is due at `due_at`.
    pub(super) fn add(&mut self, organization: OrganizationId, due_at: Timestamp) {
        let queue = self.queues.entry(organization).or_default();
        if queue.seen.is_some_and(|(seen, _)| due_at <= seen) {
            let before = Timestamp::from_micros(due_at.micros().saturating_sub(1));
            queue.seen = Some((before, LetterId(Uuid::max())));
        }
        self.look_at(organization, due_at);
    }

    /// Notes that a letter of `organization` that was looked at may go at `free_at`.
    pub(super) fn wait(&mut self, organization: OrganizationId, free_at: Timestamp) {
        let queue = self.queues.entry(organization).or_default();
        queue.free_at = queue.free_at.into_iter().chain([free_at]).min();
        self.look_at(organization, free_at);
    }

    /// Has `organization` looked at by `moment`, behind the others of that moment.
    fn look_at(&mut self, organization: OrganizationId, moment: Timestamp) {
        let queue = self.queues.entry(organization).or_default();
        if queue.turn.is_some_and(|(known, _)| known <= moment) {
            return;
        }
        if let Some(turn) = queue.turn.replace((moment, self.next_turn)) {
            self.turns.remove(&turn);
        }
        self.turns.insert((moment, self.next_turn), organization);
        self.next_turn += 1;
    }

    /// Looks up what may go at `now`.
    pub(super) fn plan(&mut self, tx: &impl Tx, now: Timestamp) -> Result<Round> {
        let clock_was_set_back = self.planned_at.is_some_and(|at| now < at);
        if clock_was_set_back {
            *self = Self::default();
        }
        self.planned_at = Some(now);
        let (mut round, mut limits) = (Round::default(), Limits::default());
        let expires_at = sent::expires_at(tx, now)?;
        if expires_at.is_some_and(|moment| moment <= now) {
            // The limits are right once it is forgotten.
            return Ok(Round { forget: true, next: Some(now), ..round });
        }
        self.search(tx, now)?;
        self.pauses.forget(now);
        let first_turn = self.next_turn;
        for _ in 0..ORGANIZATIONS {
            let Some((&turn, &organization)) = self.turns.first_key_value() else { break };
            // One that has just been looked at waits for the next round.
            if turn.0 > now || turn.1 >= first_turn {
                break;
            }
            self.turns.remove(&turn);
            let mut queue = self.queues.remove(&organization).unwrap_or_default();
            queue.turn = None;
            let pauses = &self.pauses;
            let looked = queue.look(tx, organization, now, (&mut limits, pauses), &mut round)?;
            if let Some(moment) = looked {
                self.queues.insert(organization, queue);
                self.look_at(organization, moment);
            }
        }
        let next_turn = self.turns.first_key_value().map(|((moment, _), _)| *moment);
        let next_search = self.search_from.map(|_| now);
        round.next = [expires_at, next_turn, next_search].into_iter().flatten().min();
        Ok(round)
    }

    /// Goes on with the search for organizations that have letters.
    fn search(&mut self, tx: &impl Tx, now: Timestamp) -> Result<()> {
        for _ in 0..SEARCHED {
            let Some(from) = self.search_from else { break };
            let mut found = None;
            tx.walk_from(&BY_ORGANIZATION, &(), &from, |row| {
                found = Some(row.head.organization);
                Ok(ControlFlow::Break(()))
            })?;
            let after = |found: OrganizationId| found.0.as_u128().checked_add(1);
            self.search_from =
                found.and_then(after).map(|next| OrganizationId(Uuid::from_u128(next)));
            if let Some(found) = found {
                self.look_at(found, now);
            }
        }
        Ok(())
    }
}

impl Queue {
    /// Adds letters that may go to the round. Returns when to look again, or `None` if no letter waits.
    ///
    /// An organization that has used up its quota costs one look-up, whatever waits.
    fn look(
        &mut self,
        tx: &impl Tx,
        organization: OrganizationId,
        now: Timestamp,
        (limits, pauses): (&mut Limits, &Pauses),
        round: &mut Round,
    ) -> Result<Option<Timestamp>> {
        let held = limits.organization_free_at(tx, organization, now)?;
        let held = held.max(pauses.organization_free_at(organization, now));
        if held.is_some() {
            return Ok(held);
        }
        if self.free_at.is_some_and(|moment| moment <= now) {
            (self.seen, self.free_at) = (None, None);
        }
        let mut look = Look { queue: self, limits, pauses, round, now, read: 0, sent: 0 };
        let (due_at, id) = look.queue.seen.unwrap_or((Timestamp::MIN, LetterId(Uuid::nil())));
        let mut next_due = None;
        let mut all_read = true;
        tx.walk_from(&BY_ORGANIZATION, &organization, &(organization, due_at, id), |row| {
            let at = (row.head.due_at, row.head.id);
            if look.queue.seen == Some(at) {
                return Ok(ControlFlow::Continue(()));
            }
            if at.0 > now {
                next_due = Some(at.0);
                return Ok(ControlFlow::Break(()));
            }
            if look.is_full() {
                all_read = false;
                return Ok(ControlFlow::Break(()));
            }
            look.read(tx, row)?;
            look.queue.seen = Some(at);
            Ok(ControlFlow::Continue(()))
        })?;
        // A letter that is due beyond the longest wait was put off under a clock that was set back since.
        let (ahead, read) = (now.plus(LONGEST_RETRY), look.read);
        tx.walk_from(&BY_ORGANIZATION, &organization, &(organization, ahead), |row| {
            if look.is_full() {
                // What was read before does not count the next time.
                all_read &= read == 0;
                return Ok(ControlFlow::Break(()));
            }
            if row.head.due_at > ahead {
                look.read(tx, row)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if !all_read || look.sent > 0 {
            return Ok(Some(now));
        }
        Ok(look.queue.free_at.into_iter().chain(next_due).min())
    }
}

/// One look at an organization's letters.
struct Look<'l> {
    queue: &'l mut Queue,
    limits: &'l mut Limits,
    pauses: &'l Pauses,
    round: &'l mut Round,
    now: Timestamp,
    read: usize,
    sent: usize,
}

impl Look<'_> {
    fn is_full(&self) -> bool {
        self.read >= LETTERS_READ || self.sent >= LETTERS_SENT
    }

    /// Adds a letter to the round, unless the limits hold it. The second letter to a mailbox in a round is looked at
    /// again when it is known what became of the first.
    fn read(&mut self, tx: &impl Tx, row: Row<'_, Letter>) -> Result<()> {
        self.read += 1;
        let letter = row.head;
        let held = self.limits.letter_free_at(tx, &letter, self.now)?;
        let held = held.max(self.pauses.letter_free_at(&letter, self.now));
        let mut held = held.filter(|_| !letter.is_stale(self.now));
        if held.is_none()
            && let Some(address) = letter.about.address()
            && !self.round.mailboxes.insert(mailbox(address))
        {
            held = Some(self.now);
        }
        if held.is_some() {
            self.queue.free_at = self.queue.free_at.into_iter().chain(held).min();
        } else {
            self.sent += 1;
            self.round.letters.push(letter);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
