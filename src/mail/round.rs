//! One round of the postman: what may go, what is to be done about a letter, what became of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::ids::{LetterId, OrganizationId};
use crate::secret::Seed;
use crate::store::{Order, Snapshot, Tx, WriteTx};
use crate::time::Timestamp;

use super::compose::{Compose, Composed, Message};
use super::outbox::{self, About, BY_DUE, LONGEST_RETRY, Letter};
use super::sent::{self, Sent};

/// How many letters one round looks up at the most.
const ROUND: usize = 100;
/// How many of them may be one organization's, so that none holds up the others' for long.
const SHARE: usize = 5;

/// What may go, and when to look again.
#[derive(Default)]
pub(super) struct Round {
    pub(super) letters: Vec<Letter>,
    /// Whether records of sent mails count no longer.
    pub(super) forget: bool,
    pub(super) next: Option<Timestamp>,
}

/// What to do about a letter.
pub(super) enum Step {
    /// Nothing for now.
    Leave,
    /// Send it.
    Send(Message),
    /// Write down what became of it.
    Settle(Outcome),
}

/// What became of a letter.
#[derive(Clone)]
pub(super) enum Outcome {
    /// The server has it.
    Accepted,
    /// It is to be tried again. Where nobody knows whether the server has it, it counts as sent besides.
    Failed {
        /// Whether nobody knows.
        unsure: bool,
    },
    /// It is not to be sent any more.
    Dropped,
    /// These take its place.
    Replaced(Vec<About>),
}

impl Round {
    /// Looks up what may go at `now`. Letters that are due beyond the longest wait were put off under a clock
    /// that was set back since: they may go too.
    pub(super) fn plan(tx: &Snapshot, now: Timestamp) -> Result<Self> {
        let mut round = Self::default();
        let mut limits = Limits::default();
        let mut shares: HashMap<OrganizationId, usize> = HashMap::new();
        let ahead = now.plus(LONGEST_RETRY);
        for order in [Order::Ascending, Order::Descending] {
            tx.walk_until(&BY_DUE, &(), 0, order, |row| {
                let letter = row.head;
                let may_go = match order {
                    Order::Ascending => letter.due_at <= now,
                    Order::Descending => letter.due_at > ahead,
                };
                if !may_go || round.letters.len() == ROUND {
                    // The least of those ahead; from the other end it may be one that the limits hold.
                    let least = (order == Order::Ascending).then_some(letter.due_at);
                    round.look_again(least);
                    return Ok(ControlFlow::Break(()));
                }
                match limits.free_at(tx, &letter, now)? {
                    Some(moment) if !letter.is_stale(now) => round.look_again(Some(moment)),
                    _ => {
                        let share = shares.entry(letter.organization).or_default();
                        if *share < SHARE {
                            *share += 1;
                            round.letters.push(letter);
                        }
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        let expires_at = sent::expires_at(tx, now)?;
        round.forget = expires_at.is_some_and(|moment| moment <= now);
        round.look_again(expires_at);
        Ok(round)
    }

    fn look_again(&mut self, moment: Option<Timestamp>) {
        self.next = self.next.into_iter().chain(moment).min();
    }
}

/// The limits as one round met them: each address and organization is looked up once.
#[derive(Default)]
struct Limits {
    organizations: HashMap<OrganizationId, Option<Timestamp>>,
    addresses: HashMap<String, Option<Timestamp>>,
}

impl Limits {
    /// When to look at a letter again that the limits hold; none when it may go at once.
    fn free_at(
        &mut self,
        tx: &Snapshot,
        letter: &Letter,
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        // An announcement goes to nobody by itself.
        let Some(address) = letter.about.address() else { return Ok(None) };
        let organization = match self.organizations.entry(letter.organization) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                *new.insert(sent::organization_free_at(tx, letter.organization, now)?)
            }
        };
        if organization.is_some() {
            return Ok(organization);
        }
        match self.addresses.entry(sent::counted(address)) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(new) => {
                let free_at = sent::address_free_at(tx, new.key(), now)?;
                Ok(*new.insert(free_at))
            }
        }
    }
}

impl Step {
    pub(super) fn of(
        tx: &Snapshot,
        letter: &Letter,
        composer: &dyn Compose,
        now: Timestamp,
    ) -> Result<Self> {
        if !tx.exists::<Letter>(&letter.id)? {
            return Ok(Self::Leave);
        }
        let Letter { id, organization, attempts, .. } = letter;
        if letter.is_stale(now) {
            tracing::error!(letter = %id, %organization, attempts, "a mail was given up");
            return Ok(Self::Settle(Outcome::Dropped));
        }
        if Limits::default().free_at(tx, letter, now)?.is_some() {
            return Ok(Self::Leave);
        }
        match (composer.compose(tx, letter, now)?, letter.about.address()) {
            (Composed::Message(message), Some(_)) => Ok(Self::Send(message)),
            (Composed::Message(_), None) => Err(Error::internal("a mail goes to nobody")),
            (Composed::Letters(abouts), _) => Ok(Self::Settle(Outcome::Replaced(abouts))),
            (Composed::Moot, _) => Ok(Self::Settle(Outcome::Dropped)),
        }
    }
}

impl Outcome {
    /// Writes down what became of `letter`. It may run after its own commit, when that was not acknowledged;
    /// and the letter may have been withdrawn meanwhile.
    pub(super) fn settle(
        &self,
        tx: &mut WriteTx<'_>,
        letter: &Letter,
        seed: &Seed,
        now: Timestamp,
    ) -> Result<()> {
        let waits = match self {
            Self::Failed { .. } => tx.exists::<Letter>(&letter.id)?,
            _ => tx.remove::<Letter>(&letter.id)?.is_some(),
        };
        if let Self::Accepted | Self::Failed { unsure: true } = self {
            tx.put(&Sent {
                at: now,
                letter: letter.id,
                organization: letter.organization,
                address: letter.about.address().map(sent::counted).unwrap_or_default(),
            })?;
        }
        match self {
            Self::Failed { .. } if waits => tx.put(&letter.put_off(now)),
            Self::Replaced(abouts) if waits => {
                let mut draw = seed.draw();
                abouts.iter().try_for_each(|about| {
                    let id = LetterId(draw.uuid(now));
                    outbox::post(tx, id, letter.organization, about.clone(), now)
                })
            }
            _ => Ok(()),
        }
    }
}
