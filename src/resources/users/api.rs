//! What requests say about users, and what users declare about their records.

use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};

use crate::ids::UserUuid;
use crate::input::{
    Choice, Email, Flag, FreeForm, FreeObject, Identifier, Nullable, Required, Text, UuidField,
    choices,
};
use crate::resources::shared::loggable::public_fields;
use crate::resources::shared::prelude::*;

use super::{BY_UUID, Fields, Meta, Profile, ProfileFields, UnverifiedAccount, User};

choices! {
    /// The values of `role_at_organization`.
    pub struct RoleField: &'static str = [
        "engineering", "data", "product", "founder", "leadership", "marketing", "sales", "other",
    ];
    /// The values of `toolbar_mode`.
    pub struct ToolbarMode: &'static str = ["disabled", "toolbar"];
    /// The values of `theme_mode`.
    pub struct ThemeMode: &'static str = ["light", "dark", "system"];
}

/// The type of `hedgehog_config`. Its public part must be small, because every embedded user contains it.
pub struct HedgehogField;

impl HedgehogField {
    /// The maximum size of the public part, in bytes of JSON.
    const MAX_PUBLIC: usize = 1024;
}

impl FieldType for HedgehogField {
    type Value = Map<String, Value>;

    fn read(value: &Value) -> Result<Self::Value> {
        let config = FreeObject::read(value)?;
        if Value::Object(public_hedgehog(&config)).to_string().len() > Self::MAX_PUBLIC {
            let parts = PUBLIC_HEDGEHOG.join(", ");
            let detail =
                format!("Ensure {parts} have no more than {} bytes of JSON.", Self::MAX_PUBLIC);
            return Err(Error::invalid("max_length", detail));
        }
        Ok(config)
    }

    fn schema() -> Schema {
        FreeObject::schema()
    }
}

input! {
    /// The user to create.
    pub struct NewUser {
        /// The address of the user. Unique, ignoring case.
        email: Required<Email>,
        /// The given name.
        first_name: Text<150>,
        /// The family name.
        last_name: Text<150>,
    }
}

input! {
    /// The fields that users may update in their own accounts. The address is read-only.
    pub struct UserPatch {
        /// The given name.
        first_name: Text<150> => user,
        /// The family name.
        last_name: Text<150> => user,
        /// The notifications that the user wants.
        notification_settings: FreeObject => profile,
        /// Whether data about the user's own usage is anonymized.
        anonymize_data: Flag => profile,
        /// Whether the toolbar is shown.
        toolbar_mode: Choice<ToolbarMode> => profile,
        /// The columns of the events table.
        events_column_config: FreeForm => profile,
        /// The product introductions that the user has seen.
        has_seen_product_intro_for: Nullable<FreeObject> => profile,
        /// The theme: light, dark or the system's.
        theme_mode: Nullable<Choice<ThemeMode>> => profile,
        /// The user's hedgehog avatar.
        hedgehog_config: Nullable<HedgehogField> => profile,
        /// The role of the user in the organization.
        role_at_organization: Nullable<Choice<RoleField>> => user,
        /// The organization that `@current` refers to from now on.
        set_current_organization: Nullable<UuidField> => _,
        /// The project that `@current` refers to from now on.
        set_current_team: Nullable<Identifier> => _,
    }
    fn apply_to(user: &mut Fields, profile: &mut ProfileFields);
}

/// The keys of `hedgehog_config` that an embedded user contains.
const PUBLIC_HEDGEHOG: [&str; 3] = ["use_as_profile", "color", "accessories"];

/// Applies the fields of a PATCH. An embedded user contains a part of `hedgehog_config`.
pub(super) fn apply(patch: UserPatch, user: &mut Fields, profile: &mut ProfileFields) {
    patch.apply_to(user, profile);
    user.hedgehog_config = profile.hedgehog_config.as_ref().map(public_hedgehog);
}

fn public_hedgehog(config: &Map<String, Value>) -> Map<String, Value> {
    config
        .iter()
        .filter(|(name, _)| PUBLIC_HEDGEHOG.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The user that a path or the `user` parameter of a list names: a UUID or `@me`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserFilter {
    /// The caller, `@me`.
    Caller,
    /// The user with this UUID.
    Uuid(UserUuid),
}

impl FieldType for UserFilter {
    type Value = Self;

    fn read(value: &Value) -> Result<Self> {
        if value == "@me" {
            return Ok(Self::Caller);
        }
        UuidField::read(value).map(|uuid| Self::Uuid(UserUuid(uuid)))
    }

    fn schema() -> Schema {
        let me = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["@me"]));
        AnyOfBuilder::new().item(UuidField::schema()).item(me).into()
    }
}

impl UserFilter {
    /// Returns the user.
    ///
    /// # Errors
    /// 404 if no user has this UUID.
    pub fn get(self, tx: &dyn Raw, caller: UserId) -> Result<UserId> {
        self.resolve(tx, caller)?.ok_or_else(Error::not_found)
    }

    /// Returns the user; `None` if no user has this UUID.
    pub fn resolve(self, tx: &dyn Raw, caller: UserId) -> Result<Option<UserId>> {
        match self {
            Self::Caller => Ok(Some(caller)),
            Self::Uuid(uuid) => tx.lookup(&BY_UUID, &uuid),
        }
    }
}

/// The records of users.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<User>().logged().numbered(|user| user.meta.id.0),
    &record::<Profile>().logged(),
    &record::<UnverifiedAccount>(),
];

impl Loggable for User {
    const SCOPE: &'static str = "User";

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.id, None, None))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let mut fields = public_fields(row)?;
        let Meta { is_active, current_organization, current_project, .. } = &row.meta;
        fields.extend([
            ("is_active".to_owned(), json!(is_active)),
            ("current_organization".to_owned(), json!(current_organization)),
            ("current_project".to_owned(), json!(current_project)),
        ]);
        Ok(fields)
    }
}

impl Loggable for Profile {
    const SCOPE: &'static str = User::SCOPE;

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta, None, None))
    }
}
