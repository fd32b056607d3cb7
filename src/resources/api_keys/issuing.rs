//! What users do with their keys by their keys: no key comes to more than it holds (decisions §2, Issuing).

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId};
use crate::input::Parsed;
use crate::patch::{Patch, set};
use crate::resources::{members, projects};
use crate::store::{Order, Tx, Window, WriteTx};
use crate::time::Timestamp;

use super::holdings::Excess;
use super::{
    ApiKey, BY_USER, Head, Holdings, NewSecret, PersonalApiKeyFields, PersonalApiKeyPatch, Shown,
    Verifiers, makers, remove,
};

/// How many live keys a user may have, and how many that have ended are kept besides.
const MOST: usize = 100;

/// A key of the user, for showing it.
///
/// # Errors
/// 404 where the user has no such key.
pub fn get_own(tx: &impl Tx, user: UserId, id: ApiKeyId) -> Result<ApiKey> {
    tx.find(&id)?.filter(|key: &ApiKey| key.head.user == user).ok_or_else(Error::not_found)
}

/// A key that the holder may change: one of the same user that lies within what the holder holds.
///
/// # Errors
/// 404 where the user has no such key; 403 where it holds more.
pub(super) fn get_within(tx: &impl Tx, holder: &Holdings, id: ApiKeyId) -> Result<ApiKey> {
    let key = get_own(tx, holder.user, id)?;
    match excess(tx, &Holdings::of(key.head.clone()), holder)? {
        None => Ok(key),
        Some(excess) => Err(Error::denied(format!(
            "This API key cannot change one that holds more than it does: {}.",
            excess.fields()
        ))),
    }
}

/// What `one` has beyond `other`, with the projects where they are.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn excess(tx: &impl Tx, one: &Holdings, other: &Holdings) -> Result<Option<Excess>> {
    let mut organizations = BTreeMap::new();
    for id in &one.projects {
        if let Some(project) = projects::find_by_id(tx, *id)? {
            organizations.insert(*id, project.organization);
        }
    }
    Ok(one.beyond(other, |id| organizations.get(&id).copied()))
}

fn require_grantable(tx: &impl Tx, wanted: &Holdings, holder: &Holdings) -> Result<()> {
    excess(tx, wanted, holder)?.map_or(Ok(()), |excess| Err(too_much(excess)))
}

fn too_much(excess: Excess) -> Error {
    let fields = excess.fields();
    Error::denied(format!("This API key cannot grant more than it holds: {fields}."))
}

/// Whether the holder may make a key, as things are: looked at before a secret is made for it.
///
/// # Errors
/// 400 for a field, and where the user has enough keys; 403 for more than the holder holds.
pub fn require_issuable(
    tx: &impl Tx,
    holder: &Holdings,
    new: &Parsed<PersonalApiKeyFields>,
    now: Timestamp,
) -> Result<()> {
    wanted(tx, holder, new.get()?, now)?;
    require_room(tx, holder.user, now).map(drop)
}

/// What a key to be made would hold, where the holder may make such a one.
fn wanted(
    tx: &impl Tx,
    holder: &Holdings,
    new: &PersonalApiKeyFields,
    now: Timestamp,
) -> Result<Holdings> {
    let wanted = Holdings {
        user: holder.user,
        scopes: new.scopes.clone(),
        organizations: inherited(&new.scoped_organizations, &holder.organizations)?,
        projects: inherited(&new.scoped_teams, &holder.projects)?,
        expires_at: match new.expires_at {
            Patch::Absent => holder.expires_at,
            Patch::Null => None,
            Patch::Value(end) => Some(end),
        },
    };
    require_grantable(tx, &wanted, holder)?;
    require_teams(tx, holder.user, sent(&new.scoped_teams))?;
    require_organizations(tx, holder.user, sent(&new.scoped_organizations))?;
    require_future(&new.expires_at, now)?;
    Ok(wanted)
}

/// What is left out is as the maker has it; asking for no limit is for a maker that has none.
fn inherited<T: Clone>(sent: &Patch<Vec<T>>, held: &[T]) -> Result<Vec<T>> {
    match sent {
        Patch::Absent => Ok(held.to_vec()),
        Patch::Value(named) if !named.is_empty() => Ok(named.clone()),
        _ if held.is_empty() => Ok(Vec::new()),
        _ => Err(too_much(Excess::Places)),
    }
}

/// The organizations or projects that were named.
fn sent<T>(sent: &Patch<Vec<T>>) -> &[T] {
    match sent {
        Patch::Value(named) => named,
        _ => &[],
    }
}

fn require_future(end: &Patch<Timestamp>, now: Timestamp) -> Result<()> {
    if matches!(end, Patch::Value(end) if *end <= now) {
        let detail = "The moment must lie in the future. Delete a key to end it at once.";
        return Err(Error::field("expires_at", "invalid_input", detail));
    }
    Ok(())
}

/// Lets a key be limited only to organizations that its user belongs to.
///
/// # Errors
/// 400 at `scoped_organizations`.
pub(super) fn require_organizations(
    tx: &impl Tx,
    user: UserId,
    named: &[OrganizationId],
) -> Result<()> {
    for organization in named {
        if members::find(tx, *organization, user)?.is_none() {
            return Err(Error::field(
                "scoped_organizations",
                "invalid_input",
                "You must be a member of all organizations that you are scoping the key to.",
            ));
        }
    }
    Ok(())
}

/// Lets a key be limited only to projects that its user sees.
///
/// # Errors
/// 400 at `scoped_teams`.
pub(super) fn require_teams(tx: &impl Tx, user: UserId, named: &[ProjectId]) -> Result<()> {
    for project in named {
        if !reaches_project(tx, user, *project)? {
            return Err(Error::field(
                "scoped_teams",
                "invalid_input",
                "You must be a member of all teams that you are scoping the key to.",
            ));
        }
    }
    Ok(())
}

fn reaches_project(tx: &impl Tx, user: UserId, id: ProjectId) -> Result<bool> {
    let Some(project) = projects::find_by_id(tx, id)? else { return Ok(false) };
    match members::find(tx, project.organization, user)? {
        Some(member) => projects::is_visible(tx, &member, &project),
        None => Ok(false),
    }
}

/// A user's keys that have ended, the longest ended first; refused where one more would be too many live ones.
fn require_room(tx: &impl Tx, user: UserId, now: Timestamp) -> Result<Vec<(Timestamp, ApiKeyId)>> {
    let (mut live, mut ended) = (0, Vec::new());
    tx.walk(&BY_USER, &user, Window::all(Order::Ascending), |row| {
        match row.head.expires_at.filter(|end| *end <= now) {
            Some(end) => ended.push((end, row.head.id)),
            None => live += 1,
        }
        Ok(())
    })?;
    if live >= MOST {
        let detail = format!(
            "You can only have {MOST} personal API keys. Remove an existing key before creating a new one."
        );
        return Err(Error::invalid("invalid_input", detail));
    }
    ended.sort_unstable();
    Ok(ended)
}

/// Makes a key for the holder's user, whose secret will never open more than the holder holds now. Of those that
/// have ended only the last ones are kept, so that a user's keys stay few.
///
/// # Errors
/// As [`require_issuable`].
pub fn issue(
    tx: &mut WriteTx<'_>,
    holder: &Holdings,
    new: &Parsed<PersonalApiKeyFields>,
    id: ApiKeyId,
    secret: NewSecret,
    now: Timestamp,
) -> Result<()> {
    let new = new.get()?;
    let wanted = wanted(tx, holder, new, now)?;
    let ended = require_room(tx, holder.user, now)?;
    for (_, id) in ended.iter().rev().skip(MOST) {
        remove(tx, *id)?;
    }
    put_new(tx, id, new.label.clone(), wanted, secret, now)?;
    makers::note(tx, id, holder)
}

/// Writes a key that is new.
pub(super) fn put_new(
    tx: &mut WriteTx<'_>,
    id: ApiKeyId,
    label: String,
    holdings: Holdings,
    secret: NewSecret,
    now: Timestamp,
) -> Result<()> {
    let Holdings { user, scopes, organizations, projects, expires_at } = holdings;
    let NewSecret { mask_value, hash, digest } = secret;
    tx.put(&ApiKey {
        head: Head { id, user, hash, scopes, organizations, projects, expires_at },
        shown: Shown { label, mask_value, created_at: now, last_rolled_at: None },
    })?;
    tx.put(&Verifiers { key: id, current: digest, retired: None })
}

/// Changes a key: what it holds afterwards lies within the holder's too, and within what those held that made its
/// values.
///
/// # Errors
/// 404 for no key of the holder's user; 403 for one that does not lie within the holder's, or would not, or not
/// within its makers'; 400 for a field, and where a key that had ended would be one too many.
pub fn update(
    tx: &mut WriteTx<'_>,
    holder: &Holdings,
    id: ApiKeyId,
    patch: &Parsed<PersonalApiKeyPatch>,
    now: Timestamp,
) -> Result<()> {
    let mut key = get_within(tx, holder, id)?;
    let patch = patch.get()?;
    let had_ended = key.head.has_ended(now);
    apply(patch.clone(), &mut key);
    let wanted = Holdings::of(key.head.clone());
    require_grantable(tx, &wanted, holder)?;
    makers::require_held(tx, id, &wanted, now)?;
    require_teams(tx, holder.user, sent(&patch.scoped_teams))?;
    require_organizations(tx, holder.user, sent(&patch.scoped_organizations))?;
    require_future(&patch.expires_at, now)?;
    if had_ended && !key.head.has_ended(now) {
        require_room(tx, holder.user, now)?;
    }
    tx.put(&key)
}

fn apply(patch: PersonalApiKeyPatch, key: &mut ApiKey) {
    let PersonalApiKeyPatch { label, scopes, scoped_teams, scoped_organizations, expires_at } =
        patch;
    set(&mut key.shown.label, label);
    set(&mut key.head.scopes, scopes);
    apply_list(scoped_teams, &mut key.head.projects);
    apply_list(scoped_organizations, &mut key.head.organizations);
    expires_at.apply(&mut key.head.expires_at);
}

/// Null is no limit, and so is an empty list.
fn apply_list<T>(sent: Patch<Vec<T>>, slot: &mut Vec<T>) {
    match sent {
        Patch::Absent => {}
        Patch::Null => slot.clear(),
        Patch::Value(named) => *slot = named,
    }
}

/// Ends a key for its user.
///
/// # Errors
/// 404 for no key of the holder's user; 403 for one that does not lie within the holder's.
pub fn revoke(tx: &mut WriteTx<'_>, holder: &Holdings, id: ApiKeyId) -> Result<()> {
    get_within(tx, holder, id)?;
    remove(tx, id)
}
