//! Sending a commit to the origin until it is known whether it was committed.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::base::error::Error;
use crate::store::disk::engine::RETRY_AFTER;
use crate::store::values::position::Position;

use super::copy_source::CopySource;
use super::state::OriginCall;
use super::{Commit, CommitOutcome, Fault, Origin, Turn};

/// The pause before the origin is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// What became of a commit.
pub(in crate::store) enum SentCommit {
    /// It is the commit at this position.
    Committed(Position),
    /// Another commit came first. None of its attempts can be taken later.
    Overtaken,
    /// It was not taken, or it is not known whether it was.
    Refused(Error),
}

/// Sends a commit, again if its outcome is unknown and it was not taken. Gives up after `until`.
///
/// All attempts have the same rows, name and predecessor, so at most one of them is taken. Once the predecessor is no longer
/// the last commit, none of them is taken later.
pub(in crate::store) fn send(
    source: &CopySource,
    mut turn: Option<Box<dyn Turn + '_>>,
    commit: &Commit<'_>,
    until: Instant,
) -> SentCommit {
    let (origin, stats) = (&*source.origin, &source.stats);
    let mut is_unsure = false;
    loop {
        let begun = Instant::now();
        let outcome = match turn.take() {
            Some(turn) => turn.commit(commit),
            None => origin.commit(commit),
        };
        if outcome.is_ok() {
            stats.note_call(OriginCall::Commit, begun);
        }
        let (fault, was_overtaken) = match outcome {
            Ok(CommitOutcome::Committed(position)) => return SentCommit::Committed(position),
            Ok(CommitOutcome::Overtaken) => (None, true),
            Err(fault) => (Some(fault), false),
        };
        match &fault {
            None => {}
            Some(Fault::Unknown(cause)) => {
                is_unsure = true;
                stats.note_unknown();
                tracing::warn!(%cause, "the outcome of a commit is unknown");
            }
            Some(Fault::Away(_)) if Instant::now() < until => {
                std::thread::sleep(RETRY_INTERVAL);
                if !is_unsure {
                    continue;
                }
            }
            Some(fault) => return SentCommit::Refused(refusal(is_unsure, fault)),
        }
        match committed(origin, commit.name, until) {
            // Somebody may have ended the wait for the standby of the attempt that was taken.
            Ok(Some(seq)) if seq == commit.from.seq + 1 => {
                let position = Position { seq, name: commit.name };
                return match confirm(origin, position, until) {
                    Ok(()) => SentCommit::Committed(position),
                    Err(fault) => SentCommit::Refused(refusal(true, &fault)),
                };
            }
            Ok(Some(_)) => return SentCommit::Refused(refusal(true, &Fault::Forked)),
            Ok(None) if was_overtaken => return SentCommit::Overtaken,
            Ok(None) if Instant::now() < until => {}
            Ok(None) => {
                return SentCommit::Refused(refusal(is_unsure, &"it does not answer in time"));
            }
            Err(fault) => return SentCommit::Refused(refusal(is_unsure, &fault)),
        }
    }
}

/// Asks whether the commit was made, until the origin answers.
fn committed(origin: &dyn Origin, name: Uuid, until: Instant) -> Result<Option<u64>, Fault> {
    answer_of(|| origin.committed(name), until)
}

/// Waits until a failover keeps the commit `known` and all before it.
pub(in crate::store) fn confirm(
    origin: &dyn Origin,
    known: Position,
    until: Instant,
) -> Result<(), Fault> {
    answer_of(|| origin.confirm(known), until)
}

/// Calls `ask` until the origin answers, at least once.
fn answer_of<T>(ask: impl Fn() -> Result<T, Fault>, until: Instant) -> Result<T, Fault> {
    loop {
        match ask() {
            Err(Fault::Away(_) | Fault::Unknown(_)) if Instant::now() < until => {
                std::thread::sleep(RETRY_INTERVAL);
            }
            answer => return answer,
        }
    }
}

fn refusal(is_unsure: bool, cause: &dyn std::fmt::Display) -> Error {
    if is_unsure {
        Error::outcome_unknown(RETRY_AFTER, cause)
    } else {
        Error::unavailable(RETRY_AFTER, cause)
    }
}
