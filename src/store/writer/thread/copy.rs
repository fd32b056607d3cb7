//! The copy of an origin: its position, and when it is synced.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use redb::{Database, WriteTransaction};

use crate::base::error::{Error, Result};
use crate::store::disk::engine::{RETRY_AFTER, begin, begin_unsynced, storage_error};
use crate::store::origin::commits::confirm;
use crate::store::origin::copy_source::CopySource;
use crate::store::origin::trouble::Trouble;
use crate::store::values::position::Position;

use super::origin::Attempt;
use super::{BatchRun, OriginWriter, Writer};

/// How long commits of the copy may stay off the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

impl Writer {
    /// Begins a transaction of the copy. Returns whether its commit is durable: one in a while is, because a crash costs only
    /// what the origin has.
    pub(super) fn begin_copy(&self, database: &Database) -> Result<(WriteTransaction, bool)> {
        let is_due = |origin: &OriginWriter| origin.synced_at.elapsed() >= SYNC_INTERVAL;
        if self.origin.as_ref().is_none_or(is_due) {
            return Ok((begin(database)?, true));
        }
        Ok((begin_unsynced(database)?, false))
    }

    pub(super) fn note_synced(&mut self, is_synced: bool) {
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
    pub(super) fn end_unchanged(
        &mut self,
        source: &CopySource,
        done: BatchRun,
        until: Instant,
    ) -> Attempt {
        let Some(origin) = self.origin.as_mut().filter(|_| done.repeats) else {
            return Attempt::Done;
        };
        if origin.kept == origin.position {
            return Attempt::Done;
        }
        // To try it would keep the writer waiting, and leave a session of the database that waits for the standby.
        let mut troubles = origin.source.state.troubles.list().into_iter();
        if let Some((_, cause)) = troubles.find(|(lasting, _)| *lasting == Trouble::Writes) {
            return Attempt::Refused(Error::unavailable(RETRY_AFTER, cause));
        }
        if let Err(fault) = confirm(&*source.origin, origin.position, until) {
            return Attempt::Refused(Error::unavailable(RETRY_AFTER, fault));
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
