//! What roles declare about their records.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::resources::loggable::{Location, Loggable};
use crate::resources::members::Membership;
use crate::resources::organizations::Organization;
use crate::resources::pending_deletion::PendingDeletion;
use crate::resources::registration::{RegisteredRecord, record};
use crate::resources::users;
use crate::store::{Reference, Row, Tx};

use super::{DefaultRole, PendingListing, Role, RoleMembership};

/// The records of roles.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<Role>()
        .logged()
        .parent(|(organization, role)| PendingDeletion::Role(organization, role))
        .deleted_with_organization(),
    &record::<RoleMembership>()
        .logged()
        .deleted_with_organization()
        .names_users(|member, visit| visit(&mut member.user))
        .adapted(|member, tx| {
            member.listed = tx.get::<Membership>(&(member.organization, member.user))?.listed;
            Ok(())
        })
        .deleted_with_role(|tx, role, limit| tx.remove_some::<RoleMembership>(&role, limit)),
    &record::<PendingListing>(),
    &record::<DefaultRole>().logged().deleted_with_organization(),
];

impl Loggable for Role {
    const SCOPE: &'static str = "Role";

    fn item_id(meta: &Self::Meta) -> String {
        meta.1.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.0), None))
    }
}

/// A member of a role: the entry names the role and the member's address.
impl Loggable for RoleMembership {
    const SCOPE: &'static str = "RoleMembership";
    const LOG_ALL_FIELDS: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), None))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        Some(Reference::to::<Role>(&(meta.organization, meta.role)))
    }

    fn fields(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Map<String, Value>> {
        let RoleMembership { role, user, .. } = row.meta;
        Ok(Map::from_iter([
            ("role_id".to_owned(), json!(role)),
            ("user".to_owned(), json!(users::find_email(tx, Some(user))?)),
        ]))
    }
}

/// The default role is a field of its organization.
impl Loggable for DefaultRole {
    const SCOPE: &'static str = Organization::SCOPE;
    const PARENT: Option<&'static str> = Some(Organization::SCOPE);

    fn item_id(meta: &Self::Meta) -> String {
        meta.organization.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), None))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("default_role_id".to_owned(), json!(row.meta.role))]))
    }
}
