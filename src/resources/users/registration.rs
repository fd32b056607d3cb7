//! What users declare about their records.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::resources::loggable::{Location, Loggable, public_fields};
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Row, Tx};

use super::{Meta, Profile, UnverifiedAccount, User};

/// The records of users.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<User>().logged().numbered(|user| user.meta.id.0),
    &record::<Profile>().logged(),
    &record::<UnverifiedAccount>(),
];

impl Loggable for User {
    const SCOPE: &'static str = "User";

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(_: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((None, None))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let mut fields = public_fields(row)?;
        let Meta { is_active, current_organization, current_project, .. } = &row.meta;
        for (name, value) in [
            ("is_active", json!(is_active)),
            ("current_organization", json!(current_organization)),
            ("current_project", json!(current_project)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        Ok(fields)
    }
}

impl Loggable for Profile {
    const SCOPE: &'static str = User::SCOPE;

    fn item_id(meta: &Self::Meta) -> String {
        meta.to_string()
    }

    fn location(_: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((None, None))
    }
}
