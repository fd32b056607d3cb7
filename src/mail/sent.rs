//! What was sent within the hour, and what may be sent by that: to one mailbox at most one mail a minute, and a
//! hundred mails an hour for one organization and for the invites of one user, whatever the organization. Attempts
//! that fail count like mails, except against the mailbox.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{LetterId, OrganizationId, UserId};
use crate::store::{Index, Indexed, Key, Order, Owner, Record, Row, Table, Tx, Window, WriteTx};
use crate::time::Timestamp;

/// How long a mailbox gets no further mail.
const MINUTE: Duration = Duration::from_mins(1);
/// How long a mail counts against its organization and its user.
const HOUR: Duration = Duration::from_hours(1);
/// How many mails an organization, or a user over all organizations, may send within an hour.
const PER_HOUR: usize = 100;
/// How many records one transaction forgets at the most, from each end.
const PIECE: usize = 250;

/// A mail that the mail server accepted, or an attempt at one that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// When.
    pub at: Timestamp,
    /// Which letter it was.
    pub letter: LetterId,
    /// In whose name.
    pub organization: OrganizationId,
    /// To which mailbox, in the one spelling by which mails are counted; empty for an attempt that brought the mailbox
    /// no mail.
    pub mailbox: String,
    /// The user who caused it, if the mail invites somebody.
    pub user: Option<UserId>,
}

/// What went to a mailbox, oldest first.
const BY_MAILBOX: Index<Sent, String> =
    Index::many(Table::MailSentByAddress, |sent| Some(sent.mailbox.clone()));

/// What went out in the name of an organization, oldest first.
const BY_ORGANIZATION: Index<Sent, OrganizationId> =
    Index::many(Table::MailSentByOrganization, |sent| Some(sent.organization));

/// What a user caused, oldest first.
const BY_USER: Index<Sent, UserId> = Index::many(Table::MailSentByUser, |sent| sent.user);

impl Record for Sent {
    const TABLE: Table = Table::MailSent;
    const INDEXES: &'static [&'static dyn Indexed<Self>] =
        &[&BY_MAILBOX, &BY_ORGANIZATION, &BY_USER];
    type Key = (Timestamp, LetterId);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        (self.at, self.letter)
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(None)
    }
}

/// When the next mail may go to `mailbox`; `None` if one may go now.
pub(super) fn mailbox_free_at(
    tx: &impl Tx,
    mailbox: &String,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    free_at(tx, &BY_MAILBOX, mailbox, 1, MINUTE, now)
}

/// When the next mail may go out that `user` causes; `None` if one may go now.
pub(super) fn user_free_at(
    tx: &impl Tx,
    user: UserId,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    free_at(tx, &BY_USER, &user, PER_HOUR, HOUR, now)
}

/// When the next mail may go out in the name of `organization`; none when at once.
pub(super) fn organization_free_at(
    tx: &impl Tx,
    organization: OrganizationId,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    free_at(tx, &BY_ORGANIZATION, &organization, PER_HOUR, HOUR, now)
}

/// When the `limit`th mail from the end is `window` ago. A clock that was set back may have left it in the
/// future, but no further ahead than what is forgotten.
fn free_at<K: Key>(
    tx: &impl Tx,
    index: &Index<Sent, K>,
    key: &K,
    limit: usize,
    window: Duration,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let mut free_at = None;
    let at_limit = Window { offset: limit - 1, limit: 1, order: Order::Descending };
    tx.walk(index, key, at_limit, |row| {
        free_at = Some(row.head.at.plus(window)).filter(|free_at| *free_at > now);
        Ok(())
    })?;
    Ok(free_at)
}

/// When there is something to forget: the past hour is all that counts, and what lies more than an hour ahead
/// was written under a clock that was set back. None when nothing was sent.
pub(super) fn expires_at(tx: &impl Tx, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut expires_at = None;
    for order in [Order::Ascending, Order::Descending] {
        let first = Window { offset: 0, limit: 1, order };
        tx.scan::<Sent, _>(&(), first, |row| {
            let at = if is_stale(&row, now) { now } else { row.head.at.plus(HOUR) };
            expires_at = expires_at.min(Some(at)).or(Some(at));
            Ok(())
        })?;
    }
    Ok(expires_at)
}

fn is_stale(row: &Row<'_, Sent>, now: Timestamp) -> bool {
    row.head.at.plus(HOUR) <= now || row.head.at > now.plus(HOUR)
}

/// Forgets a bounded piece of what counts no longer.
pub(super) fn forget(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
    let mut stale = Vec::new();
    for order in [Order::Ascending, Order::Descending] {
        let piece = Window { offset: 0, limit: PIECE, order };
        tx.scan::<Sent, _>(&(), piece, |row| {
            if is_stale(&row, now) {
                stale.push((row.head.at, row.head.letter));
            }
            Ok(())
        })?;
    }
    stale.iter().try_for_each(|key| tx.remove::<Sent>(key).map(drop))
}
