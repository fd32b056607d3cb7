//! What keeps a node from serving. It is logged while it lasts, listed with the nodes, and counted.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::base::error::Error;

use super::Origin;

/// What a node of a shared database cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Its copy cannot be opened, or cannot take what the database has. It serves nothing.
    Copy,
    /// The database does not answer. It serves nothing.
    Reads,
    /// The database takes no durable writes of it. It serves reads.
    Writes,
    /// Another node has its name. It serves, but operators cannot distinguish the two.
    Name,
}

impl Trouble {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Reads, Self::Writes, Self::Name];

    /// Returns the word for it in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Name => "name",
        }
    }

    /// Whether it keeps the node from serving.
    pub const fn stops_serving(self) -> bool {
        !matches!(self, Self::Name)
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Copy => "the copy of the database cannot be used; requests fail until it can",
            Self::Reads => "the database is away; requests fail until it answers",
            Self::Writes => {
                "the database takes no durable writes; this node is not ready for writes until it does"
            }
            Self::Name => "another node has the name of this node",
        }
    }

    const fn way_out(self) -> &'static str {
        match self {
            Self::Copy => {
                "do what the cause says, or make room on the disk of the copy; this node then goes on by itself"
            }
            Self::Reads => {
                "do what the cause says, or see that the server runs and that this machine reaches it; this node then goes on by itself"
            }
            Self::Writes => {
                "do what the cause says, or see that a synchronous standby streams; this node then goes on by itself"
            }
            Self::Name => "give each node a name of its own (--node)",
        }
    }

    const fn end(self) -> &'static str {
        match self {
            Self::Copy => "the copy of the database can be used again",
            Self::Reads => "the database answers again",
            Self::Writes => "the database takes durable writes again",
            Self::Name => "no other node has the name of this node",
        }
    }
}

/// The troubles of a node.
#[derive(Debug, Default)]
pub struct Troubles {
    /// In the order of the troubles.
    current: Mutex<Vec<(Trouble, Lasting)>>,
}

#[derive(Debug, Default)]
struct Lasting {
    cause: String,
    warning: RepeatedWarning,
}

impl Troubles {
    /// Records that this lasts, and logs it if that is due. `seq` is the last commit that the copy holds: if the database is
    /// lost, the copy with the highest number is the newest.
    pub fn note(&self, trouble: Trouble, origin: &dyn Origin, seq: u64, cause: &str) {
        let (database, node) = (origin.shown(), origin.node());
        let mut current = self.current();
        let at = current.partition_point(|(known, _)| *known < trouble);
        if current.get(at).is_none_or(|(known, _)| *known != trouble) {
            current.insert(at, (trouble, Lasting::default()));
        }
        let Some((_, lasting)) = current.get_mut(at) else { return };
        cause.clone_into(&mut lasting.cause);
        if lasting.warning.is_due(cause) {
            let (what, way_out) = (trouble.what(), trouble.way_out());
            tracing::warn!(node, database, seq, cause, way_out, "{what}");
        }
    }

    /// Records that these are over, and logs it if they were not before.
    pub fn end(&self, over: &[Trouble]) {
        let mut current = self.current();
        for trouble in over {
            let before = current.len();
            current.retain(|(known, _)| known != trouble);
            if current.len() < before {
                tracing::info!("{}", trouble.end());
            }
        }
    }

    /// Returns what lasts, the gravest first.
    pub fn list(&self) -> Vec<(Trouble, String)> {
        let text = |trouble: Trouble, cause: &str| format!("{}: {cause}", trouble.what());
        self.current().iter().map(|(trouble, one)| (*trouble, text(*trouble, &one.cause))).collect()
    }

    fn current(&self) -> MutexGuard<'_, Vec<(Trouble, Lasting)>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what an operator must know about a row of the origin that a copy did not take.
pub fn not_taken(error: &Error) -> String {
    format!(
        "the database has a row that cannot be taken ({error}); `steward check` names all of them, and docs/postgresql.md \
         says what to do when the database is damaged"
    )
}

/// How often a warning is repeated while its reason lasts.
const INTERVAL: Duration = Duration::from_secs(30);
/// The time without a warning after which the reason may change [`MAX_CHANGES`] times again.
const CHANGE_INTERVAL: Duration = Duration::from_secs(1);
/// How many reasons are logged that follow one another at once.
const MAX_CHANGES: u32 = 5;

/// Decides when to log a warning about something that lasts.
#[derive(Debug, Default)]
pub struct RepeatedWarning {
    logged: Option<(String, Instant)>,
    changes: u32,
}

impl RepeatedWarning {
    /// Whether to log this text now: it is new, or was logged a while ago.
    pub fn is_due(&mut self, text: &str) -> bool {
        if let Some((known, at)) = &self.logged {
            let age = at.elapsed();
            if age >= CHANGE_INTERVAL {
                self.changes = 0;
            }
            let is_due = if known == text { age >= INTERVAL } else { self.changes < MAX_CHANGES };
            if !is_due {
                return false;
            }
        }
        self.changes += 1;
        self.logged = Some((text.to_owned(), Instant::now()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::scripted::Scripted;
    use super::*;

    #[test]
    fn trouble_is_listed_until_it_is_over() {
        let troubles = Troubles::default();
        let origin = Scripted::default();
        assert_eq!(troubles.list(), []);
        troubles.end(&Trouble::ALL);
        for cause in ["first", "second"] {
            troubles.note(Trouble::Writes, &origin, 7, cause);
            troubles.note(Trouble::Reads, &origin, 7, cause);
            let texts = [Trouble::Reads, Trouble::Writes]
                .map(|trouble| (trouble, format!("{}: {cause}", trouble.what())));
            assert_eq!(troubles.list(), texts);
        }
        troubles.end(&[Trouble::Copy, Trouble::Reads]);
        assert_eq!(troubles.list().len(), 1);
        troubles.end(&Trouble::ALL);
        assert_eq!(troubles.list(), []);
    }

    #[test]
    fn warning_is_due_when_its_reason_changes_but_not_without_end() {
        let mut warning = RepeatedWarning::default();
        let due = ["a", "a", "b", "b", "a"].map(|reason| warning.is_due(reason));
        assert_eq!(due, [true, false, true, false, true]);
        let mut warning = RepeatedWarning::default();
        assert!(!(0..10_000_u32).all(|number| warning.is_due(&number.to_string())));
    }
}
