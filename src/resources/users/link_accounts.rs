//! Accounts that were created by the link of an invite. Their addresses are unverified, so a user who verifies the
//! address may take over the account.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{OrganizationId, UserId};
use crate::store::{Reference, Tx, WriteTx, impl_record};
use crate::time::Timestamp;

use super::{NewUser, Profile, ProfileFields, User};

/// Marks an account that was created by accepting an invite with its link. Deleted when the address is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnverifiedAccount {
    /// The user of the account.
    pub user: UserId,
    /// The organization of the invite. It may have been deleted.
    pub organization: OrganizationId,
    /// The user that created the invite.
    pub invited_by: Option<UserId>,
    /// When the account was created.
    pub at: Timestamp,
}

impl_record!(UnverifiedAccount {
    table: LinkAccounts,
    key: |account| -> UserId { account.user },
    owner: |_, _| Ok(None),
    references: |account| [Reference::to::<User>(&account.user)],
});

/// Returns how the account was created, if a link created it and its address was never proven.
pub fn find_unproven(tx: &impl Tx, user: UserId) -> Result<Option<UnverifiedAccount>> {
    tx.meta::<UnverifiedAccount>(&user)
}

/// Marks the address of the user as verified.
///
/// # Errors
/// 404 if the user was deleted.
pub fn set_verified(tx: &mut WriteTx<'_>, id: UserId) -> Result<()> {
    let mut user: User = tx.get(&id)?;
    user.fields.is_email_verified = true;
    tx.put(&user)?;
    tx.remove::<UnverifiedAccount>(&id).map(drop)
}

/// Gives an account to the user that proved its address: replaces names and role, and resets the profile. The caller
/// must delete the account's keys and memberships.
///
/// # Errors
/// 404 if the user was deleted.
pub fn take_over(
    tx: &mut WriteTx<'_>,
    id: UserId,
    new: &NewUser,
    role: Option<String>,
) -> Result<()> {
    let mut user: User = tx.get(&id)?;
    user.meta.current_project = None;
    user.fields.first_name = new.first_name.clone().unwrap_or_default();
    user.fields.last_name = new.last_name.clone().unwrap_or_default();
    user.fields.role_at_organization = role;
    user.fields.hedgehog_config = None;
    tx.put(&user)?;
    tx.put(&Profile { user: id, fields: ProfileFields::default() })
}
