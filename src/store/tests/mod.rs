//! Tests of the store on real files, with record types of their own.

mod copying;
mod damage;
mod lines;
mod migrating;
mod opening;
mod origin;
mod packing;
mod upkeep;
mod writing;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use redb::{Database, ReadableDatabase};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::base::error::{Error, Result};
use crate::base::secret::Seed;
use crate::store::disk::engine::{RETRY_AFTER, begin, closed, definition};
use crate::store::file_system::OsFileSystem;
use crate::store::record::byte_usage;
use crate::store::values::payload::seal;
use crate::wait::{TEST_TIMEOUT, eventually};

/// No page cache, so that every read goes to the file.
const NO_CACHE: usize = 0;

/// The record that a [`Thing`] refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    id: u64,
}

impl_record!(Owner { table: Users, key: |owner| -> u64 { owner.id }, owner: |_, _| Ok(None) });

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Meta {
    owner: u64,
    id: u64,
    code: Option<u64>,
    rank: Option<String>,
}

/// A record that uses everything that the store maintains: an index of each form, a count and a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Thing {
    meta: Meta,
    note: String,
}

static BY_CODE: Index<Thing, u64> = Index::unique(Table::ProjectsById, |thing| thing.meta.code);
static BY_RANK: Index<Thing, (u64, String)> =
    Index::many(Table::ProjectsPrivate, |thing| Some((thing.meta.owner, thing.meta.rank.clone()?)));

static WHOLE_BY_RANK: Index<Thing, (u64, String)> = Index::covering(Table::GrantsByUser, |thing| {
    Some((thing.meta.owner, thing.meta.rank.clone()?))
});

impl_record!(Thing {
    table: Projects,
    key: |thing| -> (u64, u64) { (thing.meta.owner, thing.meta.id) },
    parts: meta: Meta, note: String,
    indexes: [&BY_CODE, &BY_RANK, &WHOLE_BY_RANK],
    counts: [|thing| Some(thing.meta.owner.encoded())],
    owner: |thing, _| {
        Ok(Some(byte_usage::Owner::Organization(uuid::Uuid::from_u128(thing.meta.owner.into()))))
    },
    references: |thing| [Reference::to::<Owner>(&thing.meta.owner)],
});

/// A record whose table and index are packed. Key: owner, id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    place: (u64, u64),
    rank: String,
}

static LINES_BY_RANK: Index<Line, (u64, String)> =
    Index::many(Table::ActivityByItem, |line| Some((line.place.0, line.rank.clone())));

impl_record!(Line {
    table: Activity,
    key: |line| -> (u64, u64) { line.place },
    indexes: [&LINES_BY_RANK],
    counts: [|line| Some(line.place.0.encoded())],
    owner: |_, _| Ok(None),
});

/// Thing `id` of owner 1.
fn thing(id: u64) -> Thing {
    let meta = Meta { owner: 1, id, code: Some(id), rank: Some(format!("rank {id}")) };
    Thing { meta, note: format!("note {id}") }
}

/// A temporary folder for a data file, which contains owners 0 to 2 once created.
struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Creates the folder only.
    fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn new() -> (Self, Store) {
        let scratch = Self::empty();
        let store = scratch.create().expect("a data file");
        (scratch, store)
    }

    /// Creates a data file with things 1 to 3 and closes it cleanly.
    async fn closed() -> Self {
        let (scratch, store) = Self::new();
        let put = |tx: &mut WriteTx<'_>| (1..=3).try_for_each(|id| tx.put(&thing(id)));
        store.write(put).await.expect("three things");
        store.close().await;
        scratch
    }

    fn create(&self) -> Result<Store, OpenError> {
        let (disk, mut rng) = (OsFileSystem::shared(), Seed::generate().rng());
        let created = Store::create(disk, &self.path(), NO_CACHE, &mut rng, |tx, _| {
            (0..3).try_for_each(|id| tx.put(&Owner { id }))?;
            Ok(())
        });
        created.map(|(store, ())| store)
    }

    fn open(&self) -> Result<Store, OpenError> {
        Store::open(&self.path(), NO_CACHE)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("steward.redb")
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("the bytes of the file")
    }

    fn overwrite(&self, bytes: &[u8]) {
        std::fs::write(self.path(), bytes).expect("written");
    }

    /// Returns the sorted names in the folder.
    fn names(&self) -> Vec<String> {
        names_in(self.folder.path())
    }

    /// Changes a table of the closed file without the store, so that indexes and counts are not updated.
    fn behind_the_back(&self, table: Table, change: impl FnOnce(&mut RawTable<'_>)) {
        self.with_database(|database| {
            let transaction = database.begin_write().expect("a transaction");
            change(&mut transaction.open_table(definition(table)).expect("the table"));
            transaction.commit().expect("committed");
        });
    }

    /// Stores a payload in the closed file without the store.
    fn put(&self, table: Table, key: &[u8], payload: &[u8]) {
        let sealed = seal(table, key, payload);
        self.behind_the_back(table, |opened| {
            opened.insert(key, sealed.as_slice()).expect("written");
        });
    }

    /// Removes a value from the closed file without the store.
    fn remove(&self, table: Table, key: &[u8]) {
        self.behind_the_back(table, |opened| {
            opened.remove(key).expect("removed");
        });
    }

    /// Opens the closed file with redb.
    fn with_database(&self, with: impl FnOnce(&Database)) {
        with(&Database::open(self.path()).expect("the file"));
    }
}

/// Returns the sorted names in a folder.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("a name")
    };
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    names
}

type RawTable<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// Whether redb can open the file without repairing it.
fn closed_clean(path: &Path) -> bool {
    redb::ReadOnlyDatabase::open(path).is_ok_and(|database| database.begin_read().is_ok())
}

/// Checks the file. One that was opened again takes tasks a moment after reads.
async fn check(store: &Store) -> CheckReport {
    let closed = format!("{:?}", closed());
    until(|| store.require_ready().err().is_none_or(|error| format!("{error:?}") != closed)).await;
    store.check(checks(), Progress::silent()).await.expect("a checked file")
}

/// The types of records in these tests.
const RECORD_TYPES: &[&dyn RecordType] = &[
    &RecordTypeOf::<Owner>(Redaction::Open),
    &RecordTypeOf::<Thing>(Redaction::Open),
    &RecordTypeOf::<Line>(Redaction::Open),
];

/// Returns the checks for the types of records in these tests.
fn checks() -> RecordRegistry {
    RecordRegistry { record_types: RECORD_TYPES.to_vec(), is_pending: |_, _| Ok(false) }
}

#[track_caller]
fn assert_clean(report: &CheckReport) {
    assert_eq!(report.problems, [""; 0]);
    assert_eq!(report.problem_count, 0);
}

/// Returns the names of all tables but one.
fn names_without(table: Table) -> Vec<&'static str> {
    Table::ALL.iter().filter(|other| **other != table).map(|other| other.name()).collect()
}

/// Returns every value of every table.
fn dump(store: &Store) -> Vec<(Table, Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot().expect("an open file");
    let mut all = Vec::new();
    for table in Table::ALL {
        let mut note = |key: &[u8], payload: Result<&[u8]>| {
            all.push((*table, key.to_vec(), payload?.to_vec()));
            Ok(())
        };
        snapshot.each(*table, &mut note).expect("a sound table");
    }
    all
}

/// Returns the values of all tables, as they are stored.
fn stored(snapshot: &Snapshot) -> BTreeMap<(Table, Vec<u8>), Vec<u8>> {
    let mut all = BTreeMap::new();
    for table in Table::ALL {
        let mut note = |key: &[u8], sealed: &[u8]| {
            all.insert((*table, key.to_vec()), sealed.to_vec());
            Ok(())
        };
        snapshot.each_sealed(*table, &mut note).expect("a sound table");
    }
    all
}

/// A write that blocks the writer until this is dropped.
struct Blocker {
    release: mpsc::Sender<Infallible>,
    write: tokio::task::JoinHandle<Result<()>>,
}

impl Blocker {
    /// Blocks the writer of `store`, and waits until it is blocked.
    async fn hold(store: &Store) -> Self {
        let (start, mut started) = unbounded_channel();
        let (release, released) = mpsc::channel();
        let store = store.clone();
        let write = tokio::spawn(async move {
            store
                .write(move |_| {
                    let _ = start.send(());
                    // Fails when the blocker is dropped.
                    let _ = released.recv();
                    Ok(())
                })
                .await
        });
        started.recv().await.expect("a blocked writer");
        Self { release, write }
    }

    /// Lets the writer go on, and returns the outcome of the blocking write.
    async fn release(self) -> Result<()> {
        drop(self.release);
        self.write.await.expect("the task")
    }
}

/// Waits until `what` holds.
async fn until(what: impl Fn() -> bool) {
    eventually("the condition", || what().then_some(())).await;
}

#[track_caller]
fn assert_unavailable<T: std::fmt::Debug>(answer: &Result<T>) {
    let error = answer.as_ref().expect_err("a refusal");
    assert_eq!((error.status(), error.retry_after()), (503, Some(RETRY_AFTER)));
}
