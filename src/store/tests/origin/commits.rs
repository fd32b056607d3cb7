//! Batches on their way to the origin: each write is done once, whatever happens to the calls.

use super::*;
use crate::store::reads::report;

/// Returns what can happen to the call of this number without the batch being refused.
fn mishaps(call: u64) -> [Event; 6] {
    [
        Event::FailBefore,
        Event::FailAfter,
        Event::LandBefore(call + 1),
        Event::LandBefore(call + 2),
        Event::Lose,
        Event::Overtake,
    ]
}

#[tokio::test]
async fn every_write_is_in_the_origin_when_it_is_acknowledged() {
    let (shared, store) = Shared::new();
    for id in 1..=5 {
        let before = shared.position();
        assert_eq!(add_thing(&store).await.expect("a write"), id);
        assert_eq!(shared.position().seq, before.seq + 1);
    }
    store.write(|tx| tx.remove::<Thing>(&(1, 2))).await.expect("a write");
    store.write(|tx| tx.remove::<Line>(&(1, 3))).await.expect("a write");
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn write_that_changes_nothing_makes_no_commit() {
    let (shared, store) = Shared::new();
    let before = shared.position();
    store.write(|_| Ok(())).await.expect("a write");
    let refused = store.write(|tx| {
        tx.put(&thing(1))?;
        Err::<(), _>(Error::not_found())
    });
    assert_eq!(refused.await.expect_err("a refusal").status(), 404);
    assert_eq!(shared.position(), before);
    shared.assert_same(&store).await;
}

/// Runs five writes while `plan` decides what happens, and asserts that each is done once.
async fn assert_done_once(what: &str, plan: impl Fn(&Shared)) {
    let (shared, store) = Shared::new();
    plan(&shared);
    for id in 1..=5 {
        assert_eq!(add_thing(&store).await.unwrap_or_else(|error| panic!("{what}: {error}")), id);
    }
    let snapshot = store.fresh().await.expect("a fresh state");
    assert_eq!(snapshot.count::<Thing>(&1_u64).expect("a count"), 5, "{what}");
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn write_is_done_once_whatever_happens_to_any_call() {
    for nth in 1..=6 {
        for event in mishaps(nth) {
            let what = format!("{event:?} at call {nth}");
            assert_done_once(&what, |shared| shared.plan(nth, event.clone())).await;
        }
    }
}

#[tokio::test]
async fn write_is_done_once_whatever_happens_to_two_calls_one_after_the_other() {
    for first in mishaps(2).into_iter().take(5) {
        for second in 0..6 {
            let [at_third, at_fourth] = [3, 4].map(|call| mishaps(call)[second].clone());
            let what = format!("{first:?}, then {at_third:?} and {at_fourth:?}");
            assert_done_once(&what, |shared| {
                shared.plan(2, first.clone());
                shared.plan(3, at_third.clone());
                shared.plan(4, at_fourth.clone());
            })
            .await;
        }
    }
}

#[tokio::test]
async fn batch_that_is_overtaken_again_and_again_is_done_once() {
    for times in 1..=5 {
        let what = format!("overtaken {times} times");
        assert_done_once(&what, |shared| {
            // Each attempt commits and asks whether it stands; then the turn takes one more call.
            (0..times).for_each(|time| shared.plan(1 + 3 * time, Event::Overtake));
        })
        .await;
    }
}

#[tokio::test]
async fn commit_that_is_found_by_looking_is_acknowledged_after_a_durable_write() {
    let (shared, store) = Shared::new();
    for is_late in [false, true] {
        let (before, known) = (shared.origin.confirmed(), shared.position());
        let landing = Event::LandBefore(shared.origin.count() + 2);
        shared.plan(1, if is_late { landing } else { Event::FailAfter });
        // The first attempt of the durable write fails.
        shared.plan(3, Event::FailBefore);
        add_thing(&store).await.expect("a write");
        assert_eq!(shared.position().seq, known.seq + 1);
        assert_eq!(shared.origin.confirmed(), before + 1);
        shared.origin.end_script();
    }
    shared.origin.set_standby(false);
    shared.plan(1, Event::FailAfter);
    let refused = add_thing(&store).await.expect_err("no standby has it");
    assert_eq!(refused.status(), 503);
    assert!(refused.detail().ends_with("The change may have been made."), "{refused:?}");
    shared.origin.set_standby(true);
    assert_eq!(add_thing(&store).await.expect("a write"), 4, "the change was made");
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn write_that_changes_nothing_waits_until_a_failover_keeps_what_it_tells_of() {
    let (shared, store, other) = Shared::with_two_nodes();
    let repeat = async || store.write(|tx| tx.get::<Thing>(&(1, 1)).map(drop)).await;
    for id in 1..=2 {
        add_thing(&other).await.expect("a write");
        store.refresh().await.expect("a fresh state");
        shared.origin.set_standby(false);
        assert_unavailable(&repeat().await);
        // A refusal tells of no change.
        let refused = store.write(|_| Err::<(), _>(Error::not_found())).await;
        assert_eq!(refused.expect_err("a refusal").status(), 404);
        shared.origin.set_standby(true);
        for _ in 0..3 {
            repeat().await.expect("an answer");
        }
        assert_eq!(shared.origin.confirmed(), id, "once is enough");
    }
    // What this node has committed has waited already.
    add_thing(&store).await.expect("a write");
    repeat().await.expect("an answer");
    assert_eq!(shared.origin.confirmed(), 2);
}

#[tokio::test]
async fn what_a_failover_has_lost_is_not_acknowledged_again() {
    let (shared, store) = Shared::new();
    let before = shared.position().seq;
    let other = shared.open("b").expect("a second node");
    add_thing(&other).await.expect("a write that a failover loses");
    store.refresh().await.expect("a fresh state");
    let blocker = Blocker::hold(&store).await;
    let repeating = {
        let store = store.clone();
        tokio::spawn(async move { store.write(|tx| tx.get::<Thing>(&(1, 1)).map(drop)).await })
    };
    tokio::task::yield_now().await;
    // Between the look at the copy and the durable write.
    shared.origin.rewind(before);
    let _ = blocker.release().await;
    assert_unavailable(&repeating.await.expect("a task"));
    until(|| store.snapshot().is_ok_and(|now| now.position == shared.position())).await;
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn turn_that_cannot_begin_refuses_its_batch_and_does_nothing() {
    let (shared, store) = Shared::new();
    shared.plan(1, Event::Overtake);
    shared.plan(3, Event::FailBefore);
    assert_unavailable(&add_thing(&store).await);
    assert_eq!(shared.origin.count(), 3);
    assert_eq!(add_thing(&store).await.expect("a write"), 1);
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn writes_of_one_batch_run_again_together() {
    let (shared, store) = Shared::new();
    let blocker = Blocker::hold(&store).await;
    shared.plan(1, Event::Overtake);
    let writes: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { add_thing(&store).await })
        })
        .collect();
    tokio::task::yield_now().await;
    // The blocking write runs again with the others.
    blocker.release().await.expect("a write");
    let mut ids = Vec::new();
    for write in writes {
        ids.push(write.await.expect("a task").expect("a write"));
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=20).collect::<Vec<_>>());
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn backup_of_a_store_whose_batches_are_overtaken_has_no_undone_change() {
    let (shared, store) = Shared::new();
    add_thing(&store).await.expect("a write");
    let walk = store.begin_sliced_walk(Table::ALL).await.expect("a walk");
    for _ in 0..3 {
        shared.plan(1, Event::Overtake);
        add_thing(&store).await.expect("a write");
    }
    let mut copied = BTreeMap::new();
    let read = move || {
        let mut take = |table: Table, key: &[u8], sealed: Option<&[u8]>| {
            let key = (table, key.to_vec());
            match sealed {
                Some(sealed) => drop(copied.insert(key, sealed.to_vec())),
                None => drop(copied.remove(&key)),
            }
            Ok(())
        };
        walk.each(Table::ALL, &mut report::Steps::default(), &mut take).expect("all values");
        copied
    };
    assert!(tokio::task::spawn_blocking(read).await.expect("a walk") == shared.origin.content());
}
