//! The earliest time at which the rate limits allow a mail: those of its organization, its user and its mailbox.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use crate::error::Result;
use crate::ids::{OrganizationId, UserId};
use crate::store::Tx;
use crate::time::Timestamp;

use super::mailbox::mailbox;
use super::outbox::OutboxMessage;
use super::sent_log;

/// The rate limits in one transaction. Each organization, user and mailbox is looked up once.
#[derive(Default)]
pub(super) struct SendLimits {
    organizations: HashMap<OrganizationId, Option<Timestamp>>,
    users: HashMap<UserId, Option<Timestamp>>,
    mailboxes: HashMap<String, Option<Timestamp>>,
}

impl SendLimits {
    /// Returns when `message` may be sent, or `None` if it may be sent now.
    pub(super) fn free_at(
        &mut self,
        tx: &impl Tx,
        message: &OutboxMessage,
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        // An announcement is replaced by mails to its recipients, so it needs no limit.
        if message.about.address().is_none() {
            return Ok(None);
        }
        match self.organization_free_at(tx, message.organization, now)? {
            None => self.message_free_at(tx, message, now),
            held => Ok(held),
        }
    }

    /// Returns when the next mail of `organization` may be sent, or `None` if it may be sent now.
    pub(super) fn organization_free_at(
        &mut self,
        tx: &impl Tx,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        cached(&mut self.organizations, organization, |organization| {
            sent_log::organization_free_at(tx, *organization, now)
        })
    }

    /// Returns when the limits of the user and the mailbox allow `message`, or `None` if it may be sent now.
    pub(super) fn message_free_at(
        &mut self,
        tx: &impl Tx,
        message: &OutboxMessage,
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        let by_user = match message.about.user() {
            Some(user) => {
                cached(&mut self.users, user, |user| sent_log::user_free_at(tx, *user, now))?
            }
            None => None,
        };
        let Some(address) = message.about.address().filter(|_| by_user.is_none()) else {
            return Ok(by_user);
        };
        cached(&mut self.mailboxes, mailbox(address), |mailbox| {
            sent_log::mailbox_free_at(tx, mailbox, now)
        })
    }
}

fn cached<K: Eq + Hash>(
    moments: &mut HashMap<K, Option<Timestamp>>,
    key: K,
    look_up: impl FnOnce(&K) -> Result<Option<Timestamp>>,
) -> Result<Option<Timestamp>> {
    match moments.entry(key) {
        Entry::Occupied(known) => Ok(*known.get()),
        Entry::Vacant(new) => {
            let moment = look_up(new.key())?;
            Ok(*new.insert(moment))
        }
    }
}
