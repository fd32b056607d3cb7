//! Request bodies that set or delete an access rule. See `docs/spec/access-controls.md`.

use std::marker::PhantomData;

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::input;
use crate::input::{Choice, Choices, Field, Nullable, Required, Schema, UuidField};
use crate::patch::Patch;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::projects::grants::GrantLevel;

/// The levels of a rule on a project.
pub struct OnProject;

impl Choices for OnProject {
    type Value = GrantLevel;
    const ALL: &'static [GrantLevel] = &GrantLevel::ALL;
}

impl From<GrantLevel> for Value {
    fn from(level: GrantLevel) -> Self {
        level.as_str().into()
    }
}

/// The levels of a rule on dashboards.
pub struct OnDashboards;

impl Choices for OnDashboards {
    type Value = AccessLevel;
    const ALL: &'static [AccessLevel] = &AccessLevel::ALL;
}

impl From<AccessLevel> for Value {
    fn from(level: AccessLevel) -> Self {
        level.as_str().into()
    }
}

/// `access_level`: required; a level, or null to delete the rule. The error for an unknown level is
/// PostHog's, with code `invalid_input`.
pub struct LevelField<C>(PhantomData<C>);

impl<C: Choices> Field for LevelField<C> {
    type Output = Option<C::Value>;

    const REQUIRED: bool = true;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        match Nullable::<Choice<C>>::parse(name, value) {
            Ok(Patch::Value(level)) => Ok(Some(level)),
            Ok(Patch::Null) => Ok(None),
            Ok(Patch::Absent) => Err(super::required(name)),
            Err(_) => {
                let levels: Vec<Value> = C::ALL.iter().map(|level| (*level).into()).collect();
                let words: Vec<&str> = levels.iter().filter_map(Value::as_str).collect();
                let words = words.join(", ");
                let detail = format!("Invalid access level. Must be one of: {words}");
                Err(Error::field(name, "invalid_input", detail))
            }
        }
    }

    fn property() -> Schema {
        Nullable::<Choice<C>>::property()
    }
}

/// `role`: must be null. Roles are not supported, so a UUID is refused later because no role has it.
pub struct RoleField;

impl Field for RoleField {
    type Output = Patch<Uuid>;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        Nullable::<UuidField>::parse(name, value)
    }

    fn property() -> Schema {
        ObjectBuilder::new().schema_type(Type::Null).into()
    }
}

/// The values of `resource`.
pub struct RuleResources;

impl Choices for RuleResources {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["dashboard"];
}

input! {
    /// A rule on a project: sets it, or deletes it if `access_level` is null.
    pub struct NewAccessControl {
        /// The member's level in the project. Null deletes the rule.
        access_level: LevelField<OnProject>,
        /// ID of the membership, not of the user.
        organization_member: Nullable<UuidField>,
        /// Must be null: roles are not supported.
        role: RoleField,
    }
}

input! {
    /// A rule on a dashboard: sets it, or deletes it if `access_level` is null.
    pub struct NewDashboardAccessControl {
        /// The level on the dashboard. Null deletes the rule.
        access_level: LevelField<OnDashboards>,
        /// ID of the membership, not of the user. Null for everyone by default.
        organization_member: Nullable<UuidField>,
        /// Must be null: roles are not supported.
        role: RoleField,
    }
}

input! {
    /// A rule on all dashboards of a project: sets it, or deletes it if `access_level` is null.
    pub struct NewResourceAccessControl {
        /// The level on every dashboard. Null deletes the rule.
        access_level: LevelField<OnDashboards>,
        /// Must be `dashboard`.
        resource: Required<Choice<RuleResources>>,
        /// ID of the membership, not of the user. Null for everyone by default.
        organization_member: Nullable<UuidField>,
        /// Must be null: roles are not supported.
        role: RoleField,
    }
}
