//! A path in the result of a command.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// A path in the result of a command. Bytes that are not UTF-8 are shown as U+FFFD: the work is done by then, and a name does
/// not make it fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPath(pub PathBuf);

impl fmt::Display for ShownPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl Serialize for ShownPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
