//! A disk in memory, for a workspace without a file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(target_os = "linux")]
use rustix::fs::{MemfdFlags, memfd_create};

use crate::store::Overlay;
use crate::store::file_system::{FileIdentity, FileSystem, FreeBytes, FsFile};

/// Files in memory by their path. They have no locks and no owners, and nothing is ever synced.
#[derive(Debug, Default)]
pub(super) struct MemoryDisk(Mutex<BTreeMap<PathBuf, Arc<Overlay>>>);

impl MemoryDisk {
    fn files(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<Overlay>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file at `path`.
    pub(super) fn file(&self, path: &Path) -> io::Result<Arc<Overlay>> {
        self.files().get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Puts `file` at `path`, in the place of the one there.
    pub(super) fn put(&self, path: &Path, file: Overlay) {
        self.files().insert(path.to_owned(), Arc::new(file));
    }

    fn add(&self, path: &Path, file: Arc<Overlay>) -> io::Result<()> {
        match self.files().entry(path.to_owned()) {
            Entry::Occupied(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Entry::Vacant(free) => {
                free.insert(file);
                Ok(())
            }
        }
    }
}

impl FileSystem for MemoryDisk {
    fn is_file(&self, path: &Path) -> io::Result<bool> {
        self.file(path).map(|_| true)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        Ok(self.file(path)?)
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        self.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn FsFile>> {
        let file = Arc::new(Overlay::empty());
        self.add(path, Arc::clone(&file))?;
        Ok(file)
    }

    fn create_unnamed(&self, _: &Path) -> io::Result<File> {
        #[cfg(target_os = "linux")]
        return Ok(memfd_create("steward", MemfdFlags::CLOEXEC)?.into());
        #[cfg(not(target_os = "linux"))]
        return tempfile::tempfile();
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.file(from)?;
        self.add(to, file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.link(from, to)?;
        self.remove(from)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files().remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn outlives_process(&self) -> bool {
        false
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn identity(&self, path: &Path) -> io::Result<Option<FileIdentity>> {
        self.file(path).map(|_| None)
    }

    fn space(&self, _: &Path) -> io::Result<Option<FreeBytes>> {
        Ok(None)
    }
}
