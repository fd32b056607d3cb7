//! The default role of an organization: users get it when they join the organization.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, RoleId};
use crate::patch::Patch;
use crate::resources::members::Membership;
use crate::resources::organizations::{self, Organization};
use crate::secret::SeededRng;
use crate::store::{Reference, Tx, WriteTx, impl_record};
use crate::time::Timestamp;

use super::{Role, exists, memberships};

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
pub fn default_of(tx: &impl Tx, organization: OrganizationId) -> Result<Option<RoleId>> {
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
            let detail = format!("Invalid pk \"{role}\" - object does not exist.");
            return Err(Error::field("default_role_id", "does_not_exist", detail));
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
pub(super) fn clear(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    role: RoleId,
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
