//! What API keys declare about their records. An entry of the activity log never contains a key or its hash.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::resources::loggable::{FieldAction, Location, Loggable, public_fields, public_text};
use crate::resources::members;
use crate::resources::organizations::Organization;
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Redaction, Row, Tx};

use super::{ApiKey, ApiKeyUse, Grantors, Meta, remove_all};

/// The records of API keys.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<ApiKey>().redacted(Redaction::Whole).logged().deleted_with_account(remove_all),
    &record::<ApiKeyUse>().redacted(Redaction::Whole),
    &record::<Grantors>().redacted(Redaction::Whole),
];

impl Loggable for ApiKey {
    const SCOPE: &'static str = "PersonalAPIKey";
    const ACTIONS: &'static [FieldAction] =
        &[FieldAction::Changed { field: "last_rolled_at", action: "rolled" }];
    /// Plain members may not see other users' keys.
    const ADMINS_ONLY: bool = true;
    /// Other members read the organization's log and must not learn which other organizations a key can access.
    const HIDDEN: &'static [&'static str] = &["scoped_teams", "scoped_organizations"];

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    /// An entry belongs to an organization only if the key is limited to that one organization, the user is a member of
    /// it and it still exists. Otherwise the entry belongs to the user: a former member must not write to the log of
    /// the organization, and nothing would ever delete entries of a deleted organization.
    fn location(meta: &Self::Meta, tx: &impl Tx) -> Result<Location> {
        let [one] = meta.organizations.as_slice() else { return Ok((None, None)) };
        let belongs = members::find(tx, *one, meta.user)?.is_some();
        Ok(((belongs && tx.exists::<Organization>(one)?).then_some(*one), None))
    }

    fn name(row: &Row<'_, Self>) -> Result<Option<String>> {
        public_text(row, "label")
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let mut fields = public_fields(row)?;
        fields.retain(|name, _| name == "label" || name == "last_rolled_at");
        let Meta { scopes, organizations, projects, expires_at, .. } = &row.meta;
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
