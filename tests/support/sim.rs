//! A disk in memory that simulates power cuts and input/output errors.
//!
//! Sectors of 512 bytes that were written since the last sync are independent: after a power cut, each has any of its
//! states since then. The same holds for file lengths, and for changes of names since the folder was synced. After a
//! failed sync the disk drops the unwritten data and counts it as written, as Linux does.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use steward::testing::store::{FileIdentity, FileSystem, FreeBytes, FsFile, OpenError, Store};

const SECTOR: usize = 512;

/// The error numbers of Linux for an input/output error, a read-only file system and a full disk.
pub const EIO: i32 = rustix::io::Errno::IO.raw_os_error();
pub const EROFS: i32 = rustix::io::Errno::ROFS.raw_os_error();
pub const ENOSPC: i32 = rustix::io::Errno::NOSPC.raw_os_error();

type Sector = [u8; SECTOR];

/// A reproducible random generator (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct TestRng(pub u64);

impl TestRng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

/// Returns the part of a file's bytes that is in this sector.
fn range(bytes: &[u8], at: usize) -> Range<usize> {
    let start = (at * SECTOR).min(bytes.len());
    start..(start + SECTOR).min(bytes.len())
}

/// Replaces a sector of a file's bytes.
fn put(bytes: &mut [u8], at: usize, sector: &Sector) {
    let range = range(bytes, at);
    let len = range.len();
    bytes[range].copy_from_slice(&sector[..len]);
}

/// The bytes of one file.
#[derive(Debug, Clone, Default)]
struct Node {
    /// The bytes that reads return.
    bytes: Vec<u8>,
    /// The sectors written since the last sync, with all their states. The first state is on disk.
    dirty: BTreeMap<usize, Vec<Sector>>,
    /// The sectors whose last write was lost in a failed sync, with their state on disk.
    lost: BTreeMap<usize, Sector>,
    /// The lengths since the last sync, the one on disk first. Empty if the length did not change.
    lens: Vec<usize>,
}

impl Node {
    fn sector(&self, at: usize) -> Sector {
        let mut sector = [0; SECTOR];
        let range = range(&self.bytes, at);
        sector[..range.len()].copy_from_slice(&self.bytes[range]);
        sector
    }

    /// Changes the bytes and records the states of the sectors between `from` and `to`.
    fn change(&mut self, (from, to): (usize, usize), change: impl FnOnce(&mut Vec<u8>)) {
        let sectors = from / SECTOR..to.div_ceil(SECTOR);
        for at in sectors.clone() {
            let present = self.sector(at);
            let on_disk = self.lost.remove(&at).unwrap_or(present);
            self.dirty.entry(at).or_insert_with(|| vec![on_disk]);
        }
        change(&mut self.bytes);
        for at in sectors {
            let present = self.sector(at);
            let states = self.dirty.get_mut(&at).unwrap();
            if states.last() != Some(&present) {
                states.push(present);
            }
        }
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if end > self.bytes.len() {
            self.set_len(end);
        }
        self.change((offset, end), |bytes| bytes[offset..end].copy_from_slice(data));
    }

    fn set_len(&mut self, len: usize) {
        let before = self.bytes.len();
        if self.lens.is_empty() {
            self.lens.push(before);
        }
        self.lens.push(len);
        if len < before {
            self.change((len, before), |bytes| bytes.truncate(len));
        } else {
            self.bytes.resize(len, 0);
        }
    }

    fn sync(&mut self) {
        self.dirty.clear();
        self.lens.clear();
    }

    /// Simulates a failed sync. Each sector is on disk in one of its states, and all count as written. If `forget` is
    /// set, reads return the state on disk.
    fn fail_sync(&mut self, forget: bool, dice: &mut TestRng) {
        for (at, states) in std::mem::take(&mut self.dirty) {
            let kept = states[dice.below(states.len())];
            if kept == self.sector(at) {
                continue;
            }
            if forget {
                put(&mut self.bytes, at, &kept);
            } else {
                self.lost.insert(at, kept);
            }
        }
    }

    /// Returns the bytes on disk if all sectors that do not count as written were synced.
    fn on_disk(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        self.lost.iter().for_each(|(at, sector)| put(&mut bytes, *at, sector));
        bytes
    }

    /// Returns the file after a power cut.
    fn after_power_cut(&self, dice: &mut TestRng) -> Self {
        let mut bytes = self.bytes.clone();
        if !self.lens.is_empty() {
            bytes.resize(self.lens[dice.below(self.lens.len())], 0);
        }
        self.lost.iter().for_each(|(at, sector)| put(&mut bytes, *at, sector));
        // Varies how much is on disk, from almost nothing to almost everything.
        let newest = [0, 1, 4, 7, 8][dice.below(5)];
        for (at, states) in &self.dirty {
            let latest = dice.below(8) < newest;
            let chosen = if latest { states.len() - 1 } else { dice.below(states.len()) };
            put(&mut bytes, *at, &states[chosen]);
        }
        Self { bytes, ..Self::default() }
    }
}

/// A change of the disk.
#[derive(Clone)]
pub enum Event {
    Name(Vec<(PathBuf, Option<usize>)>),
    SyncFolder,
    Create,
    Write(usize, usize, Arc<[u8]>),
    SetLen(usize, usize),
    Sync(usize),
    FailedSync(usize, bool, u64),
}

/// All files, with their possible states after a power cut.
#[derive(Debug, Clone, Default)]
pub struct DiskState {
    nodes: Vec<Node>,
    names: BTreeMap<PathBuf, usize>,
    /// The names on disk, and the changes of names since. Each change is atomic.
    synced: BTreeMap<PathBuf, usize>,
    pending: Vec<Vec<(PathBuf, Option<usize>)>>,
}

fn rename(names: &mut BTreeMap<PathBuf, usize>, step: &[(PathBuf, Option<usize>)]) {
    for (path, node) in step {
        match node {
            Some(node) => names.insert(path.clone(), *node),
            None => names.remove(path),
        };
    }
}

impl DiskState {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Name(step) => {
                rename(&mut self.names, step);
                self.pending.push(step.clone());
            }
            Event::SyncFolder => {
                self.synced = self.names.clone();
                self.pending.clear();
            }
            Event::Create => self.nodes.push(Node::default()),
            Event::Write(node, offset, data) => self.nodes[*node].write(*offset, data),
            Event::SetLen(node, len) => self.nodes[*node].set_len(*len),
            Event::Sync(node) => self.nodes[*node].sync(),
            Event::FailedSync(node, forget, seed) => {
                self.nodes[*node].fail_sync(*forget, &mut TestRng(*seed));
            }
        }
    }

    /// Returns the disk after a power cut at this moment.
    pub fn after_power_cut(&self, dice: &mut TestRng) -> Self {
        let mut names = self.synced.clone();
        for step in &self.pending {
            if dice.below(2) == 0 {
                rename(&mut names, step);
            }
        }
        let mut left = Self { synced: names.clone(), names, ..Self::default() };
        for (at, node) in self.nodes.iter().enumerate() {
            let is_named = left.names.values().any(|other| *other == at);
            left.nodes.push(if is_named { node.after_power_cut(dice) } else { Node::default() });
        }
        left
    }

    /// Returns the disk after a power cut, if everything pending had been written.
    pub fn whole(&self) -> Self {
        let node = |node: &Node| Node { bytes: node.on_disk(), ..Node::default() };
        Self {
            nodes: self.nodes.iter().map(node).collect(),
            names: self.names.clone(),
            synced: self.names.clone(),
            pending: Vec::new(),
        }
    }

    /// Returns the disk with the bytes that reads return.
    pub fn shown(&self) -> Self {
        let node = |node: &Node| Node { bytes: node.bytes.clone(), ..Node::default() };
        Self { nodes: self.nodes.iter().map(node).collect(), ..self.whole() }
    }

    pub fn holds(&self, path: &Path) -> bool {
        self.names.contains_key(path)
    }

    /// Returns the file with this name.
    pub fn node(&self, path: &Path) -> Option<usize> {
        self.names.get(path).copied()
    }

    pub fn names(&self) -> impl Iterator<Item = &Path> {
        self.names.keys().map(PathBuf::as_path)
    }

    /// Returns the bytes of the file with this name.
    pub fn bytes(&self, path: &Path) -> &[u8] {
        &self.nodes[self.names[path]].bytes
    }

    pub fn bytes_mut(&mut self, path: &Path) -> &mut Vec<u8> {
        &mut self.nodes[self.names[path]].bytes
    }
}

/// A kind of access to the disk, for faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    SetLen,
    Sync,
    Folder,
}

/// An access that fails.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub access: Access,
    /// The number of accesses that succeed first.
    pub after: u64,
    /// The number of accesses that fail after that.
    pub times: u64,
    pub errno: i32,
}

#[derive(Default)]
struct State {
    world: DiskState,
    /// All changes so far, if they are recorded.
    trace: Option<Vec<Event>>,
    faults: Vec<Fault>,
    fired: u64,
    dice: u64,
}

/// A simulated disk. Clones share the same files.
#[derive(Clone, Default)]
pub struct SimFileSystem(Arc<Mutex<State>>);

impl fmt::Debug for SimFileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimDisk")
    }
}

impl SimFileSystem {
    pub fn holding(world: DiskState) -> Self {
        Self(Arc::new(Mutex::new(State { world, ..State::default() })))
    }

    /// Creates an empty disk that records all changes.
    pub fn recording() -> Self {
        let disk = Self::default();
        disk.state().trace = Some(Vec::new());
        disk
    }

    pub fn world(&self) -> DiskState {
        self.state().world.clone()
    }

    pub fn with<T>(&self, change: impl FnOnce(&mut DiskState) -> T) -> T {
        change(&mut self.state().world)
    }

    pub fn trace(&self) -> Vec<Event> {
        self.state().trace.clone().expect("the disk records changes")
    }

    /// Returns the number of changes so far.
    pub fn position(&self) -> usize {
        self.state().trace.as_ref().map_or(0, Vec::len)
    }

    /// Makes these accesses fail, and replaces earlier faults.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>, seed: u64) {
        let mut state = self.state();
        (state.faults, state.dice) = (faults.into_iter().collect(), seed);
    }

    /// Returns the number of accesses that failed so far.
    pub fn fired(&self) -> u64 {
        self.state().fired
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    /// Fails if a fault is due.
    fn attempt(&mut self, access: Access) -> io::Result<()> {
        for fault in self.faults.iter_mut().filter(|fault| fault.access == access) {
            if fault.after > 0 {
                fault.after -= 1;
            } else if fault.times > 0 {
                fault.times -= 1;
                self.fired += 1;
                return Err(io::Error::from_raw_os_error(fault.errno));
            }
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) {
        self.world.apply(&event);
        if let Some(trace) = &mut self.trace {
            trace.push(event);
        }
    }

    fn node(&self, path: &Path) -> io::Result<usize> {
        self.world.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn require_free(&self, path: &Path) -> io::Result<()> {
        if self.world.holds(path) { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(()) }
    }
}

/// Opens a data file on a simulated disk.
pub fn open(disk: &SimFileSystem, path: &Path, cache: usize) -> Result<Store, OpenError> {
    Store::open_on(Arc::new(disk.clone()), path, cache)
}

/// An open file of a [`SimFileSystem`].
#[derive(Debug)]
struct SimFile {
    disk: SimFileSystem,
    node: usize,
}

impl FileSystem for SimFileSystem {
    fn is_file(&self, path: &Path) -> io::Result<bool> {
        self.state().node(path).map(|_| true)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        let node = self.state().node(path)?;
        Ok(Arc::new(SimFile { disk: self.clone(), node }))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        self.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        let mut state = self.state();
        state.require_free(path)?;
        state.attempt(Access::Folder)?;
        let node = state.world.nodes.len();
        state.happen(Event::Create);
        state.happen(Event::Name(vec![(path.to_owned(), Some(node))]));
        drop(state);
        Ok(Arc::new(SimFile { disk: self.clone(), node }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.node(from)?;
        state.require_free(to)?;
        state.attempt(Access::Folder)?;
        state.happen(Event::Name(vec![(to.to_owned(), Some(node))]));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.node(from)?;
        state.attempt(Access::Folder)?;
        state.happen(Event::Name(vec![(from.to_owned(), None), (to.to_owned(), Some(node))]));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.node(path)?;
        state.attempt(Access::Folder)?;
        state.happen(Event::Name(vec![(path.to_owned(), None)]));
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.attempt(Access::Folder)?;
        state.happen(Event::SyncFolder);
        Ok(())
    }

    fn identity(&self, _: &Path) -> io::Result<Option<FileIdentity>> {
        Ok(None)
    }

    fn space(&self, _: &Path) -> io::Result<Option<FreeBytes>> {
        Ok(None)
    }
}

impl FsFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().world.nodes[self.node].bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.attempt(Access::Read)?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let end = offset.checked_add(out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let read = state.world.nodes[self.node].bytes.get(offset..end);
        out.copy_from_slice(read.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let written = state.attempt(Access::Write);
        // A failed write may have written a part.
        let mut dice = TestRng(state.dice);
        let begun = if written.is_ok() { data.len() } else { dice.below(data.len()) };
        let data = data.get(..begun).unwrap_or_default();
        if !data.is_empty() {
            state.happen(Event::Write(self.node, offset, data.into()));
        }
        written
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.attempt(Access::SetLen)?;
        let len = usize::try_from(len).map_err(io::Error::other)?;
        state.happen(Event::SetLen(self.node, len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let synced = state.attempt(Access::Sync);
        let seed = state.dice;
        state.happen(match synced {
            Ok(()) => Event::Sync(self.node),
            // After a failed sync, some file systems return the cached bytes and others the bytes on disk.
            Err(_) => Event::FailedSync(self.node, seed & 1 == 1, seed),
        });
        synced
    }
}
