//! The list of all metrics.

/// A metric, with or without labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    pub(super) name: &'static str,
    pub(super) metric_type: MetricType,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricType {
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
                    name: concat!("steward_", $name),
                    metric_type: MetricType::$shape,
                    labels: &[$($($label),*)?],
                    help: $help,
                };
            )*
        }

        /// All metrics.
        pub(super) const ALL: &[Series] = &[$(Series::$constant),*];
    };
}

series! {
    BUILD Gauge "build_info" ["version"] "The release of the server; always 1.",
    READY Gauge "ready" "1 if the service accepts writes, judged by earlier writes; otherwise 0.",
    READY_READS Gauge "ready_reads" "1 if the service answers reads, as far as it knows; otherwise 0.",
    REQUESTS Counter "http_requests_total" ["method", "route", "status"] "Responses, by route, method and class of status.",
    REQUEST_TIME Histogram "http_request_duration_seconds" ["method", "route"] "The time from a request's headers to its response's headers.",
    IN_FLIGHT Gauge "http_requests_in_flight" "Requests in progress.",
    OVERLOADS Counter "http_requests_refused_total" "Requests that failed with 503 because a limit, or a client's share of it, was used up.",
    TRANSFER Gauge "transfer_memory_bytes" "Memory of large responses and request bodies in progress.",
    CONNECTIONS Gauge "http_connections" "Open connections.",
    CONNECTIONS_REFUSED Counter "http_connections_refused_total" "Connections that were closed at once because all slots, or those of the client's address, had requests in progress.",
    CONNECTIONS_CLOSED Counter "http_connections_closed_total" "Idle connections that were closed to make room for another one.",
    LOG_LINES_DROPPED Counter "log_lines_dropped_total" "Lines of the log that were dropped because its reader was too slow.",
    QUEUED Gauge "write_queue_length" "Writes that wait for the writer.",
    REFUSED Counter "writes_refused_total" "Writes that failed with 503 because the queue was full, the file was closed, or the commit failed.",
    COMMIT_TIME Histogram "commit_duration_seconds" "The time of a commit until it was on disk.",
    COMMIT_WRITES Histogram "commit_writes" "Writes in one commit; 0 if the commit only tested that the disk accepts one.",
    FILE_SIZE Gauge "data_file_bytes" "The size of the data file.",
    VALUES Gauge "stored_values" "Values in the data file: records, index entries, and blocks of entries of the activity log.",
    CACHE_SIZE Gauge "page_cache_bytes" "The size of redb's page cache.",
    CACHE_HITS Counter "page_cache_hits_total" "Pages that were found in the page cache.",
    CACHE_MISSES Counter "page_cache_misses_total" "Pages that were read from the file.",
    CACHE_EVICTIONS Counter "page_cache_evictions_total" "Pages that were evicted from the page cache.",
    KEY_HITS Counter "key_cache_hits_total" "Presented keys that the key cache contained.",
    KEY_MISSES Counter "key_cache_misses_total" "Presented keys that the key cache did not contain.",
    READS_REFUSED Counter "long_reads_refused_total" "Long reads, including renderings of public pages, that failed with 503 because too many of the tenant were waiting.",
    READ_TIME Histogram "long_read_duration_seconds" "The time of a long read on its thread, without its wait in the queue.",
    PAGES_RENDERED Counter "public_pages_rendered_total" "Public pages that were rendered because the cache did not contain them.",
    MESSAGES Gauge "outbox_messages" "Mails in the outbox.",
    MAILS_SENT Counter "mails_sent_total" "Mails that the mail server accepted.",
    MAILS_FAILED Counter "mails_failed_total" "Failed attempts to send a mail.",
    MAILS_ABANDONED Counter "mails_abandoned_total" "Mails that were given up: sending failed for too long, or too many sign-in mails waited.",
    BACKUP_AT Gauge "backup_last_success_timestamp_seconds" "When the server last created a scheduled backup; 0 if never.",
    BACKUP_FAILURES Counter "backup_failures_total" "Scheduled backups that failed.",
    NEAR_QUOTA Gauge "organizations_near_quota" "Organizations that use more than 80 % of their quota of bytes.",
    LARGEST Gauge "largest_organization_bytes" "The bytes of the organization that stores most, as counted for its quota.",
    SWEEPS Gauge "sweeps_waiting" "Deleted organizations and projects that still have records to delete.",
    ORIGIN_UP Gauge "origin_up" "1 if the shared database answered in the last five seconds; otherwise 0.",
    ORIGIN_TIME Histogram "origin_seconds" ["call"] "The time of a call that the shared database answered: asks what is new, commits a batch, or waits for its turn to commit.",
    ORIGIN_ASKED Histogram "origin_asked_per_query" "Readers that shared one question to the shared database; 0 for a question that no reader waited for.",
    ORIGIN_BEHIND Gauge "origin_behind" "Commits of the shared database that the copy lacked at the last question.",
    ORIGIN_OVERTAKEN Counter "origin_overtaken_total" "Batches that ran again because another node was first.",
    ORIGIN_UNKNOWN Counter "origin_unknown_total" "Commits that the shared database did not answer, so that the node had to ask whether they were done.",
    ORIGIN_TROUBLE Gauge "origin_trouble" ["of"] "1 while something keeps the node from serving, otherwise 0: its copy, reads from the database, durable writes there, or another node of its name.",
    ORIGIN_COPIES_MADE Counter "origin_copies_made_total" "Copies that were made from all rows of the shared database, because there was none or it was of no use.",
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
    pub(super) fn buckets(self) -> &'static [f64] {
        if self.name.ends_with("_seconds") { &DURATION_BUCKETS } else { &COUNT_BUCKETS }
    }
}
