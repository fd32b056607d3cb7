//! The outbox: the mails that are not yet sent, stored in the data file.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::ids::{InviteId, OrganizationId, OutboxMessageId, UserId};
use crate::store::{Index, Key, Raw, Snapshot, Table, Tx, WriteTx, impl_record};

use super::mailbox::mailbox;
use super::pace::{self, PaceKey};

/// The wait after the first failed attempt. It doubles with each further one.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The longest wait between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_hours(1);
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
    /// When the mail was added, or when the wait after its last failed attempt ends. Responses show this time and not
    /// `due_at`, which depends on the mails of other organizations.
    pub retry_at: Timestamp,
    /// When the limits allow the next attempt, as far as is known: at `retry_at` or later.
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
}

impl OutboxMessage {
    /// Returns the limits against which the mail counts. Only invites count against a user.
    pub(super) fn pace_keys(&self) -> Vec<PaceKey> {
        let mut keys = vec![PaceKey::Organization(self.organization)];
        if let Notification::Invite { by, .. } = self.about {
            keys.push(PaceKey::User(by));
        }
        keys.extend(self.about.address().map(|address| PaceKey::Mailbox(mailbox(address))));
        keys
    }

    /// Returns whether the mail is too old to be retried.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.written_at.plus(MAX_MESSAGE_AGE) < now || self.attempts > MAX_ATTEMPTS
    }
}

/// The mails in the order in which they are due.
pub(super) const BY_DUE_AT: Index<OutboxMessage, Timestamp> =
    Index::many(Table::OutboxByDueAt, |outbox_message| Some(outbox_message.due_at));

impl_record!(OutboxMessage {
    table: Outbox,
    key: |message| -> OutboxMessageId { message.id },
    indexes: [&BY_DUE_AT],
    counts: [|outbox_message| Some(outbox_message.organization.encoded())],
    owner: |message, _| Ok(Some(message.organization.owner())),
});

/// Fails if the organization has [`MAX_QUEUED`] mails in the outbox.
///
/// # Errors
/// 400 `limit_reached`.
pub fn require_room(tx: &dyn Raw, organization: OrganizationId) -> Result<()> {
    if tx.count::<OutboxMessage>(&organization)? >= MAX_QUEUED {
        let text = "This organization has the maximum number of mails waiting to be sent";
        return Err(Error::limit_reached(format!("{text} ({MAX_QUEUED}).")));
    }
    Ok(())
}

/// Adds a mail to the outbox, due when the limits allow it. The caller limits the number of such mails.
pub fn enqueue(
    tx: &mut WriteTx<'_>,
    id: OutboxMessageId,
    organization: OrganizationId,
    about: Notification,
    now: Timestamp,
) -> Result<()> {
    let (written_at, retry_at, due_at) = (now, now, now);
    let message =
        OutboxMessage { id, organization, about, written_at, retry_at, due_at, attempts: 0 };
    let due_at = pace::free_at(tx, message.pace_keys(), now)?;
    tx.put(&OutboxMessage { due_at, ..message })
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
            enqueue(tx, id, organization, about, now)?;
        } else {
            dropped += 1;
        }
    }
    if dropped > 0 {
        tracing::warn!(%organization, dropped, "dropped announcements: the organization has too many mails in the outbox");
    }
    Ok(())
}

/// Stores a mail after a failed attempt at `now`. The wait doubles with each attempt, up to the longest wait.
pub(super) fn retry(tx: &mut WriteTx<'_>, message: &OutboxMessage, now: Timestamp) -> Result<()> {
    let doubled = 1_u32.checked_shl(message.attempts).unwrap_or(u32::MAX);
    let wait = FIRST_RETRY_DELAY.saturating_mul(doubled).min(MAX_RETRY_DELAY);
    let retry_at = now.plus(wait);
    let due_at = retry_at.max(pace::free_at(tx, message.pace_keys(), now)?);
    let attempts = message.attempts.saturating_add(1);
    tx.put(&OutboxMessage { retry_at, due_at, attempts, ..message.clone() })
}

/// Delays mails to these times. Mails that changed since they were read stay as they are.
pub(super) fn postpone(
    tx: &mut WriteTx<'_>,
    postponed: &[(OutboxMessage, Timestamp)],
) -> Result<()> {
    for (message, due_at) in postponed {
        if find(tx, message.id)?.as_ref() == Some(message) {
            tx.put(&OutboxMessage { due_at: *due_at, ..message.clone() })?;
        }
    }
    Ok(())
}

/// Removes a mail from the outbox, if it is still there.
pub fn cancel(tx: &mut WriteTx<'_>, id: OutboxMessageId) -> Result<()> {
    tx.remove::<OutboxMessage>(&id).map(drop)
}

/// Returns a mail, if it is still in the outbox.
pub fn find(tx: &dyn Raw, id: OutboxMessageId) -> Result<Option<OutboxMessage>> {
    tx.meta::<OutboxMessage>(&id)
}

/// Returns the number of mails in the outbox, without reading them.
pub fn queued_count(tx: &Snapshot) -> Result<u64> {
    tx.len(Table::Outbox)
}
