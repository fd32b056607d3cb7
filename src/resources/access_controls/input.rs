//! What is sent to put or remove a rule (facts-dashboards §9).

use std::marker::PhantomData;

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use uuid::Uuid;

use crate::access::levels::AccessLevel;
use crate::error::{Error, Result};
use crate::input;
use crate::input::{Choice, Choices, Field, Nullable, Required, Schema, UuidField};
use crate::patch::Patch;
use crate::resources::projects::grants::GrantLevel;

/// The levels that a rule on a project takes.
pub struct OnProject;

impl Choices for OnProject {
    type Value = GrantLevel;
    const ALL: &'static [GrantLevel] = &GrantLevel::ALL;
}

impl From<GrantLevel> for Value {
    fn from(level: GrantLevel) -> Self {
        level.word().into()
    }
}

/// The levels that a rule on dashboards takes.
pub struct OnDashboards;

impl Choices for OnDashboards {
    type Value = AccessLevel;
    const ALL: &'static [AccessLevel] = &AccessLevel::ALL;
}

impl From<AccessLevel> for Value {
    fn from(level: AccessLevel) -> Self {
        level.word().into()
    }
}

/// `access_level`: a level, or null for no rule at all; it has to be sent, and has a refusal of its own
/// (facts-dashboards §9).
pub struct Level<C>(PhantomData<C>);

impl<C: Choices> Field for Level<C> {
    type Out = Option<C::Value>;

    const REQUIRED: bool = true;

    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out> {
        match Nullable::<Choice<C>>::take(name, value) {
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

/// `role`: one that is named is looked for in vain, so null is all that is right.
pub struct Role;

impl Field for Role {
    type Out = Patch<Uuid>;

    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out> {
        Nullable::<UuidField>::take(name, value)
    }

    fn property() -> Schema {
        ObjectBuilder::new().schema_type(Type::Null).into()
    }
}

/// What a rule on all of a kind can be about.
pub struct Resources;

impl Choices for Resources {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["dashboard"];
}

input! {
    /// One rule on a project to put or, where the level is null, to remove.
    pub struct NewAccessControl {
        /// What the member may do in the project; null for no rule of the member's own.
        access_level: Level<OnProject>,
        /// The membership it is about, which is not the user's id.
        organization_member: Nullable<UuidField>,
        /// Roles do not exist: null.
        role: Role,
    }
}

input! {
    /// One rule on a dashboard to put or, where the level is null, to remove.
    pub struct NewDashboardAccessControl {
        /// What may be done with the dashboard; null for no such rule.
        access_level: Level<OnDashboards>,
        /// The membership it is about, which is not the user's id; null for everyone by default.
        organization_member: Nullable<UuidField>,
        /// Roles do not exist: null.
        role: Role,
    }
}

input! {
    /// One rule on all dashboards of a project to put or, where the level is null, to remove.
    pub struct NewResourceAccessControl {
        /// What may be done with each of them; null for no such rule.
        access_level: Level<OnDashboards>,
        /// What it is about: dashboards.
        resource: Required<Choice<Resources>>,
        /// The membership it is about, which is not the user's id; null for everyone by default.
        organization_member: Nullable<UuidField>,
        /// Roles do not exist: null.
        role: Role,
    }
}
