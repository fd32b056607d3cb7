//! The entries that a write under way has recorded, for the response to a dry run.

use crate::auth::authorize::AuthContext;
use crate::error::Result;
use crate::ids::{ActivityId, OrganizationId};
use crate::resources::members::Membership;
use crate::store::{Key, Record, Row, Tx, WriteTx};
use crate::time::Timestamp;

use super::entity_ref::EntityRef;
use super::list::EntryItems;
use super::visibility::shows_to;
use super::{Entry, NO_ORGANIZATION, READ_SCOPE};

/// Returns the entries that the write has recorded, in the order in which it recorded them, as a JSON array. It contains
/// the entries that the caller could read in the log, and those about the caller's own account, which no log shows.
/// Returns null if there is no caller, or if the caller's key may not read the log.
pub fn recorded(tx: &WriteTx<'_>, context: Option<&AuthContext>) -> Result<Vec<u8>> {
    let Some(context) = context.filter(|context| context.caller.key.has_scope(READ_SCOPE)) else {
        return Ok(b"null".to_vec());
    };
    let mut items = EntryItems::default();
    let written = tx.changes().iter().filter(|change| change.table == Entry::TABLE);
    for change in written {
        let key = <(OrganizationId, Timestamp, ActivityId)>::read(&mut change.key.as_slice());
        let Some(key) = key else { continue };
        tx.view::<Entry, _>(&key, |row| {
            if can_read(tx, context, &row)? { items.push(tx, &row) } else { Ok(()) }
        })?;
    }
    Ok([b"[", &*items.into_bytes(), b"]"].concat())
}

/// Returns whether the caller could read the entry, by the rules of the two lists. A caller who leaves an organization
/// was a member when the write began.
fn can_read(tx: &WriteTx<'_>, context: &AuthContext, row: &Row<'_, Entry>) -> Result<bool> {
    let (caller, entry) = (&context.caller, &row.meta);
    if entry.organization == NO_ORGANIZATION {
        return Ok(entry.user == Some(caller.user.id));
    }
    let of_entry = |member: &Membership| member.organization == entry.organization;
    let member = match context.member.clone().filter(of_entry) {
        Some(member) => Some(member),
        None => caller.open_membership(tx, entry.organization)?,
    };
    let is_within_key = match entry.project {
        Some(project) => caller.key.reaches_project(project),
        None => caller.key.scoped_projects().is_none(),
    };
    match member.filter(|_| is_within_key) {
        Some(member) => shows_to(tx, &member, entry, &EntityRef::of(row)?),
        None => Ok(false),
    }
}
