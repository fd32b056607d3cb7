//! Organization levels: 1 member, 8 admin, 15 owner (decisions §3).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// What a member may do in an organization. Levels compare by how much they allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Sees the organization and works in its open projects.
    Member = 1,
    /// Runs the organization.
    Admin = 8,
    /// Runs it, and may end it.
    Owner = 15,
}

impl Level {
    /// All of them, least first.
    pub const ALL: [Self; 3] = [Self::Member, Self::Admin, Self::Owner];

    /// The number on the wire.
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// The level with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// The word for it on the command line and in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    /// Whether the level runs the organization: admins and owners do.
    pub fn administers(self) -> bool {
        self >= Self::Admin
    }
}

impl PartialSchema for Level {
    fn schema() -> RefOr<Schema> {
        let numbers = Self::ALL.map(Self::number);
        ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some(numbers)).into()
    }
}

impl ToSchema for Level {}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u8::deserialize(deserializer)?;
        Self::from_number(number.into()).ok_or_else(|| de::Error::custom("no such level"))
    }
}
