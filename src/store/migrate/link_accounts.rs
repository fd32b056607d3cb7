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
    organization: Uuid,
    created_at: Timestamp,
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
/// with the token of a mail they would be verified. The activity log tells it, whether or not they are members still;
/// the operator's commands leave entries of nobody. A user whose entry is no longer in the log is left out.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn fill(tx: &mut WriteTx<'_>) -> Result<()> {
    let mut found = Vec::new();
    tx.raw_walk(Table::Activity, &[], 0, Order::Ascending, &mut |_, payload| {
        let (entry, shown): (Entry, _) = parts(Table::Activity, payload)?;
        let Some(user) = entry.user else { return Ok(ControlFlow::Continue(())) };
        if tells_of_joining(shown)? && is_unverified_since(tx, user, entry.created_at)? {
            found.push((user, entry.organization, entry.created_at));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for (user, organization, at) in found {
        let invited_by: Option<u64> = None;
        // A record as `users::LinkAccount` lies in its table: at version 1, shown as nothing.
        let head = (1_u64, (user, organization, invited_by, at));
        let mut payload = postcard::to_stdvec(&head).map_err(Error::internal)?;
        payload.extend_from_slice(b"null");
        tx.put_plain(Table::LinkAccounts, &user.encoded(), &payload)?;
    }
    Ok(())
}

/// Whether the user was created at `at`, and the address is not verified.
fn is_unverified_since(tx: &WriteTx<'_>, user: u64, at: Timestamp) -> Result<bool> {
    let Some(payload) = tx.plain(Table::Users, &user.encoded())? else { return Ok(false) };
    let (user, shown): (User, _) = parts(Table::Users, &payload)?;
    let shown: Shown = serde_json::from_slice(shown).map_err(Error::internal)?;
    Ok(user.date_joined == at && !shown.is_email_verified)
}

fn tells_of_joining(shown: &[u8]) -> Result<bool> {
    let told: Told<'_> = serde_json::from_slice(shown).map_err(Error::internal)?;
    Ok(told.scope == "OrganizationMembership" && told.activity == "created")
}

/// The head of a record, and its JSON.
fn parts<H: DeserializeOwned>(table: Table, payload: &[u8]) -> Result<(H, &[u8])> {
    let unreadable = |error: postcard::Error| damaged(table, &error);
    let (_, rest) = postcard::take_from_bytes::<u64>(payload).map_err(unreadable)?;
    postcard::take_from_bytes(rest).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use tempfile::TempDir;

    use crate::secret::Seed;
    use crate::store::Store;

    use super::*;

    const JOINED: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn put(
        tx: &mut WriteTx<'_>,
        table: Table,
        key: &[u8],
        head: &impl Serialize,
        shown: &str,
    ) -> Result<()> {
        let mut payload = postcard::to_stdvec(&(1_u64, head)).map_err(Error::internal)?;
        payload.extend_from_slice(shown.as_bytes());
        tx.put_plain(table, key, &payload)
    }

    fn put_user(tx: &mut WriteTx<'_>, id: u64, is_email_verified: bool) -> Result<()> {
        let head = (id, Uuid::nil(), true, None::<Uuid>, None::<u64>, JOINED);
        let shown = format!(r#"{{"is_email_verified": {is_email_verified}}}"#);
        put(tx, Table::Users, &id.encoded(), &head, &shown)
    }

    /// An entry at `at`, which `user` left.
    fn put_entry(
        tx: &mut WriteTx<'_>,
        user: Option<u64>,
        at: Timestamp,
        scope: &str,
    ) -> Result<()> {
        let id = Uuid::from_u128(user.unwrap_or_default().into());
        let mut key = Uuid::nil().as_bytes().to_vec();
        at.write(&mut key);
        key.extend_from_slice(id.as_bytes());
        let shown = format!(r#"{{"scope": "{scope}", "activity": "created"}}"#);
        put(tx, Table::Activity, &key, &(Uuid::nil(), at, id, None::<u64>, user), &shown)
    }

    #[tokio::test]
    async fn users_who_joined_by_a_link_are_marked_though_they_are_no_members_any_more() {
        let folder = TempDir::new().expect("a folder");
        let mut draw = Seed::take().draw();
        let path = folder.path().join("steward.redb");
        let created = Store::create(&path, 1 << 22, &mut draw, |_, _| Ok(()));
        let (store, ()) = created.expect("a data file");
        let later = Timestamp::from_micros(JOINED.micros() + 1);
        let marked = store.write(move |tx| {
            for (user, is_verified) in [(1, false), (2, true), (3, false), (4, false), (5, false)] {
                put_user(tx, user, is_verified)?;
            }
            put_entry(tx, Some(1), JOINED, "OrganizationMembership")?;
            put_entry(tx, Some(2), JOINED, "OrganizationMembership")?;
            put_entry(tx, Some(3), later, "OrganizationMembership")?;
            put_entry(tx, Some(4), JOINED, "Organization")?;
            put_entry(tx, None, JOINED, "OrganizationMembership")?;
            fill(tx)?;
            let is_marked =
                |user: u64| Ok(tx.plain(Table::LinkAccounts, &user.encoded())?.is_some());
            (1..=5).map(is_marked).collect::<Result<Vec<_>>>()
        });
        assert_eq!(marked.await.expect("written"), [true, false, false, false, false]);
        store.close().await;
    }
}
