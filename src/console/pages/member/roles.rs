//! The roles of a member.

use serde::Deserialize;

use crate::console::list::List;
use crate::console::pages::members::Member;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The maximum number of roles on the page.
const MAX_ROLES: u64 = 100;

#[derive(Deserialize)]
pub(super) struct Role {
    pub(super) id: String,
    pub(super) name: String,
}

/// Loads the roles of a member. Returns `None` if the session may not read them.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn load(
    request: &SignedIn,
    organization: &str,
    member: &Member,
) -> Result<Option<List<Role>>> {
    let query = format!("user={}&basic=true&limit={MAX_ROLES}", member.user.uuid);
    let path = format!("/api/organizations/{organization}/roles/?{query}");
    request.api.get_if_allowed(&path).await
}
