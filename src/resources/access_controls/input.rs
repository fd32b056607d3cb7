//! Request bodies that set or delete an access rule. See `docs/spec/access-controls.md`.

use std::marker::PhantomData;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::ids::{MembershipId, RoleId};
use crate::input;
use crate::input::{
    Choice, Choices, Field, FieldType, Identifier, Nullable, Required, Schema, Text, UuidField,
    choices_schema,
};
use crate::patch::Patch;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_objects::Kind;
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

/// The levels of a rule on objects.
pub struct OnObjects;

impl Choices for OnObjects {
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

/// `role`: the id of a role, or null.
pub struct RoleField;

impl Field for RoleField {
    type Output = Patch<RoleId>;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        Ok(Nullable::<UuidField>::parse(name, value)?.map(RoleId))
    }

    fn property() -> Schema {
        Nullable::<UuidField>::property()
    }
}

/// `organization_member`: the id of a membership, or null. The error for anything else is PostHog's.
pub struct MemberField;

impl Field for MemberField {
    type Output = Patch<MembershipId>;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        let parsed = Nullable::<UuidField>::parse(name, value);
        parsed.map(|id| id.map(MembershipId)).map_err(|_| {
            let detail = "Invalid organization member id. Use the 'id' field from the \
                          /api/organizations/<organization_id>/members/ endpoint.";
            Error::field(name, "invalid_input", detail)
        })
    }

    fn property() -> Schema {
        Nullable::<UuidField>::property()
    }
}

/// The kinds of objects that rules can be on.
pub struct Kinds;

impl Choices for Kinds {
    type Value = Kind;
    const ALL: &'static [Kind] = Kind::ALL;
}

choices_schema!(Kinds);

/// `resource` of a rule on all objects of a kind. The error for an unknown kind is PostHog's.
pub struct KindField;

impl FieldType for KindField {
    type Value = Kind;

    fn read(value: &Value) -> Result<Kind> {
        value.as_str().and_then(Kind::named).ok_or_else(|| {
            let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
            let names = names.join(", ");
            Error::invalid("invalid_input", format!("Invalid resource. Must be one of: {names}"))
        })
    }

    fn schema() -> Schema {
        Choice::<Kinds>::schema()
    }
}

/// `resource` or `resource_id` of a rule on one object, as text. The path says which object it is, so clients may omit
/// both.
pub struct TargetField;

impl Field for TargetField {
    type Output = Option<String>;

    fn parse(_: &str, value: Option<&Value>) -> Result<Self::Output> {
        Ok(match value {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(number @ Value::Number(_)) => {
                let id = Identifier::read(number);
                Some(id.map_or_else(|_| number.to_string(), |id| id.to_string()))
            }
            Some(other) => Some(other.to_string()),
        })
    }

    fn property() -> Schema {
        Nullable::<Text<MAX_TARGET>>::property()
    }
}

/// The length of the longest name of a kind, and more than that of any number of an object.
const MAX_TARGET: usize = 64;

input! {
    /// A rule on a project: sets it, or deletes it if `access_level` is null.
    pub struct NewAccessControl {
        /// The level in the project. Null deletes the rule.
        access_level: LevelField<OnProject>,
        /// ID of the membership, not of the user. The rule is for everyone if neither a member nor a role is named.
        organization_member: MemberField,
        /// ID of the role.
        role: RoleField,
    }
}

input! {
    /// A rule on one object: sets it, or deletes it if `access_level` is null.
    pub struct NewObjectAccessControl {
        /// The level on the object. Null deletes the rule.
        access_level: LevelField<OnObjects>,
        /// ID of the membership, not of the user. The rule is for everyone if neither a member nor a role is named.
        organization_member: MemberField,
        /// ID of the role.
        role: RoleField,
        /// The kind of the object in the path.
        resource: TargetField,
        /// The number of the object in the path.
        resource_id: TargetField,
    }
}

input! {
    /// A rule on all objects of a kind in a project: sets it, or deletes it if `access_level` is null.
    pub struct NewResourceAccessControl {
        /// The level on every object of the kind. Null deletes the rule.
        access_level: LevelField<OnObjects>,
        /// The kind.
        resource: Required<KindField>,
        /// ID of the membership, not of the user. The rule is for everyone if neither a member nor a role is named.
        organization_member: MemberField,
        /// ID of the role.
        role: RoleField,
    }
}
