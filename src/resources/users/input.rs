//! What is sent to make or change a user.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::input;
use crate::input::{
    Choice, Choices, Email, Flag, FreeForm, FreeObject, Identifier, Kind, Nullable, Required,
    Schema, Text, UuidField,
};
use crate::patch::set;

use super::{ProfileShown, Shown};

/// What a user may be in an organization (facts-org §1.7).
pub(super) const ROLES: &[&str] =
    &["engineering", "data", "product", "founder", "leadership", "marketing", "sales", "other"];

/// What `role_at_organization` takes.
pub struct Role;

impl Choices for Role {
    type Value = &'static str;
    const ALL: &'static [&'static str] = ROLES;
}

/// What `toolbar_mode` takes.
pub struct ToolbarMode;

impl Choices for ToolbarMode {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["disabled", "toolbar"];
}

/// What `theme_mode` takes.
pub struct ThemeMode;

impl Choices for ThemeMode {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["light", "dark", "system"];
}

/// `hedgehog_config`: an object whose public part, which every embedded User repeats, stays small.
pub struct Hedgehog;

impl Hedgehog {
    /// The largest public part, in bytes of JSON.
    const MAX_PUBLIC: usize = 1024;
}

impl Kind for Hedgehog {
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
    /// A user to make.
    pub struct NewUser {
        /// The address, unique in whatever case.
        email: Required<Email>,
        /// Given name.
        first_name: Text<150>,
        /// Family name.
        last_name: Text<150>,
    }
}

input! {
    /// What a user may change of themselves. The address is read-only.
    pub struct UserPatch {
        /// Given name.
        first_name: Text<150>,
        /// Family name.
        last_name: Text<150>,
        /// Which notifications the user wants.
        notification_settings: FreeObject,
        /// Whether the user's own use is anonymized.
        anonymize_data: Flag,
        /// Whether the toolbar is shown.
        toolbar_mode: Choice<ToolbarMode>,
        /// Columns of the events table.
        events_column_config: FreeForm,
        /// Which introductions the user has seen.
        has_seen_product_intro_for: Nullable<FreeObject>,
        /// Light, dark, or as the system has it.
        theme_mode: Nullable<Choice<ThemeMode>>,
        /// The user's hedgehog.
        hedgehog_config: Nullable<Hedgehog>,
        /// What the user is in the organization.
        role_at_organization: Nullable<Choice<Role>>,
        /// The organization that `@current` shall stand for.
        set_current_organization: Nullable<UuidField>,
        /// The project that `@current` shall stand for.
        set_current_team: Nullable<Identifier>,
    }
}

/// What the embedded form shows of a `hedgehog_config` (facts-org §1.7).
const PUBLIC_HEDGEHOG: [&str; 3] = ["use_as_profile", "color", "accessories"];

pub(super) fn apply(patch: UserPatch, user: &mut Shown, profile: &mut ProfileShown) {
    let UserPatch {
        first_name,
        last_name,
        notification_settings,
        anonymize_data,
        toolbar_mode,
        events_column_config,
        has_seen_product_intro_for,
        theme_mode,
        hedgehog_config,
        role_at_organization,
        set_current_organization: _,
        set_current_team: _,
    } = patch;
    set(&mut user.first_name, first_name);
    set(&mut user.last_name, last_name);
    set(&mut profile.notification_settings, notification_settings);
    set(&mut profile.anonymize_data, anonymize_data);
    set(&mut profile.toolbar_mode, toolbar_mode.map(str::to_owned));
    set(&mut profile.events_column_config, events_column_config);
    has_seen_product_intro_for.apply(&mut profile.has_seen_product_intro_for);
    theme_mode.map(str::to_owned).apply(&mut profile.theme_mode);
    role_at_organization.map(str::to_owned).apply(&mut user.role_at_organization);
    hedgehog_config.apply(&mut profile.hedgehog_config);
    user.hedgehog_config = profile.hedgehog_config.as_ref().map(public_hedgehog);
}

fn public_hedgehog(config: &Map<String, Value>) -> Map<String, Value> {
    config
        .iter()
        .filter(|(name, _)| PUBLIC_HEDGEHOG.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
