//! The queue, batches, snapshots, and cooldowns after large writes.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use crate::base::erased::erase;
use crate::fair::fair_queue::Consumer;
use crate::store::writer::queue::{LIMITS, MAX_QUEUED};
use crate::store::writer::task::QueuedWrite;

use super::*;

/// How often a test tries to get several writes into one batch. A batch also ends after a time limit, which a busy machine
/// may exceed.
const TRIES: usize = 100;

/// A refusal may depend on another write of the same batch, so it fails with that batch.
#[tokio::test]
async fn error_response_of_a_write_waits_for_the_commit() {
    let scratch = Scratch::empty();
    let database = Database::create(scratch.path()).expect("a file");
    let transaction = begin(&database).expect("a transaction");
    let (mut queued, answer) = QueuedWrite::new(Box::new(|_| Err(Error::denied("no"))));
    assert!(!queued.run(&mut WriteTx::new(&transaction)));
    queued.answer(Err(Error::unavailable(RETRY_AFTER, "the commit failed")));
    assert_unavailable(&answer.await.expect("an answer").map(drop));
}

#[test]
fn rule_is_dropped_before_its_caller_is_woken() {
    struct Caller {
        held_by_rule: Weak<()>,
        woken_without_rule: AtomicBool,
    }
    impl Wake for Caller {
        fn wake(self: Arc<Self>) {
            let dropped = self.held_by_rule.strong_count() == 0;
            self.woken_without_rule.store(dropped, Ordering::Relaxed);
        }
    }
    let held = Arc::new(());
    let held_by_rule = Arc::downgrade(&held);
    let caller = Arc::new(Caller { held_by_rule, woken_without_rule: AtomicBool::new(false) });
    let (queued, mut answer) =
        QueuedWrite::new(Box::new(move |_| Ok(erase(Arc::strong_count(&held)))));
    let waker = Waker::from(Arc::clone(&caller));
    assert!(answer.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
    queued.answer(Err(Error::internal("no commit")));
    assert!(caller.woken_without_rule.load(Ordering::Relaxed));
}

#[tokio::test]
async fn access_version_changes_only_with_the_tables_of_authorization() {
    let (_scratch, store) = Scratch::new();
    let version = || store.snapshot().expect("an open file").access_version();
    let before = version();
    let written = store.write(|tx| {
        tx.put_raw(Table::Outbox, b"key", b"value");
        Ok(tx.access_version())
    });
    assert_eq!((written.await.expect("put"), version()), (before, before));
    let written = store.write(|tx| {
        tx.put(&thing(1))?;
        Ok(tx.access_version())
    });
    assert_eq!(written.await.expect("put"), None);
    assert_ne!(version(), before);
}

#[tokio::test]
async fn held_snapshot_does_not_change() {
    let (_scratch, store) = Scratch::new();
    store.write(|tx| tx.put(&thing(1))).await.expect("put");
    let held = store.snapshot().expect("an open file");
    store.write(|tx| tx.remove::<Thing>(&(1, 1)).map(drop)).await.expect("removed");
    store.write(|tx| tx.put(&thing(2))).await.expect("put");
    assert_eq!(held.find::<Thing>(&(1, 1)).expect("read"), Some(thing(1)));
    assert_eq!(held.find::<Thing>(&(1, 2)).expect("read"), None);
    assert_eq!(held.count::<Thing>(&1u64).expect("read"), 1);
    let now = store.snapshot().expect("an open file");
    assert_eq!(now.find::<Thing>(&(1, 1)).expect("read"), None);
    assert_eq!(now.find::<Thing>(&(1, 2)).expect("read"), Some(thing(2)));
}

#[tokio::test]
async fn full_write_queue_rejects_new_writes_and_runs_queued_ones() {
    let (_scratch, store) = Scratch::new();
    let blocker = Blocker::hold(&store).await;
    let mut queued: Vec<_> = (0..MAX_QUEUED).map(|_| Box::pin(store.write(|_| Ok(())))).collect();
    assert!(queued.iter_mut().all(|write| write.now_or_never().is_none()));
    assert_unavailable(&store.write(|_| Ok(())).await);
    assert_unavailable(&store.quiesce(|| ()).await);
    blocker.release().await.expect("released");
    for write in queued {
        write.await.expect("served");
    }
    store.write(|_| Ok(())).await.expect("room again");
}

#[tokio::test]
async fn consumer_is_limited_to_its_share_of_the_write_queue() {
    let (_scratch, store) = Scratch::new();
    let blocker = Blocker::hold(&store).await;
    let write = |user| Box::pin(store.write_for(Some(Consumer::User(user)), |_| Ok(())));
    let most = LIMITS.slots_per_consumer + LIMITS.waiting_per_consumer;
    let mut queued: Vec<_> = (0..most).map(|_| write(1)).collect();
    assert!(queued.iter_mut().all(|write| write.now_or_never().is_none()));
    let refused = write(1).await.map(drop).expect_err("a full share");
    assert!(refused.is_overload() && refused.status() == 503);
    let mut other = write(2);
    assert!((&mut other).now_or_never().is_none());
    blocker.release().await.expect("released");
    for write in queued.into_iter().chain([other, write(1)]) {
        write.await.expect("served");
    }
}

#[tokio::test]
async fn full_write_queue_rejects_the_newest_write_of_the_largest_consumer() {
    let (_scratch, store) = Scratch::new();
    let blocker = Blocker::hold(&store).await;
    let write = |user| Box::pin(store.write_for(Some(Consumer::User(user)), |_| Ok(())));
    // Several tenants of one attacker, of which one has the most writes.
    let most = 8 * LIMITS.slots_per_consumer + LIMITS.waiting;
    let users = (0..most - 1).map(|nth| nth as u64 % 8).chain([0]);
    let mut queued: Vec<_> = users.map(write).collect();
    assert!(queued.iter_mut().all(|write| write.now_or_never().is_none()));
    let mut modest = write(9);
    assert!((&mut modest).now_or_never().is_none());
    let newest = queued.pop().expect("a write").now_or_never().expect("an answer");
    assert!(newest.map(drop).expect_err("displaced").is_overload());
    blocker.release().await.expect("released");
    for write in queued.into_iter().chain([modest]) {
        write.await.expect("served");
    }
}

#[tokio::test]
async fn discarded_write_is_undone_alone_and_commits_nothing() {
    let (_scratch, store) = Scratch::new();
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commits);
    store.on_commit(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let discarded = |id| {
        let rule = move |tx: &mut WriteTx<'_>| {
            tx.put(&thing(id))?;
            tx.end_batch();
            tx.discard();
            tx.count::<Thing>(&1u64)
        };
        store.write_for(Some(Consumer::User(1)), rule)
    };
    let (count, snapshot) = discarded(1).await.expect("a result");
    assert_eq!((count, snapshot.count::<Thing>(&1u64).expect("read")), (1, 0));
    assert_eq!(commits.load(Ordering::Relaxed), 0);
    let blocker = Blocker::hold(&store).await;
    let put = |id| store.write_for(None, move |tx| tx.put(&thing(id)));
    let written = tokio::join!(put(1), discarded(2), put(3), blocker.release());
    written.3.expect("released");
    let kept = (written.0.expect("put"), written.1.expect("a result"), written.2.expect("put"));
    assert_eq!((kept.1).0, 2);
    let snapshot = store.snapshot().expect("an open file");
    let found = [1, 2, 3].map(|id| snapshot.exists::<Thing>(&(1, id)).expect("read"));
    assert_eq!(found, [true, false, true]);
    assert_clean(&check(&store).await);
}

#[tokio::test]
async fn write_that_ends_its_batch_gets_a_snapshot_of_its_own_state() {
    for _ in 0..TRIES {
        if last_write_of_a_batch_gets_its_state().await {
            return;
        }
    }
    panic!("in every try the first write was committed alone");
}

/// Returns false if the first write was committed alone.
async fn last_write_of_a_batch_gets_its_state() -> bool {
    let (_scratch, store) = Scratch::new();
    let blocker = Blocker::hold(&store).await;
    let last = store.write_for(None, |tx| {
        tx.end_batch();
        tx.put(&thing(2))
    });
    let put = |id| store.write_for(None, move |tx| tx.put(&thing(id)));
    let (first, last, next, released) = tokio::join!(put(1), last, put(3), blocker.release());
    released.expect("released");
    let holds =
        |snapshot: &Snapshot| [1, 2, 3].map(|id| snapshot.exists::<Thing>(&(1, id)).expect("read"));
    let first = holds(&first.expect("put").1);
    assert_eq!(holds(&last.expect("put").1), [true, true, false]);
    assert_eq!(holds(&next.expect("put").1), [true, true, true]);
    if first == [true, false, false] {
        return false;
    }
    assert_eq!(first, [true, true, false]);
    true
}

#[tokio::test]
async fn cancelled_write_does_not_run() {
    let (_scratch, store) = Scratch::new();
    let blocker = Blocker::hold(&store).await;
    let mut abandoned = Box::pin(store.write(|tx| tx.put(&thing(1))));
    assert!((&mut abandoned).now_or_never().is_none());
    drop(abandoned);
    blocker.release().await.expect("released");
    store.write(|tx| tx.put(&thing(2))).await.expect("put");
    assert!(!store.snapshot().expect("an open file").exists::<Thing>(&(1, 1)).expect("read"));
}

#[tokio::test]
async fn close_finishes_queued_writes_and_rejects_later_ones() {
    let (scratch, store) = Scratch::new();
    let blocker = Blocker::hold(&store).await;
    let (queued, (), released) =
        tokio::join!(store.write(|tx| tx.put(&thing(1))), store.close(), blocker.release());
    released.expect("released");
    queued.expect("the queued write");
    assert!(!store.ready());
    assert_unavailable(&store.write(|_| Ok(())).await);
    assert_unavailable(&store.quiesce(|| ()).await);
    assert_unavailable(&store.snapshot().map(drop));
    store.close().await;
    assert!(closed_clean(&scratch.path()));
    let reopened = scratch.open().expect("the released file");
    assert!(reopened.snapshot().expect("open").exists::<Thing>(&(1, 1)).expect("read"));
}

#[tokio::test]
async fn dropped_store_closes_its_file_cleanly() {
    let (scratch, store) = Scratch::new();
    let held = store.snapshot().expect("an open file");
    drop(store);
    let reopen = || match scratch.open() {
        Err(OpenError::InUse(_)) => None,
        opened => Some(opened.expect("a released file")),
    };
    let reopened = eventually("a released file", reopen).await;
    assert_unavailable(&held.exists::<Owner>(&1));
    reopened.close().await;
    assert!(closed_clean(&scratch.path()));
}

#[tokio::test]
async fn quiesce_finds_exactly_the_last_commit_in_the_file() {
    let (scratch, store) = Scratch::new();
    store.write(|tx| tx.put(&thing(1))).await.expect("put");
    let path = scratch.path();
    let bytes = store.quiesce(move || std::fs::read(path)).await.expect("idle");
    let copy = Scratch::empty();
    copy.overwrite(&bytes.expect("read"));
    assert!(!closed_clean(&copy.path()));
    let opened = copy.open().expect("a whole file");
    assert_eq!(dump(&opened), dump(&store));
    assert_clean(&check(&opened).await);
}

/// The watchdog must not stop a server while its file is copied or compacted.
#[tokio::test]
async fn writer_is_busy_only_while_the_file_is_in_exclusive_use() {
    let (_scratch, store) = Scratch::new();
    assert!(!store.is_busy());
    let stats = store.clone();
    assert!(store.quiesce(move || stats.is_busy()).await.expect("done"));
    let stats = store.clone();
    let handed = store.with_exclusive_file(move |_| Ok((stats.is_busy(), stats.ready()))).await;
    assert_eq!(handed.expect("done"), (true, false));
    assert!(!store.is_busy() && store.ready());
    let panicked =
        store.with_exclusive_file::<()>(|_| std::panic::resume_unwind(Box::new("work"))).await;
    assert_unavailable(&panicked);
    until(|| store.ready()).await;
    assert!(!store.is_busy());
}

/// A consumer with large writes.
const GREEDY: Consumer = Consumer::User(1);
/// It counts as active for a second after a write, so a test says itself when it wrote.
const OTHER: Consumer = Consumer::User(2);
/// The work of a write that has a cooldown of more than an hour.
const VERY_LARGE: usize = 1_000_000;

/// Creates thing `id` as `GREEDY`, as if the write changed this many records besides. `is_kept`: whether the thing is kept.
async fn write_with_work(store: &Store, id: u64, other_work: usize, is_kept: bool) -> Result<()> {
    let rule = move |tx: &mut WriteTx<'_>| {
        tx.other_work = other_work;
        if !is_kept {
            tx.discard();
        }
        tx.put(&thing(id))
    };
    store.write_for(Some(GREEDY), rule).await.map(|((), _)| ())
}

#[tokio::test]
async fn large_writes_keep_their_slots_while_others_write_and_do_not_delay_closing() {
    let (scratch, store) = Scratch::new();
    store.queue.note_writer(OTHER, Instant::now() + Duration::from_hours(1));
    write_with_work(&store, 1, VERY_LARGE, false).await.expect("discarded");
    let fails = |tx: &mut WriteTx<'_>| {
        tx.other_work = VERY_LARGE;
        Err::<(), _>(Error::denied("no"))
    };
    let failed = store.write_for(Some(GREEDY), fails).await.map(drop);
    assert_eq!(failed.expect_err("refused").status(), 403);
    for id in 3..LIMITS.slots_per_consumer as u64 {
        write_with_work(&store, id, VERY_LARGE, true).await.expect("written");
    }
    for id in 10..20 {
        write_with_work(&store, id, 0, true).await.expect("written in the last slot");
    }
    write_with_work(&store, 20, VERY_LARGE, true).await.expect("written in the last slot");
    let mut waits = Box::pin(write_with_work(&store, 21, 0, true));
    assert!((&mut waits).now_or_never().is_none());
    store.write(|tx| tx.put(&thing(22))).await.expect("a write of the service");
    assert!((&mut waits).now_or_never().is_none(), "all slots are kept");
    store.close().await;
    waits.await.expect("the waiting write");
    let reopened = scratch.open().expect("the released file").snapshot().expect("open");
    assert!(reopened.exists::<Thing>(&(1, 21)).expect("read"));
    assert!(!reopened.exists::<Thing>(&(1, 1)).expect("read"));
}

#[tokio::test]
async fn large_writes_of_the_only_consumer_do_not_wait() {
    let (_scratch, store) = Scratch::new();
    for id in 0..2 * LIMITS.slots_per_consumer as u64 {
        write_with_work(&store, id, VERY_LARGE, true).await.expect("written");
    }
}

#[tokio::test]
async fn write_is_large_after_more_than_one_hundred_records_or_if_it_says_so() {
    let (_scratch, store) = Scratch::new();
    for (records, says_so, is_large) in [(100, false, false), (101, false, true), (1, true, true)] {
        let found = store.write(move |tx| {
            (0..records).try_for_each(|id| tx.put(&thing(id)))?;
            if says_so {
                tx.count_as_large();
            }
            tx.discard();
            Ok(tx.is_large())
        });
        assert_eq!(found.await.expect("a result"), is_large, "{records} records");
    }
}
