//! Ranks that are built in the batch of other writes.

use super::*;

/// A repeated request runs its rule without changes, in the batch of whatever ran before it.
#[tokio::test]
async fn dry_run_is_possible_in_a_batch_that_builds_ranks() {
    let (_scratch, store) = Scratch::new();
    write(&store, Step::Put(1, (0..100).collect(), true), true).await;
    let rule = |tx: &mut WriteTx<'_>| {
        tx.build_ranks(&SHOWN, &1u64.encoded())?;
        tx.savepoint()?;
        assert!(!tx.wrote_anything());
        tx.dry_run(|tx| Step::Put(1, vec![200], true).perform(tx))
    };
    store.write(rule).await.expect("a dry run");
    let snapshot = store.snapshot().expect("an open file");
    assert!(state_of(&snapshot, &SHOWN, 1).is_some(), "a part of the ranks is built");
    assert_eq!(
        shown_ids(&snapshot, 1, Window { offset: 0, limit: 500, order: Order::Ascending }).len(),
        100
    );
    store.close().await;
}
