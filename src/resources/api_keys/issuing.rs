//! Users manage their API keys with their API keys. A key cannot grant more access than it has.

use std::collections::BTreeSet;

use crate::base::patch::Apply;
use crate::ids::ApiKeyId;
use crate::resources::shared::prelude::*;
use crate::resources::{members, projects};

use super::permissions::{TENANT_FIELDS, exceeds, organizations_of};
use super::{
    ApiKey, BY_USER, Fields, IssuedKey, KeyPermissions, Meta, PersonalApiKeyAccess,
    PersonalApiKeyFields, PersonalApiKeyPatch, record_grantor, remove, require_within_grantors,
};

/// The maximum number of unexpired keys of a user, and the number of expired keys that are kept in addition.
const MAX_KEYS: usize = 100;

/// Returns a key of the user.
///
/// # Errors
/// 404 if the user has no such key.
pub fn get_own(tx: &dyn Raw, user: UserId, id: ApiKeyId) -> Result<ApiKey> {
    tx.find(&id)?.filter(|key: &ApiKey| key.meta.user == user).ok_or_else(Error::not_found)
}

/// Returns a key that the caller's key (`grantor`) may change: it belongs to the same user and has no more access.
///
/// # Errors
/// 404 if the user has no such key, 403 if it has more access.
pub(super) fn get_manageable(
    tx: &dyn Raw,
    grantor: &KeyPermissions,
    id: ApiKeyId,
) -> Result<ApiKey> {
    let key = get_own(tx, grantor.user, id)?;
    match exceeds(tx, &KeyPermissions::of(key.meta.clone()), grantor)? {
        None => Ok(key),
        Some(fields) => Err(Error::denied(format!(
            "This API key cannot change a key with more access: {fields}."
        ))),
    }
}

fn require_within_grantor(
    tx: &dyn Raw,
    wanted: &KeyPermissions,
    grantor: &KeyPermissions,
) -> Result<()> {
    exceeds(tx, wanted, grantor)?.map_or(Ok(()), |fields| Err(exceeds_error(fields)))
}

/// Lets a limited key name only organizations and projects that its own limits include. A key that names others would
/// open nothing there, and its caller would not learn why.
///
/// # Errors
/// 403 for another organization or project, and for one that does not exist.
fn require_included(
    tx: &dyn Raw,
    grantor: &KeyPermissions,
    organizations: &[OrganizationId],
    projects: &[ProjectId],
) -> Result<()> {
    let known = organizations_of(tx, &[&grantor.projects, projects].concat())?;
    let organization_of = |id: ProjectId| known.get(&id).copied();
    let included =
        organizations.iter().all(|id| grantor.includes_organization(*id, organization_of))
            && projects.iter().all(|id| grantor.includes_project(*id, organization_of(*id)));
    if included { Ok(()) } else { Err(exceeds_error(TENANT_FIELDS)) }
}

fn exceeds_error(fields: &str) -> Error {
    Error::denied(format!("This API key cannot grant more access than it has: {fields}."))
}

/// Checks that the caller may create a key.
///
/// # Errors
/// 400 for an invalid field or if the user has too many keys, 403 if the key would have more access than the caller's.
pub fn require_issuable(
    tx: &dyn Raw,
    grantor: &KeyPermissions,
    new: &Parsed<PersonalApiKeyFields>,
    now: Timestamp,
) -> Result<()> {
    requested_permissions(tx, grantor, new.get()?, now)?;
    require_room(tx, grantor.user, now).map(drop)
}

/// Returns the permissions of a key that the caller could create with this access.
///
/// # Errors
/// 400 for an invalid field, 403 if the key would have more access than the caller's.
pub fn issuable_permissions(
    tx: &dyn Raw,
    grantor: &KeyPermissions,
    access: &Parsed<PersonalApiKeyAccess>,
    now: Timestamp,
) -> Result<KeyPermissions> {
    let PersonalApiKeyAccess { scopes, scoped_teams, scoped_organizations } = access.get()?.clone();
    let (label, expires_at) = (String::new(), Patch::Absent);
    let new =
        PersonalApiKeyFields { label, scopes, scoped_teams, scoped_organizations, expires_at };
    requested_permissions(tx, grantor, &new, now)
}

/// Returns the permissions of the key to create, if the caller's key may grant them.
fn requested_permissions(
    tx: &dyn Raw,
    grantor: &KeyPermissions,
    new: &PersonalApiKeyFields,
    now: Timestamp,
) -> Result<KeyPermissions> {
    let wanted = KeyPermissions {
        user: grantor.user,
        scopes: new.scopes.clone(),
        organizations: inherit(&new.scoped_organizations, &grantor.organizations)?,
        projects: inherit(&new.scoped_teams, &grantor.projects)?,
        expires_at: match new.expires_at {
            Patch::Absent => grantor.expires_at,
            Patch::Null => None,
            Patch::Value(end) => Some(end),
        },
    };
    require_within_grantor(tx, &wanted, grantor)?;
    let (organizations, projects) = (named(&new.scoped_organizations), named(&new.scoped_teams));
    require_included(tx, grantor, organizations, projects)?;
    require_teams(tx, grantor.user, projects)?;
    require_organizations(tx, grantor.user, organizations)?;
    require_future(&new.expires_at, now)?;
    Ok(wanted)
}

/// Returns the value sent, or the value of the caller's key if it was left out. Only a key without a limit may grant
/// none.
fn inherit<T: Clone>(sent: &Patch<Vec<T>>, held: &[T]) -> Result<Vec<T>> {
    match sent {
        Patch::Absent => Ok(held.to_vec()),
        Patch::Value(named) if !named.is_empty() => Ok(named.clone()),
        _ if held.is_empty() => Ok(Vec::new()),
        _ => Err(exceeds_error(TENANT_FIELDS)),
    }
}

/// Returns the organizations or projects in the request.
fn named<T>(sent: &Patch<Vec<T>>) -> &[T] {
    match sent {
        Patch::Value(named) => named,
        _ => &[],
    }
}

fn require_future(end: &Patch<Timestamp>, now: Timestamp) -> Result<()> {
    if matches!(end, Patch::Value(end) if *end <= now) {
        let detail = "The time must be in the future. To revoke a key now, delete it.";
        return Err(Error::field("expires_at", "invalid_input", detail));
    }
    Ok(())
}

/// Checks that the user belongs to each of these organizations.
///
/// # Errors
/// 400 at `scoped_organizations`.
pub(super) fn require_organizations(
    tx: &dyn Raw,
    user: UserId,
    named: &[OrganizationId],
) -> Result<()> {
    for organization in named {
        if members::find(tx, *organization, user)?.is_none() {
            return Err(not_a_member("scoped_organizations", "organizations"));
        }
    }
    Ok(())
}

/// Checks that the user can access each of these projects.
///
/// # Errors
/// 400 at `scoped_teams`.
pub(super) fn require_teams(tx: &dyn Raw, user: UserId, named: &[ProjectId]) -> Result<()> {
    for project in named {
        if !reaches_project(tx, user, *project)? {
            return Err(not_a_member("scoped_teams", "teams"));
        }
    }
    Ok(())
}

fn not_a_member(field: &str, tenants: &str) -> Error {
    let detail = format!("You must be a member of all {tenants} that you are scoping the key to.");
    Error::field(field, "invalid_input", detail)
}

fn reaches_project(tx: &dyn Raw, user: UserId, id: ProjectId) -> Result<bool> {
    let Some(project) = projects::find_by_id(tx, id)? else { return Ok(false) };
    match members::find(tx, project.organization, user)? {
        Some(member) => projects::is_visible(tx, &member, &project),
        None => Ok(false),
    }
}

/// Returns the expired keys of a user, the earliest first. Fails if the user has the maximum number of unexpired keys.
fn require_room(tx: &dyn Raw, user: UserId, now: Timestamp) -> Result<Vec<(Timestamp, ApiKeyId)>> {
    let (mut live, mut ended) = (0, Vec::new());
    tx.walk(&BY_USER, &user, Window::all(Order::Ascending), |row| {
        match row.meta.expires_at.filter(|end| *end <= now) {
            Some(end) => ended.push((end, row.meta.id)),
            None => live += 1,
        }
        Ok(())
    })?;
    if live >= MAX_KEYS {
        let detail = format!(
            "You can only have {MAX_KEYS} personal API keys. Remove an existing key before creating a new one."
        );
        return Err(Error::invalid("invalid_input", detail));
    }
    ended.sort_unstable();
    Ok(ended)
}

/// Creates a key for the caller's user. Its access can never exceed what the caller's key has now. Deletes the oldest
/// expired keys, so that the number of keys stays small.
///
/// # Errors
/// The same as [`require_issuable`].
pub fn issue(
    tx: &mut WriteTx<'_>,
    grantor: &KeyPermissions,
    new: &Parsed<PersonalApiKeyFields>,
    issued: &IssuedKey,
    now: Timestamp,
) -> Result<()> {
    let new = new.get()?;
    let wanted = requested_permissions(tx, grantor, new, now)?;
    let ended = require_room(tx, grantor.user, now)?;
    for (_, id) in ended.iter().rev().skip(MAX_KEYS) {
        remove(tx, *id)?;
    }
    tx.log_about::<ApiKey>(&issued.id);
    put_new(tx, issued, new.label.clone(), wanted, now)?;
    record_grantor(tx, issued.id, grantor)
}

/// Writes a new key.
pub(super) fn put_new(
    tx: &mut WriteTx<'_>,
    issued: &IssuedKey,
    label: String,
    permissions: KeyPermissions,
    now: Timestamp,
) -> Result<()> {
    let KeyPermissions { user, scopes, organizations, projects, expires_at } = permissions;
    let (id, hash, mask_value) = (issued.id, issued.hash.clone(), issued.mask_value.clone());
    tx.put(&ApiKey {
        meta: Meta { id, user, hash, retired: None, scopes, organizations, projects, expires_at },
        fields: Fields { label, mask_value, created_at: now, last_rolled_at: None },
    })
}

/// Updates a key. Its new permissions must be within those of the caller's key, and within those of the keys that
/// created its values.
///
/// # Errors
/// 404 if the caller's user has no such key. 403 if its access exceeds that of the caller's key, before or after the
/// update, or that of the keys that created its values. 400 for an invalid field, or if the update would reactivate an
/// expired key beyond the maximum.
pub fn update(
    tx: &mut WriteTx<'_>,
    grantor: &KeyPermissions,
    id: ApiKeyId,
    patch: &Parsed<PersonalApiKeyPatch>,
    now: Timestamp,
) -> Result<()> {
    let mut key = get_manageable(tx, grantor, id)?;
    let patch = changes_of(patch.get()?.clone(), &key.meta);
    let had_ended = key.meta.is_expired(now);
    apply(patch.clone(), &mut key);
    let wanted = KeyPermissions::of(key.meta.clone());
    require_within_grantor(tx, &wanted, grantor)?;
    let (organizations, projects) =
        (named(&patch.scoped_organizations), named(&patch.scoped_teams));
    require_included(tx, grantor, organizations, projects)?;
    require_within_grantors(tx, &key.meta, &wanted, now)?;
    require_teams(tx, grantor.user, projects)?;
    require_organizations(tx, grantor.user, organizations)?;
    require_future(&patch.expires_at, now)?;
    if had_ended && !key.meta.is_expired(now) {
        require_room(tx, grantor.user, now)?;
    }
    tx.put(&key)
}

/// Removes the limits and the end that the key has. They need no check: an organization or a project may be gone since, and the
/// end may have passed.
fn changes_of(mut patch: PersonalApiKeyPatch, key: &Meta) -> PersonalApiKeyPatch {
    if are_same(&patch.scoped_teams, &key.projects) {
        patch.scoped_teams = Patch::Absent;
    }
    if are_same(&patch.scoped_organizations, &key.organizations) {
        patch.scoped_organizations = Patch::Absent;
    }
    if patch.expires_at == key.expires_at.map_or(Patch::Null, Patch::Value) {
        patch.expires_at = Patch::Absent;
    }
    patch
}

/// Returns whether a list names the same as `held`, whose order may be that of a command.
fn are_same<T: Ord>(sent: &Patch<Vec<T>>, held: &[T]) -> bool {
    matches!(sent, Patch::Value(sent) if BTreeSet::from_iter(sent) == BTreeSet::from_iter(held))
}

/// Applies the fields of a PATCH. Null and an empty list both mean no limit.
fn apply(patch: PersonalApiKeyPatch, key: &mut ApiKey) {
    let PersonalApiKeyPatch { label, scopes, scoped_teams, scoped_organizations, expires_at } =
        patch;
    label.apply(&mut key.fields.label);
    scopes.apply(&mut key.meta.scopes);
    scoped_teams.apply(&mut key.meta.projects);
    scoped_organizations.apply(&mut key.meta.organizations);
    expires_at.apply(&mut key.meta.expires_at);
}

/// Revokes a key of the caller's user.
///
/// # Errors
/// 404 if the caller's user has no such key, 403 if it has more access than the caller's key.
pub fn revoke(tx: &mut WriteTx<'_>, grantor: &KeyPermissions, id: ApiKeyId) -> Result<()> {
    get_manageable(tx, grantor, id)?;
    remove(tx, id)
}
