//! Damaged ranks and damaged rows of ranked lists.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;

use super::super::super::ScrubPace;
use super::*;

#[tokio::test]
async fn wrong_size_of_a_bucket_is_found_by_check() {
    let (scratch, store, _) = with_ranks().await;
    store.close().await;
    for (height, size) in [(Height::Bucket, (3u64, 3u64)), (Height::Group, (9, 2))] {
        let key = SHOWN.key(height, &1u64.encoded());
        let mut before = Vec::new();
        scratch.change_ranks(|ranks| {
            let sealed = seal(Table::Ranks, &key, &size.encoded());
            let old = ranks.insert(key.as_slice(), sealed.as_slice()).expect("written");
            before = old.expect("a bucket").value().to_vec();
        });
        let opened = scratch.open();
        let report = check(&opened).await;
        assert!(report.problems.iter().any(|problem| problem.contains("ranks/1: the part")));
        opened.close().await;
        scratch.change_ranks(|ranks| {
            ranks.insert(key.as_slice(), before.as_slice()).expect("written");
        });
    }
    let opened = scratch.open();
    assert_eq!(check(&opened).await.problems, [""; 0]);
    opened.close().await;
    scratch.change_ranks(|ranks| {
        let key = SHOWN.key(Height::Bucket, &7u64.encoded());
        let sealed = seal(Table::Ranks, &key, &(1u64, 1u64).encoded());
        ranks.insert(key.as_slice(), sealed.as_slice()).expect("written");
    });
    let opened = scratch.open();
    assert!(check(&opened).await.problems.iter().any(|problem| problem.contains("without ranks")));
    opened.close().await;
}

#[tokio::test]
async fn damaged_ranks_cost_time_only_and_are_built_again() {
    for height in [Height::Tenant, Height::Bucket, Height::Group] {
        let (scratch, store, mut model) = with_ranks().await;
        store.close().await;
        scratch.change_ranks(|ranks| {
            for list in [&SHOWN, &BY_NAME_RANKED] {
                let key = list.key(height, &1u64.encoded());
                ranks.insert(key.as_slice(), &b"damaged value"[..]).expect("written");
            }
        });
        let store = scratch.open();
        assert_pages(&store.snapshot().expect("an open file"), &model);
        assert!(check(&store).await.problem_count > 0);
        // The first row is in the damaged bucket, whose list is the first to change.
        let step = Step::Remove(1, (0..100).step_by(2).collect());
        step.imagine(&mut model);
        write(&store, step, true).await;
        assert_pages(&store.snapshot().expect("an open file"), &model);
        build_all(&store).await;
        assert_states(&store.snapshot().expect("an open file"), &model);
        assert_pages(&store.snapshot().expect("an open file"), &model);
        assert_eq!(check(&store).await.problems, [""; 0]);
        store.close().await;
    }
}

#[tokio::test]
async fn list_with_a_damaged_row_has_no_ranks_and_accepts_writes() {
    let (scratch, store) = Scratch::new();
    write(&store, Step::Put(1, (0..100).collect(), true), true).await;
    store.close().await;
    let database = Database::open(scratch.path()).expect("the file");
    let transaction = database.begin_write().expect("a transaction");
    {
        let mut rows = transaction.open_table(definition(Table::Insights)).expect("the table");
        let key = (1u64, 50u64).encoded();
        rows.insert(key.as_slice(), &b"damaged value"[..]).expect("written");
    }
    transaction.commit().expect("committed");
    drop(database);
    let store = scratch.open();
    let mut builder = RankBuilder::new(&registry());
    for _ in 0..2 {
        builder.build(&store).await.expect("the ranks of the other list");
        let snapshot = store.snapshot().expect("an open file");
        assert_eq!(state_of(&snapshot, &BY_NAME_RANKED, 1), Some(State::Complete));
        assert_eq!(state_of(&snapshot, &SHOWN, 1), Some(State::Building(1u64.encoded())));
        write(&store, Step::Put(1, (0..40).collect(), false), true).await;
        write(&store, Step::Put(1, (0..40).collect(), true), true).await;
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrub_beside_writes_finds_no_problem() {
    let (_scratch, store, _) = with_ranks().await;
    let pace = ScrubPace { slice: Duration::ZERO, pause: Duration::from_micros(50) };
    let mut scrub = pin!(store.scrub(registry(), pace));
    let mut round = 0;
    loop {
        let ids: Vec<u64> = (round % 90..round % 90 + 12).collect();
        write(&store, Step::Remove(1, ids.clone()), round % 3 > 0).await;
        write(&store, Step::Put(1, ids, round % 2 == 0), true).await;
        build_all(&store).await;
        round += 7;
        if let Some(report) = scrub.as_mut().now_or_never() {
            assert_eq!(report.expect("a checked file").problems, [""; 0]);
            break;
        }
    }
    store.close().await;
}
