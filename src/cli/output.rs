//! The output of commands: one JSON object, or the same as text, and a progress bar on stderr.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value};

use crate::base::tasks::spawn_thread;
use crate::store::{Progress, Stage};

use super::failure::{Failure, unless_unread, write_out};

/// Prints the result of a command.
///
/// # Errors
/// When it cannot be written: what is shown only once would be lost without a word. The reader of a list may leave early.
pub(super) fn print(answer: &Value, json: bool) -> Result<(), Failure> {
    let text = if json { format!("{answer}\n") } else { to_text(answer) };
    print_result(answer, &text)
}

/// Prints a link to the console, with what a user must know about it.
///
/// # Errors
/// When it cannot be written.
pub(super) fn print_console_link(link: &Value, json: bool) -> Result<(), Failure> {
    let shown = |name: &str| link.get(name).map(format_value).unwrap_or_default();
    if json {
        return print(link, true);
    }
    let text = format!(
        "Open this link to sign in as {}. It works once, within five minutes:\n\n  {}\n",
        shown("email"),
        shown("url")
    );
    print_result(link, &text)
}

fn print_result(answer: &Value, text: &str) -> Result<(), Failure> {
    if answer.get("results").is_some() {
        return print_bytes(text.as_bytes());
    }
    write_out(text.as_bytes()).map_err(|error| {
        let what = match answer.get("id") {
            Some(id) => format!(" (id {})", format_value(id)),
            None => String::new(),
        };
        let text = "the command succeeded, but its result could not be written to stdout";
        Failure::Other(format!("{text}: {error}{what}"))
    })
}

/// Prints text that can be printed again.
///
/// # Errors
/// When it cannot be written. The reader may leave early.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    unless_unread(write_out(bytes)).map_err(|error| Failure::unwritten(&error))
}

fn to_text(answer: &Value) -> String {
    match answer {
        Value::Object(members) => match members.get("results") {
            Some(Value::Array(rows)) => format_table(rows),
            _ => format_members(members),
        },
        other => format!("{}\n", format_value(other)),
    }
}

/// Formats each member as one line, with the values in a column.
fn format_members(members: &Map<String, Value>) -> String {
    let width = members.keys().map(String::len).max().unwrap_or(0);
    let line = |(name, value)| format!("{name:width$}  {}", format_value(value));
    members.iter().map(line).chain([String::new()]).collect::<Vec<_>>().join("\n")
}

/// Formats each row as one line in columns, under a header with the members' names.
fn format_table(rows: &[Value]) -> String {
    let Some(Value::Object(first)) = rows.first() else { return "none\n".to_owned() };
    let names: Vec<&String> = first.keys().collect();
    let mut lines = vec![names.iter().map(|name| name.to_uppercase()).collect::<Vec<_>>()];
    for row in rows {
        lines.push(
            names.iter().map(|name| format_value(row.get(*name).unwrap_or(&Value::Null))).collect(),
        );
    }
    let mut widths = vec![0; names.len()];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        // An outsider may have chosen this name, so control characters must not reach the operator's terminal.
        Value::String(text) => text.chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(format_value).collect::<Vec<_>>().join(", "),
        Value::Object(members) => members.values().map(format_value).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Operations shorter than this show no bar.
const SHOW_AFTER: Duration = Duration::from_secs(1);
/// The maximum time between two redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Returns a progress bar on stderr that appears after one second. If stderr is not a terminal, it shows nothing.
pub(super) fn progress_bar() -> Progress {
    if !std::io::stderr().is_terminal() {
        return Progress::silent();
    }
    let shown = ProgressBarGuard::show_after(SHOW_AFTER);
    Progress::new(move |stage| shown.show(stage))
}

/// A progress bar that disappears when it is dropped.
struct ProgressBarGuard {
    bar: ProgressBar,
    /// Dropping this sender ends the thread that waits to show the bar.
    _waited_for: Sender<()>,
}

impl ProgressBarGuard {
    fn show_after(patience: Duration) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let (waited_for, gone) = channel();
        let drawn = bar.clone();
        let _ = spawn_thread("progress", move || {
            if gone.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                drawn.set_draw_target(ProgressDrawTarget::stderr());
                drawn.enable_steady_tick(REDRAW_INTERVAL);
            }
        });
        Self { bar, _waited_for: waited_for }
    }

    fn show(&self, stage: &Stage) {
        if stage.done == 0 {
            self.bar.reset();
            self.bar.set_style(style(stage.of));
            self.bar.set_message(stage.doing.to_string());
        }
        self.bar.set_length(stage.of);
        self.bar.set_position(stage.done);
    }
}

impl Drop for ProgressBarGuard {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(of: u64) -> ProgressStyle {
    let template = match of {
        0 => "{spinner} {msg}, {elapsed}",
        _ => "{msg} {wide_bar} {percent}% of {human_len} values, {eta} left",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
