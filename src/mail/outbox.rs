//! The outbox: the mails that are not yet sent, stored in the data file.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ids::{InviteId, OrganizationId, OutboxMessageId, UserId};
use crate::store::{Index, Key, Snapshot, Table, Tx, WriteTx, impl_record};
use crate::time::Timestamp;

/// The wait after the first failed attempt. It doubles with each further one.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The longest wait between two attempts.
pub(super) const MAX_RETRY_DELAY: Duration = Duration::from_hours(1);
/// How long a mail is retried before it is dropped.
const MAX_MESSAGE_AGE: Duration = Duration::from_hours(72);
/// More attempts than a mail has within [`MAX_MESSAGE_AGE`]. A mail that was written while the clock stood ahead ends with
/// them.
const MAX_ATTEMPTS: u32 = 100;
/// The maximum number of mails of one organization in the outbox: as many as it may have pending invites by default,
/// and as many as its rate limit allows in ten hours.
pub const MAX_QUEUED: u64 = 1_000;
/// The number of mails up to which an announcement is added. It leaves half of the outbox to invites.
const MAX_QUEUED_FOR_ANNOUNCEMENTS: u64 = MAX_QUEUED / 2;

/// A mail in the outbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboxMessage {
    /// The mail's id. The mail of an invite has the invite's id.
    pub id: OutboxMessageId,
    /// The organization that sends the mail.
    pub organization: OrganizationId,
    /// The subject and the recipient.
    pub about: Notification,
    /// When the mail was added to the outbox.
    pub written_at: Timestamp,
    /// When the next attempt is due.
    pub due_at: Timestamp,
    /// The number of failed attempts.
    pub attempts: u32,
}

/// The subject and the recipient of a mail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Notification {
    /// Invites the recipient to join.
    Invite {
        /// The invite.
        invite: InviteId,
        /// The invite's address.
        to: String,
        /// The user that sent the invite. It is stored here, because the mail counts against this user even after the
        /// invite is deleted.
        by: UserId,
    },
    /// Announces a new member to all admins and owners of the organization. It is replaced by a mail to each of them.
    Joining {
        /// The new member.
        user: UserId,
    },
    /// Announces a new member to one admin or owner.
    Joined {
        /// The new member.
        user: UserId,
        /// The recipient's address.
        to: String,
    },
    /// Tells the address of an unverified account that its owner has verified it and taken over the account.
    TakenOver {
        /// The account's user.
        user: UserId,
        /// The account's address.
        to: String,
        /// When the account was created.
        since: Timestamp,
    },
}

impl Notification {
    /// Returns the recipient's address, or `None` for an announcement to several.
    pub fn address(&self) -> Option<&str> {
        match self {
            Self::Invite { to, .. } | Self::Joined { to, .. } | Self::TakenOver { to, .. } => {
                Some(to)
            }
            Self::Joining { .. } => None,
        }
    }

    /// Returns the user against whose limit the mail counts. Only invites count against a user.
    pub(super) fn user(&self) -> Option<UserId> {
        match self {
            Self::Invite { by, .. } => Some(*by),
            Self::Joining { .. } | Self::Joined { .. } | Self::TakenOver { .. } => None,
        }
    }
}

impl OutboxMessage {
    /// Returns the mail after a failed attempt at `now`: the wait doubles with each attempt, up to the longest wait.
    #[must_use]
    pub(super) fn rescheduled(&self, now: Timestamp) -> Self {
        let doubled = 1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX);
        let wait = FIRST_RETRY_DELAY.saturating_mul(doubled).min(MAX_RETRY_DELAY);
        Self { attempts: self.attempts.saturating_add(1), due_at: now.plus(wait), ..self.clone() }
    }

    /// Returns whether the mail is too old to be retried.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.written_at.plus(MAX_MESSAGE_AGE) < now || self.attempts > MAX_ATTEMPTS
    }
}

/// The mails of an organization in the order in which they are due.
pub(super) const BY_ORGANIZATION: Index<OutboxMessage, (OrganizationId, Timestamp)> =
    Index::many(Table::OutboxByOrganization, |outbox_message| {
        Some((outbox_message.organization, outbox_message.due_at))
    });

impl_record!(OutboxMessage {
    table: Outbox,
    key: |message| -> OutboxMessageId { message.id },
    indexes: [&BY_ORGANIZATION],
    counts: [|outbox_message| Some(outbox_message.organization.encoded())],
    owner: |message, _| Ok(Some(message.organization.owner())),
});

/// Adds a mail to the outbox, due at once.
///
/// # Errors
/// 400 `limit_reached` if the organization has [`MAX_QUEUED`] mails in the outbox; 500 or 503 if the file cannot be
/// read or written.
pub fn enqueue(
    tx: &mut WriteTx<'_>,
    id: OutboxMessageId,
    organization: OrganizationId,
    about: Notification,
    now: Timestamp,
) -> Result<()> {
    if tx.count::<OutboxMessage>(&organization)? >= MAX_QUEUED {
        let text = "This organization has the maximum number of mails waiting to be sent";
        return Err(Error::limit_reached(format!("{text} ({MAX_QUEUED}).")));
    }
    enqueue_always(tx, id, organization, about, now)
}

/// Adds a mail to the outbox, due at once, without checking the maximum number. The caller must limit the number of
/// such mails.
pub fn enqueue_always(
    tx: &mut WriteTx<'_>,
    id: OutboxMessageId,
    organization: OrganizationId,
    about: Notification,
    now: Timestamp,
) -> Result<()> {
    tx.put(&OutboxMessage { id, organization, about, written_at: now, due_at: now, attempts: 0 })
}

/// Adds unimportant mails to the outbox, while they leave half of the organization's maximum to invites. The number
/// of dropped mails is logged.
pub fn enqueue_announcements(
    tx: &mut WriteTx<'_>,
    messages: impl IntoIterator<Item = (OutboxMessageId, Notification)>,
    organization: OrganizationId,
    now: Timestamp,
) -> Result<()> {
    let mut dropped = 0_usize;
    for (id, about) in messages {
        if tx.count::<OutboxMessage>(&organization)? < MAX_QUEUED_FOR_ANNOUNCEMENTS {
            enqueue_always(tx, id, organization, about, now)?;
        } else {
            dropped += 1;
        }
    }
    if dropped > 0 {
        tracing::warn!(%organization, dropped, "dropped announcements: the organization has too many mails in the outbox");
    }
    Ok(())
}

/// Removes a mail from the outbox, if it is still there.
pub fn cancel(tx: &mut WriteTx<'_>, id: OutboxMessageId) -> Result<()> {
    tx.remove::<OutboxMessage>(&id).map(drop)
}

/// Returns a mail, if it is still in the outbox.
pub fn find(tx: &impl Tx, id: OutboxMessageId) -> Result<Option<OutboxMessage>> {
    tx.meta::<OutboxMessage>(&id)
}

/// Returns the number of mails in the outbox, without reading them.
pub fn queued_count(tx: &Snapshot) -> Result<u64> {
    tx.len(Table::Outbox)
}
