//! Where log lines go: standard error, as text for people or as JSON for machines.

use std::fmt;
use std::io::{self, IsTerminal};
use std::str::FromStr;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry};

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

/// Sends this process's log to standard error, with times in RFC 3339, UTC; answers what changes the filter
/// later.
///
/// `filter` is a list of levels and `target=level` pairs, such as `info` or `info,request=debug`. Where a log is
/// set already (a program that embeds the router), that one stays.
///
/// # Errors
/// A text for the operator when `filter` cannot be read.
pub fn init(filter: &str, format: Format) -> Result<Filter, String> {
    let terminal = io::stderr().is_terminal();
    let (lines, filter) = match format {
        Format::Json => json(filter, io::stderr)?,
        Format::Auto if !terminal => json(filter, io::stderr)?,
        Format::Auto | Format::Text => text(filter, io::stderr, terminal)?,
    };
    Ok(Filter(lines.try_init().is_ok().then_some(filter)))
}

/// What is logged, which may change while the process runs.
#[derive(Clone)]
pub struct Filter(Option<Handle<EnvFilter, Registry>>);

impl Filter {
    /// Logs what `filter` asks for from now on, in the words of [`init`].
    ///
    /// # Errors
    /// A text for the operator when `filter` cannot be read, or the log is not ours.
    pub fn change(&self, filter: &str) -> Result<(), String> {
        let wanted = parse(filter)?;
        let handle = self.0.as_ref().ok_or("the log is not this server's own")?;
        handle.reload(wanted).map_err(|error| format!("the log stays as it was: {error}"))
    }
}

/// The subscriber, before it is anybody's log.
type Lines = Box<dyn Subscriber + Send + Sync>;

/// A filter as it was written, if it can be read.
///
/// # Errors
/// A text for the operator when it cannot.
pub fn filter(filter: &str) -> Result<String, String> {
    parse(filter).map(|_| filter.to_owned())
}

fn parse(filter: &str) -> Result<EnvFilter, String> {
    let wrong =
        |error: &dyn fmt::Display| format!("the log filter \"{filter}\" cannot be read: {error}");
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let mut words = filter.split(',').map(str::trim).filter(|part| !part.contains(['=', '[']));
    // A word alone would be the name of a target, and silence all others.
    if let Some(word) = words.find(|word| !is_level(word)) {
        return Err(wrong(&format_args!("\"{word}\" is no level")));
    }
    EnvFilter::builder().parse(filter).map_err(|error| wrong(&error))
}

fn json<W>(filter: &str, writer: W) -> Result<(Lines, Handle<EnvFilter, Registry>), String>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(parse(filter)?);
    let lines = layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .log_internal_errors(false)
        .with_writer(writer);
    Ok((Box::new(tracing_subscriber::registry().with(filter).with(lines)), handle))
}

fn text<W>(
    filter: &str,
    writer: W,
    terminal: bool,
) -> Result<(Lines, Handle<EnvFilter, Registry>), String>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(parse(filter)?);
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let lines = layer()
        .with_ansi(terminal && !plain)
        // A report of a failed write would itself go to standard error, and panic there.
        .log_internal_errors(false)
        .with_writer(writer);
    Ok((Box::new(tracing_subscriber::registry().with(filter).with(lines)), handle))
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
        with_default(json("info", kept.writer()).unwrap().0, || {
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
        with_default(text("info", kept.writer(), false).unwrap().0, || {
            tracing::info!(status = 200, "answered");
        });
        let line = kept.text();
        assert!(is_utc_rfc3339(line.split_whitespace().next().unwrap()), "{line}");
        assert!(line.ends_with("answered status=200\n") && !line.contains('\x1b'), "{line}");
    }

    #[test]
    fn a_changed_filter_holds_at_once_and_a_bad_one_changes_nothing() {
        let kept = Kept::default();
        let (lines, handle) = json("info", kept.writer()).unwrap();
        let filter = Filter(Some(handle));
        with_default(lines, || {
            tracing::debug!("before");
            filter.change("warn,here=debug").unwrap();
            for bad in ["", " ", "loud", "here=loud", "here=debug=info"] {
                let told = filter.change(bad).unwrap_err();
                assert!(told.contains("cannot be read"), "{told}");
            }
            tracing::debug!(target: "here", "after");
            tracing::info!("no more");
        });
        let text = kept.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("after"), "{text}");
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_told() {
        let told = init("info,steward=loud", Format::Auto).err().unwrap();
        assert!(
            told.starts_with("the log filter \"info,steward=loud\" cannot be read: "),
            "{told}"
        );
    }

    #[test]
    fn a_log_that_is_set_already_stays() {
        assert!(init("off", Format::Json).is_ok());
        let second = init("off", Format::Text).unwrap();
        assert_eq!(second.change("info"), Err("the log is not this server's own".to_owned()));
    }

    #[test]
    fn a_format_reads_as_it_is_written() {
        for format in [Format::Auto, Format::Text, Format::Json] {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("xml".parse::<Format>().is_err());
    }
}
