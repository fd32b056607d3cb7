//! What an invite gives on private projects (facts-org §3.3).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::error::{Error, Result};
use crate::ids::ProjectId;
use crate::input::{Integer, Kind, Schema};
use crate::resources::members::Membership;
use crate::resources::projects::Project;
use crate::resources::projects::grants::{self, GrantLevel};
use crate::store::Tx;

/// A level on one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectAccess {
    /// The project.
    pub id: ProjectId,
    /// The level there.
    pub level: ShownLevel,
}

/// A level on a project, shown as it was sent: a number or a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownLevel {
    granted: GrantLevel,
    is_number: bool,
}

impl ShownLevel {
    /// All of them.
    const ALL: [Self; 5] = [
        Self::word(GrantLevel::None),
        Self::word(GrantLevel::Member),
        Self::word(GrantLevel::Admin),
        Self { granted: GrantLevel::Member, is_number: true },
        Self { granted: GrantLevel::Admin, is_number: true },
    ];

    /// The level in a word.
    pub const fn word(granted: GrantLevel) -> Self {
        Self { granted, is_number: false }
    }

    /// What it grants.
    pub const fn granted(self) -> GrantLevel {
        self.granted
    }

    fn shown(self) -> Value {
        match self.granted.number() {
            Some(number) if self.is_number => number.into(),
            _ => self.granted.word().into(),
        }
    }

    fn read(value: &Value) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.shown() == *value)
    }
}

impl PartialSchema for ShownLevel {
    fn schema() -> RefOr<Schema> {
        let (numbers, words): (Vec<Value>, Vec<Value>) =
            Self::ALL.into_iter().map(Self::shown).partition(Value::is_number);
        let of = |r#type: Type, levels: Vec<Value>| {
            ObjectBuilder::new().schema_type(r#type).enum_values(Some(levels))
        };
        AnyOfBuilder::new().item(of(Type::String, words)).item(of(Type::Integer, numbers)).into()
    }
}

impl ToSchema for ShownLevel {}

impl Serialize for ShownLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ShownLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value).ok_or_else(|| de::Error::custom("no such level"))
    }
}

/// What `private_project_access` takes.
pub struct Accesses;

impl Accesses {
    const MAX: usize = 500;
}

impl Kind for Accesses {
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
            .property("level", ShownLevel::schema())
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
    if !id.is_u64() && !id.is_i64() {
        return Err(invalid("The \"id\" field must be an integer."));
    }
    let level = ShownLevel::read(level)
        .ok_or_else(|| invalid("The \"level\" field must be a valid access level."))?;
    // No project has the number 0: what is negative leads to none either.
    Ok(ProjectAccess { id: ProjectId(id.as_u64().unwrap_or(0)), level })
}

fn invalid(detail: &'static str) -> Error {
    Error::invalid("invalid_input", detail)
}

fn refused(detail: &'static str) -> Error {
    Error::field("private_project_access", "invalid_input", detail)
}

/// Lets through what the inviter may give: admins whatever is in the organization, plain members up to
/// their own level on the project, which on an open one is `member` where nothing else is granted
/// (facts-org §3.3).
///
/// # Errors
/// 400 for the first that is beyond that.
pub(super) fn require_grantable(
    tx: &impl Tx,
    caller: &Membership,
    sent: &[ProjectAccess],
) -> Result<()> {
    for access in sent {
        match reach(tx, caller, access.id)? {
            Reach::Nothing => {
                return Err(refused(
                    "Project does not exist on this organization, or it is private and you do not have access to it.",
                ));
            }
            Reach::UpTo(own) if access.level.granted() > own => {
                return Err(refused(
                    "You cannot invite to a private project with a higher level than your own.",
                ));
            }
            Reach::UpTo(_) | Reach::Everything => {}
        }
    }
    Ok(())
}

/// What of it is on projects that the member may see.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn visible_to(
    tx: &impl Tx,
    member: &Membership,
    all: Vec<ProjectAccess>,
) -> Result<Vec<ProjectAccess>> {
    let mut visible = Vec::with_capacity(all.len());
    for access in all {
        if !matches!(reach(tx, member, access.id)?, Reach::Nothing) {
            visible.push(access);
        }
    }
    Ok(visible)
}

/// Whether the inviter may still give all this, as far as the projects are still there.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn holds(tx: &impl Tx, inviter: &Membership, given: &[ProjectAccess]) -> Result<bool> {
    for access in given {
        let holds = match reach(tx, inviter, access.id)? {
            Reach::Nothing => !tx.exists::<Project>(&(inviter.organization, access.id))?,
            Reach::UpTo(own) => access.level.granted() <= own,
            Reach::Everything => true,
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What of another invite's accesses the inviter may give, each no higher than that.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn within(
    tx: &impl Tx,
    caller: &Membership,
    others: &[ProjectAccess],
) -> Result<Vec<ProjectAccess>> {
    let mut kept = Vec::with_capacity(others.len());
    for ProjectAccess { id, level } in others.iter().copied() {
        let level = match reach(tx, caller, id)? {
            Reach::Nothing => continue,
            Reach::UpTo(own) => ShownLevel::word(level.granted().min(own)),
            Reach::Everything => level,
        };
        kept.push(ProjectAccess { id, level });
    }
    Ok(kept)
}

/// How far an inviter's right to give access to a project goes.
enum Reach {
    Nothing,
    UpTo(GrantLevel),
    Everything,
}

fn reach(tx: &impl Tx, caller: &Membership, id: ProjectId) -> Result<Reach> {
    let Some(project) = tx.head::<Project>(&(caller.organization, id))? else {
        return Ok(Reach::Nothing);
    };
    if caller.level.administers() {
        return Ok(Reach::Everything);
    }
    let everyones = (!project.access_control).then_some(GrantLevel::Member);
    let own = grants::find(tx, &project, caller.user)?.max(everyones);
    Ok(own.map_or(Reach::Nothing, Reach::UpTo))
}
