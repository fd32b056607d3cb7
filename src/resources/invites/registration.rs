//! What invites declare about their records.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::resources::loggable::{Location, Loggable};
use crate::resources::registration::{RegisteredRecord, record};
use crate::resources::users;
use crate::store::{Row, Tx};

use super::pending::delete_created_by;
use super::{Invite, InviteMail};

/// The records of invites.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<Invite>()
        .logged()
        .deleted_with_organization()
        .deleted_with_member(delete_created_by)
        .numbered(|invite| invite.meta.serial)
        .names_users(|invite, visit| invite.meta.created_by.iter_mut().for_each(visit)),
    &record::<InviteMail>().deleted_with_organization(),
];

/// The entry shows who created the invite, because any member may delete or replace it.
impl Loggable for Invite {
    const SCOPE: &'static str = "OrganizationInvite";
    const LOG_ALL_FIELDS: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), None))
    }

    fn name(row: &Row<'_, Self>) -> Result<Option<String>> {
        Ok(Some(row.meta.address.clone()))
    }

    fn fields(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([
            ("target_email".to_owned(), json!(row.meta.address)),
            ("level".to_owned(), json!(row.meta.level)),
            ("created_by".to_owned(), json!(users::find_email(tx, row.meta.created_by)?)),
        ]))
    }
}
