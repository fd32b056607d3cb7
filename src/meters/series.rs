//! Every series, in one documented list.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};

/// A number, or several that differ by labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) help: &'static str,
}

/// What kind of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Counter,
    Gauge,
    Histogram,
}

macro_rules! series {
    ($($constant:ident $shape:ident $name:literal $help:literal,)*) => {
        impl Series {
            $(
                #[doc = $help]
                pub const $constant: Self =
                    Self { name: concat!("steward_", $name), shape: Shape::$shape, help: $help };
            )*
        }

        /// All of them.
        pub(super) const ALL: &[Series] = &[$(Series::$constant),*];
    };
}

series! {
    BUILD Gauge "build_info" "The release that runs; always 1.",
    READY Gauge "ready" "Whether the service takes writes, as far as it knows without trying.",
    REQUESTS Counter "http_requests_total" "Requests that were answered, by route, method and class of status.",
    REQUEST_TIME Histogram "http_request_duration_seconds" "The time from a request's head to its answer's head.",
    IN_FLIGHT Gauge "http_requests_in_flight" "Requests that are being answered.",
    OVERLOADS Counter "http_requests_refused_total" "Requests that were answered with 503 because a limit, or a share of it, was in use.",
    TRANSFER Gauge "transfer_memory_bytes" "Memory that large answers and request bodies in flight take.",
    CONNECTIONS Gauge "http_connections" "Connections that are open.",
    CONNECTIONS_REFUSED Counter "http_connections_refused_total" "Connections that were closed at once: all slots, or those of the client's address, had requests under way.",
    CONNECTIONS_CLOSED Counter "http_connections_closed_total" "Idle connections that were closed to make room for another one.",
    QUEUED Gauge "write_queue_length" "Writes that wait for the writer.",
    REFUSED Counter "writes_refused_total" "Writes that were refused with 503: the queue was full, the file closed, or the commit failed.",
    COMMIT_TIME Histogram "commit_duration_seconds" "The time that a commit took until it was on disk.",
    COMMIT_WRITES Histogram "commit_writes" "Writes that one commit took; 0 where it only showed that the disk takes one.",
    FILE_SIZE Gauge "data_file_bytes" "The size of the data file.",
    VALUES Gauge "stored_values" "Values in the data file, records and index entries.",
    CACHE_SIZE Gauge "page_cache_bytes" "What redb's page cache holds.",
    CACHE_HITS Counter "page_cache_hits_total" "Pages that were found in the page cache.",
    CACHE_MISSES Counter "page_cache_misses_total" "Pages that were read from the file.",
    CACHE_EVICTIONS Counter "page_cache_evictions_total" "Pages that left the page cache to make room.",
    KEY_HITS Counter "key_cache_hits_total" "Presented keys that this process had found right before.",
    KEY_MISSES Counter "key_cache_misses_total" "Presented keys that it had not.",
    ARGON2_QUEUED Gauge "argon2_queue_length" "Runs of Argon2 that wait for their turn.",
    ARGON2_TIME Histogram "argon2_duration_seconds" "The time that a run of Argon2 took, without the wait for its turn.",
    READS_REFUSED Counter "long_reads_refused_total" "Long reads, renderings of public pages included, that were answered with 503: too many of the tenant waited.",
    READ_TIME Histogram "long_read_duration_seconds" "The time that a long read took on its thread, without the wait for its turn.",
    PAGES_RENDERED Counter "public_pages_rendered_total" "Public pages that were rendered; others were answered as they were kept.",
    LETTERS Gauge "outbox_letters" "Mails that wait in the outbox.",
    MAILS_SENT Counter "mails_sent_total" "Mails that the mail server accepted.",
    MAILS_FAILED Counter "mails_failed_total" "Attempts to send a mail that failed.",
    MAILS_ABANDONED Counter "mails_abandoned_total" "Mails that were given up after trying for too long.",
    BACKUP_AT Gauge "backup_last_success_timestamp_seconds" "When the server last made a backup by itself; 0 for never.",
    BACKUP_FAILURES Counter "backup_failures_total" "Backups that the server could not make.",
    NEAR_QUOTA Gauge "organizations_near_quota" "Organizations that use more than 80 % of their quota of bytes.",
    LARGEST Gauge "largest_organization_bytes" "The bytes of the organization that stores most, as its quota counts them.",
    SWEEPS Gauge "sweeps_waiting" "Removed organizations and projects whose records have yet to be swept.",
}

/// The ends of the buckets of times, in seconds.
const TIMES: [f64; 16] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];
/// The ends of the buckets of counts of writes; one commit takes 512 at the most.
const WRITES: [f64; 11] = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// `builder`, told how to show histograms.
pub(super) fn buckets(builder: PrometheusBuilder) -> PrometheusBuilder {
    let told = |builder: PrometheusBuilder| -> Result<PrometheusBuilder, BuildError> {
        builder
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &TIMES)?
            .set_buckets_for_metric(Matcher::Suffix("_writes".to_owned()), &WRITES)
    };
    // It refuses empty lists alone.
    told(builder).unwrap_or_default()
}
