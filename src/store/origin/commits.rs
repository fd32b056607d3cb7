//! Sending a commit to the origin until it is known whether it was committed.

use std::time::{Duration, Instant};

use crate::base::error::{Error, Result};
use crate::store::disk::engine::{RETRY_AFTER, unavailable};
use crate::store::values::position::Position;

use super::copy_source::CopySource;
use super::state::OriginCall;
use super::{Commit, CommitOutcome, Fault, Origin, Turn};

/// The pause before the origin is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Sends a commit, again if its outcome is unknown and it was not taken. Gives up after `until`.
///
/// All attempts have the same rows, name and predecessor, so at most one of them is taken. Once the predecessor is no longer
/// the last commit, none of them is taken later.
///
/// # Errors
/// 503 when it was not taken, or it is not known whether it was.
pub fn send(
    source: &CopySource,
    mut turn: Option<Box<dyn Turn + '_>>,
    commit: &Commit<'_>,
    until: Instant,
) -> Result<CommitOutcome> {
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
            Ok(CommitOutcome::Overtaken) => (None, true),
            Ok(committed) => return Ok(committed),
            Err(fault) => (Some(fault), false),
        };
        match &fault {
            None => {}
            Some(Fault::Unknown(cause)) => {
                is_unsure = true;
                stats.numbers().unknown += 1;
                tracing::warn!(%cause, "the outcome of a commit is unknown");
            }
            Some(Fault::Away(_)) if Instant::now() < until => {
                std::thread::sleep(RETRY_INTERVAL);
                if !is_unsure {
                    continue;
                }
            }
            Some(fault) => return Err(refusal(is_unsure, fault)),
        }
        match answer_of(|| origin.committed(commit.name), until) {
            // Somebody may have ended the wait for the standby of the attempt that was taken.
            Ok(Some(seq)) if seq == commit.from.seq + 1 => {
                let position = Position { seq, name: commit.name };
                confirm(origin, position, until).map_err(|fault| refusal(true, &fault))?;
                return Ok(CommitOutcome::Committed(position));
            }
            Ok(Some(_)) => return Err(refusal(true, &Fault::Forked)),
            Ok(None) if was_overtaken => return Ok(CommitOutcome::Overtaken),
            Ok(None) if Instant::now() < until => {}
            Ok(None) => return Err(refusal(is_unsure, &"it does not answer in time")),
            Err(fault) => return Err(refusal(is_unsure, &fault)),
        }
    }
}

/// Waits until a failover keeps the commit `known` and all before it.
pub fn confirm(origin: &dyn Origin, known: Position, until: Instant) -> Result<(), Fault> {
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
    if is_unsure { Error::outcome_unknown(RETRY_AFTER, cause) } else { unavailable(cause) }
}
