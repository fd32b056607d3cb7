//! A storage backend that keeps all writes in memory and never changes the file below it.
//!
//! redb writes to every file that it opens, if only to mark it as open. This backend lets redb inspect a file
//! that may belong to another program or another release, or be damaged.

use std::io;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::{BackendError, StorageBackend};

use super::file_system::StoreBackend;

#[derive(Debug)]
pub(super) struct Overlay {
    file: StoreBackend,
    memory: Mutex<Memory>,
}

/// The difference between the file and the state that redb sees.
#[derive(Debug)]
struct Memory {
    len: u64,
    /// Offsets and bytes, in the order of the writes. There are few: opening sets a mark in the file, closing
    /// clears it.
    written: Vec<(u64, Vec<u8>)>,
}

impl Overlay {
    pub(super) fn new(file: StoreBackend) -> io::Result<Self> {
        let memory = Memory { len: file.len()?, written: Vec::new() };
        Ok(Self { file, memory: Mutex::new(memory) })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.memory().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let memory = self.memory();
        if offset.saturating_add(out.len() as u64) > memory.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let stored = self.file.len()?.saturating_sub(offset).min(out.len() as u64);
        let (stored, grown) = out.split_at_mut(usize::try_from(stored).unwrap_or(usize::MAX));
        self.file.read(offset, stored)?;
        grown.fill(0);
        for (start, bytes) in &memory.written {
            copy_overlap(*start, bytes, offset, out);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.memory().len = len;
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.memory().written.push((offset, data.to_vec()));
        Ok(())
    }

    fn close(&self) -> Result<(), io::Error> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

/// Copies `bytes`, which begin at `start`, to the part of `out` that they overlap; `out` begins at `offset`.
fn copy_overlap(start: u64, bytes: &[u8], offset: u64, out: &mut [u8]) {
    let within =
        |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    let target = out.get_mut(within(offset, start)..).unwrap_or_default();
    let source = bytes.get(within(start, offset)..).unwrap_or_default();
    for (target, source) in target.iter_mut().zip(source) {
        *target = *source;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::file_system::FsHandle;
    use super::*;

    proptest! {
        #[test]
        fn overlay_reads_like_a_written_file(
            stored in vec(any::<u8>(), 0..64),
            writes in vec((0u64..80, vec(any::<u8>(), 0..24)), 0..8),
            (from, length) in (0u64..96, 0usize..32),
        ) {
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            file.write_all(&stored).expect("written");
            let mut model = stored;
            model.resize(96, 0);
            let fs = FsHandle::os();
            let opened = fs.file_system().open(file.path()).expect("a handle");
            let overlay = Overlay::new(fs.backend(opened)).expect("an overlay");
            overlay.set_len(96).expect("memory");
            let before = file.as_file().metadata().expect("metadata").len();
            for (offset, bytes) in &writes {
                let offset = usize::try_from(*offset).expect("small");
                let end = (offset + bytes.len()).min(model.len());
                model[offset..end].copy_from_slice(&bytes[..end - offset]);
                overlay.write(offset as u64, &bytes[..end - offset]).expect("memory");
            }
            let mut read = vec![0; length];
            let within = overlay.read(from, &mut read).is_ok();
            let from = usize::try_from(from).expect("small");
            prop_assert_eq!(within.then_some(read.as_slice()), model.get(from..from + length));
            prop_assert_eq!(file.as_file().metadata().expect("metadata").len(), before);
        }
    }
}
