//! What form 5 has of accounts that only a link made: form 4 does not record them, but what joining left tells.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::time::Timestamp;

use super::super::key::Key;
use super::super::read::{Raw, Tx};
use super::super::record::damaged;
use super::super::schema::Table;
use super::super::window::Order;
use super::super::write::WriteTx;

/// The head of a membership.
#[derive(Deserialize)]
struct Membership {
    organization: Uuid,
    user: u64,
    _id: Uuid,
    _level: u8,
    joined_at: Timestamp,
}

/// The head of a user.
#[derive(Deserialize)]
struct User {
    _id: u64,
    _uuid: Uuid,
    _is_active: bool,
    _current_organization: Option<Uuid>,
    _current_project: Option<u64>,
    date_joined: Timestamp,
}

/// What is read of a user's JSON.
#[derive(Deserialize)]
struct Shown {
    is_email_verified: bool,
}

/// The head of an entry of the activity log.
#[derive(Deserialize)]
struct Entry {
    _organization: Uuid,
    _created_at: Timestamp,
    _id: Uuid,
    _project: Option<u64>,
    user: Option<u64>,
}

/// What is read of its JSON.
#[derive(Deserialize)]
struct Told<'e> {
    #[serde(borrow)]
    scope: Cow<'e, str>,
    #[serde(borrow)]
    activity: Cow<'e, str>,
}

/// Fills the table with unverified users who joined an organization by themselves at the moment of their creation:
/// with the token of a mail they would be verified. Whose entry is no longer in the activity log is left out.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn fill(tx: &mut WriteTx<'_>) -> Result<()> {
    let mut found = Vec::new();
    tx.raw_walk(Table::Memberships, &[], 0, Order::Ascending, &mut |_, payload| {
        let (member, _): (Membership, _) = parts(Table::Memberships, payload)?;
        if is_link_account(tx, &member)? {
            found.push(member);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for Membership { organization, user, joined_at, .. } in found {
        let invited_by: Option<u64> = None;
        // A record as `users::LinkAccount` lies in its table: at version 1, shown as nothing.
        let head = (1_u64, (user, organization, invited_by, joined_at));
        let mut payload = postcard::to_stdvec(&head).map_err(Error::internal)?;
        payload.extend_from_slice(b"null");
        tx.put_plain(Table::LinkAccounts, &user.encoded(), &payload)?;
    }
    Ok(())
}

fn is_link_account(tx: &WriteTx<'_>, member: &Membership) -> Result<bool> {
    let Some(payload) = tx.plain(Table::Users, &member.user.encoded())? else { return Ok(false) };
    let (user, shown): (User, _) = parts(Table::Users, &payload)?;
    if user.date_joined != member.joined_at {
        return Ok(false);
    }
    let shown: Shown = serde_json::from_slice(shown).map_err(Error::internal)?;
    Ok(!shown.is_email_verified && joined_by_themselves(tx, member)?)
}

/// Whether the log of the organization says so; the operator's commands leave entries of nobody.
fn joined_by_themselves(tx: &WriteTx<'_>, member: &Membership) -> Result<bool> {
    let mut moment = member.organization.as_bytes().to_vec();
    member.joined_at.write(&mut moment);
    let mut found = false;
    tx.raw_walk(Table::Activity, &moment, 0, Order::Ascending, &mut |_, payload| {
        let (entry, shown): (Entry, _) = parts(Table::Activity, payload)?;
        if entry.user == Some(member.user) {
            let told: Told<'_> = serde_json::from_slice(shown).map_err(Error::internal)?;
            found |= told.scope == "OrganizationMembership" && told.activity == "created";
        }
        Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// The head of a record, and its JSON.
fn parts<H: DeserializeOwned>(table: Table, payload: &[u8]) -> Result<(H, &[u8])> {
    let unreadable = |error: postcard::Error| damaged(table, &error);
    let (_, rest) = postcard::take_from_bytes::<u64>(payload).map_err(unreadable)?;
    postcard::take_from_bytes(rest).map_err(unreadable)
}
