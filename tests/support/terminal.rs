//! A pseudo-terminal.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::wait::until;

/// The side of a pseudo-terminal that shows the output.
pub struct Terminal {
    side: File,
    /// The output so far.
    seen: String,
}

impl Terminal {
    /// Creates a terminal, and the output stream of its program.
    pub fn new() -> (Self, Stdio) {
        let side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&side).unwrap();
        unlockpt(&side).unwrap();
        ioctl_fionbio(&side, true).unwrap();
        let name = ptsname(&side, Vec::new()).unwrap().into_string().unwrap();
        let program = File::options().read(true).write(true).open(name).unwrap();
        let terminal = Self { side: File::from(side), seen: String::new() };
        (terminal, Stdio::from(OwnedFd::from(program)))
    }

    /// Waits until the output contains `text`. Returns the whole output.
    pub fn until_shows(&mut self, text: &str) -> String {
        until("the terminal shows the text", || {
            let mut piece = [0; 4096];
            let read = self.side.read(&mut piece).unwrap_or(0);
            self.seen += &String::from_utf8_lossy(&piece[..read]);
            self.seen.contains(text).then_some(())
        });
        self.seen.replace("\r\n", "\n")
    }
}
