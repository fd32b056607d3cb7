//! Whether an optional part of the service is on.

use std::fmt;

use clap::ValueEnum;

/// Whether an optional part of the service is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// The part runs.
    On,
    /// The part does not run.
    Off,
}

impl Switch {
    /// Whether the part runs.
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "on" } else { "off" })
    }
}
