//! The access to private projects that an invite grants.

use serde::{Deserializer, Serializer, de};
use utoipa::PartialSchema;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Type};

use crate::input::{Identifier, Integer};
use crate::resources::members::Membership;
use crate::resources::projects::Project;
use crate::resources::projects::grants::{self, GrantLevel};
use crate::resources::shared::prelude::*;

/// Access to one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectAccess {
    /// The id of the project.
    pub id: ProjectId,
    /// The level on the project.
    pub level: GrantedLevel,
}

/// A level on a project, shown in the form in which it was sent: a number or a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedLevel {
    /// The level that is granted.
    pub granted: GrantLevel,
    is_number: bool,
}

impl GrantedLevel {
    /// All valid forms.
    const ALL: [Self; 5] = [
        Self::word(GrantLevel::None),
        Self::word(GrantLevel::Member),
        Self::word(GrantLevel::Admin),
        Self { granted: GrantLevel::Member, is_number: true },
        Self { granted: GrantLevel::Admin, is_number: true },
    ];

    /// Returns the level as a word.
    pub const fn word(granted: GrantLevel) -> Self {
        Self { granted, is_number: false }
    }

    fn shown(self) -> Value {
        match self.granted.number() {
            Some(number) if self.is_number => number.into(),
            _ => self.granted.as_str().into(),
        }
    }

    fn read(value: &Value) -> Option<Self> {
        let number = whole_number(value).map(Value::from);
        let sent = number.as_ref().unwrap_or(value);
        Self::ALL.into_iter().find(|level| level.shown() == *sent)
    }
}

impl PartialSchema for GrantedLevel {
    fn schema() -> RefOr<Schema> {
        let (numbers, words): (Vec<Value>, Vec<Value>) =
            Self::ALL.into_iter().map(Self::shown).partition(Value::is_number);
        let of = |r#type: Type, levels: Vec<Value>| {
            ObjectBuilder::new().schema_type(r#type).enum_values(Some(levels))
        };
        AnyOfBuilder::new().item(of(Type::String, words)).item(of(Type::Integer, numbers)).into()
    }
}

impl ToSchema for GrantedLevel {}

impl Serialize for GrantedLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for GrantedLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value).ok_or_else(|| de::Error::custom("no such level"))
    }
}

/// The type of `private_project_access`.
pub struct ProjectAccessList;

impl ProjectAccessList {
    const MAX: usize = 500;
}

impl FieldType for ProjectAccessList {
    type Value = Vec<ProjectAccess>;

    fn read(value: &Value) -> Result<Self::Value> {
        let Value::Array(items) = value else {
            return Err(invalid("The field must be a list of dictionaries."));
        };
        if items.len() > Self::MAX {
            let detail = format!("Ensure this field has no more than {} elements.", Self::MAX);
            return Err(Error::invalid("max_length", detail));
        }
        items.iter().map(read_one).collect()
    }

    fn schema() -> Schema {
        let item = ObjectBuilder::new()
            .property("id", Integer::<1, { i64::MAX }>::schema())
            .property("level", GrantedLevel::schema())
            .required("id")
            .required("level");
        ArrayBuilder::new().items(item).max_items(Some(Self::MAX)).into()
    }
}

fn read_one(item: &Value) -> Result<ProjectAccess> {
    let Value::Object(members) = item else {
        return Err(invalid("Each item in the list must be a dictionary."));
    };
    let (Some(id), Some(level)) = (members.get("id"), members.get("level")) else {
        return Err(invalid("Each dictionary must contain \"id\" and \"level\" keys."));
    };
    let id = whole_number(id).ok_or_else(|| invalid("The \"id\" field must be an integer."))?;
    let level = GrantedLevel::read(level)
        .ok_or_else(|| invalid("The \"level\" field must be a valid access level."))?;
    Ok(ProjectAccess { id: ProjectId(id), level })
}

/// Returns a JSON number without a fraction as an id. It is `u64::MAX`, which is never assigned, for a negative number.
fn whole_number(value: &Value) -> Option<u64> {
    value.is_number().then(|| Identifier::read(value).ok()).flatten()
}

/// Checks that the caller may grant this access. Admins may grant any access in the organization. Plain members may
/// grant up to their own level on the project, which is at least `member` on an open project.
///
/// # Errors
/// 400 for the first access that the caller may not grant.
pub(super) fn require_grantable(
    tx: &dyn Raw,
    caller: &Membership,
    sent: &[ProjectAccess],
) -> Result<()> {
    for access in sent {
        let detail = match grantable_level(tx, caller, access.id)? {
            None => {
                "Project does not exist on this organization, or it is private and you do not have access to it."
            }
            Some(own) if access.level.granted > own => {
                "You cannot invite to a private project with a higher level than your own."
            }
            Some(_) => continue,
        };
        return Err(Error::field("private_project_access", "invalid_input", detail));
    }
    Ok(())
}

/// Returns the access to projects that the member may see.
pub(super) fn visible_to(
    tx: &dyn Raw,
    member: &Membership,
    all: Vec<ProjectAccess>,
) -> Result<Vec<ProjectAccess>> {
    let mut visible = Vec::with_capacity(all.len());
    for access in all {
        if grantable_level(tx, member, access.id)?.is_some() {
            visible.push(access);
        }
    }
    Ok(visible)
}

/// Returns whether the creator of an invite may still grant all of this access. Ignores deleted projects.
pub(super) fn can_still_grant(
    tx: &dyn Raw,
    inviter: &Membership,
    given: &[ProjectAccess],
) -> Result<bool> {
    for access in given {
        let holds = match grantable_level(tx, inviter, access.id)? {
            None => !tx.exists::<Project>(&(inviter.organization, access.id))?,
            Some(own) => access.level.granted <= own,
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the access that the caller may grant, with each level reduced to the caller's own.
pub(super) fn limit_to_grantable(
    tx: &dyn Raw,
    caller: &Membership,
    others: &[ProjectAccess],
) -> Result<Vec<ProjectAccess>> {
    let mut kept = Vec::with_capacity(others.len());
    for ProjectAccess { id, level } in others.iter().copied() {
        if let Some(own) = grantable_level(tx, caller, id)? {
            kept.push(ProjectAccess { id, level: GrantedLevel::word(level.granted.min(own)) });
        }
    }
    Ok(kept)
}

/// Returns the highest level on a project that a member may grant: the member's own.
fn grantable_level(tx: &dyn Raw, caller: &Membership, id: ProjectId) -> Result<Option<GrantLevel>> {
    let Some(project) = tx.meta::<Project>(&(caller.organization, id))? else { return Ok(None) };
    let own = grants::level_of(tx, &project, caller)?;
    Ok(Some(own).filter(|own| *own > GrantLevel::None))
}
