//! Creating and opening files: valid, foreign, newer, older and truncated ones. How a file gets its name, also on disks
//! without hard links and in the place of a mount.

use std::os::unix::fs::{MetadataExt, symlink};

use redb::ReadableDatabase;
use rustix::io::Errno;

use crate::store::disk::file::{self, FileLock};
use crate::store::disk::file_system::{FileSystem, FsHandle, OsFileSystem};
use crate::store::format::migrate::{Step, format_of, migrate};
use crate::store::values::raw;

use super::*;

/// Asserts that opening fails with this text and does not change the file.
#[track_caller]
fn assert_refused(scratch: &Scratch, text: &str) {
    let before = scratch.bytes();
    let refused = scratch.open().err().expect("a refusal").to_string();
    assert!(refused.contains(text) && !refused.contains('\n'), "{refused}");
    assert!(scratch.bytes() == before, "the file was changed: {refused}");
}

/// Asserts that a restore of the file fails with this text and leaves nothing.
#[track_caller]
fn assert_not_restored(scratch: &Scratch, text: &str) {
    let (before, data) = (scratch.names(), scratch.folder.path().join("other.redb"));
    let refused = PreparedRestore::new(&data, &scratch.path(), &checks(), &Progress::silent());
    let refused = refused.err().expect("a refusal").to_string();
    assert!(refused.contains(&format!("steward.redb {text}")), "{refused}");
    assert_eq!(scratch.names(), before);
}

fn set_format(scratch: &Scratch, format: u64) {
    scratch.put(Table::Meta, schema::FORMAT_KEY, &format.encoded());
}

fn format(scratch: &Scratch) -> u64 {
    let database = Database::open(scratch.path()).expect("the file");
    format_of(&database, &scratch.path()).expect("a Steward data file")
}

#[tokio::test]
async fn leftover_files_of_a_failed_creation_do_not_block_a_new_one() {
    let scratch = Scratch::empty();
    let draft = beside(&scratch.path(), "creating");
    std::fs::write(&draft, b"half a file").expect("written");
    scratch.create().expect("a data file").close().await;
    std::fs::hard_link(scratch.path(), &draft).expect("a second name");
    let store = scratch.open().expect("the data file");
    assert_eq!(scratch.names(), ["steward.redb", "steward.redb.lock"]);
    assert_clean(&check(&store).await);
}

#[tokio::test]
async fn file_in_use_is_rejected_through_every_path() {
    let (scratch, _store) = Scratch::new();
    assert!(matches!(scratch.open(), Err(OpenError::InUse(_))));
    let link = scratch.folder.path().join("link.redb");
    symlink(scratch.path(), &link).expect("a link");
    assert!(matches!(Store::open(&link, NO_CACHE), Err(OpenError::InUse(_))));
}

#[tokio::test]
async fn symbolic_links_next_to_the_data_file_are_not_followed() {
    let scratch = Scratch::empty();
    let (data, target) = (scratch.path(), scratch.folder.path().join("theirs"));
    for suffix in ["creating", "rewriting", "lock"] {
        symlink(&target, beside(&data, suffix)).expect("a link");
    }
    let refused = scratch.create().err().expect("a refusal").to_string();
    assert!(refused.contains(".lock: it is a symbolic link"), "{refused}");
    std::fs::remove_file(beside(&data, "lock")).expect("removed");
    scratch.create().expect("links in place of drafts are removed").close().await;
    assert!(!target.exists(), "a file was written through a link");
}

#[tokio::test]
async fn symbolic_link_is_followed_only_when_opened_by_its_path() {
    let (scratch, store) = Scratch::new();
    store.close().await;
    let (data, link) = (scratch.path(), scratch.folder.path().join("link.redb"));
    symlink(&data, &link).expect("a link");
    let store = Store::open(&link, NO_CACHE).expect("a followed link");
    assert_eq!(store.path(), data.canonicalize().expect("the file"));
    store.close().await;
    let moved = beside(&data, "moved");
    std::fs::rename(&data, &moved).expect("moved");
    symlink(&moved, &data).expect("a link");
    let refused = OsFileSystem.open(&data).expect_err("a refusal").to_string();
    assert!(refused.contains("symbolic link"), "{refused}");
}

#[test]
fn files_of_other_formats_are_rejected_and_untouched() {
    let scratch = Scratch::empty();
    assert!(matches!(scratch.open(), Err(OpenError::Missing(_))));
    for bytes in [b"".as_slice(), b"redb", b"SQLite format 3\0 and so on", &[0; 9000]] {
        scratch.overwrite(bytes);
        assert_refused(&scratch, "is not a Steward data file and was left untouched");
    }
    std::fs::remove_file(scratch.path()).expect("removed");
    std::fs::create_dir(scratch.path()).expect("a folder");
    assert!(matches!(scratch.open(), Err(OpenError::NotAFile(_))));
    assert_eq!(scratch.names(), ["steward.redb"]);
}

/// redb marks every file that it opens, including files that turn out to belong to another program.
#[test]
fn foreign_redb_file_is_rejected_and_untouched() {
    let scratch = Scratch::empty();
    let theirs: redb::TableDefinition<'_, u64, u64> = redb::TableDefinition::new("theirs");
    let database = Database::create(scratch.path()).expect("their file");
    let transaction = database.begin_write().expect("a transaction");
    transaction.open_table(theirs).expect("their table").insert(1, 2).expect("written");
    transaction.commit().expect("committed");
    let unclean = scratch.bytes();
    assert!(matches!(scratch.open(), Err(OpenError::InUse(_))));
    drop(database);
    assert_refused(&scratch, "is not a Steward data file and was left untouched");
    scratch.overwrite(&unclean);
    assert_refused(&scratch, "is not a Steward data file and was left untouched");
    let database = Database::open(scratch.path()).expect("their file");
    let table = database.begin_read().expect("a snapshot").open_table(theirs).expect("their table");
    assert_eq!(table.get(1).expect("read").expect("there").value(), 2);
}

#[tokio::test]
async fn newer_and_invalid_file_formats_are_rejected_with_instructions() {
    let scratch = Scratch::closed().await;
    let (newer, ours) = (schema::FORMAT + 1, schema::FORMAT);
    set_format(&scratch, newer);
    let text = format!("has format {newer}, this release reads up to {ours}; use the release that");
    assert_refused(&scratch, &text);
    assert_not_restored(&scratch, &text);
    set_format(&scratch, 0);
    assert_refused(&scratch, "is not a Steward data file and was left untouched");
}

#[tokio::test]
async fn truncated_file_is_rejected_and_untouched() {
    let (scratch, store) = Scratch::new();
    store.write(|tx| tx.put(&thing(1))).await.expect("put");
    let unclean = scratch.bytes();
    store.close().await;
    for whole in [scratch.bytes(), unclean] {
        let length = whole.len();
        for cut in [9, 10, 63, 64, 319, 320, 4095, 4096, 4097, 8192, length / 2, length - 1] {
            scratch.overwrite(&whole[..cut]);
            assert_refused(&scratch, "damaged and was left untouched");
        }
        for cut in (2..length / 4096).map(|pages| pages * 4096) {
            scratch.overwrite(&whole[..cut]);
            let before = scratch.bytes();
            match scratch.open() {
                // If only unused pages are missing, redb can open the file.
                Ok(opened) => opened.close().await,
                Err(_) => assert!(scratch.bytes() == before, "cut at {cut}"),
            }
        }
    }
}

#[tokio::test]
async fn older_file_is_migrated_once() {
    let count_up = |tx: &mut WriteTx<'_>| tx.next_number(Table::Sweeps).map(drop);
    let steps: [Step; 3] =
        [|_| Err(Error::internal("a step that must not run again")), count_up, count_up];
    let scratch = Scratch::closed().await;
    set_format(&scratch, 2);
    let migrated = || {
        let database = Database::open(scratch.path()).expect("the file");
        let now = || Snapshot::begin(&database).expect("a snapshot");
        let found = now().get_raw(Table::Meta, schema::FORMAT_KEY).expect("read").expect("there");
        let found = u64::read(&mut found.as_slice()).expect("a number");
        migrate(&database, found, &steps, 4).expect("migrated");
        let key = Table::Sweeps.name().to_owned().encoded();
        raw::read_number(&now(), Table::Sequences, &key).expect("read")
    };
    assert_eq!((migrated(), migrated()), (2, 2));
}

fn set_table_names(scratch: &Scratch, names: &[&str]) {
    scratch.put(Table::Meta, schema::TABLES_KEY, names.join("\n").as_bytes());
}

/// Deletes a table, and sets the names of the file's tables.
fn delete_table(scratch: &Scratch, table: Table, names: &[&str]) {
    set_table_names(scratch, names);
    scratch.with_database(|database| {
        let transaction = database.begin_write().expect("a transaction");
        transaction.delete_table(definition(table)).expect("deleted");
        transaction.commit().expect("committed");
    });
}

#[tokio::test]
async fn table_that_a_release_added_is_created() {
    let scratch = Scratch::closed().await;
    delete_table(&scratch, Table::Sweeps, &names_without(Table::Sweeps));
    let store = scratch.open().expect("the file");
    assert_clean(&check(&store).await);
    store.close().await;
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
    delete_table(&scratch, Table::Sweeps, &names);
    assert_refused(&scratch, &format!("it has no table {}", Table::Sweeps.name()));
}

#[tokio::test]
async fn file_with_a_table_of_a_newer_release_is_refused() {
    let scratch = Scratch::closed().await;
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).chain(["gadgets/1"]).collect();
    set_table_names(&scratch, &names);
    assert_refused(&scratch, "has the table gadgets/1 of a newer release");
    assert_not_restored(&scratch, "has the table gadgets/1 of a newer release");
}

#[tokio::test]
async fn failed_migration_changes_nothing() {
    let scratch = Scratch::closed().await;
    let steps: [Step; 2] = [|tx| tx.put(&thing(9)), |_| Err(Error::internal("a step that fails"))];
    let database = Database::open(scratch.path()).expect("the file");
    migrate(&database, 1, &steps, 3).expect_err("a step failed");
    drop(database);
    assert_eq!(format(&scratch), schema::FORMAT);
    let store = scratch.open().expect("the file");
    assert!(!store.snapshot().expect("open").exists::<Thing>(&(1, 9)).expect("read"));
}

#[tokio::test]
async fn lock_file_remains_after_the_store_is_closed() {
    let (scratch, store) = Scratch::new();
    let lock = beside(&scratch.path(), "lock");
    let inode = std::fs::metadata(&lock).expect("the lock").ino();
    assert!(matches!(FileLock::acquire(&scratch.path()), Err(OpenError::InUse(_))));
    store.close().await;
    let held = FileLock::acquire(&scratch.path()).expect("the released file");
    assert!(matches!(scratch.open(), Err(OpenError::InUse(_))));
    drop(held);
    assert_eq!(std::fs::metadata(&lock).expect("the lock").ino(), inode);
}

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
        let told = "cannot replace steward.redb: it is a mount of its own";
        assert!(text.starts_with(told), "{text}");
    }
    let text = file::not_replaced(data)(std::io::ErrorKind::PermissionDenied.into()).to_string();
    assert_eq!(text, "cannot replace steward.redb: permission denied");
}
