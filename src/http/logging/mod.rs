//! Logs to standard error, as text or JSON, through a queue.

mod queue;

use std::fmt;
use std::io::{self, IsTerminal};
use std::str::FromStr;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{FilterFn, Targets, filter_fn};
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;

use crate::metrics::Counter;

pub use queue::LogQueue;

/// The format of log lines (`--log-format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text if standard error is a terminal, otherwise JSON.
    #[default]
    Auto,
    /// One line of text per event.
    Text,
    /// One JSON object per line, with the event's fields at the top level.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("\"{text}\" is not a log format: use auto, text or json")),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// Sets up this process's log to standard error, with timestamps in RFC 3339 UTC. Returns a handle that changes
/// the filter later, and the queue: drop it last.
///
/// `filter` is a list of levels and `target=level` pairs, such as `info` or `info,request=debug`. `dropped` counts the lines that
/// did not fit into the queue. If a log is already set up, as in a program that embeds the router, it is kept.
///
/// # Errors
/// A message for the operator if `filter` is invalid.
pub fn init(
    filter: &str,
    format: LogFormat,
    dropped: Counter,
) -> Result<(LogFilter, LogQueue), String> {
    let terminal = io::stderr().is_terminal();
    let (queue, writer) = LogQueue::start(io::stderr(), dropped);
    let is_json = match format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !terminal,
    };
    let (lines, filter) = subscriber(filter, writer, (is_json, terminal))?;
    Ok((LogFilter(lines.try_init().is_ok().then_some(filter)), queue))
}

/// The log filter, which can change while the process runs.
#[derive(Clone)]
pub struct LogFilter(Option<Handle<Targets, Registry>>);

impl LogFilter {
    /// Replaces the filter. `filter` has the syntax of [`init`].
    ///
    /// # Errors
    /// A message for the operator if `filter` is invalid, or if another program set up the log.
    pub fn change(&self, filter: &str) -> Result<(), String> {
        let wanted = parse_filter(filter)?;
        let handle = self.0.as_ref().ok_or("the log was set up by another program")?;
        handle.reload(wanted).map_err(|error| format!("the log filter is unchanged: {error}"))
    }
}

/// A subscriber that is not installed yet.
type LogSubscriber = Box<dyn Subscriber + Send + Sync>;

/// Checks a log filter and returns it unchanged.
///
/// # Errors
/// A message for the operator if it is invalid.
pub fn validate_filter(filter: &str) -> Result<String, String> {
    parse_filter(filter).map(|_| filter.to_owned())
}

fn parse_filter(filter: &str) -> Result<Targets, String> {
    let mut targets = Targets::new();
    for part in filter.split(',').map(str::trim) {
        let (target, word) = match part.split_once('=') {
            Some((target, word)) => (Some(target), word),
            None => (None, part),
        };
        let level = Some(word).filter(|word| !word.is_empty());
        let Some(level) = level.and_then(|word| word.parse::<LevelFilter>().ok()) else {
            return Err(format!(
                "the log filter \"{filter}\" is not valid: \"{word}\" is not a level"
            ));
        };
        targets = match target {
            Some(target) => targets.with_target(target, level),
            None => targets.with_default(level),
        };
    }
    Ok(targets)
}

/// The libraries that log the texts of people.
const PRIVATE_TARGETS: &[&str] = &["html5ever", "markup5ever"];

/// Returns a filter that drops the lines of libraries that log the texts of people. It applies in addition to the
/// operator's filter.
fn without_texts() -> FilterFn {
    filter_fn(|line| {
        let library = line.target().split("::").next().unwrap_or_default();
        !PRIVATE_TARGETS.contains(&library)
    })
}

/// Returns a subscriber that writes text, with colors on a terminal, or JSON.
fn subscriber<W>(
    filter: &str,
    writer: W,
    (is_json, is_terminal): (bool, bool),
) -> Result<(LogSubscriber, Handle<Targets, Registry>), String>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(parse_filter(filter)?);
    let registry = tracing_subscriber::registry().with(filter).with(without_texts());
    // A report of a failed write would go to standard error too, and panic.
    let lines = layer().log_internal_errors(false).with_writer(writer);
    let subscriber: LogSubscriber = if is_json {
        let lines = lines.json().flatten_event(true);
        Box::new(registry.with(lines.with_current_span(false).with_span_list(false)))
    } else {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Box::new(registry.with(lines.with_ansi(is_terminal && !is_plain)))
    };
    Ok((subscriber, handle))
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, LazyLock, Mutex};

    use serde_json::Value;
    use tracing::Dispatch;
    use tracing::subscriber::{NoSubscriber, with_default};

    use super::*;
    use crate::metrics::{Metrics, Series};

    /// With a single subscriber, tracing caches whether a callsite is enabled from the first thread that reaches
    /// it. With a second one it asks every subscriber.
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

    /// A writer that a test reads from.
    #[derive(Clone, Default)]
    pub(in crate::http) struct CapturedLog(Arc<Mutex<Vec<u8>>>);

    impl io::Write for CapturedLog {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl CapturedLog {
        pub(in crate::http) fn writer(&self) -> impl Fn() -> CapturedLog + use<> {
            LazyLock::force(&SECOND);
            let kept = self.clone();
            move || kept.clone()
        }

        pub(in crate::http) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn dropped() -> Counter {
        Metrics::default().counter(Series::LOG_LINES_DROPPED, &[])
    }

    fn is_utc_rfc3339(time: &str) -> bool {
        time.len() > 20 && time.as_bytes()[10] == b'T' && time.ends_with('Z')
    }

    fn json(filter: &str, log: &CapturedLog) -> (LogSubscriber, Handle<Targets, Registry>) {
        subscriber(filter, log.writer(), (true, false)).unwrap()
    }

    #[test]
    fn json_log_line_has_its_fields_at_the_top_level() {
        let kept = CapturedLog::default();
        with_default(json("info", &kept).0, || {
            tracing::info!(status = 200, "answered");
            tracing::debug!("left out");
        });
        let line: Value = serde_json::from_str(&kept.text()).unwrap();
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["status"], 200);
        assert_eq!(line["message"], "answered");
        assert!(is_utc_rfc3339(line["timestamp"].as_str().unwrap()), "{line}");
    }

    #[test]
    fn text_log_line_without_terminal_has_no_colors() {
        let kept = CapturedLog::default();
        with_default(subscriber("info", kept.writer(), (false, false)).unwrap().0, || {
            tracing::info!(status = 200, "answered");
        });
        let line = kept.text();
        assert!(is_utc_rfc3339(line.split_whitespace().next().unwrap()), "{line}");
        assert!(line.ends_with("answered status=200\n") && !line.contains('\x1b'), "{line}");
    }

    #[test]
    fn changed_log_filter_applies_at_once_and_an_invalid_one_changes_nothing() {
        let kept = CapturedLog::default();
        let (lines, handle) = json("info", &kept);
        let filter = LogFilter(Some(handle));
        with_default(lines, || {
            tracing::debug!("before");
            filter.change("warn,here=debug").unwrap();
            for bad in ["", " ", "loud", "here=loud", "here=debug=info"] {
                let error = filter.change(bad).unwrap_err();
                assert!(error.contains("is not valid"), "{error}");
            }
            tracing::debug!(target: "here", "after");
            tracing::info!("no more");
        });
        let text = kept.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("after"), "{text}");
    }

    #[test]
    fn no_filter_logs_the_texts_that_libraries_parse() {
        let kept = CapturedLog::default();
        let (lines, handle) = json("trace", &kept);
        let filter = LogFilter(Some(handle));
        with_default(lines, || {
            for wanted in ["trace", "html5ever=trace", "warn,html5ever::tokenizer=trace"] {
                filter.change(wanted).unwrap();
                tracing::trace!(target: "html5ever::tokenizer", "a text");
                tracing::warn!(target: "html5ever", "a text");
                tracing::error!(target: "markup5ever::interface", "a text");
            }
            filter.change("trace").unwrap();
            tracing::trace!(target: "html5everything", "kept");
        });
        let text = kept.text();
        assert!(text.lines().count() == 1 && text.contains("kept"), "{text}");
    }

    #[test]
    fn invalid_log_filter_is_reported() {
        let error = init("info,steward=loud", LogFormat::Auto, dropped()).err().unwrap();
        assert!(
            error.starts_with("the log filter \"info,steward=loud\" is not valid: "),
            "{error}"
        );
    }

    #[test]
    fn init_keeps_an_existing_log_subscriber() {
        assert!(init("off", LogFormat::Json, dropped()).is_ok());
        let (second, _queue) = init("off", LogFormat::Text, dropped()).unwrap();
        assert_eq!(second.change("info"), Err("the log was set up by another program".to_owned()));
    }

    #[test]
    fn log_format_round_trips_through_text() {
        for format in [LogFormat::Auto, LogFormat::Text, LogFormat::Json] {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("xml".parse::<LogFormat>().is_err());
    }
}
