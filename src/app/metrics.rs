//! Metrics that are collected on demand.

use std::mem;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::base::error::Result;
use crate::base::tasks::{run_blocking, run_to_end};
use crate::metrics::{Metrics, Series, record_seconds, to_f64};
use crate::store::{
    OriginCall, OriginMetrics, PageCache, RecordCounts, Store, StoreMetrics, Table, Trouble,
};

use super::App;

/// The time for which collected metrics are reused.
const CACHE_TIME: Duration = Duration::from_secs(1);
/// The longest wait for the writer thread. While it is busy, the values that only it knows are not
/// updated.
const WRITER_TIMEOUT: Duration = Duration::from_millis(500);

/// The text, and the time at which it was collected.
type CachedMetrics = (Instant, Arc<str>);

/// What is kept between two collections.
#[derive(Default)]
pub(super) struct MetricsCollector {
    cached: Arc<Mutex<Option<CachedMetrics>>>,
    /// The numbers of the page cache at the last collection. They may restart at 0.
    page_cache: StdMutex<PageCache>,
}

impl App {
    /// Sets the metrics to their current values. Those that cannot be read keep their last values.
    fn update_metrics(&self, page_cache: Option<PageCache>) {
        let (store, metrics) = (self.store(), &self.config().metrics);
        let gauge = |series| metrics.gauge(series, &[]);
        let quota = self.config().caps.organization_quota as u64;
        metrics.gauge(Series::BUILD, &[env!("CARGO_PKG_VERSION")]).set(1);
        gauge(Series::READY).set(i32::from(self.known_ready()));
        gauge(Series::READY_READS).set(i32::from(self.known_ready_for_reads()));
        gauge(Series::TRANSFER).set(to_f64(self.transfer_memory().used() as u64));
        let StoreMetrics { bytes, queued, refused, records } = store.metrics(quota / 5 * 4);
        gauge(Series::QUEUED).set(to_f64(queued as u64));
        metrics.counter(Series::REFUSED, &[]).absolute(to_f64(refused));
        gauge(Series::FILE_SIZE).set(to_f64(bytes));
        for (series, table) in [(Series::MESSAGES, Table::Outbox), (Series::SWEEPS, Table::Sweeps)]
        {
            let waiting = gauge(series);
            if let Ok(rows) = store.snapshot().and_then(|snapshot| snapshot.len(table)) {
                waiting.set(to_f64(rows));
            }
        }
        let (stored, near_quota, largest) =
            (gauge(Series::VALUES), gauge(Series::NEAR_QUOTA), gauge(Series::LARGEST));
        if let Some(RecordCounts { values, large_organizations, largest_organization }) = records {
            stored.set(to_f64(values));
            near_quota.set(to_f64(large_organizations));
            largest.set(to_f64(largest_organization));
        }
        if let Some(numbers) = store.origin_metrics() {
            update_origin(metrics, &numbers, &store.troubles());
        }
        if let Some(now) = page_cache {
            let mut last = self.0.metrics.page_cache.lock().unwrap_or_else(PoisonError::into_inner);
            let last = mem::replace(&mut *last, now);
            gauge(Series::CACHE_SIZE).set(to_f64(now.bytes as u64));
            for (series, now, last) in [
                (Series::CACHE_HITS, now.hits, last.hits),
                (Series::CACHE_MISSES, now.misses, last.misses),
                (Series::CACHE_EVICTIONS, now.evictions, last.evictions),
            ] {
                let risen = now.checked_sub(last).unwrap_or(now);
                metrics.counter(series, &[]).increment(risen);
            }
        }
    }
}

fn update_origin(metrics: &Metrics, numbers: &OriginMetrics, troubles: &[(Trouble, String)]) {
    for trouble in Trouble::ALL {
        let lasts = troubles.iter().any(|(lasting, _)| *lasting == trouble);
        metrics.gauge(Series::ORIGIN_TROUBLE, &[trouble.name()]).set(i32::from(lasts));
    }
    metrics.gauge(Series::ORIGIN_UP, &[]).set(i32::from(numbers.is_up));
    metrics.gauge(Series::ORIGIN_BEHIND, &[]).set(to_f64(numbers.behind));
    metrics.counter(Series::ORIGIN_OVERTAKEN, &[]).absolute(to_f64(numbers.overtaken));
    metrics.counter(Series::ORIGIN_UNKNOWN, &[]).absolute(to_f64(numbers.unknown));
    metrics.counter(Series::ORIGIN_COPIES_MADE, &[]).absolute(to_f64(numbers.copies_made));
}

/// Records each commit of `store` in `metrics`, and each call of a shared database.
pub(super) fn observe(store: &Store, metrics: &Metrics) {
    if !metrics.is_enabled() {
        return;
    }
    let times = metrics.histogram(Series::COMMIT_TIME, &[]);
    let sizes = metrics.histogram(Series::COMMIT_WRITES, &[]);
    store.on_commit(move |commit| {
        record_seconds(&times, commit.took);
        sizes.record(u32::try_from(commit.writes).unwrap_or(u32::MAX));
    });
    if store.is_shared() {
        observe_calls(store, metrics);
    }
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
        let gathered = run_to_end(async move {
            let text = app.collect_metrics().await?;
            *last = Some((Instant::now(), Arc::clone(&text)));
            Ok(text)
        });
        gathered.await?
    }

    async fn collect_metrics(&self) -> Result<Arc<str>> {
        // redb counts them only with this feature.
        let page_cache = if cfg!(feature = "cache-metrics") {
            timeout(WRITER_TIMEOUT, self.store().page_cache()).await.ok().and_then(Result::ok)
        } else {
            None
        };
        let app = self.clone();
        let gathered = run_blocking(move || {
            app.update_metrics(page_cache);
            app.0.config.metrics.render()
        });
        Ok(gathered.await?.into())
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
