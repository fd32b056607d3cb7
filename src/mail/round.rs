//! What is to be done about a letter, and what became of it.

use crate::error::{Error, Result};
use crate::ids::LetterId;
use crate::secret::Seed;
use crate::store::{Snapshot, Tx, WriteTx};
use crate::time::Timestamp;

use super::compose::{Compose, Composed, Message};
use super::limits::Limits;
use super::mailbox::mailbox;
use super::outbox::{self, About, Letter};
use super::sent::Sent;

/// What to do about a letter.
pub(super) enum Step {
    /// Nothing: it is gone.
    Leave,
    /// Nothing before this moment, at which the limits let it go.
    Wait(Timestamp),
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
    /// It is to be tried again. The attempt counts against the organization and the user; if nobody knows whether the
    /// server has the mail, it counts against the mailbox too.
    Failed {
        /// Whether nobody knows.
        unsure: bool,
    },
    /// It is not to be sent any more.
    Dropped,
    /// These take its place.
    Replaced(Vec<About>),
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
        if let Some(moment) = Limits::default().free_at(tx, letter, now)? {
            return Ok(Self::Wait(moment));
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
        let may_be_sent = match self {
            Self::Accepted => Some(true),
            Self::Failed { unsure } => Some(*unsure),
            Self::Dropped | Self::Replaced(_) => None,
        };
        if let Some(may_be_sent) = may_be_sent {
            let address = letter.about.address().filter(|_| may_be_sent);
            tx.put(&Sent {
                at: now,
                letter: letter.id,
                organization: letter.organization,
                mailbox: address.map(mailbox).unwrap_or_default(),
                user: letter.about.user(),
            })?;
        }
        match self {
            Self::Failed { .. } if waits => tx.put(&letter.put_off(now)),
            Self::Replaced(abouts) if waits => {
                let mut draw = seed.draw();
                let letters = abouts.iter().map(|about| (LetterId(draw.uuid(now)), about.clone()));
                outbox::announce(tx, letters, letter.organization, now)
            }
            _ => Ok(()),
        }
    }
}
