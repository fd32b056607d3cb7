//! Who waits because their last mail took the mail server long: organizations and users that cause slow mails have a
//! bounded part of the time in which mails are sent.

use std::collections::HashMap;
use std::time::Duration;

use crate::ids::{OrganizationId, UserId};
use crate::time::Timestamp;

use super::outbox::Letter;

/// How long an attempt takes that is not slow.
const QUICK: Duration = Duration::from_secs(1);
/// How many times as long as a slow attempt its organization and its user wait for the next one.
const PAUSE: u32 = 4;

/// The organizations and users that wait, and until when.
#[derive(Default)]
pub(super) struct Pauses {
    organizations: HashMap<OrganizationId, Timestamp>,
    users: HashMap<UserId, Timestamp>,
}

impl Pauses {
    /// Notes an attempt at `letter` that took `took` and ended at `now`.
    pub(super) fn add(&mut self, letter: &Letter, took: Duration, now: Timestamp) {
        if took < QUICK {
            return;
        }
        let until = now.plus(took.saturating_mul(PAUSE));
        self.organizations.insert(letter.organization, until);
        if let Some(user) = letter.about.user() {
            self.users.insert(user, until);
        }
    }

    /// Forgets what is over at `now`.
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.organizations.retain(|_, until| *until > now);
        self.users.retain(|_, until| *until > now);
    }

    /// Until when the mails of an organization wait, if they do.
    pub(super) fn organization_free_at(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.organizations.get(&organization).copied().filter(|until| *until > now)
    }

    /// Until when a letter waits, if it does.
    pub(super) fn letter_free_at(&self, letter: &Letter, now: Timestamp) -> Option<Timestamp> {
        let by_user = letter.about.user().and_then(|user| self.users.get(&user).copied());
        let by_user = by_user.filter(|until| *until > now);
        self.organization_free_at(letter.organization, now).max(by_user)
    }
}
