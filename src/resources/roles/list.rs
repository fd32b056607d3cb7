//! Lists of roles.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::ids::{OrganizationId, RoleId, UserId};
use crate::resources::members;
use crate::resources::users::UserFilter;
use crate::store::{Tx, Window};

use super::body::RoleItems;
use super::{BY_NAME, Role, find_name, folded, of_user};

/// What a list of roles shows, besides its page.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListOptions {
    /// Only the roles of this user.
    pub user: Option<UserFilter>,
    /// Whether to show the basic form.
    pub is_basic: bool,
}

/// Lists the roles of an organization by name, without regard to case. Returns the total and the items in `window` as
/// the items of a JSON array. `caller` is the user that `@me` names.
pub fn list(
    tx: &impl Tx,
    organization: OrganizationId,
    caller: UserId,
    options: ListOptions,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let mut items = RoleItems::new(tx, organization, options.is_basic)?;
    let Some(user) = options.user else {
        let count = tx.count::<Role>(&organization)?;
        if window.begins_within(count) {
            tx.walk(&BY_NAME, &organization, window, |row| items.push(tx, &row))?;
        }
        return Ok((count, items.into_bytes()));
    };
    let roles = by_name(tx, organization, user.resolve(tx, caller)?)?;
    for role in roles.values().skip(window.offset).take(window.limit) {
        tx.view::<Role, _>(&(organization, *role), |row| items.push(tx, &row))?;
    }
    Ok((roles.len() as u64, items.into_bytes()))
}

/// Returns the roles of a user whom lists show as a member, in the order of the list.
fn by_name(
    tx: &impl Tx,
    organization: OrganizationId,
    user: Option<UserId>,
) -> Result<BTreeMap<String, RoleId>> {
    let mut roles = BTreeMap::new();
    let Some(user) = user else { return Ok(roles) };
    if members::find_listed(tx, organization, user)?.is_some() {
        for role in of_user(tx, organization, user)? {
            let name = find_name(tx, organization, role)?;
            roles.extend(name.map(|name| (folded(&name), role)));
        }
    }
    Ok(roles)
}
