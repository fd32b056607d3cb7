//! Users: people, known by their e-mail address (API document, User; facts-org §1.7 and §6.2).

pub mod body;
pub mod http;
mod input;
mod link_accounts;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId, UserId, UserUuid};
use crate::json::Object;
use crate::secret::Draw;
use crate::store::{Index, Indexed, Owner, Record, Reference, Table, Tx, WriteTx};
use crate::time::Timestamp;

pub use input::{NewUser, UserPatch};
pub use link_accounts::{LinkAccount, find_unproven, hand_over, set_verified};

/// A user.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    /// What rules decide by.
    pub head: Head,
    /// The embedded User of the API document.
    pub shown: Shown,
}

/// What rules decide by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The user's number.
    pub id: UserId,
    /// The user's name in paths.
    pub uuid: UserUuid,
    /// Whether the user's keys open anything.
    pub is_active: bool,
    /// What `@current` stands for, while the user still belongs to it.
    pub current_organization: Option<OrganizationId>,
    /// What `@current` stands for, while the user may still see it.
    pub current_project: Option<ProjectId>,
    /// When the user was made.
    pub date_joined: Timestamp,
}

/// A user, as others see them: the embedded User of the API document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = User)]
pub struct Shown {
    /// The user's number.
    pub id: UserId,
    /// The user's name in paths.
    pub uuid: UserUuid,
    /// A random token, fixed at creation.
    pub distinct_id: String,
    /// Given name.
    pub first_name: String,
    /// Family name.
    pub last_name: String,
    /// The address, its domain in lower case.
    #[schema(format = IdnEmail)]
    pub email: String,
    /// Whether the address was proved.
    pub is_email_verified: bool,
    /// The public part of the profile's `hedgehog_config`.
    pub hedgehog_config: Option<Map<String, Value>>,
    /// What the user is in the organization, such as `engineering`.
    pub role_at_organization: Option<String>,
}

/// By the address in lower case: two addresses that differ only in case are one user.
pub const BY_EMAIL: Index<User, String> =
    Index::unique(Table::UsersByEmail, |user| Some(user.shown.email.to_lowercase()));
/// By the name in paths.
pub const BY_UUID: Index<User, UserUuid> =
    Index::unique(Table::UsersByUuid, |user| Some(user.head.uuid));

impl Record for User {
    const TABLE: Table = Table::Users;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_EMAIL, &BY_UUID];
    type Key = UserId;
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> UserId {
        self.head.id
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(None)
    }
}

/// What only the user sees of themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Whose it is.
    pub user: UserId,
    /// Its fields.
    pub shown: ProfileShown,
}

/// The fields of `/api/users/@me/` that are the user's own and not in the embedded form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileShown {
    /// Which notifications the user wants.
    pub notification_settings: Map<String, Value>,
    /// Whether the user's own use is anonymized.
    pub anonymize_data: bool,
    /// `disabled` or `toolbar`.
    pub toolbar_mode: String,
    /// Columns of the events table.
    pub events_column_config: Value,
    /// Which introductions the user has seen.
    pub has_seen_product_intro_for: Option<Map<String, Value>>,
    /// `light`, `dark` or `system`.
    pub theme_mode: Option<String>,
    /// The whole of it; the embedded form shows its public part.
    pub hedgehog_config: Option<Map<String, Value>>,
}

impl Default for ProfileShown {
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

impl Record for Profile {
    const TABLE: Table = Table::UserProfiles;
    type Key = UserId;
    type Head = UserId;
    type Shown = ProfileShown;

    fn key(&self) -> UserId {
        self.user
    }

    fn parts(&self) -> (&UserId, &ProfileShown) {
        (&self.user, &self.shown)
    }

    fn join(user: UserId, shown: ProfileShown) -> Self {
        Self { user, shown }
    }

    fn owner(&self, tx: &impl Tx) -> Result<Option<Owner>> {
        owner_of(tx, self.user)
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<User>(&self.user)]
    }
}

/// Makes a user.
///
/// # Errors
/// 400 `unique` at `email` where the address, in whatever case, has a user.
pub fn create(
    tx: &mut WriteTx<'_>,
    new: &NewUser,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<User> {
    if find_by_email(tx, &new.email)?.is_some() {
        return Err(Error::field("email", "unique", "user with this email already exists."));
    }
    let id = UserId(tx.next_number(Table::Users)?);
    let uuid = UserUuid(draw.uuid(now));
    let user = User {
        head: Head {
            id,
            uuid,
            is_active: true,
            current_organization: None,
            current_project: None,
            date_joined: now,
        },
        shown: Shown {
            id,
            uuid,
            distinct_id: draw.token(),
            first_name: new.first_name.clone().unwrap_or_default(),
            last_name: new.last_name.clone().unwrap_or_default(),
            email: new.email.clone(),
            is_email_verified: false,
            hedgehog_config: None,
            role_at_organization: None,
        },
    };
    tx.put(&user)?;
    tx.put(&Profile { user: id, shown: ProfileShown::default() })?;
    Ok(user)
}

/// Changes what the user may change of themselves. Organization and project were checked by the caller.
///
/// # Errors
/// 404 when the user is gone.
pub fn update(
    tx: &mut WriteTx<'_>,
    id: UserId,
    patch: &UserPatch,
    current: (Option<OrganizationId>, Option<ProjectId>),
) -> Result<()> {
    let before: (User, Profile) = (tx.get(&id)?, tx.get(&id)?);
    let (mut user, mut profile) = before.clone();
    input::apply(patch.clone(), &mut user.shown, &mut profile.shown);
    (user.head.current_organization, user.head.current_project) = current;
    if user == before.0 && profile != before.1 {
        tx.touch::<User>(&id)?;
    } else {
        tx.put(&user)?;
    }
    tx.put(&profile)
}

/// Makes the organization, and the project where one is given, what `@current` stands for.
///
/// # Errors
/// 404 when the user is gone.
pub fn set_current(
    tx: &mut WriteTx<'_>,
    id: UserId,
    organization: OrganizationId,
    project: Option<ProjectId>,
) -> Result<()> {
    let mut user: User = tx.get(&id)?;
    user.head.current_organization = Some(organization);
    if project.is_some() {
        user.head.current_project = project;
    }
    tx.put(&user)
}

/// The user as the one that the bytes of a record count to.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn owner_of(tx: &impl Tx, id: UserId) -> Result<Option<Owner>> {
    Ok(tx.head::<User>(&id)?.map(|head| Owner::Requester(head.uuid.0)))
}

/// The user whose address this is, in whatever case.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find_by_email(tx: &impl Tx, email: &str) -> Result<Option<User>> {
    match tx.lookup(&BY_EMAIL, &email.to_lowercase())? {
        Some(id) => tx.find(&id),
        None => Ok(None),
    }
}

/// The number of the user with this name in paths.
///
/// # Errors
/// 404 when there is none.
pub fn get_by_uuid(tx: &impl Tx, uuid: UserUuid) -> Result<UserId> {
    tx.lookup(&BY_UUID, &uuid)?.ok_or_else(Error::not_found)
}

/// Appends the embedded User, or null where there is none.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn write_embedded(tx: &impl Tx, user: Option<UserId>, out: &mut Vec<u8>) -> Result<()> {
    let written = match user {
        Some(id) => tx.view::<User, _>(&id, |row| {
            out.extend_from_slice(row.shown);
            Ok(())
        })?,
        None => None,
    };
    if written.is_none() {
        out.extend_from_slice(b"null");
    }
    Ok(())
}

/// Writes embedded Users one after the other, reading each run of the same user once: a list mostly
/// shows the same few.
#[derive(Default)]
pub struct Embedder {
    last: Option<(Option<UserId>, Vec<u8>)>,
}

impl Embedder {
    /// Appends the embedded User, or null where there is none.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn write(&mut self, tx: &impl Tx, user: Option<UserId>, out: &mut Vec<u8>) -> Result<()> {
        match &self.last {
            Some((known, text)) if *known == user => out.extend_from_slice(text),
            _ => {
                let mut text = Vec::with_capacity(256);
                write_embedded(tx, user, &mut text)?;
                out.extend_from_slice(&text);
                self.last = Some((user, text));
            }
        }
        Ok(())
    }
}

/// Appends the fields of `/api/users/@me/` that are the user's own.
///
/// # Errors
/// 404 when the user is gone.
pub fn splice_own<'o>(tx: &impl Tx, id: UserId, body: Object<'o>) -> Result<Object<'o>> {
    let user: User = tx.get(&id)?;
    let Profile { shown: profile, .. } = tx.get(&id)?;
    let User { head, shown } = user;
    body.field("date_joined", &head.date_joined)?
        .field("uuid", &shown.uuid)?
        .field("distinct_id", &shown.distinct_id)?
        .field("first_name", &shown.first_name)?
        .field("last_name", &shown.last_name)?
        .field("email", &shown.email)?
        .raw("pending_email", b"null")
        .field("is_email_verified", &shown.is_email_verified)?
        .field("notification_settings", &profile.notification_settings)?
        .field("anonymize_data", &profile.anonymize_data)?
        .field("toolbar_mode", &profile.toolbar_mode)?
        .raw("has_password", b"false")
        .field("id", &shown.id)?
        .raw("is_staff", b"false")
        .raw("is_impersonated", b"false")
        .raw("is_impersonated_until", b"null")
        .raw("sensitive_session_expires_at", b"null")
        .field("events_column_config", &profile.events_column_config)?
        .raw("is_2fa_enabled", b"false")
        .raw("has_social_auth", b"false")
        .raw("has_sso_enforcement", b"false")
        .field("has_seen_product_intro_for", &profile.has_seen_product_intro_for)?
        .raw("scene_personalisation", b"[]")
        .field("theme_mode", &profile.theme_mode)?
        .field("hedgehog_config", &profile.hedgehog_config)?
        .field("role_at_organization", &shown.role_at_organization)
}
