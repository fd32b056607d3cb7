//! A file that fails while the store is open. Truncating the file makes every read of it fail, as a bad disk
//! would. Restoring its bytes repairs it.

use std::fs::OpenOptions;

use super::*;

fn cut(scratch: &Scratch) {
    let file = OpenOptions::new().write(true).open(scratch.path()).expect("the file");
    file.set_len(0).expect("cut");
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
    let (blocker, held) = Blocker::hold(&store).await;
    let (first, refused, paused, ()) = tokio::join!(
        store.write(|tx| tx.put(&thing(3))),
        store.write(|_| Err::<(), _>(Error::denied("a refusal"))),
        store.quiesce(|| ()),
        async { blocker.release() },
    );
    assert_unavailable(&first);
    assert!(refused.is_err());
    assert_unavailable(&paused);
    let _ = held.await.expect("the task");
    assert_recovers(&scratch, &store, &bytes).await;
    assert!(!store.snapshot().expect("open").exists::<Thing>(&(1, 3)).expect("read"));
}

#[tokio::test]
async fn store_closes_while_its_file_cannot_be_opened() {
    let (_scratch, store, _) = failing().await;
    assert_unavailable(&store.write(|tx| tx.put(&thing(2))).await);
    until(|| !store.ready()).await;
    let closed = tokio::time::timeout(TEST_TIMEOUT, store.close());
    closed.await.expect("closed");
}

#[tokio::test]
async fn store_closes_during_a_failing_batch() {
    let (_scratch, store, _) = failing().await;
    let (blocker, held) = Blocker::hold(&store).await;
    let ended = tokio::time::timeout(TEST_TIMEOUT, async {
        tokio::join!(store.write(|tx| tx.put(&thing(2))), store.close(), async {
            blocker.release();
        })
    });
    let (written, (), ()) = ended.await.expect("closed");
    assert_unavailable(&written);
    let _ = held.await.expect("the task");
}

#[tokio::test]
async fn check_and_scrub_of_a_closed_file_are_refused() {
    let (_scratch, store) = Scratch::new();
    store.close().await;
    assert_unavailable(&store.check(checks(), Progress::silent()).await);
    assert_unavailable(&store.scrub(checks(), Progress::silent()).await);
}
