//! A service manager as the service sees it: the socket on which it is told things.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use super::process::{LONG, Site};

/// What a manager hears.
pub struct Manager {
    socket: UnixDatagram,
    path: std::path::PathBuf,
}

impl Manager {
    /// One that listens in the site's folder.
    pub fn of(site: &Site) -> Self {
        let path = site.path("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        Self { socket, path }
    }

    /// `steward serve` under it, with these flags; with a watchdog, where it is to be fed.
    pub fn steward(&self, site: &Site, args: &[&str], watchdog: Option<Duration>) -> Command {
        let mut command =
            site.steward(&[&["serve", "--listen", "127.0.0.1:0", "--json"], args].concat());
        self.stand_over(&mut command, watchdog);
        command
    }

    /// Has a command tell it things.
    pub fn stand_over(&self, command: &mut Command, watchdog: Option<Duration>) {
        command.env("NOTIFY_SOCKET", &self.path);
        if let Some(within) = watchdog {
            command.env("WATCHDOG_USEC", within.as_micros().to_string());
        }
    }

    /// The next thing it is told, line by line; none where that takes longer.
    pub fn hears_within(&self, patience: Duration) -> Option<Vec<String>> {
        self.socket.set_read_timeout(Some(patience)).expect("a timeout");
        let mut bytes = [0; 4096];
        match self.socket.recv(&mut bytes) {
            Ok(length) => {
                let text = str::from_utf8(&bytes[..length]).expect("text");
                Some(text.lines().map(str::to_owned).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => panic!("the socket fails: {error}"),
        }
    }

    /// Listens until it is told this.
    #[track_caller]
    pub fn hears(&self, line: &str) {
        while !self.next().iter().any(|told| told == line) {}
    }

    /// The next thing it is told.
    #[track_caller]
    pub fn next(&self) -> Vec<String> {
        self.hears_within(LONG).expect("it is told something")
    }
}
