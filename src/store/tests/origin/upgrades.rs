//! A database that an older or a newer release wrote.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;

use flate2::read::GzDecoder;
use redb::ReadableDatabase;

use super::super::super::engine::definition;
use super::super::super::origin::Row;
use super::super::super::sealed::seal;
use super::*;
use crate::resources::record_registry;

/// Writes the data file of format 1 in `tests/golden` to `to`.
fn write_golden_file(to: &Path) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1.redb.gz");
    let mut bytes = Vec::new();
    let kept = File::open(path).expect("a golden file");
    GzDecoder::new(kept).read_to_end(&mut bytes).expect("the bytes");
    fs::write(to, bytes).expect("a copy");
}

/// Returns the values of a closed file, except ranks.
fn rows(path: &Path) -> Vec<Row> {
    let database = Database::open(path).expect("a file");
    let transaction = database.begin_read().expect("a snapshot");
    let mut rows = Vec::new();
    for table in Table::ALL.iter().filter(|table| **table != Table::Ranks) {
        let Ok(opened) = transaction.open_table(definition(*table)) else { continue };
        for entry in redb::ReadableTable::iter(&opened).expect("a table") {
            let (key, sealed) = entry.expect("a value");
            let (key, sealed) = (key.value().to_vec(), Some(sealed.value().to_vec()));
            rows.push(Row { table: *table, key, sealed });
        }
    }
    rows
}

impl Shared {
    /// Founds a workspace with the content of the golden file of format 1.
    fn of_format_1() -> Self {
        let shared = Self {
            folder: tempfile::tempdir().expect("a folder"),
            origin: Arc::new(Scripted::default()),
        };
        write_golden_file(&shared.path("golden"));
        let rows = rows(&shared.path("golden"));
        let founded = shared.origin.found(uuid::Uuid::from_u128(1), &mut rows.into_iter().map(Ok));
        founded.expect("an answer").expect("a workspace");
        shared.origin.set_format(1);
        shared
    }

    fn open_workspace(&self, name: &str) -> Result<Store, OpenError> {
        let source = CopySource::new(self.origin.clone(), &record_registry());
        let fs = FsHandle::new(OsFileSystem::shared());
        Store::start_copy(open_copy(fs, &self.path(name), NO_CACHE, source)?)
    }

    /// Lets a newer node put this value.
    fn put_meta(&self, key: &[u8], payload: &[u8]) {
        let sealed = Some(seal(Table::Meta, key, payload));
        self.origin.commit_as_other(&[Row { table: Table::Meta, key: key.to_vec(), sealed }]);
    }
}

#[tokio::test]
async fn older_database_is_migrated_by_the_first_node_as_a_file_is() {
    let shared = Shared::of_format_1();
    let store = shared.open_workspace("a").expect("a node");
    let head = shared.origin.head().expect("an answer").expect("a workspace");
    assert_eq!((head.format, head.position.seq, head.horizon), (schema::FORMAT, 2, 2));
    Store::open(&shared.path("golden"), NO_CACHE).expect("a migrated file").close().await;
    let expected: BTreeMap<_, _> = rows(&shared.path("golden"))
        .into_iter()
        .map(|row| ((row.table, row.key), row.sealed.expect("a value")))
        .collect();
    assert_eq!(shared.origin.content(), expected);
    let other = shared.open_workspace("b").expect("a second node");
    assert_eq!(shared.position(), head.position, "it is migrated once");
    for store in [&store, &other] {
        let report = store.check(record_registry(), Progress::silent()).await.expect("a report");
        assert_clean(&report);
        store.close().await;
    }
}

#[test]
fn two_nodes_that_start_at_once_migrate_the_database_once() {
    let shared = Shared::of_format_1();
    let open = |name: &'static str| {
        let source = CopySource::new(shared.origin.clone(), &record_registry());
        let path = shared.path(name);
        move || open_copy(FsHandle::new(OsFileSystem::shared()), &path, NO_CACHE, source).map(drop)
    };
    let [a, b] = ["a", "b"].map(open);
    std::thread::scope(|scope| {
        let other = scope.spawn(a);
        b().expect("a node");
        other.join().expect("no panic").expect("a node");
    });
    assert_eq!(shared.position().seq, 2);
}

#[tokio::test]
async fn older_database_is_not_served_while_it_is_away() {
    let (shared, store) = Shared::new();
    store.close().await;
    let copy = shared.path("a");
    {
        let database = Database::open(&copy).expect("the copy");
        let transaction = database.begin_write().expect("a transaction");
        let sealed = seal(Table::Meta, schema::FORMAT_KEY, &1_u64.encoded());
        let mut table = transaction.open_table(definition(Table::Meta)).expect("a table");
        table.insert(schema::FORMAT_KEY, sealed.as_slice()).expect("a value");
        drop(table);
        transaction.commit().expect("a commit");
    }
    shared.origin.set_away(true);
    assert!(matches!(shared.open("a").err(), Some(OpenError::Unreachable { .. })));
}

#[tokio::test]
async fn tables_and_layouts_of_a_newer_release_stop_this_one() {
    let newer_layout = schema::layout_key(Table::Projects);
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
    let more_names = [&names[..], &["wonders/1"]].concat().join("\n");
    for (key, payload) in [
        (newer_layout.as_slice(), 99_u64.encoded()),
        (b"layout wonders/1", 1_u64.encoded()),
        (schema::TABLES_KEY, more_names.into_bytes()),
    ] {
        let (shared, store) = Shared::new();
        add_thing(&store).await.expect("a write");
        let known = shared.position();
        shared.put_meta(key, &payload);
        assert_unavailable(&store.fresh().await.map(drop));
        until(|| !store.ready()).await;
        assert_unavailable(&add_thing(&store).await);
        assert_eq!(store.snapshot().expect("open").position, known, "nothing is taken");
        store.close().await;
        for name in ["a", "b"] {
            let refused = shared.open(name).err().expect("a refusal").to_string();
            assert!(refused.contains("newer release"), "{refused}");
        }
    }
}

#[tokio::test]
async fn known_tables_and_layouts_are_taken() {
    let (shared, store) = Shared::new();
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
    shared.put_meta(schema::TABLES_KEY, names.join("\n").as_bytes());
    shared.put_meta(&schema::layout_key(Table::Projects), &0_u64.encoded());
    add_thing(&store).await.expect("a write");
    shared.assert_same(&store).await;
}
