//! How a file gets its name: on disks without hard links, and in the place of a mount.

use rustix::io::Errno;

use super::*;
use crate::store::disk::file;
use crate::store::disk::file_system::{FileSystem, FsHandle, OsFileSystem};

/// A disk on which a file has one name only, such as `exFAT`. It says so with this error.
#[derive(Debug, Clone, Copy)]
struct NoLinks(Errno);

impl FileSystem for NoLinks {
    fn link(&self, _: &Path, _: &Path) -> std::io::Result<()> {
        Err(self.0.into())
    }
}

#[tokio::test]
async fn disk_without_hard_links_takes_a_file_and_its_replacement() {
    for error in
        [Errno::PERM, Errno::ACCESS, Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL, Errno::MLINK]
    {
        take_a_file_and_its_replacement(NoLinks(error)).await;
    }
}

async fn take_a_file_and_its_replacement(disk: NoLinks) {
    let scratch = Scratch::empty();
    let create = || {
        let (disk, mut rng) = (Arc::new(disk), Seed::generate().rng());
        let path = scratch.path();
        Store::create(disk, &path, NO_CACHE, &mut rng, |tx, _| Ok(tx.put(&Owner { id: 1 })?))
    };
    let (store, ()) = create().expect("a data file");
    store.close().await;
    assert_eq!(scratch.names(), ["steward.redb", "steward.redb.lock"]);
    let old = scratch.bytes();
    assert!(matches!(create(), Err(OpenError::Exists(_))));
    assert_eq!(scratch.bytes(), old);
    let (fs, new) = (FsHandle::new(Arc::new(disk)), beside(&scratch.path(), "new"));
    for number in 1..3 {
        std::fs::write(&new, "new").expect("written");
        let kept = file::replace(&fs, &scratch.path(), &new, "kept").expect("replaced");
        let name = if number == 1 { "kept" } else { "kept-2" };
        assert_eq!(kept, Some(beside(&scratch.path(), name)));
        assert_eq!(scratch.bytes(), b"new");
    }
    assert_eq!(std::fs::read(beside(&scratch.path(), "kept")).expect("the old file"), old);
    std::fs::remove_file(scratch.path()).expect("removed");
    std::fs::write(&new, "first").expect("written");
    let kept = file::replace(&fs, &scratch.path(), &new, "kept").expect("put in place");
    assert_eq!((kept, scratch.bytes()), (None, b"first".to_vec()));
}

#[test]
fn renaming_to_a_new_name_replaces_nothing() {
    let scratch = Scratch::empty();
    let (from, to) = (beside(&scratch.path(), "from"), scratch.path());
    std::fs::write(&from, "from").expect("written");
    std::fs::write(&to, "to").expect("written");
    let refused = OsFileSystem.rename_new(&from, &to).expect_err("it is taken");
    assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(scratch.bytes(), b"to");
    std::fs::remove_file(&to).expect("removed");
    OsFileSystem.rename_new(&from, &to).expect("renamed");
    assert_eq!(scratch.bytes(), b"from");
    assert!(!from.exists());
}

#[test]
fn file_that_is_a_mount_is_named_as_one() {
    let data = Path::new("steward.redb");
    for kind in [std::io::ErrorKind::ResourceBusy, std::io::ErrorKind::CrossesDevices] {
        let text = file::not_replaced(data)(kind.into()).to_string();
        assert!(
            text.starts_with("cannot replace steward.redb: it is a mount of its own"),
            "{text}"
        );
    }
    let text = file::not_replaced(data)(std::io::ErrorKind::PermissionDenied.into()).to_string();
    assert_eq!(text, "cannot replace steward.redb: permission denied");
}
