//! Cooldowns after large writes. A consumer counts as active for a second only, so a test says itself when it was.

use std::ops::Range;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::*;

const GREEDY: Consumer = Consumer::User(1);
const OTHER: Consumer = Consumer::User(2);

/// Gives `GREEDY` a cooldown that no test outlasts.
fn cool_down(store: &Store) {
    store.queue.with_cooldowns(|cooldowns| {
        let later = Instant::now() + Duration::from_hours(1);
        cooldowns.begin(OTHER, later);
        cooldowns.end(GREEDY, 500, later);
    });
}

#[tokio::test]
async fn cooldown_delays_only_the_next_large_write_and_not_closing() {
    let (scratch, store) = Scratch::new();
    let write = |records: Range<u64>| {
        let rule =
            move |tx: &mut WriteTx<'_>| records.clone().try_for_each(|id| tx.put(&thing(id)));
        Box::pin(store.write_for(Some(GREEDY), rule))
    };
    cool_down(&store);
    let mut waits = write(2000..2500);
    for id in 1..4 {
        assert!((&mut waits).now_or_never().is_none(), "the large write must wait");
        let ((), snapshot) = write(id..id + 1).await.expect("written");
        assert_eq!(snapshot.count::<Thing>(&1u64).expect("read"), id);
    }
    store.close().await;
    waits.await.expect("the queued write");
    let reopened = scratch.open().expect("the released file").snapshot().expect("open");
    assert_eq!(reopened.count::<Thing>(&1u64).expect("read"), 503);
}

#[tokio::test]
async fn large_discarded_write_starts_a_cooldown_and_waits_for_one() {
    for (records, is_other_work, is_large) in
        [(0..500, false, true), (0..1, true, true), (0..1, false, false)]
    {
        let (_scratch, store) = Scratch::new();
        let write = |records: Range<u64>, is_other_work: bool| {
            let rule = move |tx: &mut WriteTx<'_>| {
                records.clone().try_for_each(|id| tx.put(&thing(id)))?;
                if is_other_work {
                    tx.count_as_large()?;
                }
                tx.discard();
                Ok(())
            };
            Box::pin(store.write_for(Some(GREEDY), rule))
        };
        let begun = Instant::now();
        write(records.clone(), is_other_work).await.expect("a result");
        let cooldown = store.queue.with_cooldowns(|cooldowns| {
            cooldowns.begin(OTHER, begun);
            cooldowns.remaining(GREEDY, begun)
        });
        assert_eq!(cooldown.is_some(), is_large);
        cool_down(&store);
        let mut second = write(records, is_other_work);
        assert!((&mut second).now_or_never().is_none());
        write(0..1, false).await.expect("a result");
        assert_eq!((&mut second).now_or_never().is_none(), is_large);
        store.close().await;
    }
}
