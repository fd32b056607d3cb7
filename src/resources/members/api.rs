//! The levels of members, what the API shows of members, their lists, and what members declare about their records.

use serde::{Deserializer, Serializer, de};

use crate::input::{Choices, choices, choices_schema};
use crate::resources::shared::prelude::*;
use crate::resources::shared::reading::walk_page;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers, User};

use super::{
    BY_JOINING, JoinedBy, Membership, MembershipOrigin, find_listed, is_listed, require_may_give,
    require_may_remove,
};

/// The level of a member in an organization. A higher level includes the permissions of the lower ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// May see the organization and work in its open projects.
    #[default]
    Member = 1,
    /// May also manage the organization.
    Admin = 8,
    /// May also delete the organization.
    Owner = 15,
}

impl Level {
    /// All levels in ascending order.
    pub const ALL: [Self; 3] = [Self::Member, Self::Admin, Self::Owner];

    /// Returns the number of the level in JSON.
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// Returns the level with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// Returns the name of the level on the command line and in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    /// Returns whether the level may manage the organization: admin and owner.
    pub fn is_admin(self) -> bool {
        self >= Self::Admin
    }
}

impl From<Level> for Value {
    fn from(level: Level) -> Self {
        level.number().into()
    }
}

impl Choices for Level {
    type Value = Self;
    const ALL: &'static [Self] = &Self::ALL;
}

choices_schema!(Level);

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u8::deserialize(deserializer)?;
        Self::from_number(number.into()).ok_or_else(|| de::Error::custom("no such level"))
    }
}

output! {
    /// A member of an organization.
    pub struct MemberBody as Member {
        /// The id of the membership, different from the user's id.
        id: MembershipId,
        /// The user.
        user: EmbeddedUser as users::Fields,
        /// The level of the member: 1 member, 8 admin, 15 owner.
        level: Level,
        /// When the user joined.
        joined_at: Timestamp,
        /// When the membership was last updated.
        updated_at: Timestamp,
        /// Always false: users authenticate with API keys.
        is_2fa_enabled: bool = false,
        /// Always false.
        has_social_auth: bool = false,
        /// Always null: there is no login.
        last_login: Option<Timestamp> = null,
        /// The user that created the invite; null for a member that joined without an invite.
        invited_by: EmbeddedUser as Option<users::Fields>,
        /// How the user received the invite: by `mail`, which proves the address, or by `link`; null without an invite.
        joined_by: Option<JoinedBy>,
    }
}

/// Returns the JSON of a member. Most members of a list have the same inviter.
pub fn member_body(
    tx: &dyn Raw,
    member: &Membership,
    inviters: &mut EmbeddedUsers,
) -> Result<MemberBody> {
    let origin = tx.meta::<MembershipOrigin>(&(member.organization, member.user))?;
    let inviter = origin.and_then(|origin| origin.invited_by);
    Ok(MemberBody {
        id: member.id,
        user: EmbeddedUser::find(tx, Some(member.user))?,
        level: member.level,
        joined_at: member.joined_at,
        updated_at: member.updated_at,
        invited_by: inviters.find(tx, inviter)?,
        joined_by: origin.map(|origin| origin.joined_by),
    })
}

output! {
    /// What you may change about a member. A key also needs the scope `organization_member:write`.
    pub struct MemberRightsBody as MemberRights {
        /// The levels that you may give the member.
        levels: Vec<Level>,
        /// Why you may not give the other levels. Null if you may give all.
        level_reason: Option<String>,
        /// Whether you may remove the member.
        can_remove: bool,
        /// Why you may not remove the member. Null if you may.
        removal_reason: Option<String>,
    }
}

/// Returns the JSON of what the caller may change about a member.
///
/// # Errors
/// 404 if the user is not a member that lists show.
pub fn body(tx: &dyn Raw, caller: &Membership, user: UserId) -> Result<Vec<u8>> {
    let member = find_listed(tx, caller.organization, user)?.ok_or_else(Error::not_found)?;
    let (mut levels, mut refusal) = (Vec::new(), None);
    for level in Level::ALL {
        match require_may_give(caller, &member, level) {
            Ok(()) => levels.push(level),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    let removal = require_may_remove(caller, &member).err();
    let body = MemberRightsBody {
        levels,
        level_reason: refusal.map(|error| error.detail().to_owned()),
        can_remove: removal.is_none(),
        removal_reason: removal.map(|error| error.detail().to_owned()),
    };
    body.to_json(256)
}

choices! {
    /// The values of `order`.
    pub struct Orders: &'static str = ["-joined_at", "joined_at"];
}

/// The filters of a list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only the member with exactly this address.
    pub email: Option<String>,
    /// Only members whose name or address contains this text, ignoring case. Must be in lower case.
    pub search: Option<String>,
    /// Only members that were updated at or after this time.
    pub updated_after: Option<Timestamp>,
}

impl Filter {
    /// Returns whether the list must visit every member. A filter by address uses the index of users.
    pub fn scans(&self) -> bool {
        self.email.is_none() && (self.search.is_some() || self.updated_after.is_some())
    }

    /// Returns whether a member matches the filters other than `email`.
    pub fn matches(&self, tx: &dyn Raw, member: &Membership) -> Result<bool> {
        if self.updated_after.is_some_and(|moment| member.updated_at < moment) {
            return Ok(false);
        }
        let Some(search) = &self.search else { return Ok(true) };
        let User { fields, .. } = tx.get(&member.user)?;
        let users::Fields { first_name, last_name, email, .. } = fields;
        Ok(format!("{first_name} {last_name} {email}").to_lowercase().contains(search))
    }
}

/// Lists the members of an organization that match `filter`. Returns the total and the items in `window` as the items
/// of a JSON array.
pub fn list(
    tx: &dyn Raw,
    organization: OrganizationId,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let (mut items, mut inviters) = (JsonItems::default(), EmbeddedUsers::default());
    let mut count = 0;
    let mut look_at = |member: &Membership| {
        if filter.matches(tx, member)? {
            if window.shows(count) {
                items.push(member_body(tx, member, &mut inviters)?)?;
            }
            count += 1;
        }
        Ok(())
    };
    if let Some(email) = &filter.email {
        if let Some(member) = find_by_address(tx, organization, email)? {
            look_at(&member)?;
        }
    } else if filter.scans() {
        let all = Window::all(window.order);
        tx.walk(&BY_JOINING, &organization, all, |row| look_at(&row.meta))?;
    } else {
        let push =
            |row: Row<'_, Membership>| items.push(member_body(tx, &row.meta, &mut inviters)?);
        let count = walk_page(tx, &BY_JOINING, &organization, window, push)?;
        return Ok((count, items.into_bytes()));
    }
    Ok((count as u64, items.into_bytes()))
}

fn find_by_address(
    tx: &dyn Raw,
    organization: OrganizationId,
    email: &str,
) -> Result<Option<Membership>> {
    match users::find_by_email(tx, email)? {
        Some(user) if user.fields.email == email => find_listed(tx, organization, user.meta.id),
        _ => Ok(None),
    }
}

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

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.id, Some(meta.organization), None))
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

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.membership, Some(meta.organization), None))
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
