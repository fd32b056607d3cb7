//! Metrics in the text format of Prometheus.
//!
//! Each [`App`](crate::app::App) has its own registry, so the metrics of two apps in one process are separate. A
//! caller creates a handle once and then updates it with atomic operations. If metrics are disabled, handles do
//! nothing.

mod process;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    CounterVec, GaugeVec, HistogramOpts, HistogramVec, Opts, Registry, Result, TextEncoder,
};

pub use process::resident_memory;

/// The media type of the text that [`Metrics::render`] returns.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of one service, or nothing if metrics are disabled.
#[derive(Clone, Default)]
pub struct Metrics(Option<Arc<Inner>>);

struct Inner {
    registry: Registry,
    families: HashMap<&'static str, Family>,
}

/// The metrics of one series, one for each combination of label values.
enum Family {
    Counter(CounterVec),
    Gauge(GaugeVec),
    Histogram(HistogramVec),
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_enabled() { "on" } else { "off" })
    }
}

impl Metrics {
    /// Enables metrics.
    pub fn enabled() -> Self {
        let metrics = Self(Inner::new().ok().map(Arc::new));
        process::record_start(&metrics);
        metrics
    }

    /// Whether metrics are enabled.
    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the counter of `series` with these label values, in the order of the series' labels.
    pub fn counter(&self, series: Series, labels: &[&str]) -> Counter {
        Counter(match self.family(series) {
            Some(Family::Counter(family)) => family.get_metric_with_label_values(labels).ok(),
            _ => None,
        })
    }

    /// Returns the gauge of `series` with these label values.
    pub fn gauge(&self, series: Series, labels: &[&str]) -> Gauge {
        Gauge(match self.family(series) {
            Some(Family::Gauge(family)) => family.get_metric_with_label_values(labels).ok(),
            _ => None,
        })
    }

    /// Returns the histogram of `series` with these label values.
    pub fn histogram(&self, series: Series, labels: &[&str]) -> Histogram {
        Histogram(match self.family(series) {
            Some(Family::Histogram(family)) => family.get_metric_with_label_values(labels).ok(),
            _ => None,
        })
    }

    fn family(&self, series: Series) -> Option<&Family> {
        self.0.as_ref()?.families.get(series.name)
    }

    /// Returns all metrics as text. Reads `/proc`, so do not call it on a thread that serves requests.
    pub fn render(&self) -> String {
        let Some(inner) = &self.0 else { return String::new() };
        process::update(self);
        TextEncoder::new().encode_to_string(&inner.registry.gather()).unwrap_or_default()
    }
}

impl Inner {
    fn new() -> Result<Self> {
        let registry = Registry::new();
        let mut families = HashMap::new();
        for series in ALL {
            let opts = Opts::new(series.name, series.help);
            let family = match series.metric_type {
                MetricType::Counter => {
                    Family::Counter(registered(&registry, CounterVec::new(opts, series.labels)?)?)
                }
                MetricType::Gauge => {
                    Family::Gauge(registered(&registry, GaugeVec::new(opts, series.labels)?)?)
                }
                MetricType::Histogram => {
                    let opts = HistogramOpts::from(opts).buckets(series.buckets().to_vec());
                    let family = HistogramVec::new(opts, series.labels)?;
                    Family::Histogram(registered(&registry, family)?)
                }
            };
            families.insert(series.name, family);
        }
        Ok(Self { registry, families })
    }
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> Result<C> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

/// A number that only rises.
#[derive(Debug, Clone)]
pub struct Counter(Option<prometheus::Counter>);

impl Counter {
    /// Adds `number`.
    pub fn increment(&self, number: u64) {
        if let Some(counter) = &self.0 {
            counter.inc_by(to_f64(number));
        }
    }

    /// Raises the counter to `number`, which is counted elsewhere. One caller at a time may do so.
    pub fn absolute(&self, number: f64) {
        if let Some(counter) = &self.0 {
            counter.inc_by((number - counter.get()).max(0.0));
        }
    }
}

/// A number that rises and falls.
#[derive(Debug, Clone)]
pub struct Gauge(Option<prometheus::Gauge>);

impl Gauge {
    /// Adds `number`.
    pub fn increment(&self, number: impl Into<f64>) {
        if let Some(gauge) = &self.0 {
            gauge.add(number.into());
        }
    }

    /// Subtracts `number`.
    pub fn decrement(&self, number: impl Into<f64>) {
        if let Some(gauge) = &self.0 {
            gauge.sub(number.into());
        }
    }

    /// Sets the gauge to `number`.
    pub fn set(&self, number: impl Into<f64>) {
        if let Some(gauge) = &self.0 {
            gauge.set(number.into());
        }
    }
}

/// A distribution of numbers.
#[derive(Debug, Clone)]
pub struct Histogram(Option<prometheus::Histogram>);

impl Histogram {
    /// Adds `number` to the distribution.
    pub fn record(&self, number: impl Into<f64>) {
        if let Some(histogram) = &self.0 {
            histogram.observe(number.into());
        }
    }
}

/// Returns a number in the form of metrics.
#[expect(clippy::cast_precision_loss, reason = "what Prometheus reads are floats")]
pub fn to_f64(number: u64) -> f64 {
    number as f64
}

/// Records a duration in seconds.
pub fn record_seconds(histogram: &Histogram, time: Duration) {
    histogram.record(time.as_secs_f64());
}

/// A metric, with or without labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    name: &'static str,
    metric_type: MetricType,
    labels: &'static [&'static str],
    help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

macro_rules! series {
    ($($constant:ident $shape:ident $name:literal $([$($label:literal),*])? $help:literal,)*) => {
        impl Series {
            $(
                #[doc = $help]
                pub const $constant: Self = Self {
                    name: $name,
                    metric_type: MetricType::$shape,
                    labels: &[$($($label),*)?],
                    help: $help,
                };
            )*
        }

        /// All metrics.
        const ALL: &[Series] = &[$(Series::$constant),*];
    };
}

series! {
    BUILD Gauge "steward_build_info" ["version"] "The release of the server; always 1.",
    READY Gauge "steward_ready" "1 if the service accepts writes, judged by earlier writes; otherwise 0.",
    READY_READS Gauge "steward_ready_reads" "1 if the service answers reads, as far as it knows; otherwise 0.",
    REQUESTS Counter "steward_http_requests_total" ["method", "route", "status"] "Responses, by route, method and class of status.",
    REQUEST_TIME Histogram "steward_http_request_duration_seconds" ["method", "route"] "The time from a request's headers to its response's headers.",
    IN_FLIGHT Gauge "steward_http_requests_in_flight" "Requests in progress.",
    OVERLOADS Counter "steward_http_requests_refused_total" "Requests that failed with 503 because a limit, or a client's share of it, was used up.",
    TRANSFER Gauge "steward_transfer_memory_bytes" "Memory of large responses and request bodies in progress.",
    CONNECTIONS Gauge "steward_http_connections" "Open connections.",
    CONNECTIONS_REFUSED Counter "steward_http_connections_refused_total" "Connections that were closed at once because all slots, or those of the client's address, had requests in progress.",
    CONNECTIONS_CLOSED Counter "steward_http_connections_closed_total" "Idle connections that were closed to make room for another one.",
    LOG_LINES_DROPPED Counter "steward_log_lines_dropped_total" "Lines of the log that were dropped because its reader was too slow.",
    QUEUED Gauge "steward_write_queue_length" "Writes that wait for the writer.",
    REFUSED Counter "steward_writes_refused_total" "Writes that failed with 503 because the queue was full, the file was closed, or the commit failed.",
    COMMIT_TIME Histogram "steward_commit_duration_seconds" "The time of a commit until it was on disk.",
    COMMIT_WRITES Histogram "steward_commit_writes" "Writes in one commit; 0 if the commit only tested that the disk accepts one.",
    FILE_SIZE Gauge "steward_data_file_bytes" "The size of the data file.",
    VALUES Gauge "steward_stored_values" "Values in the data file: records, index entries, and blocks of entries of the activity log.",
    CACHE_SIZE Gauge "steward_page_cache_bytes" "The size of redb's page cache.",
    CACHE_HITS Counter "steward_page_cache_hits_total" "Pages that were found in the page cache.",
    CACHE_MISSES Counter "steward_page_cache_misses_total" "Pages that were read from the file.",
    CACHE_EVICTIONS Counter "steward_page_cache_evictions_total" "Pages that were evicted from the page cache.",
    KEY_HITS Counter "steward_key_cache_hits_total" "Presented keys that the key cache contained.",
    KEY_MISSES Counter "steward_key_cache_misses_total" "Presented keys that the key cache did not contain.",
    READS_REFUSED Counter "steward_long_reads_refused_total" "Long reads, including renderings of public pages, that failed with 503 because too many of the tenant were waiting.",
    READ_TIME Histogram "steward_long_read_duration_seconds" "The time of a long read on its thread, without its wait in the queue.",
    PAGES_RENDERED Counter "steward_public_pages_rendered_total" "Public pages that were rendered because the cache did not contain them.",
    MESSAGES Gauge "steward_outbox_messages" "Mails in the outbox.",
    MAILS_SENT Counter "steward_mails_sent_total" "Mails that the mail server accepted.",
    MAILS_FAILED Counter "steward_mails_failed_total" "Failed attempts to send a mail.",
    MAILS_ABANDONED Counter "steward_mails_abandoned_total" "Mails that were given up: sending failed for too long, or too many sign-in mails waited.",
    BACKUP_AT Gauge "steward_backup_last_success_timestamp_seconds" "When the server last created a scheduled backup; 0 if never.",
    BACKUP_FAILURES Counter "steward_backup_failures_total" "Scheduled backups that failed.",
    NEAR_QUOTA Gauge "steward_organizations_near_quota" "Organizations that use more than 80 % of their quota of bytes.",
    LARGEST Gauge "steward_largest_organization_bytes" "The bytes of the organization that stores most, as counted for its quota.",
    SWEEPS Gauge "steward_sweeps_waiting" "Deleted organizations and projects that still have records to delete.",
    ORIGIN_UP Gauge "steward_origin_up" "1 if the shared database answered in the last five seconds; otherwise 0.",
    ORIGIN_TIME Histogram "steward_origin_seconds" ["call"] "The time of a call that the shared database answered: asks what is new, commits a batch, or waits for its turn to commit.",
    ORIGIN_ASKED Histogram "steward_origin_asked_per_query" "Readers that shared one question to the shared database; 0 for a question that no reader waited for.",
    ORIGIN_BEHIND Gauge "steward_origin_behind" "Commits of the shared database that the copy lacked at the last question.",
    ORIGIN_OVERTAKEN Counter "steward_origin_overtaken_total" "Batches that ran again because another node was first.",
    ORIGIN_UNKNOWN Counter "steward_origin_unknown_total" "Commits that the shared database did not answer, so that the node had to ask whether they were done.",
    ORIGIN_TROUBLE Gauge "steward_origin_trouble" ["of"] "1 while something keeps the node from serving, otherwise 0: its copy, reads from the database, durable writes there, or another node of its name.",
    ORIGIN_COPIES_MADE Counter "steward_origin_copies_made_total" "Copies that were made from all rows of the shared database, because there was none or it was of no use.",
    PROCESS_CPU Counter "process_cpu_seconds_total" "Total user and system CPU time spent in seconds.",
    PROCESS_FDS Gauge "process_open_fds" "Number of open file descriptors.",
    PROCESS_MAX_FDS Gauge "process_max_fds" "Maximum number of open file descriptors.",
    PROCESS_VIRTUAL Gauge "process_virtual_memory_bytes" "Virtual memory size in bytes.",
    PROCESS_MAX_VIRTUAL Gauge "process_virtual_memory_max_bytes" "Maximum amount of virtual memory available in bytes.",
    PROCESS_RESIDENT Gauge "process_resident_memory_bytes" "Resident memory size in bytes.",
    PROCESS_START Gauge "process_start_time_seconds" "Start time of the process since unix epoch in seconds.",
    PROCESS_THREADS Gauge "process_threads" "Number of OS threads in the process.",
}

/// The upper bounds of the buckets of durations, in seconds.
const DURATION_BUCKETS: [f64; 16] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];
/// The upper bounds of the buckets of counts: of writes, of which a commit contains at most 512, and of readers.
const COUNT_BUCKETS: [f64; 11] = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

impl Series {
    /// Returns the upper bounds of the buckets of a histogram.
    fn buckets(self) -> &'static [f64] {
        if self.name.ends_with("_seconds") { &DURATION_BUCKETS } else { &COUNT_BUCKETS }
    }
}
