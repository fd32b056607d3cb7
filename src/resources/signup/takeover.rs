//! The takeover of an account that was created by a link: what it deletes, and the mail that confirms it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::ids::OutboxMessageId;
use crate::mail::outbox::{self, Notification};
use crate::resources::api_keys;
use crate::resources::invites::Invite;
use crate::resources::members;
use crate::resources::users::{UnverifiedAccount, User};
use crate::secret::SeededRng;
use crate::store::{Tx, WriteTx};
use crate::time::Timestamp;

/// An account that was created with the invite's address by a link, and what taking it over deletes.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnprovenAccount {
    /// When the account was created.
    created_at: Timestamp,
    /// The number of its API keys. Taking over the account revokes them.
    api_keys: usize,
    /// The number of organizations that it belongs to. Taking over the account removes it from them.
    organizations: usize,
    /// The number of organizations of which it is the only member. Taking over the account deletes them and everything
    /// in them.
    organizations_deleted: usize,
}

impl UnprovenAccount {
    pub(super) fn of(tx: &impl Tx, account: UnverifiedAccount) -> Result<Self> {
        let memberships = members::organizations_of(tx, account.user)?;
        let mut organizations_deleted = 0;
        for member in &memberships {
            organizations_deleted += usize::from(members::is_last_member(tx, member)?);
        }
        Ok(Self {
            created_at: account.at,
            api_keys: tx.keys(&api_keys::BY_USER, &account.user, usize::MAX)?.len(),
            organizations: memberships.len(),
            organizations_deleted,
        })
    }
}

/// Queues the mail that confirms the takeover to the owner of the address. Ignores the limit on queued mails of the
/// organization, because an accepted invite queues at most one.
pub(super) fn enqueue_notice(
    tx: &mut WriteTx<'_>,
    invite: &Invite,
    account: UnverifiedAccount,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let to = tx.get::<User>(&account.user)?.fields.email;
    let about = Notification::TakenOver { user: account.user, to, since: account.at };
    outbox::enqueue_always(tx, OutboxMessageId(rng.uuid(now)), invite.meta.organization, about, now)
}
