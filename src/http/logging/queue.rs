//! The queue between the log and standard error. If the reader of the log stops reading, lines are lost, and the
//! service does not wait.

use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::MakeWriter;

use crate::metrics::Counter;

/// The most lines that wait. Later ones are dropped.
const MAX_WAITING_LINES: usize = 4096;
/// How long the end waits for a reader that was too slow.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause between two looks at that reader.
const END_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The queue's thread. Dropping this writes the lines that wait, unless the reader has stopped reading.
pub struct LogQueue {
    worker: Option<WorkerGuard>,
    dropped: Arc<DroppedLines>,
}

impl LogQueue {
    /// Starts the thread that writes lines to `output`. `dropped` counts lines for which there was no room.
    pub(super) fn start(
        output: impl Write + Send + 'static,
        dropped: Counter,
    ) -> (Self, QueuedLines) {
        let dropped = Arc::new(DroppedLines::new(dropped));
        let output = ReportingOutput { output, dropped: Arc::clone(&dropped) };
        let queue = NonBlockingBuilder::default().buffered_lines_limit(MAX_WAITING_LINES);
        let (lines, worker) = queue.thread_name("log").finish(output);
        let _once = dropped.errors.set(lines.error_counter());
        (
            Self { worker: Some(worker), dropped: Arc::clone(&dropped) },
            QueuedLines { lines, dropped },
        )
    }
}

impl Drop for LogQueue {
    fn drop(&mut self) {
        let begun = Instant::now();
        while self.dropped.unreported() > 0 && begun.elapsed() < END_TIMEOUT {
            thread::sleep(END_POLL_INTERVAL);
        }
        if self.dropped.unreported() > 0 {
            // The queue may be full. Its guard would then print to stdout.
            mem::forget(self.worker.take());
        }
    }
}

/// Puts lines into the queue. Each write is one line.
#[derive(Clone)]
pub(super) struct QueuedLines {
    lines: NonBlocking,
    dropped: Arc<DroppedLines>,
}

impl<'w> MakeWriter<'w> for QueuedLines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

impl Write for QueuedLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = self.lines.write(line);
        self.dropped.count();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The number of lines that were dropped.
struct DroppedLines {
    errors: OnceLock<ErrorCounter>,
    counted: AtomicUsize,
    reported: AtomicUsize,
    metric: Counter,
}

impl DroppedLines {
    fn new(metric: Counter) -> Self {
        let [counted, reported] = [0, 0].map(AtomicUsize::new);
        Self { errors: OnceLock::new(), counted, reported, metric }
    }

    fn total(&self) -> usize {
        self.errors.get().map_or(0, ErrorCounter::dropped_lines)
    }

    /// Returns how many lines were dropped since the last call with `before`.
    fn since(&self, before: &AtomicUsize) -> usize {
        let total = self.total();
        total.saturating_sub(before.fetch_max(total, Ordering::Relaxed))
    }

    fn count(&self) {
        self.metric.increment(self.since(&self.counted) as u64);
    }

    fn unreported(&self) -> usize {
        self.total().saturating_sub(self.reported.load(Ordering::Relaxed))
    }
}

/// Writes lines on the queue's thread. When no line waits, it reports those that were dropped: before, the report could be
/// dropped itself.
struct ReportingOutput<W> {
    output: W,
    dropped: Arc<DroppedLines>,
}

impl<W: Write> Write for ReportingOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.output.flush();
        let count = self.dropped.since(&self.dropped.reported);
        if count > 0 {
            tracing::warn!(count, "log lines were dropped: the reader of the log was too slow");
        }
        flushed
    }
}
