//! What members declare about their records.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::resources::loggable::{Location, Loggable};
use crate::resources::pending_deletion::PendingDeletion;
use crate::resources::registration::{RegisteredRecord, record};
use crate::resources::users;
use crate::store::{Row, Tx};

use super::{Membership, MembershipOrigin, is_listed};

/// The records of members.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<Membership>()
        .logged()
        .parent(|(organization, user)| PendingDeletion::Member(organization, user))
        .deleted_with_organization()
        .names_users(|member, visit| visit(&mut member.user))
        .adapted(|member, tx| {
            member.listed = is_listed(&tx.get(&member.user)?);
            Ok(())
        }),
    &record::<MembershipOrigin>().logged().deleted_with_organization().names_users(
        |MembershipOrigin { user, invited_by, .. }, visit| {
            std::iter::once(user).chain(invited_by).for_each(visit);
        },
    ),
];

impl Loggable for Membership {
    const SCOPE: &'static str = "OrganizationMembership";

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
    const SCOPE: &'static str = Membership::SCOPE;
    const LOG_ALL_FIELDS: bool = true;
    const PARENT: Option<&'static str> = Some(Membership::SCOPE);

    fn item_id(meta: &Self::Meta) -> String {
        meta.membership.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), None))
    }

    fn fields(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Map<String, Value>> {
        let MembershipOrigin { invited_by, joined_by, took_over, .. } = row.meta;
        let mut fields = Map::from_iter([
            ("invited_by".to_owned(), json!(users::find_email(tx, invited_by)?)),
            ("joined_by".to_owned(), json!(joined_by)),
        ]);
        if let Some(since) = took_over {
            fields.insert("took_over_account_since".to_owned(), json!(since));
        }
        Ok(fields)
    }
}
