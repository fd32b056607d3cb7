//! What the API reads and shows of roles, and what roles declare about their records.

use std::collections::BTreeMap;

use crate::base::json::Either;
use crate::ids::RoleMembershipId;
use crate::input::{Name, Required, UuidField};
use crate::resources::members::api::MemberBody;
use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::shared::prelude::*;
use crate::resources::shared::reading::walk_page;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers, UserFilter};

use super::memberships::BY_JOINING;
use super::{
    BY_NAME, DefaultRole, Fields, PendingListing, Role, RoleKey, RoleMembership, default_of,
    find_name, folded, of_user,
};

input! {
    /// The role to create, or to replace.
    pub struct NewRole {
        /// The name of the role. No other role of the organization may have it, without regard to case.
        name: Required<Name<200>>,
    }
}

input! {
    /// The fields of a role to update.
    pub struct RolePatch {
        /// The name of the role. No other role of the organization may have it, without regard to case.
        name: Name<200>,
    }
}

impl From<NewRole> for RolePatch {
    fn from(NewRole { name }: NewRole) -> Self {
        Self { name: Some(name) }
    }
}

input! {
    /// The member to add to a role.
    pub struct NewRoleMembership {
        /// The UUID of the user, who must be a member of the organization.
        user_uuid: Required<UuidField>,
    }
}

output! {
    /// A role of an organization.
    pub struct RoleBody<'a> as Role {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// Always null: the creator of a role is only in the activity log.
        created_by: Option<users::Fields> = null,
        /// The members of the role, in the order in which they joined it. A response contains at most 5,000 members of
        /// roles; `role_memberships/` lists all of them.
        members: WrittenBy<'a> as Vec<RoleMembershipBody>,
        /// Whether users get the role when they join the organization.
        is_default: bool,
    }
}

output! {
    /// A role in basic form.
    pub struct BasicRole<'a> {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// Always null: the creator of a role is only in the activity log.
        created_by: Option<users::Fields> = null,
        /// The number of members of the role.
        member_count: u64,
        /// Whether users get the role when they join the organization.
        is_default: bool,
    }
}

/// A role in full or in basic form.
pub type ListedRole<'a> = Either<RoleBody<'a>, BasicRole<'a>>;

output! {
    /// The membership of a member of the organization in a role.
    pub struct RoleMembershipBody as RoleMembership {
        /// The id of the role membership.
        id: RoleMembershipId,
        /// The id of the role.
        role_id: RoleId,
        /// The membership of the user in the organization.
        organization_member: MemberBody,
        /// The user.
        user: EmbeddedUser as users::Fields,
        /// When the user joined the role.
        joined_at: Timestamp,
        /// When the role membership was last updated.
        updated_at: Timestamp,
    }
}

/// The maximum number of members of roles in a response.
const MAX_MEMBERS: usize = 5000;
/// A role with more members than this is rendered on a blocking thread and outside of write transactions.
const MAX_INLINE_MEMBERS: u64 = 64;

/// Returns whether rendering a role takes long.
pub fn is_expensive(tx: &dyn Raw, key: RoleKey) -> Result<bool> {
    Ok(tx.count::<RoleMembership>(&key)? > MAX_INLINE_MEMBERS)
}

fn membership_body(
    tx: &dyn Raw,
    member: &RoleMembership,
    inviters: &mut EmbeddedUsers,
) -> Result<RoleMembershipBody> {
    let membership: Membership = tx.get(&(member.organization, member.user))?;
    let organization_member = members::api::member_body(tx, &membership, inviters)?;
    Ok(RoleMembershipBody {
        id: member.id,
        role_id: member.role,
        user: organization_member.user.clone(),
        organization_member,
        joined_at: member.joined_at,
        updated_at: member.updated_at,
    })
}

/// Appends a role with at most `most` of its members. Returns how many of them it appended.
fn write(
    tx: &dyn Raw,
    row: &Row<'_, Role>,
    default: Option<RoleId>,
    most: usize,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let (mut inviters, mut count) = (EmbeddedUsers::default(), 0);
    let window = Window { offset: 0, limit: most, order: Order::Ascending };
    let body = RoleBody {
        own: row.json(),
        members: WrittenBy(&mut |out| {
            Array::write(out, |array| {
                tx.walk(&BY_JOINING, &row.meta, window, |member| {
                    count += 1;
                    array.push(membership_body(tx, &member.meta, &mut inviters)?)
                })
            })
        }),
        is_default: default == Some(row.meta.1),
    };
    body.write_json(out)?;
    Ok(count)
}

/// Lists the roles of an organization by name, without regard to case: all of them, or those of `user`. Returns the total
/// and the items in `window` as the items of a JSON array, in the basic form if `is_basic`. `caller` is the user that `@me`
/// names.
pub fn list(
    tx: &dyn Raw,
    organization: OrganizationId,
    caller: UserId,
    user: Option<UserFilter>,
    is_basic: bool,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let default = default_of(tx, organization)?;
    // How many members of roles the response may still contain.
    let (mut items, mut left) = (JsonItems::default(), MAX_MEMBERS);
    let mut push = |row: Row<'_, Role>| {
        if is_basic {
            return items.push(basic(tx, &row, default)?);
        }
        items.push(WrittenBy(&mut |out| {
            left -= write(tx, &row, default, left, out)?;
            Ok(())
        }))
    };
    let count = if let Some(user) = user {
        let roles = by_name(tx, organization, user.resolve(tx, caller)?)?;
        for role in roles.values().skip(window.offset).take(window.limit) {
            tx.view::<Role, _>(&(organization, *role), &mut push)?;
        }
        roles.len() as u64
    } else {
        walk_page(tx, &BY_NAME, &organization, window, push)?
    };
    Ok((count, items.into_bytes()))
}

/// Returns the roles of a user whom lists show as a member, in the order of the list.
fn by_name(
    tx: &dyn Raw,
    organization: OrganizationId,
    user: Option<UserId>,
) -> Result<BTreeMap<String, RoleId>> {
    let mut roles = BTreeMap::new();
    let Some(user) = user else { return Ok(roles) };
    if members::find_listed(tx, organization, user)?.is_some() {
        for role in of_user(tx, organization, user)? {
            let name = find_name(tx, organization, role)?;
            roles.extend(name.map(|name| (folded(&name), role)));
        }
    }
    Ok(roles)
}

fn basic<'a>(tx: &dyn Raw, row: &Row<'a, Role>, default: Option<RoleId>) -> Result<BasicRole<'a>> {
    Ok(BasicRole {
        own: row.json(),
        member_count: tx.count::<RoleMembership>(&row.meta)?,
        is_default: default == Some(row.meta.1),
    })
}

/// Returns the JSON of a role.
///
/// # Errors
/// 404 if the role does not exist.
pub fn body(tx: &dyn Raw, key: RoleKey) -> Result<Versioned> {
    view(tx, key, |row, default, json| write(tx, row, default, MAX_MEMBERS, json).map(drop))
}

/// Returns the JSON of a role in basic form.
///
/// # Errors
/// 404 if the role does not exist.
pub(super) fn basic_body(tx: &dyn Raw, key: RoleKey) -> Result<Versioned> {
    view(tx, key, |row, default, json| basic(tx, row, default)?.write_json(json))
}

fn view(
    tx: &dyn Raw,
    key: RoleKey,
    write: impl Fn(&Row<'_, Role>, Option<RoleId>, &mut Vec<u8>) -> Result<()>,
) -> Result<Versioned> {
    let default = default_of(tx, key.0)?;
    let viewed = tx.view::<Role, _>(&key, |row| {
        let mut json = Vec::with_capacity(1024);
        write(&row, default, &mut json)?;
        Ok(Versioned::new(row.version, json))
    })?;
    viewed.ok_or_else(Error::not_found)
}

/// Lists the members of a role in the order in which they joined it. Returns the total and the items in `window` as the
/// items of a JSON array.
///
/// # Errors
/// 404 if the role does not exist.
pub(super) fn list_members(tx: &dyn Raw, role: RoleKey, window: Window) -> Result<(u64, Vec<u8>)> {
    if !tx.exists::<Role>(&role)? {
        return Err(Error::not_found());
    }
    let (mut items, mut inviters) = (JsonItems::default(), EmbeddedUsers::default());
    let push =
        |row: Row<'_, RoleMembership>| items.push(membership_body(tx, &row.meta, &mut inviters)?);
    let count = walk_page(tx, &BY_JOINING, &role, window, push)?;
    Ok((count, items.into_bytes()))
}

/// Returns the JSON of a role membership.
pub(super) fn member_body(tx: &dyn Raw, member: &RoleMembership) -> Result<Versioned> {
    let body = membership_body(tx, member, &mut EmbeddedUsers::default())?;
    let key = (member.organization, member.role, member.user);
    Ok(Versioned::new(tx.version::<RoleMembership>(&key)?, body.to_json(1024)?))
}

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

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.1, Some(meta.0), None))
    }
}

/// A member of a role: the entry names the role and the member's address.
impl Loggable for RoleMembership {
    const SCOPE: &'static str = "RoleMembership";
    const LOG_ALL_FIELDS: bool = true;

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.id, Some(meta.organization), None))
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

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.organization, Some(meta.organization), None))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("default_role_id".to_owned(), json!(row.meta.role))]))
    }
}
