//! The user's API keys.

mod access;
mod key;
mod list;
mod new;
mod operations;
mod revocation;
mod scopes;
mod tenants;
mod value;

use serde::Deserialize;

use crate::console::registry::Pages;
use crate::console::visit::SignedIn;
use crate::error::Result;
use crate::time::Timestamp;

/// The list of keys.
const LIST: &str = "/console/keys/";

/// The list of keys in the API.
const API: &str = "/api/personal_api_keys/";

/// Adds the pages to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    list::routes(pages);
    new::routes(pages);
    key::routes(pages);
    revocation::routes(pages);
}

/// A key, as the API describes it.
#[derive(Debug, Clone, Deserialize)]
struct Key {
    id: String,
    label: String,
    mask_value: String,
    created_at: String,
    last_used_at: Option<String>,
    last_rolled_at: Option<String>,
    scopes: Vec<String>,
    scoped_teams: Vec<u64>,
    scoped_organizations: Vec<String>,
    expires_at: Option<String>,
}

impl Key {
    /// Returns the key of the session, or `None` in a session without a key.
    async fn of_session(request: &SignedIn) -> Result<Option<Self>> {
        request.api.get_if_allowed("/api/personal_api_keys/@current/").await
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        let created_at = Timestamp::parse(&self.created_at);
        let end = self.expires_at.as_deref().and_then(Timestamp::parse);
        end.is_some_and(|end| !end.is_end_of_current_since(created_at, now))
    }
}
