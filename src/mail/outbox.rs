//! The outbox: mails that wait to be sent, durable like everything else.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ids::{InviteId, LetterId, OrganizationId, UserId};
use crate::store::{Count, Index, Indexed, Key, Owner, Record, Snapshot, Table, Tx, WriteTx};
use crate::time::Timestamp;

/// How long after the first failed attempt a letter is tried again; it doubles with each.
const FIRST_RETRY: Duration = Duration::from_secs(5);
/// The longest wait between two attempts.
pub(super) const LONGEST_RETRY: Duration = Duration::from_hours(1);
/// For how long a letter is tried.
const PATIENCE: Duration = Duration::from_hours(72);
/// How many letters of one organization may wait: as many as it may have invites pending by default, and what its limit
/// lets go in ten hours.
pub const MAX_WAITING: u64 = 1_000;
/// How many letters of one organization may wait for an announcement to be added: announcements leave half of the
/// places to invites.
const MAX_WAITING_TO_ANNOUNCE: u64 = MAX_WAITING / 2;

/// A mail that waits to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// Its id; an invite's letter has the invite's own.
    pub id: LetterId,
    /// The organization in whose name it is sent.
    pub organization: OrganizationId,
    /// What it tells.
    pub about: About,
    /// When it was written.
    pub written_at: Timestamp,
    /// When it is to be sent, or sent again.
    pub due_at: Timestamp,
    /// How often it was tried in vain.
    pub attempts: u32,
}

/// What a letter tells, and to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum About {
    /// To an invite's address: how to join.
    Invite {
        /// The invite.
        invite: InviteId,
        /// Its address.
        to: String,
        /// Who invites. It is kept here because a mail counts against this user after the invite is gone.
        by: Option<UserId>,
    },
    /// To each of the organization's admins and owners: who joined. Becomes a letter to each of them.
    Joining {
        /// Who joined.
        user: UserId,
    },
    /// To one of them.
    Joined {
        /// Who joined.
        user: UserId,
        /// The address.
        to: String,
    },
    /// To the address of an account that a link had made: the owner of the address took the account over.
    TakenOver {
        /// The account.
        user: UserId,
        /// Its address.
        to: String,
        /// Since when it existed.
        since: Timestamp,
    },
}

impl About {
    /// The one address it goes to, where there is one.
    pub fn address(&self) -> Option<&str> {
        match self {
            Self::Invite { to, .. } | Self::Joined { to, .. } | Self::TakenOver { to, .. } => {
                Some(to)
            }
            Self::Joining { .. } => None,
        }
    }

    /// The user against whose limit it counts, if any. All but invites count against the organization alone.
    pub(super) fn user(&self) -> Option<UserId> {
        match self {
            Self::Invite { by, .. } => *by,
            Self::Joining { .. } | Self::Joined { .. } | Self::TakenOver { .. } => None,
        }
    }
}

impl Letter {
    /// This letter once it was tried in vain at `now` (decisions §4, Invite).
    #[must_use]
    pub(super) fn put_off(&self, now: Timestamp) -> Self {
        let doubled = 1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX);
        let wait = FIRST_RETRY.saturating_mul(doubled).min(LONGEST_RETRY);
        Self { attempts: self.attempts.saturating_add(1), due_at: now.plus(wait), ..self.clone() }
    }

    /// Whether it has waited for too long to be sent at all.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        self.written_at.plus(PATIENCE) < now
    }
}

/// The letters of an organization in the order in which they are due.
pub(super) const BY_ORGANIZATION: Index<Letter, (OrganizationId, Timestamp)> =
    Index::many(Table::OutboxByOrganization, |letter| Some((letter.organization, letter.due_at)));

impl Record for Letter {
    const TABLE: Table = Table::Outbox;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_ORGANIZATION];
    const COUNTS: &'static [Count<Self>] =
        &[Count::per(|letter| Some(letter.organization.encoded()))];
    type Key = LetterId;
    type Head = Self;
    type Shown = ();

    fn key(&self) -> LetterId {
        self.id
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.organization.owner()))
    }
}

/// Puts a letter into the outbox, to be sent at once.
///
/// # Errors
/// 400 `limit_reached` if [`MAX_WAITING`] letters of the organization wait; 500 or 503 when the file cannot be read or
/// written.
pub fn post(
    tx: &mut WriteTx<'_>,
    id: LetterId,
    organization: OrganizationId,
    about: About,
    now: Timestamp,
) -> Result<()> {
    if tx.count::<Letter>(&organization)? >= MAX_WAITING {
        let text = "This organization has as many mails waiting to be sent as it may have";
        return Err(Error::limit_reached(format!("{text} ({MAX_WAITING}).")));
    }
    post_always(tx, id, organization, about, now)
}

/// Puts a letter into the outbox, to be sent at once, however many letters of its organization wait. What posts it
/// bounds how many there are.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn post_always(
    tx: &mut WriteTx<'_>,
    id: LetterId,
    organization: OrganizationId,
    about: About,
    now: Timestamp,
) -> Result<()> {
    tx.put(&Letter { id, organization, about, written_at: now, due_at: now, attempts: 0 })
}

/// Puts letters into the outbox that nothing depends on, as far as they leave half of the places of their organization
/// to invites. The log tells how many were dropped.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn announce(
    tx: &mut WriteTx<'_>,
    letters: impl IntoIterator<Item = (LetterId, About)>,
    organization: OrganizationId,
    now: Timestamp,
) -> Result<()> {
    let mut dropped = 0_usize;
    for (id, about) in letters {
        if tx.count::<Letter>(&organization)? < MAX_WAITING_TO_ANNOUNCE {
            post_always(tx, id, organization, about, now)?;
        } else {
            dropped += 1;
        }
    }
    if dropped > 0 {
        tracing::warn!(%organization, dropped, "announcements were dropped: too many mails of the organization wait");
    }
    Ok(())
}

/// Takes a letter back that was not sent yet, if it was not.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn withdraw(tx: &mut WriteTx<'_>, id: LetterId) -> Result<()> {
    tx.remove::<Letter>(&id).map(drop)
}

/// How many letters wait, without a walk.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn waiting(tx: &Snapshot) -> Result<u64> {
    tx.len(Table::Outbox)
}
