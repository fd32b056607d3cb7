//! What an import of an organization leaves: marks of the accounts that it created, and these accounts if it failed.

use crate::error::Result;
use crate::ids::{OrganizationId, UserId};
use crate::resources::organizations::Organization;
use crate::resources::roles::PendingListing;
use crate::resources::shared::import_mark::{self, ImportMark};
use crate::resources::users::{Profile, UnverifiedAccount, User};
use crate::resources::{members, records};
use crate::store::{Record, Tx, WriteTx};
use crate::time::Timestamp;

/// The maximum number of accounts that one transaction deletes.
const ACCOUNTS_PER_BATCH: usize = 50;

/// The maximum number of marks that one transaction deletes.
const MARKS_PER_BATCH: usize = 500;

/// Ends the imports that count as abandoned. Returns whether there were any.
pub fn end_abandoned_imports(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<bool> {
    let abandoned = import_mark::find_abandoned(tx, now)?;
    for organization in &abandoned {
        import_mark::delete(tx, *organization)?;
    }
    Ok(!abandoned.is_empty())
}

/// Deletes marks of accounts, and the accounts themselves if their import failed. Returns whether there may be more.
pub(super) fn delete_accounts(tx: &mut WriteTx<'_>, arriving: &[OrganizationId]) -> Result<bool> {
    let is_done = |organization: OrganizationId| !arriving.contains(&organization);
    let accounts = import_mark::accounts(tx, &true, ACCOUNTS_PER_BATCH, is_done)?;
    for (organization, user) in &accounts {
        if !tx.exists::<Organization>(organization)? {
            delete_unused(tx, *user)?;
        }
        let mark = ImportMark::Account { organization: *organization, user: *user };
        tx.remove::<ImportMark>(&mark.key())?;
    }
    Ok(!accounts.is_empty())
}

/// Deletes marks of the accounts that a completed import of the organization created. Returns whether there may be more.
pub fn forget_accounts(tx: &mut WriteTx<'_>, organization: OrganizationId) -> Result<bool> {
    Ok(tx.remove_some::<ImportMark>(&(true, organization), MARKS_PER_BATCH)? > 0)
}

/// Deletes an account, unless its user has joined an organization.
fn delete_unused(tx: &mut WriteTx<'_>, user: UserId) -> Result<()> {
    if !tx.keys(&members::BY_USER, &user, 1)?.is_empty() {
        return Ok(());
    }
    for record in records().rev() {
        record.delete_with_account(tx, user)?;
    }
    tx.remove::<PendingListing>(&user)?;
    tx.remove::<UnverifiedAccount>(&user)?;
    tx.remove::<Profile>(&user)?;
    tx.remove::<User>(&user).map(drop)
}
