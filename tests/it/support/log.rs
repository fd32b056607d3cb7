//! The log of this process, for tests that look for what is said about an id of theirs.

use std::fmt::Display;
use std::io;
use std::sync::{Mutex, Once};

use serde_json::Value;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static SET: Once = Once::new();

struct Kept;

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps what is logged from now on. Other tests log too.
pub fn keep() {
    SET.call_once(|| {
        let lines = tracing_subscriber::fmt().json().flatten_event(true);
        lines.with_max_level(tracing::Level::INFO).with_writer(|| Kept).init();
    });
}

/// The lines that name `id`.
pub fn about(id: impl Display) -> Vec<Value> {
    let text = String::from_utf8(LINES.lock().unwrap().clone()).expect("text");
    let id = id.to_string();
    let lines = text.lines().filter(|line| line.contains(&id));
    lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}
