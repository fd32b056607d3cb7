//! A terminal, as a program sees one.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::process::until;

/// The side of it that somebody looks at.
pub struct Terminal {
    side: File,
    /// What it showed so far.
    seen: String,
}

impl Terminal {
    /// A terminal, and what a program writes to it by.
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

    /// Waits until it has shown `text`; answers all that it showed.
    pub fn until_shows(&mut self, text: &str) -> String {
        until("the terminal shows it", || {
            let mut piece = [0; 4096];
            let read = self.side.read(&mut piece).unwrap_or(0);
            self.seen += &String::from_utf8_lossy(&piece[..read]);
            self.seen.contains(text).then_some(())
        });
        self.seen.replace("\r\n", "\n")
    }
}
