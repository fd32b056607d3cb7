//! The next step for a mail, and its outcome.

use crate::error::{Error, Result};
use crate::ids::OutboxMessageId;
use crate::secret::Seed;
use crate::store::{Snapshot, Tx, WriteTx};
use crate::time::Timestamp;

use super::compose::{ComposeMail, Composed, Delivery, MailContent};
use super::mailbox::mailbox;
use super::outbox::{self, Notification, OutboxMessage};
use super::send_limits::SendLimits;
use super::sent_log::SentMail;

/// The reason for giving up a mail that is too old to be retried.
const EXPIRED: &str = "The mail could not be sent in time.";
/// The reason for giving up a mail whose subject matter no longer exists or no longer needs it.
const OBSOLETE: &str = "The mail became obsolete before it was sent.";

/// The next step for a mail.
pub(super) enum NextAction {
    /// Do nothing: the mail was removed.
    Skip,
    /// Wait until this time, at which the limits allow the mail.
    Wait(Timestamp),
    /// Send this text.
    Send(MailContent),
    /// Record this outcome.
    Record(Outcome),
}

/// The outcome of a mail.
#[derive(Clone)]
pub(super) enum Outcome {
    /// The server accepted the mail.
    Accepted,
    /// The attempt failed and is to be repeated. It counts against the organization and the user. If the server may
    /// have accepted the mail, it counts against the mailbox too.
    Failed {
        /// Whether the server may have accepted the mail.
        unsure: bool,
        /// The reason, for the users that may see the mail's state.
        reason: String,
    },
    /// The mail is not sent, for this reason.
    Dropped(&'static str),
    /// These mails replace it.
    Replaced(Vec<Notification>),
}

impl NextAction {
    pub(super) fn of(
        tx: &Snapshot,
        outbox_message: &OutboxMessage,
        composer: &dyn ComposeMail,
        now: Timestamp,
    ) -> Result<Self> {
        if !tx.exists::<OutboxMessage>(&outbox_message.id)? {
            return Ok(Self::Skip);
        }
        let OutboxMessage { id, organization, attempts, .. } = outbox_message;
        if outbox_message.is_expired(now) {
            tracing::error!(outbox_message = %id, %organization, attempts, "gave up a mail");
            return Ok(Self::Record(Outcome::Dropped(EXPIRED)));
        }
        if let Some(moment) = SendLimits::default().free_at(tx, outbox_message, now)? {
            return Ok(Self::Wait(moment));
        }
        match (composer.compose(tx, outbox_message, now)?, outbox_message.about.address()) {
            (Composed::Content(message), Some(_)) => Ok(Self::Send(message)),
            (Composed::Content(_), None) => Err(Error::internal("a mail has no recipient")),
            (Composed::Replace(abouts), _) => Ok(Self::Record(Outcome::Replaced(abouts))),
            (Composed::Obsolete, _) => Ok(Self::Record(Outcome::Dropped(OBSOLETE))),
        }
    }
}

impl Outcome {
    /// Records the outcome of `message`. This may run twice, if the first commit was not acknowledged, and the mail
    /// may have been removed in between.
    pub(super) fn record(
        &self,
        tx: &mut WriteTx<'_>,
        message: &OutboxMessage,
        composer: &dyn ComposeMail,
        seed: &Seed,
        now: Timestamp,
    ) -> Result<()> {
        let waits = match self {
            Self::Failed { .. } => tx.exists::<OutboxMessage>(&message.id)?,
            _ => tx.remove::<OutboxMessage>(&message.id)?.is_some(),
        };
        let may_be_sent = match self {
            Self::Accepted => Some(true),
            Self::Failed { unsure, .. } => Some(*unsure),
            Self::Dropped(_) | Self::Replaced(_) => None,
        };
        if let Some(may_be_sent) = may_be_sent {
            let address = message.about.address().filter(|_| may_be_sent);
            tx.put(&SentMail {
                at: now,
                outbox_message: message.id,
                organization: message.organization,
                mailbox: address.map(mailbox).unwrap_or_default(),
                user: message.about.user(),
            })?;
        }
        if let Some(delivery) = self.delivery().filter(|_| waits) {
            match composer.record(tx, message, &delivery, now) {
                // Without the outcome, this mail would stop all others.
                Err(error) if error.status() == 500 => {
                    let id = message.id;
                    tracing::error!(outbox_message = %id, %error, "could not store the state of a mail");
                }
                recorded => recorded?,
            }
        }
        match self {
            Self::Failed { .. } if waits => tx.put(&message.rescheduled(now)),
            Self::Replaced(abouts) if waits => {
                let mut rng = seed.rng();
                let messages =
                    abouts.iter().map(|about| (OutboxMessageId(rng.uuid(now)), about.clone()));
                outbox::enqueue_announcements(tx, messages, message.organization, now)
            }
            _ => Ok(()),
        }
    }

    /// Returns what became of the mail, or `None` if other mails replace it.
    fn delivery(&self) -> Option<Delivery> {
        match self {
            Self::Accepted => Some(Delivery::Sent),
            Self::Failed { reason, .. } => Some(Delivery::Failed(reason.clone())),
            Self::Dropped(reason) => Some(Delivery::GivenUp(reason)),
            Self::Replaced(_) => None,
        }
    }
}
