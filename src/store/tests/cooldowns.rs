//! Cooldowns after large writes. On a busy machine the other consumer may pause for so long that a cooldown ends, so each test
//! tries several times.

use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::*;

/// Whether a consumer whose last write was sent at `sent` certainly counts as active. A second after that write started, it
/// no longer does, and the cooldowns of other consumers end.
fn is_active(sent: Instant) -> bool {
    sent.elapsed() < Duration::from_millis(900)
}

#[tokio::test]
async fn cooldown_delays_only_the_next_large_write_and_not_closing() {
    for _ in 0..5 {
        if large_write_waits_for_its_cooldown().await {
            return;
        }
    }
    panic!("in every try the other consumer paused for too long");
}

/// Returns false if the other consumer paused for so long that the cooldown may have ended.
async fn large_write_waits_for_its_cooldown() -> bool {
    let (scratch, store) = Scratch::new();
    let write = |user, records: std::ops::Range<u64>| {
        let rule =
            move |tx: &mut WriteTx<'_>| records.clone().try_for_each(|id| tx.put(&thing(id)));
        Box::pin(store.write_for(Some(Consumer::User(user)), rule))
    };
    let mut sent = Instant::now();
    write(2, 0..1).await.expect("written");
    write(1, 1000..1500).await.expect("written");
    let mut waits = write(1, 2000..2500);
    for id in 1..4 {
        let is_waiting = (&mut waits).now_or_never().is_none();
        let before = std::mem::replace(&mut sent, Instant::now());
        write(2, id..id + 1).await.expect("written");
        let ((), snapshot) = write(1, 100 + id..101 + id).await.expect("written");
        if !is_active(before) {
            return false;
        }
        assert!(is_waiting, "consumer 1 must wait");
        assert_eq!(snapshot.count::<Thing>(&1u64).expect("read"), 501 + 2 * id);
    }
    store.close().await;
    waits.await.expect("the queued write");
    let reopened = scratch.open().expect("the released file").snapshot().expect("open");
    assert_eq!(reopened.count::<Thing>(&1u64).expect("read"), 1007);
    true
}

#[tokio::test]
async fn large_discarded_write_starts_a_cooldown() {
    for case in [(1, 1000..1500, false), (2, 0..1, true)] {
        let mut tries = 0;
        while !discarded_write_starts_a_cooldown(case.clone()).await {
            tries += 1;
            assert!(tries < 5, "in every try the other consumer paused for too long");
        }
    }
}

/// Writes `records` of a consumer, or other work that counts as large. Returns false if the other consumer paused for so
/// long that the cooldown may have ended.
async fn discarded_write_starts_a_cooldown(
    (user, records, is_other_work): (u64, std::ops::Range<u64>, bool),
) -> bool {
    let (_scratch, store) = Scratch::new();
    let write = |user, records: std::ops::Range<u64>, is_other_work: bool| {
        let rule = move |tx: &mut WriteTx<'_>| {
            records.clone().try_for_each(|id| tx.put(&thing(id)))?;
            if is_other_work {
                tx.count_as_large()?;
            }
            tx.discard();
            Ok(())
        };
        Box::pin(store.write_for(Some(Consumer::User(user)), rule))
    };
    let mut sent = Instant::now();
    write(3, 0..1, false).await.expect("a result");
    write(user, records.clone(), is_other_work).await.expect("a result");
    let mut waits = write(user, records, is_other_work);
    for id in 1..4 {
        let is_waiting = (&mut waits).now_or_never().is_none();
        let before = std::mem::replace(&mut sent, Instant::now());
        write(3, id..id + 1, false).await.expect("a result");
        write(user, id..id + 1, false).await.expect("a result");
        if !is_active(before) {
            return false;
        }
        assert!(is_waiting, "the consumer must wait");
    }
    store.close().await;
    true
}
