//! The origin: a shared database that holds the data of several nodes and orders their commits.
//!
//! Each node keeps an exact copy of it in a redb file, and reads there. A commit names the commit on which it was
//! computed. The origin takes it only if that commit is still the last one. Every row carries the number of the commit
//! that wrote it, so what a copy lacks is one range of rows.

pub(super) mod commits;
pub(super) mod copy;
pub(super) mod copy_source;
pub mod postgres;
#[cfg(test)]
pub mod scripted;
pub(super) mod state;
#[cfg(test)]
mod tests;
pub(super) mod trouble;

use std::fmt::{self, Display};

use uuid::Uuid;

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::store::values::position::{OriginRow, Position, Primary};
use crate::store::values::schema::{FORMAT, Table};

/// A batch of changes on its way to the origin.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'c> {
    /// The commit on which the batch was computed.
    pub from: Position,
    /// The name of this commit. Every attempt to commit the same batch has the same name.
    pub name: Uuid,
    /// The changed rows. No two of them have the same table and key.
    pub rows: &'c [OriginRow],
}

/// Returns a random name for a commit.
pub fn random_name() -> Uuid {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid()
}

/// What the origin did with a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOutcome {
    /// The commit is durable, and is the last one.
    Committed(Position),
    /// Another commit came first, or this one was taken at an earlier attempt. Nothing was done.
    Overtaken,
}

/// Why the origin did not answer a question or do what was asked.
#[derive(Debug)]
pub enum Fault {
    /// The origin cannot be reached now. Nothing was done.
    Away(String),
    /// A commit was sent, and no answer came. [`Origin::committed`] returns whether it was done.
    Unknown(String),
    /// Somebody holds up commits for longer than a commit waits. Nothing was done. The text says who.
    Held(String),
    /// The copy is of another past, or its past is not known. It must be copied again.
    Forked,
    /// The copy is older than the horizon. It must be copied again, and has nothing of its own.
    TooOld,
    /// The copy lacks more than one question returns. [`Origin::since_far`] reads it.
    Behind,
    /// The copy lacks so much that it is made again sooner than it takes what it lacks.
    Outdated(Lacking),
    /// The origin has a newer format, or a table that this release does not know.
    Newer {
        /// The format of the origin.
        found: u64,
    },
    /// The origin refuses the work until an operator changes something. The text says what.
    Refused(String),
    /// The caller's function failed with this error.
    Copy(Error),
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(why) => write!(f, "the database cannot be reached: {why}"),
            Self::Unknown(why) => {
                write!(f, "the database did not say whether it took a commit: {why}")
            }
            Self::Forked => f.write_str("the copy does not belong to this state of the database"),
            Self::TooOld => f.write_str(
                "the copy is older than what the database remembers, so it is made again",
            ),
            Self::Behind => f.write_str("the copy lacks many rows of the database, and takes them"),
            Self::Outdated(Lacking { rows, of }) => {
                write!(f, "the copy lacks {rows} of {of} rows, so it is made again")
            }
            Self::Newer { found } => write!(
                f,
                "the database has format {found}, or a table of a newer release; this release reads up to format {FORMAT}: install the newer one"
            ),
            Self::Refused(why) | Self::Held(why) => f.write_str(why),
            Self::Copy(error) => Display::fmt(error, f),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Copy(error)
    }
}

/// What the origin says of its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The id of the workspace. A copy of another workspace is of no use.
    pub workspace: Uuid,
    /// The format of the rows, as [`FORMAT`].
    pub format: u64,
    /// The last commit.
    pub position: Position,
    /// The number of the oldest commit from which a copy can catch up.
    pub horizon: u64,
}

/// How many rows a copy lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lacking {
    /// The rows that changed since, removed ones too.
    pub rows: u64,
    /// The rows of the origin, without removed ones.
    pub of: u64,
}

/// A server that works with the origin, or did so lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name of the node.
    pub name: String,
    /// The release that it runs.
    pub release: String,
    /// The number of the last commit that its copy held at its last heartbeat.
    pub position: u64,
    /// How many commits of the origin the copy lacked then; `None` if the origin does not answer, or has no heartbeat. An origin
    /// itself does not count them.
    pub behind: Option<u64>,
    /// The time of the last heartbeat, by the clock of the origin; `None` if it does not answer, or has none.
    pub seen_at: Option<Timestamp>,
    /// What keeps the node from serving.
    pub problem: Option<String>,
}

/// What the origin says of a heartbeat that it has recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// The time of this heartbeat, by the clock of the origin.
    pub seen: Timestamp,
    /// The time of the last one before under the same name, by whichever process.
    pub before: Option<Timestamp>,
}

impl Beat {
    /// Returns how many milliseconds a clock that showed `now` is ahead of that of the origin.
    pub const fn ahead(&self, now: Timestamp) -> i64 {
        now.micros().saturating_sub(self.seen.micros()) / 1_000
    }
}

/// Receives rows of the origin, one at a time.
pub type Take<'t> = dyn FnMut(OriginRow) -> Result<(), Fault> + 't;

/// Rows on their way to the origin, one at a time.
pub type Rows<'r> = dyn Iterator<Item = Result<OriginRow>> + 'r;

/// A shared database that holds the data.
///
/// Its methods block. Only threads of the store call them, never a thread of an async runtime. One object serves several
/// threads, each with a connection of its own.
pub trait Origin: Send + Sync + 'static {
    /// Calls `take` with every row that changed after `known`, and returns the last commit. All rows are of one moment.
    /// The rows have no order. If `known` is [`Position::NONE`], these are all rows, without removed ones. Fails with
    /// [`Fault::Behind`], after some rows, if a copy lacks too many for one question.
    fn since(&self, known: Position, take: &mut Take<'_>) -> Result<Position, Fault>;

    /// Does what [`since`](Self::since) does for a copy, however many rows it lacks and however long that takes.
    fn since_far(&self, known: Position, take: &mut Take<'_>) -> Result<Position, Fault>;

    /// Returns how many rows a copy at `known` lacks. Fails as [`since_far`](Self::since_far) does.
    fn lacking(&self, known: Position) -> Result<Lacking, Fault>;

    /// Applies `commit` if the last commit is still `commit.from`.
    fn commit(&self, commit: &Commit<'_>) -> Result<CommitOutcome, Fault>;

    /// Waits for the right to be next, then does what [`since`](Self::since) does. No other node can commit until the
    /// turn ends. It ends when it is dropped or used, or after a few seconds. `known` is a commit: all rows would take too
    /// long. Fails with [`Fault::Behind`] if the copy lacks too many rows.
    fn turn<'o>(
        &'o self,
        known: Position,
        take: &mut Take<'_>,
    ) -> Result<(Position, Box<dyn Turn + 'o>), Fault>;

    /// Returns the number of the commit with this name, or `None` if there is no such commit. A commit that is found this way
    /// can be lost in a failover until [`confirm`](Self::confirm) returns.
    fn committed(&self, name: Uuid) -> Result<Option<u64>, Fault>;

    /// Makes a durable write that changes nothing, and waits as a commit does until the origin has it where it promises. So
    /// the commit `known` and all before it survive as well. Fails with [`Fault::Forked`] if the origin does not have that
    /// commit: a failover has lost it.
    fn confirm(&self, known: Position) -> Result<(), Fault>;

    /// Creates what the database lacks. If it holds no workspace, founds one with these rows in a commit of this name.
    /// Returns `None` if the database already holds a workspace.
    fn found_workspace(&self, name: Uuid, rows: &mut Rows<'_>) -> Result<Option<Position>, Fault>;

    /// Returns the head of the workspace, or `None` if the database holds none. Does not change the database.
    fn head(&self) -> Result<Option<Head>, Fault>;

    /// Returns the sealed value of a row, or `None` if there is no such row.
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Fault>;

    /// Records that this node works, that its copy holds `position`, and what keeps it from serving. This is a durable commit
    /// of the database.
    fn heartbeat(&self, position: Position, problem: Option<&str>) -> Result<Beat, Fault>;

    /// Forgets removed rows and commits before the last `keep` commits.
    fn trim(&self, keep: u64) -> Result<(), Fault>;

    /// Uses no server that was replaced by `primary`, unless a later one is known. A copy that has taken nothing since a failover
    /// names the server before it.
    fn remember(&self, primary: Primary);

    /// Returns the server that was connected last, or the one to [`remember`](Self::remember).
    fn primary(&self) -> Primary;

    /// Returns the name of this node.
    fn node(&self) -> &str;

    /// Returns the nodes that sent heartbeats, ordered by name.
    fn nodes(&self) -> Result<Vec<Node>, Fault>;

    /// Returns a text that names the database to an operator. It has no password.
    fn shown(&self) -> &str;
}

/// The right to be next: see [`Origin::turn`].
pub trait Turn {
    /// Lets the turn last for minutes without being used. Call it before long work that no other node may disturb.
    fn extend(&self) -> Result<(), Fault>;

    /// Applies `commit` if the last commit is `commit.from`, and ends the turn.
    fn commit(self: Box<Self>, commit: &Commit<'_>) -> Result<CommitOutcome, Fault>;

    /// Replaces all rows in one commit of this name, moves the horizon there, so that every node copies it again, and ends
    /// the turn.
    fn replace(self: Box<Self>, name: Uuid, rows: &mut Rows<'_>) -> Result<Position, Fault>;
}
