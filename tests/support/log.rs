//! The log of this process, for tests that search it for an id of their own.

use std::fmt::Display;
use std::io;
use std::sync::{Mutex, Once};

use serde_json::Value;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static SET: Once = Once::new();

struct CapturedLog;

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts to capture the log. It contains the lines of other tests too.
pub fn capture() {
    SET.call_once(|| {
        let lines = tracing_subscriber::fmt().json().flatten_event(true);
        lines.with_max_level(tracing::Level::INFO).with_writer(|| CapturedLog).init();
    });
}

/// Returns the captured lines that contain `id`.
pub fn lines_about(id: impl Display) -> Vec<Value> {
    let text = String::from_utf8(LINES.lock().unwrap().clone()).expect("text");
    let id = id.to_string();
    let lines = text.lines().filter(|line| line.contains(&id));
    lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}
