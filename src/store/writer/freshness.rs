//! The thread that asks the origin what is new, for reads.
//!
//! All readers that wait are answered by one question that began after they came. So a read sees every commit that was
//! acknowledged before it, on whichever node.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak, mpsc};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::base::error::Result;
use crate::base::tasks::{spawn_on, spawn_thread};
use crate::store::disk::engine::unavailable;
use crate::store::origin::Fault;
use crate::store::origin::copy_source::CopySource;
use crate::store::origin::state::{OriginCall, Reader, away};
use crate::store::origin::trouble::{Trouble, not_taken};
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::position::{OriginRow, Position};

use super::queue::Sender;
use super::task::{Lacked, NewRows, Task};
use super::{Shared, Store};

/// How long the origin is not asked if nobody reads.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after the origin did not answer.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The time without an answer after which reads and writes fail at once.
const AWAY_AFTER: Duration = Duration::from_secs(2);
/// The size of new rows that are kept in memory: 32 MiB. If there are more, the writer takes each as it comes.
const MAX_ROWS: usize = 32 * 1024 * 1024;

impl Store {
    /// Returns a state that has every commit that was acknowledged before the call, by this or another node. A data file
    /// has only one state: that of its last commit.
    ///
    /// # Errors
    /// 503 while the file is closed, or when the shared database does not answer in time.
    #[doc(hidden)]
    pub async fn fresh(&self) -> Result<Arc<Snapshot>> {
        match &self.shared.origin {
            None => self.snapshot(),
            // Boxed, so that the futures of requests to a data file have no room for it.
            Some(origin) => Box::pin(origin.state.fresh()).await,
        }
    }

    /// Waits until [`snapshot`](Self::snapshot) returns a state that has every commit that was acknowledged before the call.
    ///
    /// # Errors
    /// Those of [`fresh`](Self::fresh) for a shared database. A data file needs no wait.
    #[doc(hidden)]
    pub async fn refresh(&self) -> Result<()> {
        if self.is_shared() { self.fresh().await.map(drop) } else { Ok(()) }
    }

    /// Waits until a failover of the shared database keeps everything that reads of this node show. Call it before a response
    /// that repeats an earlier one. A data file needs no wait.
    ///
    /// # Errors
    /// 503 when the shared database does not answer in time.
    pub(crate) async fn confirm(&self) -> Result<()> {
        if self.is_shared() { self.write(|_| Ok(())).await } else { Ok(()) }
    }

    /// Returns what keeps this node of a shared database from serving, the gravest first. A data file has none of these
    /// troubles.
    pub(crate) fn troubles(&self) -> Vec<(Trouble, String)> {
        self.shared.origin.as_ref().map_or_else(Vec::new, |origin| origin.state.troubles.list())
    }

    /// Whether the data lies in a shared database.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.origin.is_some()
    }
}

/// What the thread needs.
pub struct FreshnessThread {
    pub source: Arc<CopySource>,
    pub shared: Arc<Shared>,
    pub queue: Weak<Sender>,
    /// The runtime that answers several readers: it wakes its own tasks cheaper than this thread does.
    pub runtime: Option<Handle>,
}

impl FreshnessThread {
    /// Starts the thread. It ends when the store is closed.
    pub fn start(self) -> std::io::Result<()> {
        spawn_thread("freshness", move || self.run()).map(drop)
    }

    fn run(self) {
        let (state, mut failing) = (&self.source.state, None::<Instant>);
        while let Some(readers) = state.wait_for_readers(IDLE_INTERVAL) {
            let is_idle = readers.is_empty();
            match self.ask(readers.len()) {
                Ok(fresh) => {
                    failing = None;
                    state.asked.send_replace(Some(Instant::now()));
                    state.set_away(false);
                    state.troubles.end(&[Trouble::Copy, Trouble::Reads]);
                    self.answer(readers, Ok(fresh));
                }
                // The copy is closed, and its writer says why.
                Err(Fault::Copy(error)) if error.status() != 500 => {
                    self.answer(readers, Err(error));
                }
                Err(fault) => {
                    let since = *failing.get_or_insert_with(Instant::now);
                    if is_final(&fault) || since.elapsed() >= AWAY_AFTER || state.is_away() {
                        state.set_away(true);
                        self.note(&fault);
                        self.answer(readers, Err(away()));
                    } else {
                        state.put_back(readers);
                    }
                    // Only an operator can end this. Each attempt may open a new connection.
                    let pause = if is_final(&fault) { IDLE_INTERVAL } else { RETRY_INTERVAL };
                    if !state.pause(pause) {
                        return;
                    }
                }
            }
            if is_idle && state.is_unsynced.load(Ordering::Acquire) {
                self.send(Task::Sync);
            }
        }
    }

    /// Records why this node serves nothing.
    fn note(&self, fault: &Fault) {
        let (trouble, cause) = match fault {
            Fault::Copy(error) => (Trouble::Copy, not_taken(error)),
            Fault::Behind => (Trouble::Copy, fault.to_string()),
            fault => (Trouble::Reads, fault.to_string()),
        };
        let seq = self.shared.snapshot.load_full().map_or(0, |state| state.position.seq);
        self.source.state.troubles.note(trouble, &*self.source.origin, seq, &cause);
    }

    /// Returns a state that is not older than this call, for this many readers.
    fn ask(&self, readers: usize) -> Result<Arc<Snapshot>, Fault> {
        let closed = || unavailable("the copy of the database is closed");
        let current = || self.shared.snapshot.load_full().ok_or_else(closed);
        let known = current()?;
        let (head, lacked) = match self.since(known.position, readers) {
            Ok((head, _)) if head == known.position => return Ok(known),
            Ok((head, rows)) => {
                // The commit may be one of this node, which the writer has shown meanwhile.
                let shown = current()?;
                if is_as_new(&shown, head) {
                    return Ok(shown);
                }
                (Some(head), Lacked::Rows { head, rows })
            }
            Err(Fault::Behind) => {
                // No read waits until the copy has taken that much.
                self.source.state.set_away(true);
                self.note(&Fault::Behind);
                (None, Lacked::Many)
            }
            Err(Fault::Forked | Fault::TooOld) => (None, Lacked::Past),
            Err(fault) => return Err(fault),
        };
        let (reply, taken) = mpsc::channel();
        self.send(Task::TakeRows(NewRows { known: known.position, lacked, reply }));
        taken.recv().map_err(|_| closed())??;
        let shown = current()?;
        match head {
            Some(head) if is_as_new(&shown, head) => Ok(shown),
            // The copy has caught up or was made again. The next question shows whether it is new enough.
            _ => Err(Fault::Behind),
        }
    }

    /// Asks the origin what changed after `known`. Returns its last commit and the new rows, unless they are too many.
    fn since(&self, known: Position, readers: usize) -> Result<(Position, Vec<OriginRow>), Fault> {
        let (begun, mut rows, mut bytes) = (Instant::now(), Vec::new(), 0);
        let head = self.source.origin.since(known, &mut |row| {
            bytes += row.size();
            rows.push(row);
            if bytes > MAX_ROWS { Err(Fault::Behind) } else { Ok(()) }
        })?;
        self.source.stats.note_call(OriginCall::Ask { readers }, begun);
        self.source.stats.numbers().behind = head.seq.saturating_sub(known.seq);
        Ok((head, rows))
    }

    fn send(&self, task: Task) {
        if let Some(queue) = self.queue.upgrade() {
            // If the queue is full, the reply of the task is dropped.
            let _ = queue.send(task);
        }
    }

    fn answer(&self, readers: Vec<Reader>, answer: Result<Arc<Snapshot>>) {
        let is_one = readers.len() <= 1;
        let send = move || {
            for reader in readers {
                let _ = reader.send(answer.clone());
            }
        };
        match &self.runtime {
            Some(runtime) if !is_one => spawn_on(runtime, async move { send() }),
            _ => send(),
        }
    }
}

/// Whether the same question would fail again until somebody acts.
fn is_final(fault: &Fault) -> bool {
    matches!(fault, Fault::Refused(_) | Fault::Newer { .. } | Fault::Copy(_))
}

/// Whether `state` has the commit at `head`.
fn is_as_new(state: &Snapshot, head: Position) -> bool {
    state.position == head || state.position.seq > head.seq
}
