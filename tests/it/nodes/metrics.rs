//! Metrics of the work with a shared database.

use std::time::{Duration, Instant};

use serde_json::json;
use steward::Config;
use steward::testing::metrics::Metrics;

use super::end;
use crate::support::Workspace;
use crate::support::metrics::{Numbers, is};
use crate::support::wait::TEST_TIMEOUT;

fn metered() -> Config {
    let mut config = Config::default();
    config.metrics = Metrics::enabled();
    config
}

/// Collects the metrics until they are as `is_expected` says.
async fn collected(node: &Workspace, is_expected: impl Fn(&Numbers) -> bool) -> Numbers {
    let begun = Instant::now();
    loop {
        let numbers = Numbers::of(node).await;
        if is_expected(&numbers) {
            return numbers;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "timed out: {numbers:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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
    let counted = |numbers: &Numbers| {
        numbers.value("steward_origin_seconds_count", &[("call", "commits")]) > 2.5
    };
    let numbers = collected(&b, counted).await;
    let kinds = [
        ("origin_asked_per_query", "histogram"),
        ("origin_behind", "gauge"),
        ("origin_copies_made_total", "counter"),
        ("origin_overtaken_total", "counter"),
        ("origin_seconds", "histogram"),
        ("origin_unknown_total", "counter"),
        ("origin_up", "gauge"),
    ];
    for (name, kind) in kinds {
        assert_eq!(numbers.kinds.get(&format!("steward_{name}")).map(String::as_str), Some(kind));
    }
    let value = |name: &str| numbers.value(&format!("steward_origin_{name}"), &[]);
    assert!(
        is(value("up"), 1) && is(value("unknown_total"), 0) && is(value("copies_made_total"), 1)
    );
    let asks = numbers.value("steward_origin_seconds_count", &[("call", "asks")]);
    assert!(asks > 3.5 && is(value("asked_per_query_count"), rounded(asks)), "{numbers:?}");
    // Each of the four requests was one reader.
    assert!(value("asked_per_query_sum") > 3.5, "{numbers:?}");
    assert!(numbers.value("steward_origin_seconds_sum", &[("call", "commits")]) > 0.0);
    end([a, b]).await;
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
fn rounded(number: f64) -> u32 {
    number.round() as u32
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn node_counts_the_batches_in_which_another_node_was_first() {
    let a = Workspace::on_node("a", metered()).await;
    let b = a.join("b", metered()).await;
    let begun = Instant::now();
    let overtaken = loop {
        assert!(begun.elapsed() < TEST_TIMEOUT, "no batch was overtaken");
        let posted = async |node: &Workspace| {
            node.owner.post(&a.dashboards(""), json!({ "name": "A" })).await.ok();
        };
        tokio::join!(posted(&a), posted(&b), posted(&a), posted(&b));
        let mut overtaken = [(&a, false), (&b, false)];
        for (node, is_overtaken) in &mut overtaken {
            let numbers = Numbers::of(node).await;
            *is_overtaken = numbers.value("steward_origin_overtaken_total", &[]) > 0.5;
        }
        if let Some((node, _)) = overtaken.iter().find(|(_, is_overtaken)| *is_overtaken) {
            break *node;
        }
    };
    let waited = |numbers: &Numbers| {
        numbers.value("steward_origin_seconds_count", &[("call", "turns")]) > 0.5
    };
    collected(overtaken, waited).await;
    end([a.clone(), b.clone()]).await;
}
