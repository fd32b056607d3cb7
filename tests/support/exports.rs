//! The lines of an export.

use serde_json::{Value, json};
use steward::testing::store::canonical_line;

/// Returns the lines, each with its line end.
pub fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Returns the same lines with a header that matches them.
pub fn sealed(lines: &[Vec<u8>]) -> Vec<u8> {
    let mut header: Value = serde_json::from_slice(&lines[0]).expect("a header");
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    let mut hasher = blake3::Hasher::new();
    for line in &lines[1..] {
        let line: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
        hasher.update(&canonical_line(&line).expect("a line"));
        *counts.entry(line["table"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let rest = lines[1..].concat();
    header["counts"] = json!(counts);
    header["blake3"] = json!(hasher.finalize().to_hex().as_str());
    [format!("{header}\n").into_bytes(), rest].concat()
}

/// Returns the index of the first line of a table.
#[track_caller]
pub fn first_of(lines: &[Vec<u8>], table: &str) -> usize {
    let begins = format!("{{\"table\":\"{table}\",");
    lines.iter().position(|line| line.starts_with(begins.as_bytes())).expect(table)
}
