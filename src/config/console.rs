//! The switch of the console.

use std::fmt;

use clap::ValueEnum;

/// Whether the service has a web console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Console {
    /// The console is served at `/console/`.
    On,
    /// There is no console.
    Off,
}

impl Console {
    /// Whether the console is served.
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

impl fmt::Display for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "on" } else { "off" })
    }
}
