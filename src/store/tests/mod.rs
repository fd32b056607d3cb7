//! Tests of the store on real files, with a record type of their own.

mod damage;
mod failing;
mod filling;
mod lines;
mod opening;
mod spans;
mod upkeep;
mod writing;

use std::path::PathBuf;
use std::sync::mpsc;

use redb::{Database, ReadableDatabase};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::engine::definition;
use super::*;
use crate::secret::Seed;

/// A page cache of nothing, so that every read is one of the file.
const NO_CACHE: usize = 0;

/// Who a [`Thing`] belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    id: u64,
}

impl Record for Owner {
    const TABLE: Table = Table::Users;
    type Key = u64;
    type Head = Self;
    type Shown = ();

    fn key(&self) -> u64 {
        self.id
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<bytes::Owner>> {
        Ok(None)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    owner: u64,
    id: u64,
    code: Option<u64>,
    rank: Option<String>,
}

/// A record with everything that the store keeps in step: a unique index, an index of many, one that
/// holds the records whole, a count and a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Thing {
    head: Head,
    note: String,
}

static BY_CODE: Index<Thing, u64> = Index::unique(Table::ProjectsById, |thing| thing.head.code);
static BY_RANK: Index<Thing, (u64, String)> =
    Index::many(Table::ProjectsPrivate, |thing| Some((thing.head.owner, thing.head.rank.clone()?)));

static WHOLE_BY_RANK: Index<Thing, (u64, String)> = Index::covering(Table::GrantsByUser, |thing| {
    Some((thing.head.owner, thing.head.rank.clone()?))
});

impl Record for Thing {
    const TABLE: Table = Table::Projects;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_CODE, &BY_RANK, &WHOLE_BY_RANK];
    const COUNTS: &'static [Count<Self>] = &[Count::per(|thing| Some(thing.head.owner.encoded()))];
    type Key = (u64, u64);
    type Head = Head;
    type Shown = String;

    fn key(&self) -> Self::Key {
        (self.head.owner, self.head.id)
    }

    fn parts(&self) -> (&Head, &String) {
        (&self.head, &self.note)
    }

    fn join(head: Head, note: String) -> Self {
        Self { head, note }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<bytes::Owner>> {
        Ok(Some(bytes::Owner::Organization(uuid::Uuid::from_u128(self.head.owner.into()))))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Owner>(&self.head.owner)]
    }
}

/// The thing `id` of owner 1.
fn thing(id: u64) -> Thing {
    let head = Head { owner: 1, id, code: Some(id), rank: Some(format!("rank {id}")) };
    Thing { head, note: format!("note {id}") }
}

/// A folder with a data file in it that holds owners 0 to 2, gone with the test.
struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// The folder alone.
    fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn new() -> (Self, Store) {
        let scratch = Self::empty();
        let store = scratch.create().expect("a data file");
        (scratch, store)
    }

    /// A data file that was closed clean, with the things 1 to 3.
    async fn closed() -> Self {
        let (scratch, store) = Self::new();
        let put = |tx: &mut WriteTx<'_>| (1..=3).try_for_each(|id| tx.put(&thing(id)));
        store.write(put).await.expect("three things");
        store.close().await;
        scratch
    }

    fn create(&self) -> Result<Store, OpenError> {
        let mut draw = Seed::take().draw();
        let created = Store::create(&self.path(), NO_CACHE, &mut draw, |tx, _| {
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
        std::fs::read(self.path()).expect("the file's bytes")
    }

    fn overwrite(&self, bytes: &[u8]) {
        std::fs::write(self.path(), bytes).expect("written");
    }

    /// The names in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("an entry").file_name().into_string().expect("a name")
        };
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    }

    /// Changes a table of the closed file as no store would.
    fn behind_the_back(&self, table: Table, change: impl FnOnce(&mut RawTable<'_>)) {
        self.with_database(|database| {
            let transaction = database.begin_write().expect("a transaction");
            change(&mut transaction.open_table(definition(table)).expect("the table"));
            transaction.commit().expect("committed");
        });
    }

    /// Hands the closed file to redb.
    fn with_database(&self, with: impl FnOnce(&Database)) {
        with(&Database::open(self.path()).expect("the file"));
    }
}

type RawTable<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// Whether redb would have nothing to repair.
fn closed_clean(path: &Path) -> bool {
    redb::ReadOnlyDatabase::open(path).is_ok_and(|database| database.begin_read().is_ok())
}

async fn check(store: &Store) -> Findings {
    let kinds = vec![kind::<Owner>(), kind::<Thing>()];
    store.check(checks(kinds), Progress::unheard()).await.expect("a checked file")
}

/// What checks files of these kinds of records.
fn checks(kinds: Vec<Box<dyn Kind>>) -> Checks {
    Checks { kinds, excused: |_, _| Ok(false) }
}

#[track_caller]
fn assert_clean(findings: &Findings) {
    assert_eq!(findings.problems, [""; 0]);
    assert_eq!(findings.problem_count, 0);
}

/// Every value of every table.
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

/// A rule that holds the writer up until it is released.
struct Blocker {
    started: mpsc::Receiver<()>,
    release: mpsc::Sender<()>,
}

impl Blocker {
    /// Holds the writer of `store` up; the second value is the write that does.
    fn hold(store: &Store) -> (Self, tokio::task::JoinHandle<Result<()>>) {
        let (start, started) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let store = store.clone();
        let write = tokio::spawn(async move {
            store
                .write(move |_| {
                    start.send(()).map_err(Error::internal)?;
                    released.recv().map_err(Error::internal)
                })
                .await
        });
        (Self { started, release }, write)
    }

    /// Waits until the writer is held up.
    async fn holds(&self) {
        while self.started.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
    }

    fn release(&self) {
        self.release.send(()).expect("a writer that waits");
    }
}

#[track_caller]
fn assert_unavailable<T: std::fmt::Debug>(answer: &Result<T>) {
    let error = answer.as_ref().expect_err("a refusal");
    assert_eq!((error.status(), error.retry_after()), (503, Some(RETRY_AFTER)));
}
