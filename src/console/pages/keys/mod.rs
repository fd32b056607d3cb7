//! The user's API keys.

mod access;
mod list;
mod new;
mod one;
mod operations;
mod value;

use crate::console::model::Key;
use crate::console::registry::Pages;
use crate::console::visit::SignedIn;
use crate::error::Result;
use crate::time::Timestamp;

/// The list of keys.
const LIST: &str = "/console/keys/";

/// The list of keys in the API.
const API: &str = "/api/personal_api_keys/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    list::routes(pages);
    new::routes(pages);
    one::routes(pages);
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
