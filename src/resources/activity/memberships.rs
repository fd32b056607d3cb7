//! Activity entries for members, their origin and invites.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::ids::UserId;
use crate::resources::invites::Invite;
use crate::resources::members::{Membership, MembershipOrigin};
use crate::resources::users::User;
use crate::store::{Row, Tx};

use super::log_target::{Location, Loggable};

impl Loggable for Membership {
    const SCOPE: &'static str = "OrganizationMembership";
    const LOG_REMOVAL: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), None))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("level".to_owned(), row.meta.level.into())]))
    }
}

/// The entry of a membership includes its origin when the membership is created and when it is deleted.
impl Loggable for MembershipOrigin {
    const SCOPE: &'static str = "OrganizationMembership";
    const LOG_ALL_FIELDS: bool = true;
    const IS_PART: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        meta.membership.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), None))
    }

    fn fields(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Map<String, Value>> {
        let MembershipOrigin { invited_by, joined_by, took_over, .. } = row.meta;
        let mut fields = Map::from_iter([
            ("invited_by".to_owned(), address(tx, invited_by)?),
            ("joined_by".to_owned(), json!(joined_by)),
        ]);
        if let Some(since) = took_over {
            fields.insert("took_over_account_since".to_owned(), json!(since));
        }
        Ok(fields)
    }
}

/// The entry shows who created the invite, because any member may delete or replace it.
impl Loggable for Invite {
    const SCOPE: &'static str = "OrganizationInvite";
    const LOG_ALL_FIELDS: bool = true;
    const LOG_REMOVAL: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), None))
    }

    fn name(row: &Row<'_, Self>, _: &impl Tx) -> Result<Option<String>> {
        Ok(Some(row.meta.address.clone()))
    }

    fn fields(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([
            ("target_email".to_owned(), json!(row.meta.address)),
            ("level".to_owned(), json!(row.meta.level)),
            ("created_by".to_owned(), address(tx, row.meta.created_by)?),
        ]))
    }
}

/// The address of a user.
fn address(tx: &impl Tx, user: Option<UserId>) -> Result<Value> {
    let user = user.map_or(Ok(None), |user| tx.find::<User>(&user))?;
    Ok(user.map_or(Value::Null, |user| user.fields.email.into()))
}
