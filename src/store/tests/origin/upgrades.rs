//! A database that an older or a newer release wrote.

use crate::store::disk::engine::definition;
use crate::store::values::payload::seal;
use crate::store::values::position::OriginRow;

use super::*;

/// Returns the list of tables of a release that had all but one of them.
fn older_tables() -> Vec<u8> {
    names_without(Table::Leases).join("\n").into_bytes()
}

impl Shared {
    /// Founds a workspace of an older release. Its first node, which is stopped, has the copy `a`.
    async fn of_older_release() -> Self {
        let (shared, store) = Self::new();
        store.close().await;
        shared.put_meta(schema::TABLES_KEY, &older_tables());
        shared
    }

    /// Lets another node put this value.
    fn put_meta(&self, key: &[u8], payload: &[u8]) {
        let sealed = Some(seal(Table::Meta, key, payload));
        self.origin.commit_as_other(&[OriginRow { table: Table::Meta, key: key.to_vec(), sealed }]);
    }
}

#[tokio::test]
async fn older_database_is_migrated_by_the_first_node() {
    let shared = Shared::of_older_release().await;
    let (older, mut expected) = (shared.position().seq, shared.origin.content());
    let store = shared.open("a").expect("a node");
    let head = shared.origin.head().expect("an answer").expect("a workspace");
    let migrated = older + 1;
    assert_eq!(head.format, schema::FORMAT);
    assert_eq!((head.position.seq, head.horizon), (migrated, migrated));
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
    let names = seal(Table::Meta, schema::TABLES_KEY, names.join("\n").as_bytes());
    expected.insert((Table::Meta, schema::TABLES_KEY.to_vec()), names);
    assert_eq!(shared.origin.content(), expected);
    assert!(shared.path("a.older").exists(), "the copy of the older release is kept");
    let other = shared.open("b").expect("a second node");
    assert_eq!(shared.position(), head.position, "it is migrated once");
    for store in [&store, &other] {
        assert_clean(&check(store).await);
        store.close().await;
    }
}

#[tokio::test]
async fn two_nodes_that_start_at_once_migrate_the_database_once() {
    let shared = Shared::of_older_release().await;
    let older = shared.position().seq;
    let open = |name: &'static str| {
        let source = CopySource::new(shared.origin.clone());
        let path = shared.path(name);
        move || open_copy(FsHandle::new(OsFileSystem::shared()), &path, NO_CACHE, source).map(drop)
    };
    let [b, c] = ["b", "c"].map(open);
    std::thread::scope(|scope| {
        let other = scope.spawn(b);
        c().expect("a node");
        other.join().expect("no panic").expect("a node");
    });
    assert_eq!(shared.position().seq, older + 1);
}

#[tokio::test]
async fn older_database_is_not_served_while_it_is_away() {
    let (shared, store) = Shared::new();
    store.close().await;
    let copy = shared.path("a");
    {
        let database = Database::open(&copy).expect("the copy");
        let transaction = database.begin_write().expect("a transaction");
        let sealed = seal(Table::Meta, schema::TABLES_KEY, &older_tables());
        let mut table = transaction.open_table(definition(Table::Meta)).expect("a table");
        table.insert(schema::TABLES_KEY, sealed.as_slice()).expect("a value");
        drop(table);
        transaction.commit().expect("a commit");
    }
    shared.origin.set_away(true);
    assert!(matches!(shared.open("a").err(), Some(OpenError::Unreachable { .. })));
}

#[tokio::test]
async fn format_and_tables_of_a_newer_release_stop_this_one() {
    let migrate: [fn(&Shared); 2] = [
        |shared| shared.origin.set_format(schema::FORMAT + 1),
        |shared| {
            let names = Table::ALL.iter().map(|table| table.name()).chain(["wonders/1"]);
            let names: Vec<_> = names.collect();
            shared.put_meta(schema::TABLES_KEY, names.join("\n").as_bytes());
        },
    ];
    for migrate in migrate {
        let (shared, store) = Shared::new();
        add_thing(&store).await.expect("a write");
        let known = shared.position();
        migrate(&shared);
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
async fn known_tables_are_taken() {
    let (shared, store) = Shared::new();
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
    shared.put_meta(schema::TABLES_KEY, names.join("\n").as_bytes());
    add_thing(&store).await.expect("a write");
    shared.assert_same(&store).await;
}
