//! Batches of a store with an origin: the origin takes a batch before the copy commits it. Also when the copy is synced.
//!
//! A batch runs on the copy, uncommitted. Then its changed rows go to the origin, in a commit that names the commit on which
//! the batch was computed. If another node was first, the batch runs again on what that node left. All attempts of a batch
//! have one name, so that an attempt whose outcome is unknown is found later, and no write is done twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use redb::{Database, WriteTransaction};
use uuid::Uuid;

use crate::base::error::{Error, Result};
use crate::store::changes::batch_diff::BatchDiff;
use crate::store::disk::engine::{begin, begin_unsynced, storage_error, unavailable};
use crate::store::format::stored_position::put_position;
use crate::store::origin::commits::{confirm, send};
use crate::store::origin::copy_source::{CopySource, take_row};
use crate::store::origin::state::{OriginCall, away};
use crate::store::origin::trouble::Trouble;
use crate::store::origin::{Commit, CommitOutcome, Fault, Turn, random_name};
use crate::store::values::position::{OriginRow, Position};
use crate::store::write::WriteTx;

use super::super::metrics::Commit as BatchCommit;
use super::super::task::{Lacked, NewRows, NextWrite, QueuedWrite};
use super::{BatchRun, Writer};

/// How long a batch tries to get an answer of the origin.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long commits of the copy may stay off the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How many batches begin with a turn after one was overtaken.
const BATCHES_WITH_TURN: u32 = 16;
/// The size of changes after which a batch ends, in bytes: 1 MiB.
pub(super) const BATCH_BYTES: usize = 1024 * 1024;

/// What the writer knows of its origin.
pub struct OriginWriter {
    pub source: Arc<CopySource>,
    /// The last commit that the copy holds.
    pub position: Position,
    /// How many batches still begin with a turn.
    batches_with_turn: u32,
    synced_at: Instant,
    /// The last commit of which this node knows that a failover keeps it.
    kept: Position,
    pub(super) unshown: Option<UnshownWrites>,
}

/// Writes that the origin has in a commit, but the copy has not.
pub(super) struct UnshownWrites {
    /// The number of the commit.
    seq: u64,
    pub(super) writes: Vec<QueuedWrite>,
}

impl OriginWriter {
    pub fn new(source: Arc<CopySource>, position: Position) -> Self {
        let (synced_at, kept) = (Instant::now(), Position::NONE);
        Self { source, position, batches_with_turn: 0, synced_at, kept, unshown: None }
    }
}

/// How an attempt to commit a batch ended, if the copy did not fail.
enum Attempt {
    /// The writes are done.
    Done,
    /// Another node was first.
    Overtaken,
    /// The writes are not done, or it is not known whether they are.
    Refused(Error),
}

/// What a commit of the copy publishes.
struct CopyCommit {
    position: Position,
    diff: BatchDiff,
    writes: usize,
    /// Whether this node made the commit at the position.
    is_own: bool,
}

impl Writer {
    /// Runs a batch, and commits it to the origin and then to the copy. Returns the error of the batch, if the origin refused
    /// it.
    ///
    /// # Errors
    /// When the copy failed.
    pub(super) fn transact_with_origin(
        &mut self,
        database: &Database,
        source: &CopySource,
        first: NextWrite,
        ran: &mut Vec<QueuedWrite>,
    ) -> Result<Option<Error>> {
        let (name, until) = (random_name(), Instant::now() + COMMIT_TIMEOUT);
        let mut first = Some(first);
        loop {
            let refused = match self.attempt(database, source, name, until, &mut first, ran)? {
                Attempt::Done => return Ok(None),
                Attempt::Overtaken => {
                    source.stats.numbers().overtaken += 1;
                    if let Some(origin) = &mut self.origin {
                        origin.batches_with_turn = BATCHES_WITH_TURN;
                    }
                    if Instant::now() < until {
                        continue;
                    }
                    unavailable("commits of other nodes came first again and again")
                }
                Attempt::Refused(error) => error,
            };
            ran.extend(first.map(|first| first.write));
            return Ok(Some(refused));
        }
    }

    fn attempt(
        &mut self,
        database: &Database,
        source: &CopySource,
        name: Uuid,
        until: Instant,
        first: &mut Option<NextWrite>,
        ran: &mut Vec<QueuedWrite>,
    ) -> Result<Attempt> {
        if source.state.is_away() {
            return Ok(Attempt::Refused(away()));
        }
        let (transaction, is_synced) = self.begin_copy(database)?;
        let mut tx = self.begin_batch(&transaction);
        let (from, turn) = match self.take_turn(&mut tx, source) {
            Ok(begun) => begun,
            Err(fault) => return refuse(fault),
        };
        let done = match first.take() {
            Some(first) => self.run_batch(&mut tx, first, ran)?,
            None => run_again(&mut tx, ran)?,
        };
        if !done.changed && from == self.position() {
            drop((turn, tx));
            transaction.abort().map_err(storage_error)?;
            return Ok(self.end_unchanged(source, done, until));
        }
        let mut diff = tx.finish()?;
        let rows = diff.take_rows();
        let position = if rows.is_empty() {
            drop(turn);
            from
        } else {
            match send(source, turn, &Commit { from, name, rows: &rows }, until) {
                Ok(CommitOutcome::Committed(position)) => position,
                not_taken => {
                    transaction.abort().map_err(storage_error)?;
                    return Ok(not_taken.map_or_else(Attempt::Refused, |_| Attempt::Overtaken));
                }
            }
        };
        let (writes, is_own) = (ran.len(), !rows.is_empty());
        let copy_commit = CopyCommit { position, diff, writes, is_own };
        if let Err(cause) = self.commit_to_copy(database, transaction, is_synced, copy_commit) {
            // The origin has the batch: it is answered when the copy has caught up.
            let writes = std::mem::take(ran);
            if let Some(origin) = &mut self.origin {
                origin.unshown = Some(UnshownWrites { seq: position.seq, writes });
            }
            return Err(cause);
        }
        if is_own { Ok(Attempt::Done) } else { Ok(self.end_unchanged(source, done, until)) }
    }

    /// Takes the turn if another node was first lately, and the rows that it left. Returns the last commit before the batch.
    fn take_turn<'o>(
        &mut self,
        tx: &mut WriteTx<'_>,
        source: &'o CopySource,
    ) -> Result<(Position, Option<Box<dyn Turn + 'o>>), Fault> {
        let (mut from, mut turn) = (self.position(), None);
        let origin = self.origin.as_mut().filter(|origin| origin.batches_with_turn > 0);
        if let Some(origin) = origin {
            origin.batches_with_turn -= 1;
            let begun = Instant::now();
            let take = &mut |row| take_row(tx, row);
            let (head, taken) = source.origin.turn(from, take)?;
            source.stats.note_call(OriginCall::Turn, begun);
            (from, turn) = (head, Some(taken));
        }
        tx.end_taking()?;
        Ok((from, turn))
    }

    /// Takes rows of the origin into the copy, up to its head.
    ///
    /// # Errors
    /// When the copy failed, or must be made again.
    pub(super) fn take_rows(&mut self, database: &Database, new: NewRows) -> Result<()> {
        let Some(source) = self.origin.as_ref().map(|origin| Arc::clone(&origin.source)) else {
            return Ok(());
        };
        let NewRows { known, lacked, reply } = new;
        let from = self.position();
        let is_known = |head: &Position| *head == from || head.seq < from.seq;
        if matches!(&lacked, Lacked::Rows { head, .. } if is_known(head)) {
            let _ = reply.send(Ok(()));
            return Ok(());
        }
        let (transaction, is_synced) = self.begin_copy(database)?;
        let mut tx = self.begin_batch(&transaction);
        let mut take = |row: OriginRow| take_row(&mut tx, row);
        let caught_up = match lacked {
            Lacked::Rows { head, rows } if known == from => {
                rows.into_iter().try_for_each(&mut take).map(|()| head)
            }
            Lacked::Many => source.since_far(from, &mut take),
            Lacked::Rows { .. } | Lacked::Past => source.origin.since(from, &mut take),
        };
        let position = match caught_up.and_then(|head| Ok(tx.end_taking().map(|()| head)?)) {
            Ok(position) => position,
            Err(fault) => {
                drop(tx);
                transaction.abort().map_err(storage_error)?;
                let _ = reply.send(Err(require_intact(fault)?));
                return Ok(());
            }
        };
        let diff = tx.finish()?;
        let copy_commit = CopyCommit { position, diff, writes: 0, is_own: false };
        self.commit_to_copy(database, transaction, is_synced, copy_commit)?;
        let _ = reply.send(Ok(()));
        Ok(())
    }

    /// Commits to the copy what the origin has, and shows it.
    fn commit_to_copy(
        &mut self,
        database: &Database,
        transaction: WriteTransaction,
        is_synced: bool,
        copy_commit: CopyCommit,
    ) -> Result<()> {
        let CopyCommit { position, diff, writes, is_own } = copy_commit;
        let begun = Instant::now();
        let primary = self.origin.as_ref().map(|origin| origin.source.origin.primary());
        put_position(&transaction, position, primary.unwrap_or_default())?;
        transaction.commit().map_err(storage_error)?;
        if let Some(origin) = &mut self.origin {
            origin.position = position;
            origin.kept = if is_own { position } else { origin.kept };
        }
        self.note_synced(is_synced);
        if diff.changes_access() {
            self.shared.access_version.fetch_add(1, Ordering::Relaxed);
        }
        let state = || super::snapshot(database, &self.sender);
        self.shared.watchers.call(Some(&diff), state)?;
        self.publish(database)?;
        self.shared.stats.note_commit(BatchCommit { writes, took: begun.elapsed() });
        diff.end_commit();
        Ok(())
    }

    /// Answers the writes of the last batch that the origin had and the copy could not commit, now that it is open again.
    pub(super) fn answer_unshown(&mut self) {
        let unshown = self.origin.as_mut().and_then(|origin| origin.unshown.take());
        let Some(UnshownWrites { seq, writes }) = unshown else { return };
        let caught_up = self.shared.snapshot.load_full();
        let answer = caught_up
            .filter(|state| state.position.seq >= seq)
            .ok_or_else(|| unavailable("the change was made, but the copy could not show it"));
        for write in writes {
            write.answer(answer.clone());
        }
    }

    /// Begins a transaction of the copy. Returns whether its commit is durable: one in a while is, because a crash costs only
    /// what the origin has.
    fn begin_copy(&self, database: &Database) -> Result<(WriteTransaction, bool)> {
        let is_due = |origin: &OriginWriter| origin.synced_at.elapsed() >= SYNC_INTERVAL;
        if self.origin.as_ref().is_none_or(is_due) {
            return Ok((begin(database)?, true));
        }
        Ok((begin_unsynced(database)?, false))
    }

    fn note_synced(&mut self, is_synced: bool) {
        if let Some(origin) = &mut self.origin {
            origin.source.state.is_unsynced.store(!is_synced, Ordering::Release);
            if is_synced {
                origin.synced_at = Instant::now();
            }
        }
    }

    /// Makes all commits of a copy durable. A data file has no others.
    pub(super) fn sync_copy(&mut self, database: &Database) -> Result<()> {
        let is_unsynced =
            |origin: &OriginWriter| origin.source.state.is_unsynced.load(Ordering::Acquire);
        if self.origin.as_ref().is_some_and(is_unsynced) {
            begin(database)?.commit().map_err(storage_error)?;
            self.note_synced(true);
        }
        Ok(())
    }

    /// Returns the last commit of the origin that the copy holds.
    pub(super) fn position(&self) -> Position {
        self.origin.as_ref().map_or(Position::NONE, |origin| origin.position)
    }

    /// Ends a batch without a commit of the origin. A response that shows an earlier change, such as a repeated one, is
    /// sent only if a failover keeps that change.
    fn end_unchanged(&mut self, source: &CopySource, done: BatchRun, until: Instant) -> Attempt {
        let Some(origin) = self.origin.as_mut().filter(|_| done.repeats) else {
            return Attempt::Done;
        };
        if origin.kept == origin.position {
            return Attempt::Done;
        }
        // To try it would keep the writer waiting, and leave a session of the database that waits for the standby.
        let mut troubles = origin.source.state.troubles.list().into_iter();
        if let Some((_, cause)) = troubles.find(|(lasting, _)| *lasting == Trouble::Writes) {
            return Attempt::Refused(unavailable(cause));
        }
        if let Err(fault) = confirm(&*source.origin, origin.position, until) {
            return Attempt::Refused(unavailable(fault));
        }
        origin.kept = origin.position;
        Attempt::Done
    }

    /// Continues with a copy that was opened again.
    pub(super) fn start_at(&mut self, position: Position) {
        if let Some(origin) = &mut self.origin {
            origin.position = position;
        }
        self.note_synced(true);
    }
}

/// Ends an attempt that the origin did not let begin.
fn refuse(fault: Fault) -> Result<Attempt> {
    match require_intact(fault)? {
        Fault::Copy(error) => Ok(Attempt::Refused(error)),
        fault => Ok(Attempt::Refused(unavailable(fault))),
    }
}

/// Returns the fault, unless the copy failed or belongs to another past. Then it must be opened again.
fn require_intact(fault: Fault) -> Result<Fault> {
    match fault {
        Fault::Copy(error) if error.status() == 503 => Err(error),
        fault @ (Fault::Forked | Fault::TooOld | Fault::Outdated(_)) => Err(unavailable(fault)),
        fault => Ok(fault),
    }
}

/// Runs the writes of a batch again. Leaves out those whose callers no longer wait.
fn run_again(tx: &mut WriteTx<'_>, ran: &mut [QueuedWrite]) -> Result<BatchRun> {
    let mut done = BatchRun::default();
    for write in ran.iter_mut().filter(|write| !write.is_abandoned()) {
        tx.begin();
        if write.run(tx) && !tx.is_discarded {
            done.note(tx);
            tx.savepoint()?;
        } else {
            tx.rollback();
        }
    }
    Ok(done)
}
