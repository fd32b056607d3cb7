//! The service under test as a child process. The benchmark assumes this about the binary:
//!
//! - `steward serve --data FILE --listen 127.0.0.1:0 --page-cache 64MiB` creates FILE if it is missing. It prints a
//!   line with `http://127.0.0.1:PORT` to stdout once it listens, and exits cleanly on SIGTERM.
//! - `--data URL --copy FILE` in place of `--data FILE` serves a shared database with a copy in FILE.
//! - If stdout is not a terminal, the first run writes the first key to `FILE.first-key`.
//! - While the server runs, `steward user list --data FILE --json` prints `{"results": [{"email": ...}]}`, and
//!   `steward key create --data FILE --email E --label L --scope '*' --json` prints an object with `value`.
//! - A form with `key` to `/console/sign_in/` sets the cookie that opens the pages below `/console/`.
//! - `GET /api/projects/` lists a project. Its dashboards are under `/api/projects/ID/dashboards/`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{Client, render};
use crate::process::{Cores, Guard};
use crate::{Context, Result, fail};

/// The time limit for a server to listen, including opening a large file after a crash.
pub const LISTENING_WITHIN: Duration = Duration::from_secs(60);

/// The page cache size of the service, in bytes.
pub const PAGE_CACHE: u64 = 64 << 20;
const PAGE_CACHE_FLAG: &str = "64MiB";

/// Returns the binary under test: `STEWARD_BIN`, or the one built by cargo.
pub fn binary() -> PathBuf {
    std::env::var_os("STEWARD_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_steward").into(), PathBuf::from)
}

/// Where the data of a service lies.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a file.
    File(PathBuf),
    /// In a shared database. This node keeps a copy of it.
    Shared { url: String, copy: PathBuf },
}

impl Place {
    /// Returns the data file or the copy. The first key lies beside it.
    pub fn file(&self) -> &Path {
        match self {
            Self::File(path) | Self::Shared { copy: path, .. } => path,
        }
    }

    /// Returns the flags that name this place.
    fn flags(&self) -> Vec<OsString> {
        match self {
            Self::File(path) => vec!["--data".into(), path.into()],
            Self::Shared { url, copy } => {
                vec!["--data".into(), url.into(), "--copy".into(), copy.into()]
            }
        }
    }
}

/// A running service.
pub struct Service {
    binary: PathBuf,
    guard: Guard,
    place: Place,
    started: Instant,
    pub address: SocketAddr,
}

impl Service {
    /// Starts `binary` on the data at `place` and waits until it listens.
    pub fn start(binary: &Path, place: &Place, cores: Cores) -> Result<Self> {
        let log = place.file().with_extension("log");
        let stderr = File::create(&log).context("the log of the service")?;
        let mut command = Command::new(binary);
        command.arg("serve").args(place.flags());
        command
            .args(["--listen", "127.0.0.1:0", "--page-cache", PAGE_CACHE_FLAG])
            // The large file has more dashboards than a project may have by default.
            .args(["--max-dashboards", "10000000"])
            // The browser of the console's rows names a foreign address, because clients on loopback get no compression.
            .args(["--trusted-proxy", "127.0.0.1/32"])
            // The first node of a shared database. Releases without the variable need no word.
            .env("STEWARD_FOUND", "true")
            .stderr(stderr);
        let started = Instant::now();
        let mut guard = Guard::spawn(&mut command, cores)?;
        match address_on(&mut guard, LISTENING_WITHIN) {
            Ok(address) => {
                let (binary, place) = (binary.to_owned(), place.clone());
                Ok(Self { binary, guard, place, started, address })
            }
            Err(error) => {
                let log = std::fs::read_to_string(log).unwrap_or_default();
                fail(format!("steward on {}: {error}\n{log}", place.file().display()))
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.guard.pid()
    }

    /// Opens a blocking connection.
    pub fn client(&self) -> Result<Client> {
        Client::connect(self.address, Duration::from_secs(30))
    }

    /// Returns the time from the start of the process to the first 200 for `path` with `key`.
    pub fn first_answer(&self, path: &str, key: &str) -> Result<Duration> {
        let request = render("GET", path, key, "");
        while self.started.elapsed() < LISTENING_WITHIN {
            if self.client()?.send(&request)?.0 == 200 {
                return Ok(self.started.elapsed());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        fail(format!("no 200 for {path} within a minute"))
    }

    /// Returns the key of the first run, or a new key if its file is missing.
    pub fn first_key(&self) -> Result<String> {
        let mut path = self.place.file().to_owned().into_os_string();
        path.push(".first-key");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let key = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        match key.into_iter().find(|word| word.starts_with("phx_")) {
            Some(key) => Ok(key.to_owned()),
            None => self.new_key("bench"),
        }
    }

    /// Creates a key for the first user through the running server.
    pub fn new_key(&self, label: &str) -> Result<String> {
        let users = self.command(&["user", "list"])?;
        let email = users["results"][0]["email"].as_str().ok_or("`user list` shows no email")?;
        let key =
            self.command(&["key", "create", "--email", email, "--label", label, "--scope", "*"])?;
        Ok(key["value"].as_str().ok_or("`key create` shows no value")?.to_owned())
    }

    /// Runs an operator command against the running server and returns its JSON output.
    fn command(&self, words: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.binary);
        let output = command.args(words).args(self.place.flags()).arg("--json").output();
        let output = output.context(format!("steward {words:?}"))?;
        if !output.status.success() {
            return fail(format!("steward {words:?}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        serde_json::from_slice(&output.stdout).context(format!("the JSON of steward {words:?}"))
    }

    /// Creates a backup through the running server, and deletes it.
    pub fn back_up(&self, cores: Cores) -> Result<()> {
        let file = self.place.file().with_extension("backup");
        let mut command = Command::new(&self.binary);
        command.arg("backup").arg(&file).args(self.place.flags());
        let output = cores.on_server(|| command.output())?.context("steward backup")?;
        if !output.status.success() {
            return fail(format!("steward backup: {}", String::from_utf8_lossy(&output.stderr)));
        }
        std::fs::remove_file(&file).context("the backup")
    }

    /// Stops the service so that its file is closed cleanly.
    pub fn stop(mut self) -> Result<()> {
        self.guard.stop()
    }

    /// Stops the service cleanly and starts it again on the same data.
    pub fn restarted(mut self, cores: Cores) -> Result<Self> {
        self.guard.stop()?;
        Self::start(&self.binary, &self.place, cores)
    }

    /// Kills the service with SIGKILL.
    pub fn kill(mut self) -> Result<()> {
        self.guard.kill()
    }
}

/// Waits for the line with the server's address, then keeps reading stdout so that the server never blocks.
pub fn address_on(guard: &mut Guard, within: Duration) -> Result<SocketAddr> {
    let stdout = guard.child().stdout.take().ok_or("stdout is not piped")?;
    let (found, address) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
            if let Some(address) = address_in(&line) {
                // Later addresses are ignored.
                let _ = found.send(address);
            }
        }
    });
    address.recv_timeout(within).context("no line with http://127.0.0.1:PORT on stdout")
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let rest = line.split_once("http://127.0.0.1:")?.1;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    Some(SocketAddr::from(([127, 0, 0, 1], rest[..digits].parse().ok()?)))
}
