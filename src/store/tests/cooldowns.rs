//! Cooldowns after large writes. A consumer counts as active for a second only, so a test says itself when it was.

use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::*;
use crate::fair::fair_queue::Consumer;
use crate::store::writer::queue::LIMITS;

const GREEDY: Consumer = Consumer::User(1);
const OTHER: Consumer = Consumer::User(2);
/// The work of a write that has a cooldown of more than an hour.
const VERY_LARGE: usize = 1_000_000;

/// Creates thing `id` as `GREEDY`, as if the write changed this many records besides. `is_kept`: whether the thing is kept.
async fn write(store: &Store, id: u64, other_work: usize, is_kept: bool) -> Result<()> {
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
    write(&store, 1, VERY_LARGE, false).await.expect("discarded");
    let fails = |tx: &mut WriteTx<'_>| {
        tx.other_work = VERY_LARGE;
        Err::<(), _>(Error::denied("no"))
    };
    let failed = store.write_for(Some(GREEDY), fails).await.map(drop);
    assert_eq!(failed.expect_err("refused").status(), 403);
    for id in 3..LIMITS.slots_per_consumer as u64 {
        write(&store, id, VERY_LARGE, true).await.expect("written");
    }
    for id in 10..20 {
        write(&store, id, 0, true).await.expect("written in the last slot");
    }
    write(&store, 20, VERY_LARGE, true).await.expect("written in the last slot");
    let mut waits = Box::pin(write(&store, 21, 0, true));
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
        write(&store, id, VERY_LARGE, true).await.expect("written");
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
