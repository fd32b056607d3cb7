//! What a store counts of its work with the origin.

use std::pin::pin;
use std::sync::Mutex;

use futures_util::FutureExt;
use futures_util::future::join_all;

use super::super::super::{OriginCall, OriginMetrics};
use super::*;

fn numbers(store: &Store) -> OriginMetrics {
    store.origin_metrics().expect("a shared database")
}

/// The answered calls from now on.
fn watched(store: &Store) -> Arc<Mutex<Vec<OriginCall>>> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    store.on_origin_call(move |call, _| noted.lock().expect("a list").push(call));
    calls
}

fn without_asks(calls: &Mutex<Vec<OriginCall>>) -> Vec<OriginCall> {
    let mut calls = std::mem::take(&mut *calls.lock().expect("a list"));
    calls.retain(|call| !matches!(call, OriginCall::Ask { .. }));
    calls
}

#[tokio::test]
async fn each_answered_attempt_and_turn_of_a_batch_is_counted() {
    let (shared, store) = Shared::new();
    let calls = watched(&store);
    add_thing(&store).await.expect("a write");
    assert_eq!(without_asks(&calls), [OriginCall::Commit]);
    assert_eq!((numbers(&store).overtaken, numbers(&store).unknown), (0, 0));
    shared.plan(1, Event::Overtake);
    add_thing(&store).await.expect("a write");
    let again = [OriginCall::Commit, OriginCall::Turn, OriginCall::Commit];
    assert_eq!(without_asks(&calls), again);
    assert_eq!((numbers(&store).overtaken, numbers(&store).unknown), (1, 0));
}

#[tokio::test]
async fn commits_without_an_answer_are_counted_whether_they_stand_or_not() {
    let (shared, store) = Shared::new();
    let calls = watched(&store);
    for (unknown, event, answered) in
        [(1, Event::FailAfter, vec![]), (2, Event::Lose, vec![OriginCall::Commit])]
    {
        shared.plan(1, event);
        add_thing(&store).await.expect("a write");
        assert_eq!(without_asks(&calls), answered);
        assert_eq!((numbers(&store).overtaken, numbers(&store).unknown), (0, unknown));
    }
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn readers_that_wait_at_once_are_counted_in_one_question() {
    let (shared, store) = Shared::new();
    let calls = watched(&store);
    shared.origin.set_away(true);
    let mut reads = pin!(join_all((0..8).map(|_| store.refresh())));
    // All wait, because the database does not answer.
    assert!(reads.as_mut().now_or_never().is_none());
    shared.origin.set_away(false);
    for read in reads.await {
        read.expect("a state");
    }
    let calls = calls.lock().expect("a list").clone();
    let readers: Vec<usize> = calls
        .iter()
        .filter_map(|call| match call {
            OriginCall::Ask { readers } => Some(*readers),
            _ => None,
        })
        .collect();
    assert_eq!(readers.iter().sum::<usize>(), 8, "{readers:?}");
    assert!(readers.iter().any(|readers| *readers > 1), "{readers:?}");
}

#[tokio::test]
async fn number_of_commits_that_a_copy_lacks_is_that_of_the_last_question() {
    let (shared, store) = Shared::new();
    // The store also asks by itself, once a second.
    let mut behind = 0;
    for _ in 0..10 {
        for _ in 0..3 {
            shared.origin.commit_as_other(&[]);
        }
        store.refresh().await.expect("a fresh state");
        behind = numbers(&store).behind;
        if behind == 3 {
            break;
        }
    }
    assert_eq!(behind, 3);
    store.refresh().await.expect("a fresh state");
    assert_eq!(numbers(&store).behind, 0);
}

#[tokio::test]
async fn origin_is_up_while_it_answers() {
    let (shared, store) = Shared::new();
    store.refresh().await.expect("a fresh state");
    until(|| numbers(&store).is_up).await;
    shared.origin.set_away(true);
    until(|| !numbers(&store).is_up).await;
    shared.origin.set_away(false);
    until(|| numbers(&store).is_up).await;
}
