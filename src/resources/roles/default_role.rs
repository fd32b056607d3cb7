//! The default role of an organization: whoever joins the organization becomes a member of it.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{OrganizationId, RoleId};
use crate::store::{Reference, Tx, impl_record};

use super::Role;

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
pub fn find(tx: &impl Tx, organization: OrganizationId) -> Result<Option<RoleId>> {
    Ok(tx.meta::<DefaultRole>(&organization)?.map(|default| default.role))
}
