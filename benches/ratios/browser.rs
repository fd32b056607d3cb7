//! A real browser, which measures pages as people see them: chromium, driven over `WebDriver`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use axum::http::Method;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use url::{ParseError, Url};

use crate::{Context, Result, fail};

/// What a visit of a page took.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The bytes of all responses on the wire, heads included.
    pub bytes: f64,
    pub requests: f64,
    /// The time until the first contentful paint, in milliseconds.
    pub paint: f64,
}

/// A browser with its own profile. It is closed when it is dropped.
pub struct Browser {
    client: Client,
    driver: Child,
}

impl Browser {
    /// Opens a browser with its profile in `folder`. Its requests name this client's address.
    pub async fn open(folder: &Path, address: &str) -> Result<Self> {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("chromedriver (apt install chromium chromium-driver)")?;
        let port = port(&mut driver)?;
        let args = [
            "--headless".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            format!("--user-data-dir={}", folder.display()),
        ];
        let mut wanted = Capabilities::new();
        wanted.insert("goog:chromeOptions".to_owned(), json!({ "args": args }));
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(wanted)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .context("the browser")?;
        let browser = Self { client, driver };
        browser.devtools("Network.enable", json!({})).await?;
        let headers = json!({ "headers": { "X-Forwarded-For": address } });
        browser.devtools("Network.setExtraHTTPHeaders", headers).await?;
        Ok(browser)
    }

    /// Signs in to the console with a key.
    pub async fn sign_in(&self, base: &str, key: &str) -> Result<()> {
        self.client.goto(&format!("{base}/console/sign_in/")).await.context("the sign-in page")?;
        let field = self.client.find(Locator::Css("#key")).await.context("the field of the key")?;
        field.send_keys(key).await.context("typing the key")?;
        let button = self.client.find(Locator::Css("button.go")).await.context("the button")?;
        button.click().await.context("signing in")?;
        let frame = self.client.wait().for_element(Locator::Css("#nav")).await;
        frame.map(drop).context("the page after the sign-in")
    }

    /// Forgets all files, so that the next visit is a first one.
    pub async fn forget_files(&self) -> Result<()> {
        self.devtools("Network.clearBrowserCache", json!({})).await
    }

    /// Opens a page and waits until it is painted.
    pub async fn visit(&self, url: &str) -> Result<Visit> {
        self.client.goto(url).await.context(url)?;
        let script = "const done = arguments[0]; const look = () => { \
            const [paint] = performance.getEntriesByName('first-contentful-paint'); \
            if (!paint || document.readyState !== 'complete') { setTimeout(look, 20); return; } \
            const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]; \
            const sent = all.filter((one) => one.transferSize > 0); \
            done([sent.reduce((sum, one) => sum + one.transferSize, 0), sent.length, paint.startTime]); \
        }; look()";
        let seen = self.client.execute_async(script, Vec::new()).await.context(url)?;
        let figure = |at: usize| seen[at].as_f64().ok_or("a figure of the browser is missing");
        Ok(Visit { bytes: figure(0)?, requests: figure(1)?, paint: figure(2)? })
    }

    async fn devtools(&self, command: &'static str, parameters: Value) -> Result<()> {
        let command = Devtools { command, parameters };
        self.client.issue_cmd(command).await.map(drop).context("a command of the browser")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver closes its browser.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// A `DevTools` command, which chromedriver passes on.
#[derive(Debug)]
struct Devtools {
    command: &'static str,
    parameters: Value,
}

impl WebDriverCompatibleCommand for Devtools {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> std::result::Result<Url, ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        let body = json!({ "cmd": self.command, "params": self.parameters });
        (Method::POST, Some(body.to_string()))
    }
}

fn port(driver: &mut Child) -> Result<u16> {
    let stdout = driver.stdout.take().ok_or("stdout is not piped")?;
    for line in BufReader::new(stdout).lines() {
        let line = line.context("chromedriver")?;
        if let Some((_, port)) = line.split_once("successfully on port ") {
            return port.trim_end_matches('.').parse().context("the driver's port");
        }
    }
    fail("chromedriver names no port")
}
