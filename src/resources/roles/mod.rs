//! Roles: named groups of members, to whom access controls give a level together. See `docs/spec/roles.md`.

pub mod api;
pub mod http;
mod memberships;

use crate::resources::members::Membership;
use crate::resources::organizations::{self, Organization};
use crate::resources::shared::prelude::*;

pub use api::{NewRole, NewRoleMembership, RECORDS, RolePatch, body, is_expensive, list};
pub use memberships::{
    PendingListing, RoleMembership, continue_listing, count_of_user, leave_all, of_user, set_listed,
};

/// The organization and the id of a role.
pub type RoleKey = (OrganizationId, RoleId);

/// A role of an organization.
pub type Role = RecordOf<RoleKey, Fields>;

/// The stored fields of a role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RoleFixed)]
pub struct Fields {
    /// The id of the role.
    pub id: RoleId,
    /// The name of the role, unique in the organization without regard to case.
    pub name: String,
    /// When the role was created.
    pub created_at: Timestamp,
}

/// The roles of an organization by name, without regard to case.
pub const BY_NAME: Index<Role, (OrganizationId, String)> =
    Index::unique(Table::RolesByName, |role| Some((role.meta.0, folded(&role.fields.name))));

impl_record!(Role {
    table: Roles,
    key: |role| -> RoleKey { role.meta },
    parts: meta: RoleKey, fields: Fields,
    indexes: [&BY_NAME],
    counts: [|role| Some(role.meta.0.encoded())],
    owner: |role, _| Ok(Some(role.meta.0.owner())),
    references: |role| [Reference::to::<Organization>(&role.meta.0)],
});

/// Returns the form of a name in which names are compared.
fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// Creates a role without members.
///
/// # Errors
/// 400 `unique` if the organization has a role with this name, without regard to case.
pub fn create(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    new: &NewRole,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<RoleId> {
    let id = RoleId(rng.uuid(now));
    let key = (organization, id);
    require_free(tx, key, &new.name)?;
    tx.put(&Role { meta: key, fields: Fields { id, name: new.name.clone(), created_at: now } })?;
    Ok(id)
}

/// Gives a role the name of the patch, if it has one.
///
/// # Errors
/// 404 if the role does not exist; otherwise the error of the patch, and 400 `unique` as for [`create`].
pub fn rename(tx: &mut WriteTx<'_>, key: RoleKey, patch: &Result<RolePatch>) -> Result<()> {
    let mut role: Role = tx.get(&key)?;
    let RolePatch { name } = patch.clone()?;
    let Some(name) = name else { return Ok(()) };
    require_free(tx, key, &name)?;
    role.fields.name = name;
    tx.put(&role)
}

/// Fails if another role has this name, without regard to case.
fn require_free(tx: &dyn Raw, key: RoleKey, name: &str) -> Result<()> {
    match tx.lookup(&BY_NAME, &(key.0, folded(name)))? {
        Some(holder) if holder != key => {
            let detail = "There is already a role with this name.";
            Err(Error::field("name", "unique", detail))
        }
        _ => Ok(()),
    }
}

/// Deletes a role. It is no longer the default role, and its name is free. The caller must delete the memberships and
/// the access controls that name the role.
///
/// # Errors
/// 404 if the role does not exist.
pub fn delete(tx: &mut WriteTx<'_>, key: RoleKey, now: Timestamp) -> Result<()> {
    tx.log_about::<Role>(&key);
    tx.remove::<Role>(&key)?.ok_or_else(Error::not_found)?;
    clear_default(tx, key, now)
}

/// Returns whether the organization has this role.
pub fn exists(tx: &dyn Raw, organization: OrganizationId, role: RoleId) -> Result<bool> {
    tx.exists::<Role>(&(organization, role))
}

/// Returns the name of a role of the organization.
pub fn find_name(
    tx: &dyn Raw,
    organization: OrganizationId,
    role: RoleId,
) -> Result<Option<String>> {
    Ok(tx.find::<Role>(&(organization, role))?.map(|role| role.fields.name))
}

/// The default role of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultRole {
    /// The id of the organization.
    pub organization: OrganizationId,
    /// The id of the role.
    pub role: RoleId,
}

impl_record!(DefaultRole {
    table: DefaultRoles,
    key: |default| -> OrganizationId { default.organization },
    reuses_keys: true,
    owner: |default, _| Ok(Some(default.organization.owner())),
    references: |default| [Reference::to::<Role>(&(default.organization, default.role))],
});

/// Returns the default role of an organization, if it has one.
pub fn default_of(tx: &dyn Raw, organization: OrganizationId) -> Result<Option<RoleId>> {
    Ok(tx.meta::<DefaultRole>(&organization)?.map(|default| default.role))
}

/// Sets or removes the default role of an organization. Updates the organization and both roles, which show it.
///
/// # Errors
/// 400 `does_not_exist` at `default_role_id` if the organization has no such role.
pub fn set_default(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    sent: &Patch<Uuid>,
    now: Timestamp,
) -> Result<()> {
    let role = match sent {
        Patch::Absent => return Ok(()),
        Patch::Null => None,
        Patch::Value(id) => Some(RoleId(*id)),
    };
    let before = default_of(tx, organization)?;
    if role == before {
        return Ok(());
    }
    tx.log_about::<Organization>(&organization);
    match role {
        Some(role) if exists(tx, organization, role)? => {
            tx.put(&DefaultRole { organization, role })?;
        }
        Some(role) => {
            return Err(does_not_exist("default_role_id", role));
        }
        None => drop(tx.remove::<DefaultRole>(&organization)?),
    }
    organizations::set_updated(tx, organization, now)?;
    for shown in before.into_iter().chain(role) {
        tx.bump_version::<Role>(&(organization, shown))?;
    }
    Ok(())
}

/// Removes the default role of an organization if it is this deleted role. Updates the organization, which shows it.
fn clear_default(
    tx: &mut WriteTx<'_>,
    (organization, role): RoleKey,
    now: Timestamp,
) -> Result<()> {
    if default_of(tx, organization)? != Some(role) {
        return Ok(());
    }
    tx.log_about::<Organization>(&organization);
    tx.remove::<DefaultRole>(&organization)?;
    organizations::set_updated(tx, organization, now)
}

/// Adds a new member of an organization to its default role, if it has one.
pub fn give_default(
    tx: &mut WriteTx<'_>,
    member: &Membership,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    match default_of(tx, member.organization)? {
        Some(role) => memberships::put(tx, role, member, rng, now).map(drop),
        None => Ok(()),
    }
}
