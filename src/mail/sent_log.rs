//! The mails of the last hour, and the rate limits that derive from them: one mail a minute to a mailbox, and 100
//! mails an hour for an organization and for the invites of a user. Failed attempts count like mails, except against
//! the mailbox.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{OrganizationId, OutboxMessageId, UserId};
use crate::store::{Index, Key, Order, Row, Table, Tx, Window, WriteTx, impl_record};
use crate::time::Timestamp;

/// The minimum time between two mails to a mailbox.
const MAILBOX_INTERVAL: Duration = Duration::from_mins(1);
/// How long a mail counts against its organization and its user.
const QUOTA_WINDOW: Duration = Duration::from_hours(1);
/// The maximum number of mails of an organization, or of a user across all organizations, within an hour.
const MAX_PER_WINDOW: usize = 100;
/// The maximum number of records that one transaction deletes from each end of the table.
const DELETE_BATCH: usize = 250;

/// A mail that the mail server accepted, or a failed attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentMail {
    /// When the mail was sent.
    pub at: Timestamp,
    /// The mail's id in the outbox.
    pub outbox_message: OutboxMessageId,
    /// The organization that sent the mail.
    pub organization: OrganizationId,
    /// The recipient's mailbox in its canonical spelling, or empty if a failed attempt certainly delivered no
    /// mail.
    pub mailbox: String,
    /// The user that sent the invite, if the mail is an invite.
    pub user: Option<UserId>,
}

/// The mails to a mailbox, oldest first.
const BY_MAILBOX: Index<SentMail, String> =
    Index::many(Table::MailSentByAddress, |sent| Some(sent.mailbox.clone()));

/// The mails of an organization, oldest first.
const BY_ORGANIZATION: Index<SentMail, OrganizationId> =
    Index::many(Table::MailSentByOrganization, |sent| Some(sent.organization));

/// The invite mails of a user, oldest first.
const BY_USER: Index<SentMail, UserId> = Index::many(Table::MailSentByUser, |sent| sent.user);

impl_record!(SentMail {
    table: MailSent,
    key: |mail| -> (Timestamp, OutboxMessageId) { (mail.at, mail.outbox_message) },
    indexes: [&BY_MAILBOX, &BY_ORGANIZATION, &BY_USER],
    owner: |_, _| Ok(None),
});

/// Returns when the next mail may be sent to `mailbox`, or `None` if it may be sent now.
pub(super) fn mailbox_free_at(
    tx: &impl Tx,
    mailbox: &String,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    free_at(tx, &BY_MAILBOX, mailbox, 1, MAILBOX_INTERVAL, now)
}

/// Returns when the next invite of `user` may be sent, or `None` if it may be sent now.
pub(super) fn user_free_at(
    tx: &impl Tx,
    user: UserId,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    free_at(tx, &BY_USER, &user, MAX_PER_WINDOW, QUOTA_WINDOW, now)
}

/// Returns when the next mail of `organization` may be sent, or `None` if it may be sent now.
pub(super) fn organization_free_at(
    tx: &impl Tx,
    organization: OrganizationId,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    free_at(tx, &BY_ORGANIZATION, &organization, MAX_PER_WINDOW, QUOTA_WINDOW, now)
}

/// Returns when the `limit`th last mail leaves the window. If the clock was set back, that mail may be up to an hour
/// in the future; records from later than that are deleted.
fn free_at<K: Key>(
    tx: &impl Tx,
    index: &Index<SentMail, K>,
    key: &K,
    limit: usize,
    window: Duration,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let mut free_at = None;
    let at_limit = Window { offset: limit - 1, limit: 1, order: Order::Descending };
    tx.walk(index, key, at_limit, |row| {
        free_at = Some(row.meta.at.plus(window)).filter(|free_at| *free_at > now);
        Ok(())
    })?;
    Ok(free_at)
}

/// Returns when the next record expires, or `None` if there are no records. Only the past hour counts. A record from
/// more than an hour ahead was written before the clock was set back, and expires at once.
pub(super) fn expires_at(tx: &impl Tx, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut expires_at = None;
    for order in [Order::Ascending, Order::Descending] {
        let first = Window { offset: 0, limit: 1, order };
        tx.scan::<SentMail, _>(&(), first, |row| {
            let at = if is_expired(&row, now) { now } else { row.meta.at.plus(QUOTA_WINDOW) };
            expires_at = expires_at.min(Some(at)).or(Some(at));
            Ok(())
        })?;
    }
    Ok(expires_at)
}

fn is_expired(row: &Row<'_, SentMail>, now: Timestamp) -> bool {
    row.meta.at.plus(QUOTA_WINDOW) <= now || row.meta.at > now.plus(QUOTA_WINDOW)
}

/// Deletes expired records, up to a limited number.
pub(super) fn delete_expired(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
    let mut stale = Vec::new();
    for order in [Order::Ascending, Order::Descending] {
        let piece = Window { offset: 0, limit: DELETE_BATCH, order };
        tx.scan::<SentMail, _>(&(), piece, |row| {
            if is_expired(&row, now) {
                stale.push((row.meta.at, row.meta.outbox_message));
            }
            Ok(())
        })?;
    }
    stale.iter().try_for_each(|key| tx.remove::<SentMail>(key).map(drop))
}
