//! Which records an export of one organization contains.
//!
//! These are the records that count towards the organization, the accounts of its members and of the users that its
//! records name, and the API keys that open nothing else. What reveals other organizations is left out. So are mails
//! that wait, stored responses, sessions, and what users changed in their own accounts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::ids::ApiKeyId;
use crate::resources::api_keys::{ApiKey, ApiKeyUse, Grantors, KeyPermissions};
use crate::resources::members::Membership;
use crate::resources::organizations::Organization;
use crate::resources::projects::Project;
use crate::resources::roles::PendingListing;
use crate::resources::shared::prelude::*;
use crate::resources::users::{Profile, ProfileFields, UnverifiedAccount, User};
use crate::resources::{record_in, records};
use crate::store::{Selected, Snapshot, payload_of};

use super::ALL_ROWS;

/// The records of one organization in a state.
struct OrganizationSelection {
    id: OrganizationId,
    projects: HashSet<ProjectId>,
    /// The members, and whether each belongs to no other organization.
    members: HashMap<UserId, bool>,
    /// The members, and the users that records of the organization name.
    users: HashSet<UserId>,
    keys: HashSet<ApiKeyId>,
}

/// Reads which records of a state belong to an organization.
///
/// # Errors
/// 404 if there is no such organization; 400 while some of its records are being deleted.
pub fn select(tx: &Snapshot, id: Uuid) -> Result<Box<dyn Selected>> {
    let id = OrganizationId(id);
    if !tx.exists::<Organization>(&id)? {
        return Err(Error::not_found_as(format!("There is no organization {id}.")));
    }
    let mut selection = OrganizationSelection {
        id,
        projects: collect::<Project, _, _>(tx, &id, |project| Some(project.id))?,
        members: members(tx, id)?,
        users: HashSet::new(),
        keys: HashSet::new(),
    };
    selection.users = users(tx, id)?;
    selection.users.extend(selection.members.keys());
    require_settled(tx, &selection)?;
    selection.keys = selection.find_keys(tx)?;
    Ok(Box::new(selection))
}

/// Returns the members of an organization, and whether each belongs to no other.
fn members(tx: &Snapshot, id: OrganizationId) -> Result<HashMap<UserId, bool>> {
    let mut members: HashMap<_, _> =
        collect::<Membership, _, _>(tx, &id, |member| Some((member.user, true)))?;
    tx.scan::<Membership, _>(&(), ALL_ROWS, |row| {
        if let Some(alone) = members.get_mut(&row.meta.user) {
            *alone &= row.meta.organization == id;
        }
        Ok(())
    })?;
    Ok(members)
}

/// Returns the users that the records of an organization name.
fn users(tx: &Snapshot, id: OrganizationId) -> Result<HashSet<UserId>> {
    let mut users = HashSet::new();
    for record in records().filter(|record| !record.table().is_transient()) {
        tx.each(record.table(), &mut |_, payload| {
            let payload = payload?;
            if !record.is_of(tx, id, payload)? {
                return Ok(());
            }
            record.each_user(payload, &mut |user| {
                users.insert(user);
            })
        })?;
    }
    // A user whose account was deleted with a failed import.
    let mut known = HashSet::new();
    for user in users {
        if tx.exists::<User>(&user)? {
            known.insert(user);
        }
    }
    Ok(known)
}

/// Fails while records of the organization are being deleted, or memberships being listed: the background task of this
/// installation could not complete that in another one.
fn require_settled(tx: &Snapshot, selection: &OrganizationSelection) -> Result<()> {
    let mut is_settled = true;
    tx.scan::<PendingDeletion, _>(&selection.id, ALL_ROWS, |_| {
        is_settled = false;
        Ok(())
    })?;
    tx.scan::<PendingListing, _>(&(), ALL_ROWS, |row| {
        is_settled &= !selection.members.contains_key(&row.meta.user);
        Ok(())
    })?;
    if is_settled {
        return Ok(());
    }
    let text =
        "the server is still deleting records of the organization; try again when that is complete";
    Err(Error::invalid("not_exported", text))
}

impl OrganizationSelection {
    /// Returns the API keys that open nothing but the organization.
    fn find_keys(&self, tx: &Snapshot) -> Result<HashSet<ApiKeyId>> {
        let mut keys = HashSet::new();
        tx.scan::<ApiKey, _>(&(), ALL_ROWS, |row| {
            let id = row.meta.id;
            let Some(alone) = self.members.get(&row.meta.user) else { return Ok(()) };
            let permissions = KeyPermissions::of(row.meta);
            if (*alone || !permissions.is_unscoped())
                && self.allows(&permissions)
                && self.allows_grantors(tx, id)?
            {
                keys.insert(id);
            }
            Ok(())
        })?;
        Ok(keys)
    }

    /// Returns whether the permissions name no other organization, project or user.
    fn allows(&self, permissions: &KeyPermissions) -> bool {
        let KeyPermissions { user, organizations, projects, .. } = permissions;
        self.users.contains(user)
            && organizations.iter().all(|organization| *organization == self.id)
            && projects.iter().all(|project| self.projects.contains(project))
    }

    fn allows_grantors(&self, tx: &Snapshot, key: ApiKeyId) -> Result<bool> {
        let grantors = tx.meta::<Grantors>(&key)?;
        Ok(grantors.is_none_or(|grantors| grantors.permissions().all(|one| self.allows(one))))
    }

    /// Returns an account without the organization and the project that its user last opened elsewhere.
    fn account(&self, mut account: User) -> Option<User> {
        if !self.users.contains(&account.meta.id) {
            return None;
        }
        let meta = &mut account.meta;
        meta.current_organization = meta.current_organization.filter(|id| *id == self.id);
        meta.current_project = meta.current_project.filter(|id| self.projects.contains(id));
        Some(account)
    }

    /// Returns the profile of a user. Clients may have stored names of other organizations there.
    fn profile(&self, profile: Profile) -> Option<Profile> {
        let user = profile.meta;
        let is_alone = self.members.get(&user).is_some_and(|alone| *alone);
        match self.users.contains(&user) {
            true if is_alone => Some(profile),
            true => Some(Profile { fields: ProfileFields::default(), ..profile }),
            false => None,
        }
    }

    /// Returns the mark of an unverified account, as if an invite to this organization had created it.
    fn unverified(&self, account: UnverifiedAccount) -> Option<UnverifiedAccount> {
        let invited_by = account.invited_by.filter(|user| self.users.contains(user));
        self.users.contains(&account.user).then_some(UnverifiedAccount {
            organization: self.id,
            invited_by,
            ..account
        })
    }

    fn has_key(&self, key: ApiKeyId) -> bool {
        self.keys.contains(&key)
    }
}

impl Selected for OrganizationSelection {
    fn select<'p>(
        &self,
        tx: &Snapshot,
        table: Table,
        payload: &'p [u8],
    ) -> Result<Option<Cow<'p, [u8]>>> {
        let is_selected = match table {
            Table::Users => return replaced(payload, |account| self.account(account)),
            Table::UserProfiles => return replaced(payload, |profile| self.profile(profile)),
            Table::LinkAccounts => return replaced(payload, |account| self.unverified(account)),
            Table::ApiKeys => self.has_key(Row::<ApiKey>::read(payload)?.meta.id),
            Table::ApiKeyUses => self.has_key(Row::<ApiKeyUse>::read(payload)?.meta.key),
            Table::ApiKeyMakers => self.has_key(Row::<Grantors>::read(payload)?.meta.key()),
            _ => match record_in(table) {
                Some(record) => record.is_of(tx, self.id, payload)?,
                None => false,
            },
        };
        Ok(is_selected.then_some(Cow::Borrowed(payload)))
    }
}

/// Returns the payload of the record that `replace` returns, at the same version. Keeps an unchanged payload.
fn replaced<R: Record>(
    payload: &[u8],
    replace: impl FnOnce(R) -> Option<R>,
) -> Result<Option<Cow<'_, [u8]>>> {
    let row = Row::<R>::read(payload)?;
    let version = row.version;
    let Some(record) = replace(row.into_record()?) else { return Ok(None) };
    let rendered = payload_of(version, &record)?;
    Ok(Some(if rendered == payload { Cow::Borrowed(payload) } else { Cow::Owned(rendered) }))
}
