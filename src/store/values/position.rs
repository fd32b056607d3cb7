//! Where a copy stands in the commits of a shared database, and the rows of these commits.

use uuid::Uuid;

use super::schema::Table;

/// The last commit that a copy holds, or the last commit of the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The number of the commit. The first commit of a workspace has 1.
    pub seq: u64,
    /// The random name of the commit. After a restore or a failover, another commit can have the same number.
    pub name: Uuid,
}

impl Position {
    /// The position of an empty copy.
    pub const NONE: Self = Self { seq: 0, name: Uuid::nil() };
}

/// Which server a copy has followed: a copy never goes back to one that another has replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Primary {
    /// The identifier of the servers that share one history; 0 if it is not known.
    pub system: u64,
    /// A number that grows with each promotion of a standby.
    pub timeline: u32,
}

impl Primary {
    /// Whether another server has replaced this one since.
    pub const fn is_before(self, known: Self) -> bool {
        self.system == known.system && self.timeline < known.timeline
    }
}

/// A row of the origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginRow {
    /// The table of the row.
    pub table: Table,
    /// The key in the table.
    pub key: Vec<u8>,
    /// The sealed value as the copy stores it, or `None` if the row was removed. The origin does not verify the seal.
    pub sealed: Option<Vec<u8>>,
}

impl OriginRow {
    /// Returns how many bytes of key and value the row has.
    pub fn size(&self) -> usize {
        self.key.len() + self.sealed.as_ref().map_or(0, Vec::len)
    }
}
