//! Copies of the file while it is served: backups and exports hold no snapshot for long and contain the state of one commit all the
//! same, and a compacted copy replaces the file.

use std::io::Read;
use std::sync::{Mutex, Weak};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::runtime::Handle;

use crate::store::disk::engine;
use crate::store::reads::report::Steps;
use crate::store::values::schema::{FORMAT, FORMAT_KEY};
use crate::store::whole::sliced_walk::SliceLimit;

use super::*;

/// Returns a progress that writes to `store` when the copying begins, and notes how often `state` is held when the next
/// stage begins.
fn watching(store: &Store, state: Weak<Snapshot>, held: &Arc<Mutex<Vec<usize>>>) -> Progress {
    let (store, held, runtime) = (store.clone(), Arc::clone(held), Handle::current());
    Progress::new(move |stage| match (&*stage.doing, stage.done) {
        ("copying", 0) => {
            runtime.block_on(store.write(|tx| tx.put(&thing(9)))).expect("a write");
        }
        ("checking" | "exporting", 0) => {
            held.lock().expect("no panic").push(state.strong_count());
        }
        _ => {}
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_and_export_contain_what_is_written_meanwhile_and_hold_no_snapshot() {
    let scratch = Scratch::closed().await;
    let store = scratch.open().expect("a file that opens");
    let held = Arc::default();
    let state = || Arc::downgrade(&store.snapshot().expect("open"));
    let to = scratch.folder.path().join("backup.redb");
    let made = store.backup(to.clone(), checks(), watching(&store, state(), &held)).await;
    let values = store.snapshot().expect("open").values().expect("read");
    assert_eq!(made.expect("a backup").values, values);
    let copy = Store::open(&to, NO_CACHE).expect("the backup");
    assert_eq!(dump(&copy), dump(&store));
    assert!(copy.snapshot().expect("open").exists::<Thing>(&(1, 9)).expect("read"));
    copy.close().await;
    store.write(|tx| tx.remove::<Thing>(&(1, 9)).map(drop)).await.expect("removed");
    let how = ExportOptions {
        registry: checks(),
        secrets: false,
        organization: None,
        folder: scratch.folder.path().to_owned(),
        progress: watching(&store, state(), &held),
    };
    let mut lines = Vec::new();
    store.export(how).await.expect("an export").write_to(&mut lines).expect("written");
    assert!(String::from_utf8(lines).expect("text").contains("note 9"));
    assert_eq!(*held.lock().expect("no panic"), [0, 0]);
    store.close().await;
    let names = ["backup.redb", "backup.redb.lock", "steward.redb", "steward.redb.lock"];
    assert_eq!(scratch.names(), names);
}

/// A change of one record.
#[derive(Debug, Clone)]
enum Step {
    Thing(u64),
    NoThing(u64),
    Line(u64, u8),
    NoLine(u64),
}

impl Step {
    fn perform(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        match self {
            Self::Thing(id) => tx.put(&thing(*id)),
            Self::NoThing(id) => tx.remove::<Thing>(&(1, *id)).map(drop),
            Self::Line(id, length) => {
                tx.put(&Line { place: (1, *id), rank: "x".repeat((*length).into()) })
            }
            Self::NoLine(id) => tx.remove::<Line>(&(1, *id)).map(drop),
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0u64..40).prop_map(Step::Thing),
        1 => (0u64..40).prop_map(Step::NoThing),
        2 => (0u64..40, any::<u8>()).prop_map(|(id, length)| Step::Line(id, length)),
        1 => (0u64..40).prop_map(Step::NoLine),
    ];
    vec(step, 1..12)
}

async fn perform(store: &Store, steps: Vec<Step>) {
    let rule = move |tx: &mut WriteTx<'_>| steps.iter().try_for_each(|step| step.perform(tx));
    store.write(rule).await.expect("written");
}

#[test]
fn sliced_walk_ends_with_exactly_the_values_of_one_commit() {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("a runtime");
    let (_scratch, store) = Scratch::new();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 48,
        ..ProptestConfig::default()
    });
    let writes = vec((0usize..40, steps()), 0..8);
    let outcome = runner.run(&(steps(), writes), |(first, writes)| {
        runtime.block_on(perform(&store, first));
        let tables = Table::ALL;
        let mut walk = runtime.block_on(store.begin_sliced_walk(tables)).expect("begun");
        walk.limit = SliceLimit { time: Duration::MAX, bytes: 1 };
        let mut states = vec![stored(&store.snapshot().expect("open"))];
        let (mut copied, mut taken, mut writes) = (BTreeMap::new(), 0, writes);
        let values = walk.each(tables, &mut Steps::default(), &mut |table, key, sealed| {
            taken += 1;
            for (_, steps) in writes.extract_if(.., |(at, _)| *at == taken) {
                runtime.block_on(perform(&store, steps));
                states.push(stored(&store.snapshot().expect("open")));
            }
            match sealed {
                Some(sealed) => copied.insert((table, key.to_vec()), sealed.to_vec()),
                None => copied.remove(&(table, key.to_vec())),
            };
            Ok(())
        });
        prop_assert_eq!(values.expect("walked"), copied.len() as u64);
        prop_assert!(states.contains(&copied));
        Ok(())
    });
    outcome.expect("the copies equal the file");
}

#[tokio::test]
async fn copy_of_a_server_that_is_cut_off_or_of_another_release_is_refused() {
    let scratch = Scratch::closed().await;
    let store = scratch.open().expect("a file that opens");
    let mut copy = store.copy_to_unnamed(Progress::silent()).await.expect("a copy");
    let mut bytes = Vec::new();
    copy.read_to_end(&mut bytes).expect("read");
    let values = store.snapshot().expect("open").values().expect("read");
    store.close().await;
    let (to, size) = (scratch.folder.path().join("backup.redb"), bytes.len() as u64);
    let take = |from: &[u8]| receive(SentCopy { from, size }, &to, &checks(), &Progress::silent());
    for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        let refused = take(&bytes[..length]).expect_err("cut off");
        assert!(refused.to_string().contains("the copy broke off"), "{refused}");
    }
    assert_eq!(take(&bytes).expect("a backup").values, values);
    std::fs::remove_file(&to).expect("removed");
    scratch.put(Table::Meta, FORMAT_KEY, &(FORMAT + 1).encoded());
    let other = scratch.bytes();
    let copy = SentCopy { from: other.as_slice(), size: other.len() as u64 };
    let refused = receive(copy, &to, &checks(), &Progress::silent()).expect_err("newer");
    let text = "the server is a different release; run the command with the same release";
    assert_eq!(refused.to_string(), text);
    assert_eq!(scratch.names(), ["steward.redb", "steward.redb.lock"]);
}

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
