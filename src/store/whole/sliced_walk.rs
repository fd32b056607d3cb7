//! Reading all values of the file as one commit left them, without holding a snapshot for long.
//!
//! A held snapshot keeps the pages that commits free, and the file grows meanwhile. So the values are read in slices, each
//! from its own snapshot, and then the values that commits have changed since the first slice ([`value_log`]).
//!
//! [`value_log`]: crate::store::changes::value_log

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::base::error::Result;
use crate::store::changes::value_log::{ValueLog, Visitor};
use crate::store::disk::engine::{catch_panic, unavailable};
use crate::store::disk::file::folder_of;
use crate::store::reads::report::Steps;
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::payload::{HexKey, damaged, unseal};
use crate::store::values::raw::continue_if;
use crate::store::values::schema::Table;
use crate::store::writer::Store;
use crate::store::writer::task::Task;

/// How much is read from one snapshot. A slice has at least one value.
#[derive(Debug, Clone, Copy)]
pub struct SliceLimit {
    /// The time after which a slice ends.
    pub time: Duration,
    /// The size after which a slice ends, in bytes. A slice is kept in memory.
    pub bytes: usize,
}

/// The limit, except in tests.
const SLICE_LIMIT: SliceLimit =
    SliceLimit { time: Duration::from_millis(50), bytes: 4 * 1024 * 1024 };

/// Called with the state that has a value, its key and the sealed value.
type InspectStored<'i> = dyn FnMut(&Snapshot, &[u8], &[u8]) -> Result<()> + 'i;

/// A walk over all values of the file. Its callers hold the walk lock.
pub struct SlicedWalk {
    store: Store,
    /// The opening of the file at the beginning.
    generation: u64,
    log: Arc<ValueLog>,
    /// How many bytes of the log were read.
    read: u64,
    pub limit: SliceLimit,
    /// About how many values the walk reads.
    pub of: u64,
}

/// Values of one table that were read from one snapshot, one after the other.
#[derive(Default)]
struct Slice {
    bytes: Vec<u8>,
    /// Where each key and each sealed value ends.
    ends: Vec<(usize, usize)>,
    /// Whether values of the table follow.
    has_next: bool,
}

impl Slice {
    fn add(&mut self, key: &[u8], sealed: &[u8]) {
        self.bytes.extend_from_slice(key);
        let end_of_key = self.bytes.len();
        self.bytes.extend_from_slice(sealed);
        self.ends.push((end_of_key, self.bytes.len()));
    }

    fn last_key(&self) -> Option<&[u8]> {
        match self.ends.as_slice() {
            [] => None,
            [(end, _)] => self.bytes.get(..*end),
            [.., (_, begin), (end, _)] => self.bytes.get(*begin..*end),
        }
    }

    /// Returns each key with its sealed value.
    fn values(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut begin = 0;
        self.ends.iter().filter_map(move |(key, end)| {
            let value = (self.bytes.get(begin..*key)?, self.bytes.get(*key..*end)?);
            begin = *end;
            Some(value)
        })
    }
}

impl Store {
    /// Begins a walk over these tables.
    pub(in crate::store) async fn begin_sliced_walk(&self, tables: &[Table]) -> Result<SlicedWalk> {
        let log = ValueLog::new(&self.fs, folder_of(self.path()));
        let log = Arc::new(log.map_err(unavailable)?);
        let (shared, begun) = (Arc::clone(&self.shared), Arc::clone(&log));
        let begin = move || {
            shared.value_logs.begin(&begun);
            // If the file is opened again after this, the log may contain a commit that failed.
            shared.generation.load(Ordering::Relaxed)
        };
        let generation = self.quiesce(begin).await?;
        let state = self.snapshot()?;
        // A damaged file may not tell.
        let of = catch_panic(|| state.values_of(tables)).and_then(Result::ok).unwrap_or(0);
        Ok(SlicedWalk { store: self.clone(), generation, log, read: 0, limit: SLICE_LIMIT, of })
    }
}

impl SlicedWalk {
    /// Calls `visit` with every stored value of these tables, after verifying its checksum. Some are older than others:
    /// then call [`catch_up`](Self::catch_up).
    pub fn walk(&self, tables: &[Table], steps: &mut Steps, visit: &mut Visitor<'_>) -> Result<()> {
        for table in tables {
            let mut verify =
                |_: &Snapshot, key: &[u8], sealed: &[u8]| unseal(*table, key, sealed).map(drop);
            self.walk_table(*table, steps, &mut verify, visit)??;
        }
        Ok(())
    }

    /// Calls `inspect`, which may end the reading, and `visit` with every stored value of a table. A damaged value is passed on
    /// as it is. Returns how the reading ended; `visit` gets what was read before.
    pub(super) fn walk_table(
        &self,
        table: Table,
        steps: &mut Steps,
        inspect: &mut InspectStored<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<Result<()>> {
        let mut after = None::<Vec<u8>>;
        loop {
            let mut slice = Slice::default();
            let read =
                catch_panic(|| self.read_slice(table, after.as_deref(), &mut slice, inspect));
            for (key, sealed) in slice.values() {
                visit(table, key, Some(sealed))?;
                steps.advance();
            }
            match slice.last_key() {
                Some(last) if slice.has_next => after = Some(last.to_vec()),
                _ => {
                    let panicked = || Err(damaged(table, &"redb panicked while reading the table"));
                    return Ok(read.unwrap_or_else(panicked));
                }
            }
        }
    }

    /// Reads values after `after` into `slice`, from one snapshot.
    fn read_slice(
        &self,
        table: Table,
        after: Option<&[u8]>,
        slice: &mut Slice,
        inspect: &mut InspectStored<'_>,
    ) -> Result<()> {
        let (state, begun) = (self.state()?, Instant::now());
        state.each_stored_after(table, after, &mut |key, sealed| {
            // Keys of a damaged file may go back. A slice that begins at such a key would be read again and again.
            if slice.last_key().or(after).is_some_and(|last| key <= last) {
                let text = format_args!("the key {} is not in order", HexKey(key));
                return Err(damaged(table, &text));
            }
            inspect(&state, key, sealed)?;
            slice.add(key, sealed);
            slice.has_next =
                begun.elapsed() >= self.limit.time || slice.bytes.len() >= self.limit.bytes;
            Ok(continue_if(!slice.has_next))
        })
    }

    /// Returns the state of the last commit.
    pub fn state(&self) -> Result<Arc<Snapshot>> {
        self.require_same_opening(self.store.shared.snapshot.load_full())
    }

    fn require_same_opening(&self, state: Option<Arc<Snapshot>>) -> Result<Arc<Snapshot>> {
        state
            .filter(|state| state.generation() == self.generation)
            .ok_or_else(|| unavailable("the data file was closed while it was copied"))
    }

    /// Calls `visit` with what commits have changed since the begin or the last call, in the order of the changes. Returns
    /// the size of these changes in bytes.
    pub fn catch_up(&mut self, tables: &[Table], visit: &mut Visitor<'_>) -> Result<u64> {
        let end = self.log.each_from(self.read, &mut |table, key, sealed| {
            if tables.contains(&table) { visit(table, key, sealed) } else { Ok(()) }
        })?;
        let size = end - self.read;
        self.read = end;
        Ok(size)
    }

    /// Calls `visit` with what [`walk`](Self::walk) and [`catch_up`](Self::catch_up) return, so that the values are those of
    /// one commit. Returns how many values that commit left.
    pub fn each(self, tables: &[Table], steps: &mut Steps, visit: &mut Visitor<'_>) -> Result<u64> {
        self.walk(tables, steps, visit)?;
        self.finish(tables, visit)?.values_of(tables)
    }

    /// Calls `visit` with what commits have changed since the last call of [`catch_up`](Self::catch_up), so that the values of
    /// the walk are those of one commit. Returns the state of that commit.
    pub fn finish(mut self, tables: &[Table], visit: &mut Visitor<'_>) -> Result<Arc<Snapshot>> {
        // What is left after this is small.
        self.catch_up(tables, visit)?;
        let state = self.end()?;
        self.catch_up(tables, visit)?;
        Ok(state)
    }

    /// Ends the log between two commits, and returns the state of the last one.
    fn end(&self) -> Result<Arc<Snapshot>> {
        let (reply, answer) = mpsc::channel();
        let (log, shared) = (Arc::clone(&self.log), Arc::clone(&self.store.shared));
        self.store.queue.send_always(Task::Quiesce(Box::new(move || {
            log.end();
            let _ = reply.send(shared.snapshot.load_full());
        })));
        // The writer drops the reply if the file is closed.
        self.require_same_opening(answer.recv().ok().flatten())
    }
}
