//! Tests of stores with an origin: a database in memory that fails where a test wants it to.

mod commits;
mod copies;
mod metrics;
mod nodes;
mod upgrades;

use super::*;
use crate::store::disk::file_system::{FsHandle, OsFileSystem};
use crate::store::node::shared_database::{found_workspace, open_copy};
use crate::store::origin::Origin;
use crate::store::origin::copy_source::CopySource;
use crate::store::origin::scripted::{Event, Scripted};
use crate::store::values::position::{Position, Primary};

/// A database, and a folder for the copies of its nodes.
struct Shared {
    folder: TempDir,
    origin: Arc<Scripted>,
}

impl Shared {
    /// Founds a workspace with owners 0 to 2. Its first node has the copy `a`.
    fn new() -> (Self, Store) {
        let shared = Self {
            folder: tempfile::tempdir().expect("a folder"),
            origin: Arc::new(Scripted::default()),
        };
        shared.found_workspace("a").expect("a workspace");
        let store = shared.open("a").expect("a node");
        (shared, store)
    }

    /// Does what [`new`](Self::new) does, and opens the copy `b` of a second node.
    fn with_two_nodes() -> (Self, Store, Store) {
        let (shared, store) = Self::new();
        let other = shared.open("b").expect("a second node");
        (shared, store, other)
    }

    fn found_workspace(&self, name: &str) -> Result<(), OpenError> {
        let fs = FsHandle::new(OsFileSystem::shared());
        let mut rng = Seed::generate().rng();
        found_workspace(&fs, &self.path(name), NO_CACHE, &*self.origin, &mut rng, |tx, _| {
            (0..3).try_for_each(|id| tx.put(&Owner { id }))?;
            Ok(())
        })
    }

    fn open(&self, name: &str) -> Result<Store, OpenError> {
        let source = CopySource::new(self.origin.clone());
        let fs = FsHandle::new(OsFileSystem::shared());
        open_copy(fs, &self.path(name), NO_CACHE, source)?()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lets `event` happen at the `nth` call of a writer from now on; 1 is the next.
    fn plan(&self, nth: u64, event: Event) {
        self.origin.at(self.origin.count() + nth, event);
    }

    /// Returns the last commit of the origin.
    fn position(&self) -> Position {
        self.origin.head().expect("an answer").expect("a workspace").position
    }

    /// Asserts that the copy of `store` has what the origin has, and that both are sound.
    async fn assert_same(&self, store: &Store) {
        let snapshot = store.fresh().await.expect("a fresh state");
        assert_eq!(snapshot.position, self.position());
        assert_eq!(stored(&snapshot), self.origin.content());
        // The check compares both, too.
        self.origin.end_script();
        assert_clean(&check(store).await);
    }
}

/// Puts the thing whose id is the next number, so that a rule that is done twice leaves two things. Returns its id.
async fn add_thing(store: &Store) -> Result<u64> {
    store
        .write(|tx| {
            let id = tx.next_number(Table::Projects)?;
            tx.put(&thing(id))?;
            tx.put(&Line { place: (1, id), rank: format!("rank {id}") })?;
            Ok(id)
        })
        .await
}

/// Adds this many things, each with a write.
async fn add_things(store: &Store, count: u64) {
    for _ in 0..count {
        add_thing(store).await.expect("a write");
    }
}
