//! Pages of the documentation that are generated from the program.

use std::fs;
use std::path::Path;

/// Asserts that the page at `path`, from the root of the repository, has this text. With `UPDATE_DOCS=1`, it is written
/// first. `command` runs the test.
#[track_caller]
pub fn assert_current(path: &str, text: &str, command: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, text).expect("the page is written");
    }
    let stored = fs::read_to_string(&file).expect("the page is readable");
    assert!(stored == text, "{path} is not current: run UPDATE_DOCS=1 {command}");
}
