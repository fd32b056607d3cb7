//! Debian's chromium under chromedriver, for the tests and the benchmarks.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use axum::http::Method;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use url::{ParseError, Url};

/// A driver that runs. It closes its browser and ends when it is dropped.
pub struct Chromedriver {
    driver: Child,
    /// The address of its `WebDriver` interface.
    pub url: String,
}

impl Chromedriver {
    /// Starts a driver on a free port. It needs the same one for IPv4 and IPv6, and ends if another program has one of them.
    ///
    /// # Errors
    /// The program is missing, or it names no port.
    pub fn start() -> io::Result<Self> {
        const ATTEMPTS: usize = 10;
        for _ in 0..ATTEMPTS {
            if let Some(started) = Self::attempt()? {
                return Ok(started);
            }
        }
        Err(io::Error::other("chromedriver names no port"))
    }

    fn attempt() -> io::Result<Option<Self>> {
        let mut command = Command::new("chromedriver");
        let command = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let missing = |error| {
            io::Error::other(format!(
                "chromedriver (apt install chromium chromium-driver): {error}"
            ))
        };
        let mut started = Self { driver: command.spawn().map_err(missing)?, url: String::new() };
        let stdout = started.driver.stdout.take().map(BufReader::new);
        for line in stdout.into_iter().flat_map(BufRead::lines) {
            if let Some((_, port)) = line?.split_once("successfully on port ") {
                started.url = format!("http://127.0.0.1:{}", port.trim_end_matches('.'));
                return Ok(Some(started));
            }
        }
        Ok(None)
    }
}

impl Drop for Chromedriver {
    fn drop(&mut self) {
        // A driver that is killed at once leaves its browser behind.
        let _ = kill_process(Pid::from_child(&self.driver), Signal::TERM);
        let _ = self.driver.wait();
    }
}

/// How long a browser may take to start, to load a page and to run a script, in milliseconds.
const TIMEOUT: u32 = 300_000;

/// Returns the capabilities of a browser with its profile in this folder, and with these arguments too.
pub fn capabilities(profile: &Path, more: &[&str]) -> Capabilities {
    let profile = format!("--user-data-dir={}", profile.display());
    let mut arguments = vec![
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        &profile,
    ];
    arguments.extend(more);
    let mut wanted = Capabilities::new();
    let options = json!({ "args": arguments, "browserStartupTimeout": TIMEOUT });
    wanted.insert("goog:chromeOptions".to_owned(), options);
    wanted.insert("timeouts".to_owned(), json!({ "pageLoad": TIMEOUT, "script": TIMEOUT }));
    wanted
}

/// A `DevTools` command, which chromedriver passes on.
#[derive(Debug)]
pub struct Devtools {
    pub command: &'static str,
    pub parameters: Value,
}

impl WebDriverCompatibleCommand for Devtools {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        let body = json!({ "cmd": self.command, "params": self.parameters });
        (Method::POST, Some(body.to_string()))
    }
}
