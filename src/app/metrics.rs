//! Metrics that are collected on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::base::error::{Error, Result};
use crate::metrics::{Counter, Gauge, Metrics, Series, record_seconds};
use crate::store::{
    OriginCall, OriginMetrics, PageCache, RecordCounts, Store, StoreMetrics, Table, Trouble,
};

use super::App;

/// The time for which collected metrics are reused.
const CACHE_TIME: Duration = Duration::from_secs(1);
/// The longest wait for the writer thread. While it is busy, the values that only it knows are not
/// updated.
const WRITER_TIMEOUT: Duration = Duration::from_millis(500);

/// The metrics that are collected on demand.
pub(super) struct MetricsCollector {
    cached: Arc<Mutex<Option<CachedMetrics>>>,
    ready: Gauge,
    ready_reads: Gauge,
    queued: Gauge,
    refused: Counter,
    bytes: Gauge,
    queued_mails: Gauge,
    pending_deletions: Gauge,
    transfer: Gauge,
    values: Gauge,
    near_quota: Gauge,
    largest: Gauge,
    cache: Option<PageCacheMetrics>,
    origin: Option<OriginCollector>,
}

/// Metrics of redb's page cache. redb counts them only with the `cache-metrics` feature.
struct PageCacheMetrics {
    bytes: Gauge,
    hits: ExternalCounter,
    misses: ExternalCounter,
    evictions: ExternalCounter,
}

/// The text, and the time at which it was collected.
type CachedMetrics = (Instant, Arc<str>);

/// A counter for a value that is counted elsewhere and may restart at zero.
struct ExternalCounter {
    counter: Counter,
    last: AtomicU64,
}

impl ExternalCounter {
    fn set(&self, now: u64) {
        let last = self.last.swap(now, Ordering::Relaxed);
        self.counter.increment(now.checked_sub(last).unwrap_or(now));
    }
}

impl MetricsCollector {
    pub(super) fn new(store: &Store, metrics: &Metrics) -> Self {
        let gauge = |series| metrics.gauge(series, &[]);
        let risen = |series| ExternalCounter {
            counter: metrics.counter(series, &[]),
            last: AtomicU64::new(0),
        };
        metrics.gauge(Series::BUILD, &[env!("CARGO_PKG_VERSION")]).set(1);
        Self {
            cached: Arc::default(),
            ready: gauge(Series::READY),
            ready_reads: gauge(Series::READY_READS),
            queued: gauge(Series::QUEUED),
            refused: metrics.counter(Series::REFUSED, &[]),
            bytes: gauge(Series::FILE_SIZE),
            queued_mails: gauge(Series::MESSAGES),
            pending_deletions: gauge(Series::SWEEPS),
            transfer: gauge(Series::TRANSFER),
            values: gauge(Series::VALUES),
            near_quota: gauge(Series::NEAR_QUOTA),
            largest: gauge(Series::LARGEST),
            cache: cfg!(feature = "cache-metrics").then(|| PageCacheMetrics {
                bytes: gauge(Series::CACHE_SIZE),
                hits: risen(Series::CACHE_HITS),
                misses: risen(Series::CACHE_MISSES),
                evictions: risen(Series::CACHE_EVICTIONS),
            }),
            origin: OriginCollector::new(store, metrics),
        }
    }

    fn update(&self, app: &App, cache: Option<PageCache>) {
        let (ready, store) = (app.known_ready(), app.store());
        let quota = app.config().caps.organization_bytes as u64;
        let figure = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.ready.set(i32::from(ready));
        self.ready_reads.set(i32::from(app.known_ready_for_reads()));
        self.transfer.set(to_f64(app.transfer_memory().used() as u64));
        let StoreMetrics { bytes, queued, refused, records } = store.metrics(quota / 5 * 4);
        self.queued.set(figure(queued));
        self.refused.absolute(refused);
        self.bytes.set(to_f64(bytes));
        if let (Some(collector), Some(numbers)) = (&self.origin, store.origin_metrics()) {
            collector.update(&numbers, &store.troubles());
        }
        // While the file is closed, these keep their last values.
        if let Ok(snapshot) = store.snapshot() {
            for (gauge, table) in
                [(&self.queued_mails, Table::Outbox), (&self.pending_deletions, Table::Sweeps)]
            {
                if let Ok(rows) = snapshot.len(table) {
                    gauge.set(to_f64(rows));
                }
            }
        }
        if let Some(RecordCounts { values, large_organizations, largest_organization }) = records {
            self.values.set(to_f64(values));
            self.near_quota.set(to_f64(large_organizations));
            self.largest.set(to_f64(largest_organization));
        }
        if let (Some(fields), Some(PageCache { bytes, hits, misses, evictions })) =
            (&self.cache, cache)
        {
            fields.bytes.set(to_f64(bytes as u64));
            fields.hits.set(hits);
            fields.misses.set(misses);
            fields.evictions.set(evictions);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "what Prometheus reads are floats")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

/// Records each commit of `store` in `metrics`.
pub(super) fn observe_commits(store: &Store, metrics: &Metrics) {
    if !metrics.is_enabled() {
        return;
    }
    let times = metrics.histogram(Series::COMMIT_TIME, &[]);
    let sizes = metrics.histogram(Series::COMMIT_WRITES, &[]);
    store.on_commit(move |commit| {
        record_seconds(&times, commit.took);
        sizes.record(u32::try_from(commit.writes).unwrap_or(u32::MAX));
    });
}

impl App {
    /// Returns the metrics as text, at most one second old, or an empty text if metrics are
    /// disabled.
    ///
    /// # Errors
    /// 500 if the metrics cannot be rendered.
    #[doc(hidden)]
    pub async fn metrics(&self) -> Result<Arc<str>> {
        // Concurrent callers wait here and get the same text.
        let mut last = Arc::clone(&self.0.metrics.cached).lock_owned().await;
        if let Some((_, text)) = last.as_ref().filter(|(moment, _)| moment.elapsed() < CACHE_TIME) {
            return Ok(Arc::clone(text));
        }
        let app = self.clone();
        // The task continues if this client disconnects, because others may wait for its result.
        let gathered = tokio::spawn(async move {
            let text = app.collect_metrics().await?;
            *last = Some((Instant::now(), Arc::clone(&text)));
            Ok(text)
        });
        gathered.await.map_err(Error::internal)?
    }

    async fn collect_metrics(&self) -> Result<Arc<str>> {
        let cache = match self.0.metrics.cache {
            Some(_) => {
                timeout(WRITER_TIMEOUT, self.store().page_cache()).await.ok().and_then(Result::ok)
            }
            None => None,
        };
        let app = self.clone();
        let gathered = tokio::task::spawn_blocking(move || {
            app.0.metrics.update(&app, cache);
            app.0.config.metrics.render()
        });
        Ok(gathered.await.map_err(Error::internal)?.into())
    }
}

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
