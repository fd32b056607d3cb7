//! Roles: named groups of members, to whom access controls give a level together. See `docs/spec/roles.md`.

mod default_role;
pub mod http;
mod memberships;
mod registration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Result;
use crate::ids::{OrganizationId, RoleId};
use crate::resources::organizations::Organization;
use crate::store::{Index, Key, Reference, Table, Tx, impl_record};
use crate::time::Timestamp;

pub use default_role::DefaultRole;
pub use memberships::{RoleMembership, of_user};
pub use registration::RECORDS;

/// A role of an organization.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// The organization and the id of the role.
    pub key: (OrganizationId, RoleId),
    /// The fields of the JSON.
    pub fields: Fields,
}

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
    Index::unique(Table::RolesByName, |role| Some((role.key.0, role.fields.name.to_lowercase())));

impl_record!(Role {
    table: Roles,
    key: |role| -> (OrganizationId, RoleId) { role.key },
    parts: key: (OrganizationId, RoleId), fields: Fields,
    indexes: [&BY_NAME],
    counts: [|role| Some(role.key.0.encoded())],
    owner: |role, _| Ok(Some(role.key.0.owner())),
    references: |role| [Reference::to::<Organization>(&role.key.0)],
});

/// Returns whether the organization has this role.
pub fn exists(tx: &impl Tx, organization: OrganizationId, role: RoleId) -> Result<bool> {
    tx.exists::<Role>(&(organization, role))
}
