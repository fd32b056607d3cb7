//! Organization levels: 1 member, 8 admin, 15 owner.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::input::{Choices, choices_schema};

/// The level of a member in an organization. A higher level includes the permissions of the lower ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// May see the organization and work in its open projects.
    #[default]
    Member = 1,
    /// May also manage the organization.
    Admin = 8,
    /// May also delete the organization.
    Owner = 15,
}

impl Level {
    /// All levels in ascending order.
    pub const ALL: [Self; 3] = [Self::Member, Self::Admin, Self::Owner];

    /// Returns the number of the level in JSON.
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// Returns the level with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// Returns the name of the level on the command line and in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    /// Returns whether the level may manage the organization: admin and owner.
    pub fn is_admin(self) -> bool {
        self >= Self::Admin
    }
}

impl From<Level> for Value {
    fn from(level: Level) -> Self {
        level.number().into()
    }
}

impl Choices for Level {
    type Value = Self;
    const ALL: &'static [Self] = &Self::ALL;
}

choices_schema!(Level);

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
