//! When the limits let a letter go: by its organization, the user who caused it, and its mailbox.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use crate::error::Result;
use crate::ids::{OrganizationId, UserId};
use crate::store::Tx;
use crate::time::Timestamp;

use super::mailbox::mailbox;
use super::outbox::Letter;
use super::sent;

/// The limits at one moment in one transaction. Each organization, user and mailbox is looked up once.
#[derive(Default)]
pub(super) struct Limits {
    organizations: HashMap<OrganizationId, Option<Timestamp>>,
    users: HashMap<UserId, Option<Timestamp>>,
    mailboxes: HashMap<String, Option<Timestamp>>,
}

impl Limits {
    /// When `letter` may go; `None` if it may go now.
    pub(super) fn free_at(
        &mut self,
        tx: &impl Tx,
        letter: &Letter,
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        // An announcement goes to nobody by itself.
        if letter.about.address().is_none() {
            return Ok(None);
        }
        match self.organization_free_at(tx, letter.organization, now)? {
            None => self.letter_free_at(tx, letter, now),
            held => Ok(held),
        }
    }

    /// When the next mail of `organization` may go; `None` if it may go now.
    pub(super) fn organization_free_at(
        &mut self,
        tx: &impl Tx,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        known(&mut self.organizations, organization, |organization| {
            sent::organization_free_at(tx, *organization, now)
        })
    }

    /// When the user and the mailbox let `letter` go; `None` if it may go now.
    pub(super) fn letter_free_at(
        &mut self,
        tx: &impl Tx,
        letter: &Letter,
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        let by_user = match letter.about.user() {
            Some(user) => known(&mut self.users, user, |user| sent::user_free_at(tx, *user, now))?,
            None => None,
        };
        let Some(address) = letter.about.address().filter(|_| by_user.is_none()) else {
            return Ok(by_user);
        };
        known(&mut self.mailboxes, mailbox(address), |mailbox| {
            sent::mailbox_free_at(tx, mailbox, now)
        })
    }
}

fn known<K: Eq + Hash>(
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
