//! A disk in memory that knows what a power cut would leave of it, and that fails when it is told to.
//!
//! What was written since the last sync may be on disk or not, each sector of 512 bytes by itself, in any of the
//! states it was in; so may each length, and each change of a name since the folder was synced. After a sync that
//! failed the disk forgets what it could not write and calls it written, as Linux does.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use steward::store::disk::{Disk, DiskFile};
use steward::store::{OpenError, Store};

const SECTOR: usize = 512;

/// The operating system's numbers for "input/output error", "read-only file system" and "no space left on device".
pub const EIO: i32 = rustix::io::Errno::IO.raw_os_error();
pub const EROFS: i32 = rustix::io::Errno::ROFS.raw_os_error();
pub const ENOSPC: i32 = rustix::io::Errno::NOSPC.raw_os_error();

type Sector = [u8; SECTOR];

/// A reproducible source of choices (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

/// The bytes of one file.
#[derive(Debug, Clone, Default)]
struct Node {
    /// What is read.
    bytes: Vec<u8>,
    /// The sectors written since the last sync: each state they were in, that on disk first.
    dirty: BTreeMap<usize, Vec<Sector>>,
    /// The sectors that are on disk as they were, though a sync failed and they are called written.
    lost: BTreeMap<usize, Sector>,
    /// The lengths since the last sync, that on disk first; none where there is but one.
    lens: Vec<usize>,
}

impl Node {
    fn sector(&self, at: usize) -> Sector {
        let mut sector = [0; SECTOR];
        let start = (at * SECTOR).min(self.bytes.len());
        let end = (start + SECTOR).min(self.bytes.len());
        sector[..end - start].copy_from_slice(&self.bytes[start..end]);
        sector
    }

    /// Notes what is on disk of these sectors, then lets `change` happen, then notes what became of them.
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

    /// A sync that fails: whatever is on disk now, the rest is called written.
    fn fail_sync(&mut self, forget: bool, dice: &mut Dice) {
        for (at, states) in std::mem::take(&mut self.dirty) {
            let kept = states[dice.below(states.len())];
            if kept == self.sector(at) {
                continue;
            }
            if forget {
                let start = (at * SECTOR).min(self.bytes.len());
                let end = (start + SECTOR).min(self.bytes.len());
                self.bytes[start..end].copy_from_slice(&kept[..end - start]);
            } else {
                self.lost.insert(at, kept);
            }
        }
    }

    /// What is on disk once all that is not called written is.
    fn on_disk(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for (at, sector) in &self.lost {
            let start = (at * SECTOR).min(bytes.len());
            let end = (start + SECTOR).min(bytes.len());
            bytes[start..end].copy_from_slice(&sector[..end - start]);
        }
        bytes
    }

    /// What a power cut leaves.
    fn cut(&self, dice: &mut Dice) -> Self {
        let mut bytes = self.bytes.clone();
        if !self.lens.is_empty() {
            bytes.resize(self.lens[dice.below(self.lens.len())], 0);
        }
        let mut put = |at: usize, sector: &Sector| {
            let start = (at * SECTOR).min(bytes.len());
            let end = (start + SECTOR).min(bytes.len());
            bytes[start..end].copy_from_slice(&sector[..end - start]);
        };
        self.lost.iter().for_each(|(at, sector)| put(*at, sector));
        // Now and then nearly all is on disk, or nearly nothing.
        let newest = [0, 1, 4, 7, 8][dice.below(5)];
        for (at, states) in &self.dirty {
            let latest = dice.below(8) < newest;
            let chosen = if latest { states.len() - 1 } else { dice.below(states.len()) };
            put(*at, &states[chosen]);
        }
        Self { bytes, ..Self::default() }
    }
}

/// Something that was done to the disk.
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

/// All files, and what would be left of them.
#[derive(Debug, Clone, Default)]
pub struct World {
    nodes: Vec<Node>,
    names: BTreeMap<PathBuf, usize>,
    /// The names on disk, and what was done to names since: each step whole or not at all.
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

impl World {
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
                self.nodes[*node].fail_sync(*forget, &mut Dice(*seed));
            }
        }
    }

    /// What a power cut leaves at this moment.
    pub fn cut(&self, dice: &mut Dice) -> Self {
        let mut names = self.synced.clone();
        for step in &self.pending {
            if dice.below(2) == 0 {
                rename(&mut names, step);
            }
        }
        let mut left = Self { synced: names.clone(), names, ..Self::default() };
        for (at, node) in self.nodes.iter().enumerate() {
            let is_named = left.names.values().any(|other| *other == at);
            left.nodes.push(if is_named { node.cut(dice) } else { Node::default() });
        }
        left
    }

    /// What a power cut would leave if all that is to be written were on disk.
    pub fn whole(&self) -> Self {
        let node = |node: &Node| Node { bytes: node.on_disk(), ..Node::default() };
        Self {
            nodes: self.nodes.iter().map(node).collect(),
            names: self.names.clone(),
            synced: self.names.clone(),
            pending: Vec::new(),
        }
    }

    /// What is read, as if it were on disk.
    pub fn shown(&self) -> Self {
        let node = |node: &Node| Node { bytes: node.bytes.clone(), ..Node::default() };
        Self { nodes: self.nodes.iter().map(node).collect(), ..self.whole() }
    }

    pub fn holds(&self, path: &Path) -> bool {
        self.names.contains_key(path)
    }

    /// Which file has this name.
    pub fn node(&self, path: &Path) -> Option<usize> {
        self.names.get(path).copied()
    }

    pub fn names(&self) -> impl Iterator<Item = &Path> {
        self.names.keys().map(PathBuf::as_path)
    }

    /// The bytes of the file that has this name.
    pub fn bytes(&self, path: &Path) -> &[u8] {
        &self.nodes[self.names[path]].bytes
    }

    pub fn bytes_mut(&mut self, path: &Path) -> &mut Vec<u8> {
        &mut self.nodes[self.names[path]].bytes
    }
}

/// What is done to a disk, as faults tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    SetLen,
    Sync,
    Folder,
}

/// An access that is to fail.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub access: Access,
    /// After how many that succeed.
    pub after: u64,
    /// How often from then on.
    pub times: u64,
    pub errno: i32,
}

#[derive(Default)]
struct State {
    world: World,
    /// All that was done, where that is wanted.
    trace: Option<Vec<Event>>,
    faults: Vec<Fault>,
    fired: u64,
    dice: u64,
}

/// The disk.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<State>>);

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimDisk")
    }
}

impl SimDisk {
    pub fn holding(world: World) -> Self {
        Self(Arc::new(Mutex::new(State { world, ..State::default() })))
    }

    /// An empty disk that notes all that is done to it.
    pub fn traced() -> Self {
        let disk = Self::default();
        disk.state().trace = Some(Vec::new());
        disk
    }

    pub fn world(&self) -> World {
        self.state().world.clone()
    }

    pub fn with<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.state().world)
    }

    pub fn trace(&self) -> Vec<Event> {
        self.state().trace.clone().expect("it was asked to trace")
    }

    /// How much was done so far.
    pub fn position(&self) -> usize {
        self.state().trace.as_ref().map_or(0, Vec::len)
    }

    /// Lets these accesses fail, and no others.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>, seed: u64) {
        let mut state = self.state();
        (state.faults, state.dice) = (faults.into_iter().collect(), seed);
    }

    /// How many accesses failed so far.
    pub fn fired(&self) -> u64 {
        self.state().fired
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    /// Fails where that is due.
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

/// Opens a file of a disk.
pub fn open(disk: &SimDisk, path: &Path, cache: usize) -> Result<Store, OpenError> {
    Store::open_on(Arc::new(disk.clone()), path, cache)
}

/// An open file of a [`SimDisk`].
#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    node: usize,
}

impl Disk for SimDisk {
    fn is_file(&self, path: &Path) -> io::Result<bool> {
        self.state().node(path).map(|_| true)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let node = self.state().node(path)?;
        Ok(Arc::new(SimFile { disk: self.clone(), node }))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
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
}

impl DiskFile for SimFile {
    fn size(&self) -> io::Result<u64> {
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
        // A write that fails may have begun.
        let mut dice = Dice(state.dice);
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

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let synced = state.attempt(Access::Sync);
        let seed = state.dice;
        state.happen(match synced {
            Ok(()) => Event::Sync(self.node),
            // Some file systems show what they kept in memory, others what is on disk.
            Err(_) => Event::FailedSync(self.node, seed & 1 == 1, seed),
        });
        synced
    }
}
