//! Accounts that only an invite's link made. Nobody has shown that the address is theirs, so such an account
//! binds nobody: whoever proves the address takes it over.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{OrganizationId, UserId};
use crate::store::{Owner, Record, Reference, Table, Tx, WriteTx};
use crate::time::Timestamp;

use super::{NewUser, Profile, ProfileShown, User};

/// Marks an account that was created by accepting an invite by its link. It is removed once the address is
/// proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAccount {
    /// The account.
    pub user: UserId,
    /// The organization that the invite led into; it may be removed by now.
    pub organization: OrganizationId,
    /// Who invited; none for an account from before this was recorded.
    pub invited_by: Option<UserId>,
    /// When the account was created.
    pub at: Timestamp,
}

impl Record for LinkAccount {
    const TABLE: Table = Table::LinkAccounts;
    type Key = UserId;
    type Head = Self;
    type Shown = ();

    fn key(&self) -> UserId {
        self.user
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

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<User>(&self.user)]
    }
}

/// How the account came to be, if only a link made it and its address was never proven.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find_unproven(tx: &impl Tx, user: UserId) -> Result<Option<LinkAccount>> {
    tx.head::<LinkAccount>(&user)
}

/// Records that the user proved the address.
///
/// # Errors
/// 404 when the user is gone.
pub fn set_verified(tx: &mut WriteTx<'_>, id: UserId) -> Result<()> {
    let mut user: User = tx.get(&id)?;
    user.shown.is_email_verified = true;
    tx.put(&user)?;
    tx.remove::<LinkAccount>(&id).map(drop)
}

/// Gives the account to whoever proved its address: names, role and profile are the new user's own. Keys and
/// memberships are the caller's to end.
///
/// # Errors
/// 404 when the user is gone.
pub fn hand_over(
    tx: &mut WriteTx<'_>,
    id: UserId,
    new: &NewUser,
    role: Option<String>,
) -> Result<()> {
    let mut user: User = tx.get(&id)?;
    user.head.current_project = None;
    user.shown.first_name = new.first_name.clone().unwrap_or_default();
    user.shown.last_name = new.last_name.clone().unwrap_or_default();
    user.shown.role_at_organization = role;
    user.shown.hedgehog_config = None;
    tx.put(&user)?;
    tx.put(&Profile { user: id, shown: ProfileShown::default() })
}
