//! Users, identified by their e-mail address. See `docs/spec/users.md`.

mod api;
pub mod http;

use std::rc::Rc;

use crate::ids::UserUuid;
use crate::resources::shared::prelude::*;
use crate::store::Owner;

pub use api::{NewUser, RECORDS, UserFilter, UserPatch};

/// A user.
pub type User = RecordOf<Meta, Fields>;

/// The fields of a user that access rules need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The numeric id of the user.
    pub id: UserId,
    /// The id of the user in paths.
    pub uuid: UserUuid,
    /// Whether the user's API keys work.
    pub is_active: bool,
    /// The organization that `@current` refers to, while the user is a member of it.
    pub current_organization: Option<OrganizationId>,
    /// The project that `@current` refers to, while the user may see it.
    pub current_project: Option<ProjectId>,
    /// When the user was created.
    pub date_joined: Timestamp,
}

/// A user, as other members see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = User)]
pub struct Fields {
    /// The numeric id of the user.
    pub id: UserId,
    /// The id of the user in paths.
    pub uuid: UserUuid,
    /// A random token that never changes.
    pub distinct_id: String,
    /// The given name.
    pub first_name: String,
    /// The family name.
    pub last_name: String,
    /// The address, with its domain in lower case.
    #[schema(format = IdnEmail)]
    pub email: String,
    /// Whether the user proved the address.
    pub is_email_verified: bool,
    /// The public part of `hedgehog_config`.
    pub hedgehog_config: Option<Map<String, Value>>,
    /// The role of the user in the organization, such as `engineering`.
    pub role_at_organization: Option<String>,
}

/// The user with an address in lower case. Addresses that differ only in case belong to the same user.
pub const BY_EMAIL: Index<User, String> =
    Index::unique(Table::UsersByEmail, |user| Some(user.fields.email.to_lowercase()));
/// The user with a UUID.
pub const BY_UUID: Index<User, UserUuid> =
    Index::unique(Table::UsersByUuid, |user| Some(user.meta.uuid));

impl_record!(User {
    table: Users,
    key: |user| -> UserId { user.meta.id },
    parts: meta: Meta, fields: Fields,
    indexes: [&BY_EMAIL, &BY_UUID],
    owner: |_, _| Ok(None),
});

/// The fields of a user that only the user sees.
pub type Profile = RecordOf<UserId, ProfileFields>;

/// The fields of `/api/users/@me/` that an embedded user does not contain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileFields {
    /// The notifications that the user wants.
    pub notification_settings: Map<String, Value>,
    /// Whether data about the user's own usage is anonymized.
    pub anonymize_data: bool,
    /// `disabled` or `toolbar`.
    pub toolbar_mode: String,
    /// The columns of the events table.
    pub events_column_config: Value,
    /// The product introductions that the user has seen.
    pub has_seen_product_intro_for: Option<Map<String, Value>>,
    /// `light`, `dark` or `system`.
    pub theme_mode: Option<String>,
    /// The complete `hedgehog_config`; an embedded user contains its public part.
    pub hedgehog_config: Option<Map<String, Value>>,
}

impl Default for ProfileFields {
    fn default() -> Self {
        Self {
            notification_settings: Map::new(),
            anonymize_data: false,
            toolbar_mode: "toolbar".to_owned(),
            events_column_config: serde_json::json!({ "active": "DEFAULT" }),
            has_seen_product_intro_for: None,
            theme_mode: None,
            hedgehog_config: None,
        }
    }
}

impl_record!(Profile {
    table: UserProfiles,
    key: |profile| -> UserId { profile.meta },
    parts: meta: UserId, fields: ProfileFields,
    owner: |profile, tx| owner_of(tx, profile.meta),
    references: |profile| [Reference::to::<User>(&profile.meta)],
});

/// Creates a user.
///
/// # Errors
/// 400 `unique` at `email` if a user with this address exists, ignoring case.
pub fn create(
    tx: &mut WriteTx<'_>,
    new: &NewUser,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<User> {
    if find_by_email(tx, &new.email)?.is_some() {
        return Err(Error::field("email", "unique", "user with this email already exists."));
    }
    let id = UserId(tx.next_number(Table::Users)?);
    let uuid = UserUuid(rng.uuid(now));
    let user = User {
        meta: Meta {
            id,
            uuid,
            is_active: true,
            current_organization: None,
            current_project: None,
            date_joined: now,
        },
        fields: Fields {
            id,
            uuid,
            distinct_id: rng.token(),
            first_name: new.first_name.clone().unwrap_or_default(),
            last_name: new.last_name.clone().unwrap_or_default(),
            email: new.email.clone(),
            is_email_verified: false,
            hedgehog_config: None,
            role_at_organization: None,
        },
    };
    tx.put(&user)?;
    tx.put(&Profile { meta: id, fields: ProfileFields::default() })?;
    Ok(user)
}

/// Updates the user's own account. The caller must have checked the organization and the project.
///
/// # Errors
/// 404 if the user was deleted.
pub fn update(
    tx: &mut WriteTx<'_>,
    id: UserId,
    patch: &UserPatch,
    current: (Option<OrganizationId>, Option<ProjectId>),
) -> Result<()> {
    let before: (User, Profile) = (tx.get(&id)?, tx.get(&id)?);
    let (mut user, mut profile) = before.clone();
    api::apply(patch.clone(), &mut user.fields, &mut profile.fields);
    (user.meta.current_organization, user.meta.current_project) = current;
    if user == before.0 && profile != before.1 {
        tx.bump_version::<User>(&id)?;
    } else {
        tx.put(&user)?;
    }
    tx.put(&profile)
}

/// Sets the organization, and the project if one is passed, that `@current` refers to.
///
/// # Errors
/// 404 if the user was deleted.
pub fn set_current_tenant(
    tx: &mut WriteTx<'_>,
    id: UserId,
    organization: OrganizationId,
    project: Option<ProjectId>,
) -> Result<()> {
    let mut user: User = tx.get(&id)?;
    user.meta.current_organization = Some(organization);
    if project.is_some() {
        user.meta.current_project = project;
    }
    tx.put(&user)
}

/// Returns the user as the owner that stored bytes count towards.
pub fn owner_of(tx: &dyn Raw, id: UserId) -> Result<Option<Owner>> {
    Ok(tx.meta::<User>(&id)?.map(|meta| Owner::Requester(meta.uuid.0)))
}

/// Returns the address of a user; `None` without a user, or if the user does not exist.
pub fn find_email(tx: &dyn Raw, id: Option<UserId>) -> Result<Option<String>> {
    let user = id.map_or(Ok(None), |id| tx.find::<User>(&id))?;
    Ok(user.map(|user| user.fields.email))
}

/// Returns the user with this address, ignoring case.
pub fn find_by_email(tx: &dyn Raw, email: &str) -> Result<Option<User>> {
    let id = tx.lookup(&BY_EMAIL, &email.to_lowercase())?;
    id.map_or(Ok(None), |id| tx.find::<User>(&id))
}

/// The JSON of an embedded user, or null: an `Option<Fields>`.
#[derive(Clone)]
pub struct EmbeddedUser(Option<Rc<[u8]>>);

impl EmbeddedUser {
    /// Reads the JSON of a user. Null if there is no user.
    pub fn find(tx: &dyn Raw, user: Option<UserId>) -> Result<Self> {
        match user {
            Some(id) => tx.view::<User, _>(&id, |row| Ok(Rc::from(row.fields))).map(Self),
            None => Ok(Self(None)),
        }
    }
}

impl WriteJson for EmbeddedUser {
    fn write_json(self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.0.as_deref().unwrap_or(b"null"));
        Ok(())
    }
}

/// Reads the JSON of embedded users, and keeps the last one: most items of a list have the same user.
#[derive(Default)]
pub struct EmbeddedUsers {
    last: Option<(Option<UserId>, EmbeddedUser)>,
}

impl EmbeddedUsers {
    /// Returns the JSON of a user. Null if there is no user.
    pub fn find(&mut self, tx: &dyn Raw, user: Option<UserId>) -> Result<EmbeddedUser> {
        match &self.last {
            Some((known, json)) if *known == user => Ok(json.clone()),
            _ => {
                let json = EmbeddedUser::find(tx, user)?;
                self.last = Some((user, json.clone()));
                Ok(json)
            }
        }
    }
}

/// Marks an account that was created by accepting an invite with its link. Its address is unverified, so a user who
/// verifies the address may take over the account. Deleted when the address is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnverifiedAccount {
    /// The user of the account.
    pub user: UserId,
    /// The organization of the invite. It may have been deleted.
    pub organization: OrganizationId,
    /// The user that created the invite.
    pub invited_by: Option<UserId>,
    /// When the account was created.
    pub at: Timestamp,
}

impl_record!(UnverifiedAccount {
    table: LinkAccounts,
    key: |account| -> UserId { account.user },
    owner: |_, _| Ok(None),
    references: |account| [Reference::to::<User>(&account.user)],
});

/// Returns how the account was created, if a link created it and its address was never proven.
pub fn find_unproven(tx: &dyn Raw, user: UserId) -> Result<Option<UnverifiedAccount>> {
    tx.meta::<UnverifiedAccount>(&user)
}

/// Marks the address of the user as verified.
///
/// # Errors
/// 404 if the user was deleted.
pub fn set_verified(tx: &mut WriteTx<'_>, id: UserId) -> Result<()> {
    let mut user: User = tx.get(&id)?;
    user.fields.is_email_verified = true;
    tx.put(&user)?;
    tx.remove::<UnverifiedAccount>(&id).map(drop)
}

/// Gives an account to the user that proved its address: replaces names and role, and resets the profile. The caller
/// must delete the account's keys and memberships.
///
/// # Errors
/// 404 if the user was deleted.
pub fn take_over(
    tx: &mut WriteTx<'_>,
    id: UserId,
    new: &NewUser,
    role: Option<String>,
) -> Result<()> {
    let mut user: User = tx.get(&id)?;
    user.meta.current_project = None;
    user.fields.first_name = new.first_name.clone().unwrap_or_default();
    user.fields.last_name = new.last_name.clone().unwrap_or_default();
    user.fields.role_at_organization = role;
    user.fields.hedgehog_config = None;
    tx.put(&user)?;
    tx.put(&Profile { meta: id, fields: ProfileFields::default() })
}
