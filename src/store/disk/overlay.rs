//! A file whose writes stay in memory: the file below it, if there is one, never changes.
//!
//! redb writes to every file that it opens, if only to mark it as open. With this file, redb inspects a file that may belong
//! to another program or another release, or be damaged, a command reads a backup, and a workspace has no file at all.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file_system::FsFile;

/// The size in bytes of the pieces that memory holds.
const PAGE: usize = 4096;

#[derive(Debug)]
pub struct Overlay {
    file: Option<Arc<dyn FsFile>>,
    memory: Mutex<Memory>,
}

/// The difference between the file and the state that redb sees.
#[derive(Debug, Clone, Default)]
struct Memory {
    len: u64,
    /// How many bytes of the file are still part of the state: those behind were cut off.
    stored: u64,
    /// The pages that were written, by their number. Forks share those that none of them has written since.
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
}

impl Overlay {
    pub fn new(file: Arc<dyn FsFile>) -> io::Result<Self> {
        let len = file.len()?;
        let memory = Memory { len, stored: len, pages: BTreeMap::new() };
        Ok(Self { file: Some(file), memory: Mutex::new(memory) })
    }

    /// Creates an empty file.
    pub fn empty() -> Self {
        Self { file: None, memory: Mutex::default() }
    }

    /// Returns a file with the content of this one. A later write to one of them does not change the other.
    pub fn fork(&self) -> Self {
        Self { file: self.file.clone(), memory: Mutex::new(self.memory().clone()) }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the file below, as if zeros followed its first `stored` bytes.
    fn read_file(&self, stored: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let left = usize::try_from(stored.saturating_sub(offset)).unwrap_or(usize::MAX);
        let (within, behind) = out.split_at_mut(left.min(out.len()));
        behind.fill(0);
        match &self.file {
            Some(file) if !within.is_empty() => file.read(offset, within),
            _ => Ok(()),
        }
    }
}

/// Returns the number of the page with the byte at `offset`.
const fn page_of(offset: u64) -> u64 {
    offset / PAGE as u64
}

impl FsFile for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.memory().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.saturating_add(out.len() as u64);
        let (len, stored) = {
            let memory = self.memory();
            (memory.len, memory.stored)
        };
        if end > len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_file(stored, offset, out)?;
        for (number, page) in self.memory().pages.range(page_of(offset)..=page_of(end)) {
            let start = number * PAGE as u64;
            copy_overlap((start, page.as_slice()), (offset, out));
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut memory = self.memory();
        let (end, stored) = (offset.saturating_add(data.len() as u64), memory.stored);
        memory.len = memory.len.max(end);
        for number in page_of(offset)..=page_of(end.saturating_sub(1).max(offset)) {
            let start = number * PAGE as u64;
            let page = match memory.pages.entry(number) {
                Entry::Occupied(written) => Arc::make_mut(written.into_mut()),
                Entry::Vacant(unwritten) => {
                    let mut page = [0; PAGE];
                    self.read_file(stored, start, &mut page)?;
                    Arc::make_mut(unwritten.insert(Arc::new(page)))
                }
            };
            copy_overlap((offset, data), (start, page));
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut memory = self.memory();
        memory.stored = memory.stored.min(len);
        memory.len = len;
        let mut cut = memory.pages.split_off(&page_of(len));
        if let Some(mut page) = cut.remove(&page_of(len)) {
            let kept = usize::try_from(len % PAGE as u64).unwrap_or(0);
            Arc::make_mut(&mut page).iter_mut().skip(kept).for_each(|byte| *byte = 0);
            memory.pages.insert(page_of(len), page);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies the bytes of `from` to the part of `to` that they overlap. Each is a position in the file and the bytes there.
fn copy_overlap((from, source): (u64, &[u8]), (to, target): (u64, &mut [u8])) {
    let within =
        |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    let target = target.get_mut(within(to, from)..).unwrap_or_default();
    let source = source.get(within(from, to)..).unwrap_or_default();
    let length = target.len().min(source.len());
    if let (Some(target), Some(source)) = (target.get_mut(..length), source.get(..length)) {
        target.copy_from_slice(source);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::file_system::FsHandle;
    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Write(usize, Vec<u8>),
        SetLen(usize),
    }

    const MOST: usize = 3 * PAGE;

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..MOST, vec(any::<u8>(), 0..2 * PAGE)).prop_map(|(at, bytes)| Step::Write(at, bytes)),
            (0..MOST).prop_map(Step::SetLen),
        ]
    }

    proptest! {
        #[test]
        fn overlay_reads_like_a_written_file(
            stored in vec(any::<u8>(), 0..MOST),
            steps in vec(step(), 0..8),
            (from, length) in (0..MOST, 0..2 * PAGE),
        ) {
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            file.write_all(&stored).expect("written");
            let mut model = stored.clone();
            let opened = FsHandle::os().file_system().open_to_read(file.path()).expect("a handle");
            let overlay = Overlay::new(opened).expect("an overlay");
            let (fork, forked) = (overlay.fork(), model.clone());
            for step in steps {
                match step {
                    Step::Write(at, bytes) => {
                        model.resize(model.len().max(at + bytes.len()), 0);
                        model[at..at + bytes.len()].copy_from_slice(&bytes);
                        overlay.write(at as u64, &bytes).expect("memory");
                    }
                    Step::SetLen(len) => {
                        model.resize(len, 0);
                        overlay.set_len(len as u64).expect("memory");
                    }
                }
            }
            prop_assert_eq!(overlay.len().expect("memory"), model.len() as u64);
            let mut read = vec![0; length];
            let within = overlay.read(from as u64, &mut read).is_ok();
            prop_assert_eq!(within.then_some(read.as_slice()), model.get(from..from + length));
            prop_assert_eq!(std::fs::read(file.path()).expect("the file"), stored);
            let mut read = vec![0; forked.len()];
            fork.read(0, &mut read).expect("memory");
            prop_assert_eq!(read, forked);
        }
    }
}
