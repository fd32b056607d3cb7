//! The output of commands: one JSON object, or the same as text.

use std::io::{ErrorKind, Write};

use serde_json::{Map, Value};

/// Prints the result of a command. A closed stdout is not an error.
pub(super) fn print(answer: &Value, json: bool) {
    let text = if json { format!("{answer}\n") } else { to_text(answer) };
    print_bytes(text.as_bytes());
}

/// Prints a link to the console, with what a user must know about it.
pub(super) fn print_console_link(link: &Value, json: bool) {
    let shown = |name: &str| link.get(name).map(format_value).unwrap_or_default();
    if json {
        return print(link, true);
    }
    let text = format!(
        "Open this link to sign in as {}. It works once, within five minutes:\n\n  {}\n",
        shown("email"),
        shown("url")
    );
    print_bytes(text.as_bytes());
}

/// Prints text as it is. A closed stdout is not an error; other errors go to stderr.
pub(super) fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!(
                "steward: the command succeeded, but its output could not be written: {error}"
            );
        }
        _ => {}
    }
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
