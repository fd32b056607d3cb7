//! Compaction by a copy that replaces the file.

use tokio::runtime::Handle;

use super::*;
use crate::store::disk::engine;

/// A file with much unused space: things with long notes were removed.
async fn sparse() -> (Scratch, Store) {
    let (scratch, store) = Scratch::new();
    let long = |id| Thing { note: "x".repeat(20_000), ..thing(id) };
    store.write(move |tx| (1..200).try_for_each(|id| tx.put(&long(id)))).await.expect("written");
    store.write(|tx| tx.remove_some::<Thing>(&(), 190)).await.expect("removed");
    (scratch, store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_by_a_copy_keeps_all_values_and_serves_meanwhile() {
    let (scratch, store) = sparse().await;
    let old = store.snapshot().expect("open");
    let compacting = tokio::spawn({
        let store = store.clone();
        async move {
            let done = store.compact_while_serving(0).await.expect("compacted");
            assert!(done.bytes < done.bytes_before / 2, "{done:?}");
            for _ in 0..5 {
                store.compact_while_serving(0).await.expect("compacted");
            }
        }
    });
    // A compaction gives up if much more than this changes meanwhile.
    for id in 0..200 {
        store.write(move |tx| tx.put(&thing(1000 + id % 50))).await.expect("written");
        let remove = move |tx: &mut WriteTx<'_>| tx.remove::<Thing>(&(1, 1000 + id % 7));
        store.write(remove).await.expect("removed");
        store.snapshot().expect("always open").values().expect("read");
        if compacting.is_finished() {
            break;
        }
    }
    compacting.await.expect("no panic");
    assert_eq!(old.version::<Thing>(&(1, 199)).expect("read"), 1, "an old snapshot is still read");
    drop(old);
    assert_clean(&check(&store).await);
    let before = dump(&store);
    store.write(|tx| tx.put(&thing(7))).await.expect("written");
    store.close().await;
    assert_eq!(scratch.names(), ["steward.redb", "steward.redb.lock"]);
    let store = scratch.open().expect("a file that opens");
    assert_ne!(dump(&store), before);
    store.write(|tx| tx.remove::<Thing>(&(1, 7)).map(drop)).await.expect("removed");
    assert_clean(&check(&store).await);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_file_is_closed_after_its_last_snapshot() {
    let (scratch, store) = sparse().await;
    let deleted = || {
        let links = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
        let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        let gone = format!("{} (deleted)", scratch.path().display());
        targets.filter(|target| target.to_str() == Some(&gone)).count()
    };
    let old = store.snapshot().expect("open");
    store.compact_while_serving(0).await.expect("compacted");
    assert_eq!(deleted(), 1);
    assert!(old.values().expect("read") > 0);
    drop(old);
    until(|| deleted() == 0).await;
    store.close().await;
}

fn close_file(database: Database) -> Result<()> {
    engine::close(database)
}

#[tokio::test]
async fn compaction_without_room_for_a_copy_is_refused_or_done_in_place() {
    let (_scratch, store) = sparse().await;
    let refused = store.compact_while_serving(u64::MAX / 2).await.expect_err("no room");
    assert_eq!(refused.status(), 503);
    let before = dump(&store);
    let done = store.compact_in_place(&Progress::silent()).await.expect("compacted");
    assert!(done.bytes < done.bytes_before, "{done:?}");
    assert_eq!(dump(&store), before);
    assert_clean(&check(&store).await);
    store.close().await;
}

/// A restore puts another file in place of the one that is copied, without a trace in the log of changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_of_a_file_that_was_opened_again_does_not_replace_it() {
    let (scratch, store) = sparse().await;
    let before = dump(&store);
    let (other, runtime) = (store.clone(), Handle::current());
    let progress = Progress::new(move |stage| {
        if stage.doing == "checking the structure" {
            runtime.block_on(other.with_exclusive_file(close_file)).expect("opened again");
        }
    });
    let alone = Arc::clone(&store.walk_lock).write_owned().await;
    assert_unavailable(&store.replace_by_copy(alone, &progress).await);
    assert_eq!(dump(&store), before);
    assert_clean(&check(&store).await);
    store.close().await;
    assert_eq!(scratch.names(), ["steward.redb", "steward.redb.lock"]);
}
