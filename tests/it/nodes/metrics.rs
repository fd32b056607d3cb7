//! Metrics of the work with a shared database.

use std::sync::mpsc;

use super::end;
use crate::support::prelude::*;

fn metered() -> Config {
    let mut config = Config::default();
    config.metrics = Metrics::enabled();
    config
}

/// Collects the metrics until they are as `is_expected` says.
async fn collected(node: &Workspace, is_expected: impl Fn(&Numbers) -> bool) -> Numbers {
    eventually_async("the metrics are as expected", async || {
        Some(Numbers::of(node).await).filter(&is_expected)
    })
    .await
}

fn calls(numbers: &Numbers, call: &str) -> f64 {
    numbers.value("steward_origin_seconds_count", &[("call", call)])
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn node_counts_its_questions_and_commits() {
    let a = Workspace::on_node("a", metered()).await;
    let b = a.join("b", metered()).await;
    b.owner.get(&b.dashboards("")).await.ok();
    for _ in 0..3 {
        b.owner.post(&b.dashboards(""), json!({ "name": "A" })).await.ok();
    }
    let of_origin =
        |numbers: &Numbers, name: &str| numbers.value(&format!("steward_origin_{name}"), &[]);
    // The node asks in the background too, and counts each question twice, one after the other.
    let counted = |numbers: &Numbers| {
        let asks = calls(numbers, "asks");
        calls(numbers, "commits") > 2.5
            && asks > 3.5
            && is(of_origin(numbers, "asked_per_query_count"), rounded(asks))
            && is(of_origin(numbers, "up"), 1)
    };
    let numbers = collected(&b, counted).await;
    let kinds = [
        ("origin_asked_per_query", "histogram"),
        ("origin_behind", "gauge"),
        ("origin_copies_made_total", "counter"),
        ("origin_overtaken_total", "counter"),
        ("origin_seconds", "histogram"),
        ("origin_trouble", "gauge"),
        ("origin_unknown_total", "counter"),
        ("origin_up", "gauge"),
    ];
    for (name, kind) in kinds {
        assert_eq!(numbers.kinds.get(&format!("steward_{name}")).map(String::as_str), Some(kind));
    }
    let value = |name: &str| of_origin(&numbers, name);
    for of in ["copy", "reads", "writes", "name"] {
        assert!(is(numbers.value("steward_origin_trouble", &[("of", of)]), 0), "{of}");
    }
    assert!(is(value("unknown_total"), 0) && is(value("copies_made_total"), 1));
    // Each of the four requests was one reader.
    assert!(value("asked_per_query_sum") > 3.5, "{numbers:?}");
    assert!(numbers.value("steward_origin_seconds_sum", &[("call", "commits")]) > 0.0);
    end([a, b]).await;
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
fn rounded(number: f64) -> u32 {
    number.round() as u32
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn node_counts_the_batches_in_which_another_node_was_first() {
    let a = Workspace::on_node("a", metered()).await;
    let b = a.join("b", metered()).await;
    let (begun, has_begun) = oneshot::channel();
    let (go, goes) = mpsc::channel::<()>();
    let held = Mutex::new(Some((begun, goes)));
    let app = a.app.clone();
    let held = tokio::spawn(async move {
        // After the commit of the other node, this runs again.
        let hold = move |tx: &mut WriteTx<'_>, _| {
            if let Some((begun, goes)) = held.lock().expect("no panic").take() {
                begun.send(()).expect("a test");
                goes.recv().expect("a test");
            }
            tx.next_number(Table::Dashboards)
        };
        app.operate(hold).await
    });
    has_begun.await.expect("the batch begins");
    // It waits, and fails, if the first node has the turn: that node has been overtaken before.
    b.owner.post(&a.dashboards(""), json!({ "name": "A" })).await;
    go.send(()).expect("the batch waits");
    let _ = held.await.expect("no panic");
    a.owner.post(&a.dashboards(""), json!({ "name": "B" })).await.ok();
    let overtaken = |numbers: &Numbers| {
        numbers.value("steward_origin_overtaken_total", &[]) > 0.5 && calls(numbers, "turns") > 0.5
    };
    collected(&a, overtaken).await;
    end([a, b]).await;
}
