//! Where log lines go: standard error, as text for people or as JSON for machines.

use std::fmt;
use std::io::{self, IsTerminal};
use std::str::FromStr;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{DefaultFields, Format as Lines};
use tracing_subscriber::fmt::{MakeWriter, SubscriberBuilder};
use tracing_subscriber::util::SubscriberInitExt;

/// How a log line is written (`--log-format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Text where standard error is a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// One line of text an event.
    Text,
    /// One JSON object a line, the event's fields at its top level.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("\"{text}\" is no log format: use auto, text or json")),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// Sends this process's log to standard error, with times in RFC 3339, UTC.
///
/// `filter` is a list of levels and `target=level` pairs, such as `info` or
/// `info,steward::http=debug`. Where a log is set already (a program that embeds the router), that
/// one stays.
///
/// # Errors
/// A text for the operator when `filter` cannot be read.
pub fn init(filter: &str, format: Format) -> Result<(), String> {
    let lines = lines(filter, io::stderr)?;
    let terminal = io::stderr().is_terminal();
    // Refused only where a log is set already.
    let _kept = match format {
        Format::Json => json(lines).try_init(),
        Format::Auto if !terminal => json(lines).try_init(),
        Format::Auto | Format::Text => text(lines, terminal).try_init(),
    };
    Ok(())
}

type Builder<W> = SubscriberBuilder<DefaultFields, Lines, EnvFilter, W>;

fn lines<W>(filter: &str, writer: W) -> Result<Builder<W>, String>
where
    W: for<'w> MakeWriter<'w> + 'static,
{
    let filter = EnvFilter::builder()
        .parse(filter)
        .map_err(|error| format!("the log filter \"{filter}\" cannot be read: {error}"))?;
    Ok(tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A report of a failed write would itself go to standard error, and panic there.
        .log_internal_errors(false)
        .with_writer(writer))
}

fn json<W>(lines: Builder<W>) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    lines.json().flatten_event(true).with_current_span(false).with_span_list(false).finish()
}

fn text<W>(lines: Builder<W>, terminal: bool) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    lines.with_ansi(terminal && !plain).finish()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, LazyLock, Mutex};

    use serde_json::Value;
    use tracing::Dispatch;
    use tracing::subscriber::{NoSubscriber, with_default};

    use super::*;

    /// While a process has a single log, tracing lets whichever thread meets an event first decide
    /// for all whether it is wanted; with a second one it asks every log.
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

    /// A log that a test reads back.
    #[derive(Clone, Default)]
    pub(in crate::http) struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        pub(in crate::http) fn writer(&self) -> impl Fn() -> Kept + use<> {
            LazyLock::force(&SECOND);
            let kept = self.clone();
            move || kept.clone()
        }

        pub(in crate::http) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn is_utc_rfc3339(time: &str) -> bool {
        time.len() > 20 && time.as_bytes()[10] == b'T' && time.ends_with('Z')
    }

    #[test]
    fn a_json_line_carries_its_fields_at_the_top() {
        let kept = Kept::default();
        with_default(json(lines("info", kept.writer()).unwrap()), || {
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
    fn a_text_line_away_from_a_terminal_has_no_colours() {
        let kept = Kept::default();
        with_default(text(lines("info", kept.writer()).unwrap(), false), || {
            tracing::info!(status = 200, "answered");
        });
        let line = kept.text();
        assert!(is_utc_rfc3339(line.split_whitespace().next().unwrap()), "{line}");
        assert!(line.ends_with("answered status=200\n") && !line.contains('\x1b'), "{line}");
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_told() {
        let told = init("info,steward=loud", Format::Auto).unwrap_err();
        assert!(
            told.starts_with("the log filter \"info,steward=loud\" cannot be read: "),
            "{told}"
        );
    }

    #[test]
    fn a_log_that_is_set_already_stays() {
        assert_eq!(init("off", Format::Json), Ok(()));
        assert_eq!(init("off", Format::Text), Ok(()));
    }

    #[test]
    fn a_format_reads_as_it_is_written() {
        for format in [Format::Auto, Format::Text, Format::Json] {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("xml".parse::<Format>().is_err());
    }
}
