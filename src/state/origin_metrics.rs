//! Metrics of the work with a shared database. A service on a data file has none of them.

use crate::metrics::{Counter, Gauge, Metrics, Series, record_seconds};
use crate::store::{OriginCall, OriginMetrics, Store, Trouble};

/// The metrics that are collected on demand.
pub(super) struct OriginCollector {
    is_up: Gauge,
    behind: Gauge,
    overtaken: Counter,
    unknown: Counter,
    copies_made: Counter,
    troubles: [(Trouble, Gauge); 4],
}

impl OriginCollector {
    /// Creates the metrics, and records each call of the database from now on. Returns `None` for a data file.
    pub(super) fn new(store: &Store, metrics: &Metrics) -> Option<Self> {
        if !store.is_shared() || !metrics.is_enabled() {
            return None;
        }
        observe_calls(store, metrics);
        Some(Self {
            is_up: metrics.gauge(Series::ORIGIN_UP, &[]),
            behind: metrics.gauge(Series::ORIGIN_BEHIND, &[]),
            overtaken: metrics.counter(Series::ORIGIN_OVERTAKEN, &[]),
            unknown: metrics.counter(Series::ORIGIN_UNKNOWN, &[]),
            copies_made: metrics.counter(Series::ORIGIN_COPIES_MADE, &[]),
            troubles: Trouble::ALL
                .map(|one| (one, metrics.gauge(Series::ORIGIN_TROUBLE, &[one.name()]))),
        })
    }

    pub(super) fn update(&self, numbers: &OriginMetrics, troubles: &[(Trouble, String)]) {
        for (trouble, gauge) in &self.troubles {
            gauge.set(i32::from(troubles.iter().any(|(lasting, _)| lasting == trouble)));
        }
        self.is_up.set(i32::from(numbers.is_up));
        self.behind.set(u32::try_from(numbers.behind).unwrap_or(u32::MAX));
        self.overtaken.absolute(numbers.overtaken);
        self.unknown.absolute(numbers.unknown);
        self.copies_made.absolute(numbers.copies_made);
    }
}

fn observe_calls(store: &Store, metrics: &Metrics) {
    let [asks, commits, turns] =
        ["asks", "commits", "turns"].map(|of| metrics.histogram(Series::ORIGIN_TIME, &[of]));
    let asked = metrics.histogram(Series::ORIGIN_ASKED, &[]);
    store.on_origin_call(move |call, took| match call {
        OriginCall::Ask { readers } => {
            record_seconds(&asks, took);
            asked.record(u32::try_from(readers).unwrap_or(u32::MAX));
        }
        OriginCall::Commit => record_seconds(&commits, took),
        OriginCall::Turn => record_seconds(&turns, took),
    });
}
