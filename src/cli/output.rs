//! What commands print: one JSON object, or the same as text.

use std::io::{ErrorKind, Write};

use serde_json::{Map, Value};

/// Prints an answer. A closed stdout is nobody's fault.
pub(super) fn print(answer: &Value, json: bool) {
    let text = if json { format!("{answer}\n") } else { as_text(answer) };
    print_bytes(text.as_bytes());
}

/// Prints what is text of its own kind. A closed stdout is nobody's fault; whatever else keeps it from being told is
/// said on stderr.
pub(super) fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("steward: it is done, and could not be told: {error}");
        }
        _ => {}
    }
}

fn as_text(answer: &Value) -> String {
    match answer {
        Value::Object(members) => match members.get("results") {
            Some(Value::Array(rows)) => table(rows),
            _ => lines(members),
        },
        other => format!("{}\n", plain(other)),
    }
}

/// One member a line, the values in a column.
fn lines(members: &Map<String, Value>) -> String {
    let width = members.keys().map(String::len).max().unwrap_or(0);
    let line = |(name, value)| format!("{name:width$}  {}", plain(value));
    members.iter().map(line).chain([String::new()]).collect::<Vec<_>>().join("\n")
}

/// One row a line under the names of the members, in columns.
fn table(rows: &[Value]) -> String {
    let Some(Value::Object(first)) = rows.first() else { return "none\n".to_owned() };
    let names: Vec<&String> = first.keys().collect();
    let mut lines = vec![names.iter().map(|name| name.to_uppercase()).collect::<Vec<_>>()];
    for row in rows {
        lines
            .push(names.iter().map(|name| plain(row.get(*name).unwrap_or(&Value::Null))).collect());
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

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        // A name that an outsider chose must not steer the operator's terminal.
        Value::String(text) => text.chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(members) => members.values().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}
