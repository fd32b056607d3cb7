//! Damage that `check` reports and reads refuse, and a file that fails while the store is open. Truncating the file makes every
//! read of it fail, as a bad disk would. Restoring its bytes repairs it.

use std::fs::OpenOptions;

use crate::store::record::payload_of;
use crate::store::values::payload::{HexKey, unseal};
use crate::store::values::schema::count_key;

use super::*;

/// Opens the file, checks it and returns the reported problems.
async fn problems(scratch: &Scratch) -> Vec<String> {
    let store = scratch.open().expect("a file that opens");
    let report = check(&store).await;
    store.close().await;
    assert_eq!(report.problem_count, report.problems.len() as u64);
    report.problems
}

fn key(id: u64) -> Vec<u8> {
    thing(id).key().encoded()
}

/// Formats a key as messages do.
fn hex(key: &[u8]) -> String {
    HexKey(key).to_string()
}

fn rank_key(id: u64) -> Vec<u8> {
    BY_RANK.entry(&thing(id)).expect("a ranked thing")
}

#[tokio::test]
async fn flipped_bit_fails_reads_and_is_found_by_check() {
    let scratch = Scratch::closed().await;
    let mut bytes = scratch.bytes();
    let places: Vec<_> =
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"note 2")).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] ^= 1;
    }
    scratch.overwrite(&bytes);
    let store = scratch.open().expect("a file that opens");
    let read = store.snapshot().expect("open").get::<Thing>(&(1, 2));
    assert_eq!(read.expect_err("damage").status(), 500);
    let removed = store.write(|tx| tx.remove::<Thing>(&(1, 2)).map(drop)).await;
    assert_eq!(removed.expect_err("damage").status(), 500);
    let sound = store.snapshot().expect("open").get::<Thing>(&(1, 1));
    assert_eq!(sound.expect("the other record"), thing(1));
    store.close().await;
    let found = problems(&scratch).await;
    let line = "projects/1: the data file is damaged: projects/1: checksum mismatch under the key";
    assert_eq!(found[0], format!("{line} {}", hex(&key(2))));
}

#[tokio::test]
async fn check_finds_misplaced_records_and_missing_and_extra_index_entries() {
    let scratch = Scratch::closed().await;
    scratch.put(Table::Projects, &key(9), &payload_of(1, &thing(3)).expect("bytes"));
    let found = problems(&scratch).await;
    let line = "projects/1: a record is stored under another record's key";
    assert!(found.contains(&format!("{line}, {}", hex(&key(9)))), "{found:?}");
    let scratch = Scratch::closed().await;
    scratch.remove(Table::ProjectsById, &2u64.encoded());
    let expected = [
        format!("projects_by_id/1: a record is missing from the index, {}", hex(&key(2))),
        "projects_by_id/1: 2 entries, expected 3".to_owned(),
    ];
    assert_eq!(problems(&scratch).await, expected);
    let scratch = Scratch::closed().await;
    scratch.put(Table::ProjectsPrivate, &rank_key(8), &key(1));
    assert_eq!(problems(&scratch).await, ["projects_private/1: 4 entries, expected 3"]);
}

#[tokio::test]
async fn check_finds_an_index_entry_of_another_record() {
    let scratch = Scratch::closed().await;
    scratch.put(Table::ProjectsPrivate, &rank_key(1), &key(2));
    let line = "projects_private/1: an entry differs from its record";
    assert_eq!(problems(&scratch).await, [format!("{line}, {}", hex(&key(1)))]);
    let store = scratch.open().expect("a file that opens");
    let page = Window { offset: 0, limit: 9, order: Order::Ascending };
    let walked = store.snapshot().expect("open").walk(&BY_RANK, &1u64, page, |_| Ok(()));
    let error = walked.expect_err("an entry that points to another record");
    assert_eq!(error.status(), 500);
    assert!(error.cause().is_some_and(|cause| cause.contains(&hex(&rank_key(1)))), "{error:?}");
}

#[tokio::test]
async fn dangling_index_entry_fails_the_list() {
    let scratch = Scratch::closed().await;
    scratch.remove(Table::Projects, &key(2));
    let store = scratch.open().expect("a file that opens");
    let all = Window { offset: 0, limit: 9, order: Order::Ascending };
    let walked = store.snapshot().expect("open").walk(&BY_RANK, &1u64, all, |_| Ok(()));
    assert_eq!(walked.expect_err("damage").status(), 500);
}

#[tokio::test]
async fn check_finds_wrong_missing_and_extra_counts() {
    let count = |owner: u64| count_key(Table::Projects, &owner.encoded());
    let scratch = Scratch::closed().await;
    for (owner, number) in [(1u64, 4u64), (2, 1)] {
        scratch.put(Table::Counts, &count(owner), &number.encoded());
    }
    let expected = [
        "counts/1: the stored count of projects/1 is 4, expected 3",
        "counts/1: the stored count of projects/1 is 1, expected 0",
    ];
    assert_eq!(problems(&scratch).await, expected);
    scratch.remove(Table::Counts, &count(1));
    scratch.remove(Table::Counts, &count(2));
    scratch.put(Table::Counts, &count_key(Table::Activity, &[]), &7u64.encoded());
    let expected = [
        "counts/1: the stored count of activity/1 is 7, expected 0",
        "counts/1: the count of projects/1 is missing, expected 3",
    ];
    assert_eq!(problems(&scratch).await, expected);
    let store = scratch.open().expect("a file that opens");
    let removed = store.write(|tx| tx.remove::<Thing>(&(1, 1)).map(drop)).await;
    assert_eq!(removed.expect_err("a count below 0").status(), 500);
}

#[tokio::test]
async fn check_finds_dangling_references_unless_deletion_is_pending() {
    let (_scratch, store) = Scratch::new();
    let orphan = Thing { meta: Meta { owner: 77, ..thing(1).meta }, ..thing(1) };
    store.write(move |tx| tx.put(&orphan)).await.expect("put");
    let found = check(&store).await;
    let orphan = hex(&(77u64, 1u64).encoded());
    let line = format!("projects/1: the record {orphan} refers to a missing record in users/1");
    assert_eq!(found.problems, [line]);
    let is_pending = |_: &Snapshot, reference: &Reference| Ok(reference.key == 77u64.encoded());
    let registry = RecordRegistry { is_pending, ..checks() };
    assert_clean(&store.check(registry, Progress::silent()).await.expect("checked"));
}

#[tokio::test]
async fn check_finds_damage_in_tables_without_records() {
    let scratch = Scratch::closed().await;
    for table in [Table::Meta, Table::Sequences, Table::Counts, Table::Idempotency] {
        scratch.behind_the_back(table, |opened| {
            opened.insert(b"stray".as_slice(), b"not sealed".as_slice()).expect("written");
        });
        let found = problems(&scratch).await;
        let line = format!("{0}: the data file is damaged: {0}: checksum", table.name());
        assert!(found.len() == 1 && found[0].starts_with(&line), "{found:?}");
        scratch.remove(table, b"stray");
    }
}

#[test]
fn seal_covers_table_key_and_payload() {
    let sealed = seal(Table::Meta, b"key", b"payload");
    assert_eq!(unseal(Table::Meta, b"key", &sealed).expect("whole"), b"payload");
    assert!(unseal(Table::Meta, b"kez", &sealed).is_err());
    assert!(unseal(Table::Counts, b"key", &sealed).is_err());
    for at in 0..sealed.len() {
        let mut flipped = sealed.clone();
        flipped[at] ^= 0x10;
        assert!(unseal(Table::Meta, b"key", &flipped).is_err());
        assert!(unseal(Table::Meta, b"key", &sealed[..at]).is_err());
    }
}

#[tokio::test]
async fn damaged_byte_usage_rejects_only_writes_of_its_owner() {
    let scratch = Scratch::closed().await;
    let key = byte_usage::Owner::Organization(uuid::Uuid::from_u128(1)).key();
    scratch.behind_the_back(Table::Counts, |table| {
        let sealed = seal(Table::Counts, b"elsewhere", &7u64.encoded());
        table.insert(key.as_slice(), sealed.as_slice()).expect("written");
    });
    let store = scratch.open().expect("a file that opens");
    let removed = store.write(|tx| tx.remove::<Thing>(&(1, 1)).map(drop)).await;
    assert_eq!(removed.expect_err("damage").status(), 500);
    assert!(store.ready());
    let other = Thing { meta: Meta { owner: 2, code: Some(9), ..thing(9).meta }, ..thing(9) };
    let (put, refused) =
        tokio::join!(store.write(move |tx| tx.put(&other)), store.write(|tx| tx.put(&thing(4))),);
    put.expect("a write of another owner");
    assert_eq!(refused.expect_err("damage").status(), 500);
    assert!(store.ready());
    let snapshot = store.snapshot().expect("open");
    assert_eq!(snapshot.get::<Thing>(&(1, 1)).expect("still there"), thing(1));
    assert!(!snapshot.exists::<Thing>(&(1, 4)).expect("read"));
    assert!(snapshot.exists::<Thing>(&(2, 9)).expect("read"));
}

fn cut(scratch: &Scratch) {
    OpenOptions::new().write(true).open(scratch.path()).expect("the file").set_len(0).expect("cut");
}

/// Creates a store whose file contains thing 1 and is then truncated.
async fn failing() -> (Scratch, Store, Vec<u8>) {
    let (scratch, store) = Scratch::new();
    store.write(|tx| tx.put(&thing(1))).await.expect("put");
    let bytes = scratch.bytes();
    cut(&scratch);
    (scratch, store, bytes)
}

async fn assert_recovers(scratch: &Scratch, store: &Store, bytes: &[u8]) {
    scratch.overwrite(bytes);
    until(|| store.ready()).await;
    store.write(|tx| tx.put(&thing(2))).await.expect("put");
    let snapshot = store.snapshot().expect("open");
    assert_eq!(snapshot.get::<Thing>(&(1, 1)).expect("read"), thing(1));
    assert_eq!(snapshot.get::<Thing>(&(1, 2)).expect("read"), thing(2));
    assert_clean(&check(store).await);
}

#[tokio::test]
async fn failed_write_makes_the_store_unavailable_until_the_file_is_reopened() {
    let (scratch, store, bytes) = failing().await;
    let held = store.snapshot().expect("open");
    assert_unavailable(&store.write(|tx| tx.put(&thing(2))).await);
    until(|| !store.ready()).await;
    assert_unavailable(&store.write(|_| Ok(())).await);
    assert_unavailable(&store.quiesce(|| ()).await);
    assert_unavailable(&store.snapshot().map(drop));
    assert_unavailable(&held.get::<Thing>(&(1, 1)));
    assert_recovers(&scratch, &store, &bytes).await;
    assert_unavailable(&held.get::<Thing>(&(1, 1)));
    assert!(store.ready());
}

#[tokio::test]
async fn failed_read_is_detected_without_a_write() {
    let (scratch, store, bytes) = failing().await;
    let snapshot = store.snapshot().expect("open");
    assert_unavailable(&snapshot.get::<Thing>(&(1, 1)));
    until(|| !store.ready()).await;
    assert_recovers(&scratch, &store, &bytes).await;
}

#[tokio::test]
async fn queued_writes_fail_when_the_file_fails() {
    let (scratch, store, bytes) = failing().await;
    let blocker = Blocker::hold(&store).await;
    let (first, refused, paused, _) = tokio::join!(
        store.write(|tx| tx.put(&thing(3))),
        store.write(|_| Err::<(), _>(Error::denied("a refusal"))),
        store.quiesce(|| ()),
        blocker.release(),
    );
    assert_unavailable(&first);
    assert!(refused.is_err());
    assert_unavailable(&paused);
    assert_recovers(&scratch, &store, &bytes).await;
    assert!(!store.snapshot().expect("open").exists::<Thing>(&(1, 3)).expect("read"));
}

#[tokio::test]
async fn store_closes_during_a_failing_batch() {
    let (_scratch, store, _) = failing().await;
    let blocker = Blocker::hold(&store).await;
    let ended = tokio::time::timeout(TEST_TIMEOUT, async {
        tokio::join!(store.write(|tx| tx.put(&thing(2))), store.close(), blocker.release())
    });
    let (written, (), _) = ended.await.expect("closed");
    assert_unavailable(&written);
}

#[tokio::test]
async fn check_and_scrub_of_a_closed_file_are_refused() {
    let (_scratch, store) = Scratch::new();
    store.close().await;
    assert_unavailable(&store.check(checks(), Progress::silent()).await);
    assert_unavailable(&store.scrub(checks(), Progress::silent()).await);
}
