//! Taking over an account that only a link made: what it ends, and the mail that tells of it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::ids::LetterId;
use crate::mail::outbox::{self, About};
use crate::resources::api_keys;
use crate::resources::invites::Invite;
use crate::resources::members;
use crate::resources::users::{LinkAccount, User};
use crate::secret::Draw;
use crate::store::{Tx, WriteTx};
use crate::time::Timestamp;

/// An account of an invite's address that only a link made, and what ends if it is taken over.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnprovenAccount {
    /// When the account was created.
    created_at: Timestamp,
    /// How many API keys it has. Taking the account over revokes them.
    api_keys: usize,
    /// To how many organizations it belongs. Taking the account over ends these memberships.
    organizations: usize,
    /// Of how many of these organizations it is the only member. Taking the account over deletes them with all that
    /// is in them.
    organizations_deleted: usize,
}

impl UnprovenAccount {
    pub(super) fn of(tx: &impl Tx, account: LinkAccount) -> Result<Self> {
        let memberships = members::organizations_of(tx, account.user)?;
        let mut organizations_deleted = 0;
        for member in &memberships {
            organizations_deleted += usize::from(members::is_alone(tx, member)?);
        }
        Ok(Self {
            created_at: account.at,
            api_keys: tx.keys(&api_keys::BY_USER, &account.user, usize::MAX)?.len(),
            organizations: memberships.len(),
            organizations_deleted,
        })
    }
}

/// Posts the mail that tells the owner of an address that the account was taken over. It is posted however many mails
/// of the organization wait: an accepted invite causes one at the most.
pub(super) fn post(
    tx: &mut WriteTx<'_>,
    invite: &Invite,
    account: LinkAccount,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<()> {
    let to = tx.get::<User>(&account.user)?.shown.email;
    let about = About::TakenOver { user: account.user, to, since: account.at };
    outbox::post_always(tx, LetterId(draw.uuid(now)), invite.head.organization, about, now)
}
