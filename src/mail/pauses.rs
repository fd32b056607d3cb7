//! Pauses after slow mails. An organization or user that caused a slow attempt pauses, so that it takes at most a
//! fixed share of the sending time.

use std::collections::HashMap;
use std::time::Duration;

use crate::ids::{OrganizationId, UserId};
use crate::time::Timestamp;

use super::outbox::OutboxMessage;

/// Attempts shorter than this cause no pause.
const SLOW_ATTEMPT: Duration = Duration::from_secs(1);
/// The length of a pause, as a multiple of the slow attempt.
const PAUSE_FACTOR: u32 = 4;

/// The paused organizations and users, with the end of each pause.
#[derive(Default)]
pub(super) struct Pauses {
    organizations: HashMap<OrganizationId, Timestamp>,
    users: HashMap<UserId, Timestamp>,
}

impl Pauses {
    /// Records an attempt to send `message` that took `took` and ended at `now`.
    pub(super) fn add(&mut self, message: &OutboxMessage, took: Duration, now: Timestamp) {
        if took < SLOW_ATTEMPT {
            return;
        }
        let until = now.plus(took.saturating_mul(PAUSE_FACTOR));
        self.organizations.insert(message.organization, until);
        if let Some(user) = message.about.user() {
            self.users.insert(user, until);
        }
    }

    /// Removes the pauses that have ended.
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.organizations.retain(|_, until| *until > now);
        self.users.retain(|_, until| *until > now);
    }

    /// Returns the end of the organization's pause, if it pauses.
    pub(super) fn organization_free_at(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.organizations.get(&organization).copied().filter(|until| *until > now)
    }

    /// Returns the end of the pause of the mail's organization or user, whichever is later.
    pub(super) fn message_free_at(
        &self,
        message: &OutboxMessage,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let by_user = message.about.user().and_then(|user| self.users.get(&user).copied());
        let by_user = by_user.filter(|until| *until > now);
        self.organization_free_at(message.organization, now).max(by_user)
    }
}
