//! What the log tells of API keys: never a secret, nor a hash of one.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::resources::api_keys::{self, ApiKey};
use crate::resources::members;
use crate::resources::organizations::Organization;
use crate::store::{Row, Tx};

use super::subject::{Loggable, Place, shown_fields};

impl Loggable for ApiKey {
    const SCOPE: &'static str = "PersonalAPIKey";
    /// Others read the log of an organization: what else a key is limited to is its user's business.
    const HIDDEN: &'static [&'static str] = &["scoped_teams", "scoped_organizations"];

    fn item_id(head: &Self::Head) -> String {
        head.id.to_string()
    }

    /// A key is its user's own, unless it is limited to one organization that they belong to: who left writes
    /// nothing into its log. Nobody would read, or sweep, the log of one that was removed.
    fn place(head: &Self::Head, tx: &impl Tx) -> Result<Place> {
        let [one] = head.organizations.as_slice() else { return Ok((None, None)) };
        let belongs = members::find(tx, *one, head.user)?.is_some();
        Ok(((belongs && tx.exists::<Organization>(one)?).then_some(*one), None))
    }

    fn name(row: &Row<'_, Self>, _: &impl Tx) -> Result<Option<String>> {
        let label = shown_fields(row)?.remove("label");
        Ok(label.and_then(|label| label.as_str().map(str::to_owned)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let mut fields = shown_fields(row)?;
        fields.retain(|name, _| name == "label" || name == "last_rolled_at");
        let api_keys::Head { scopes, organizations, projects, expires_at, .. } = &row.head;
        for (name, value) in [
            ("scopes", json!(scopes)),
            ("scoped_teams", json!(projects)),
            ("scoped_organizations", json!(organizations)),
            ("expires_at", json!(expires_at)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        Ok(fields)
    }
}
