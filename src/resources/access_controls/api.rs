//! What the API reads and shows of access rules, and what access controls declare about their records.

use std::marker::PhantomData;

use crate::input::{Choice, Choices, Identifier, Nullable, Required, Text, UuidField, choices};
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::projects::Project;
use crate::resources::projects::grants::{Grant, GrantLevel};
use crate::resources::shared::prelude::*;
use crate::resources::users;

use super::rules::{self, AccessRule};

choices! {
    /// The levels of a rule on a project.
    pub struct OnProject: GrantLevel = GrantLevel::ALL;
    /// The levels of a rule on objects.
    pub struct OnObjects: AccessLevel = AccessLevel::ALL;
    /// The kinds of objects that rules can be on.
    pub struct Kinds: Kind = Kind::ALL;
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
            Ok(Patch::Absent) => Err(missing(name)),
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
        role: Nullable<UuidField>,
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
        role: Nullable<UuidField>,
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
        role: Nullable<UuidField>,
    }
}

output! {
    /// The access rules on a project, and the caller's own access.
    pub struct ProjectAccessControls<'a> {
        /// The rules, in the order of their creation.
        access_controls: WrittenBy<'a> as Vec<ProjectAccessControl>,
        /// The levels of a rule, lowest first.
        available_access_levels: &'a [GrantLevel] as Vec<GrantLevel>,
        /// The level of everyone: of the rule without a member and a role, otherwise `member`.
        default_access_level: GrantLevel,
        /// The caller's level.
        user_access_level: GrantLevel,
        /// Whether the caller may edit the rules.
        user_can_edit_access_levels: bool,
    }
}

output! {
    /// An access rule on a project.
    pub struct ProjectAccessControl {
        /// The level in the project.
        access_level: GrantLevel,
        /// The fields that all rules have.
        ..rule: Rule,
    }
}

output! {
    /// The access rules on an object, or on all objects of each kind in a project, and the caller's own access.
    pub struct ObjectAccessControls<'a> {
        /// The rules, in the order of their creation.
        access_controls: WrittenBy<'a> as Vec<ObjectAccessControl>,
        /// The levels of a rule, lowest first.
        available_access_levels: &'a [AccessLevel] as Vec<AccessLevel>,
        /// The level of everyone to whom no rule applies.
        default_access_level: AccessLevel,
        /// The caller's level.
        user_access_level: AccessLevel,
        /// Whether the caller may edit the rules.
        user_can_edit_access_levels: bool,
    }
}

output! {
    /// An access rule on an object, or on all objects of a kind in a project.
    pub struct ObjectAccessControl {
        /// The level on the object or objects.
        access_level: AccessLevel,
        /// The fields that all rules have.
        ..rule: Rule,
    }
}

output! {
    /// The fields that all access rules have.
    pub struct Rule {
        /// The kind of the object: `project`, `dashboard`, `insight` or another.
        resource: &'static str as String,
        /// ID of the object. Null for a rule on all objects of a kind.
        resource_id: Option<String>,
        /// ID of the membership, not of the user. Null for a role, and for everyone by default.
        organization_member: Option<MembershipId>,
        /// ID of the role. Null for a member, and for everyone by default.
        role: Option<RoleId>,
        /// Always null: the creator of a rule is only in the activity log.
        created_by: Option<users::Fields> = null,
        /// When the rule was created.
        created_at: Timestamp,
        /// When the level last changed.
        updated_at: Timestamp,
    }
}

/// The records of access controls. An access control on a project is a [`Grant`].
pub const RECORDS: &[&dyn RegisteredRecord] = &[&record::<AccessRule>()
    .logged()
    .names_users(|rule, visit| rule.subject.visit_user(visit))
    .deleted_with_project()
    .deleted_with_member(|tx, member, limit| tx.remove_indexed(&rules::BY_MEMBER, &member, limit))
    .deleted_with_role(|tx, role, limit| tx.remove_indexed(&rules::BY_ROLE, &role, limit))];

/// An access control on one object, or on all objects of a kind (`*`), for one subject.
impl Loggable for AccessRule {
    const SCOPE: &'static str = Grant::SCOPE;
    const LOG_ALL_FIELDS: bool = true;

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        let object = meta.object.map_or("*".to_owned(), |number| number.to_string());
        let id = format!("{}:{}:{object}:{}", meta.project, meta.kind.as_str(), meta.subject);
        Ok(LogEntity::new(id, Some(meta.organization), Some(meta.project)))
    }

    /// Returns `None` for an access control on a project, and for one on all objects of a kind: `*` is not a number.
    fn object_of(item_id: &str) -> Option<Object> {
        let mut parts = item_id.split(':').skip(1);
        let kind = Kind::named(parts.next()?)?;
        Object::of(kind, parts.next()?.parse().ok()?)
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        let project = || Reference::to::<Project>(&(meta.organization, meta.project));
        Some(meta.target().map_or_else(project, |object| object.reference(meta.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_level".to_owned(), row.meta.level.as_str().into())]))
    }
}
