//! A service manager: the socket that receives the service's notifications.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use super::process::DataFolder;
use super::wait::TEST_TIMEOUT;

/// The socket of a service manager.
pub struct SystemdManager {
    socket: UnixDatagram,
    path: std::path::PathBuf,
}

impl SystemdManager {
    /// Creates a service manager that listens in the site's folder.
    pub fn of(site: &DataFolder) -> Self {
        let path = site.path("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
        Self { socket, path }
    }

    /// Returns `steward serve` with these flags, under this service manager. `watchdog` is the timeout of its
    /// watchdog.
    pub fn steward(&self, site: &DataFolder, args: &[&str], watchdog: Option<Duration>) -> Command {
        let mut command =
            site.steward(&[&["serve", "--listen", "127.0.0.1:0", "--json"], args].concat());
        self.supervise(&mut command, watchdog);
        command
    }

    /// Sets the environment variables by which a command finds the service manager.
    pub fn supervise(&self, command: &mut Command, watchdog: Option<Duration>) {
        command.env("NOTIFY_SOCKET", &self.path);
        if let Some(within) = watchdog {
            command.env("WATCHDOG_USEC", within.as_micros().to_string());
        }
    }

    /// Receives the notifications that were sent by now, and returns the lines of each.
    pub fn received(&self) -> Vec<Vec<String>> {
        self.socket.set_nonblocking(true).expect("a socket");
        let found = std::iter::from_fn(|| self.receive()).collect();
        self.socket.set_nonblocking(false).expect("a socket");
        found
    }

    /// Returns the lines of the next notification, or `None` after the timeout of the socket.
    fn receive(&self) -> Option<Vec<String>> {
        let mut bytes = [0; 4096];
        match self.socket.recv(&mut bytes) {
            Ok(length) => {
                let text = str::from_utf8(&bytes[..length]).expect("text");
                Some(text.lines().map(str::to_owned).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => panic!("the socket failed: {error}"),
        }
    }

    /// Receives notifications until one has this line.
    #[track_caller]
    pub fn assert_received(&self, line: &str) {
        while !self.next().iter().any(|told| told == line) {}
    }

    /// Returns the lines of the next notification.
    #[track_caller]
    pub fn next(&self) -> Vec<String> {
        self.receive().expect("a notification arrives")
    }
}
