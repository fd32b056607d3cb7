//! A real browser: Debian's chromium, driven over `WebDriver`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use axum::http::Method;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use flate2::read::GzDecoder;
use hyper_util::client::legacy::connect::HttpConnector;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::{ParseError, Url};

use super::wait::TEST_TIMEOUT;

/// A browser with its own profile. It is closed when it is dropped.
pub struct Browser {
    client: Client,
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    pub async fn open() -> Self {
        Self::open_with(&[]).await
    }

    /// Opens a browser with these arguments too.
    pub async fn open_with(more: &[&str]) -> Self {
        let profile = TempDir::new().expect("a folder");
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts (apt install chromium chromium-driver)");
        let port = port(&mut driver);
        let data = format!("--user-data-dir={}", profile.path().display());
        let mut args = vec![
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            data.as_str(),
        ];
        args.extend(more);
        let mut wanted = Capabilities::new();
        wanted.insert("goog:chromeOptions".to_owned(), json!({ "args": args }));
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(wanted)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("chromedriver starts a browser (apt install chromium chromium-driver)");
        Self { client, driver, _profile: profile }
    }

    /// Opens a page.
    pub async fn visit(&self, url: &str) {
        self.client.goto(url).await.expect("a page");
    }

    /// Waits for the element of this CSS selector and returns its text.
    pub async fn text(&self, selector: &str) -> String {
        let wait = self.client.wait().at_most(TEST_TIMEOUT);
        let found = wait.for_element(Locator::Css(selector)).await;
        found.unwrap_or_else(|_| panic!("timed out: {selector}")).text().await.expect("its text")
    }

    /// Replaces the text of a field.
    pub async fn fill(&self, selector: &str, text: &str) {
        let field = self.client.find(Locator::Css(selector)).await.expect("a field");
        field.clear().await.expect("it can be changed");
        field.send_keys(text).await.expect("it takes text");
    }

    pub async fn click(&self, selector: &str) {
        let found = self.client.find(Locator::Css(selector)).await.expect("something to click on");
        found.click().await.expect("it can be clicked on");
    }

    /// Runs a script in the page and returns its result.
    pub async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.expect("the script runs")
    }

    /// Returns the title of the page.
    pub async fn title(&self) -> String {
        self.client.title().await.expect("a title")
    }

    /// Makes pages record the violations of their content security policy, in `window.refused`.
    pub async fn note_refusals(&self) {
        let source = "window.refused = []; addEventListener('securitypolicyviolation', \
                      event => refused.push(event.effectiveDirective + ' ' + event.blockedURI))";
        let script = json!({ "source": source });
        self.devtools("Page.addScriptToEvaluateOnNewDocument", script).await;
    }

    /// Makes pages record errors of scripts too, in `window.faults`.
    pub async fn note_faults(&self) {
        let source = "window.faults = []; addEventListener('error', event => faults.push(event.message)); \
                      addEventListener('unhandledrejection', event => faults.push(String(event.reason))); \
                      console.error = (...texts) => faults.push(texts.join(' '))";
        let script = json!({ "source": source });
        self.devtools("Page.addScriptToEvaluateOnNewDocument", script).await;
    }

    /// Returns the violations of accessibility rules on the page, as axe-core finds them, each with its elements.
    pub async fn accessibility_violations(&self) -> Value {
        let mut axe = String::new();
        let packed = include_bytes!("axe-core/axe.min.js.gz");
        GzDecoder::new(&packed[..]).read_to_string(&mut axe).expect("a script");
        let run = "axe.run().then(found => found.violations.map(one => \
                   [one.id, one.nodes.map(node => node.html + ' ' + node.failureSummary)]))";
        for expression in [format!("{axe};0"), run.to_owned()] {
            let script =
                json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
            let done = self.devtools("Runtime.evaluate", script).await;
            assert_eq!(done.get("exceptionDetails"), None, "axe-core failed");
            if done["result"]["type"] == "object" {
                return done["result"]["value"].clone();
            }
        }
        panic!("axe-core returned nothing")
    }

    /// Presses Control and a key.
    pub async fn press_with_control(&self, key: char) {
        let focused = self.client.active_element().await.expect("an element");
        let keys = format!("{}{key}{}", fantoccini::key::Key::Control, fantoccini::key::Key::Null);
        focused.send_keys(&keys).await.expect("it takes keys");
    }

    /// Presses Shift and a key in the focused element.
    pub async fn press_with_shift(&self, key: fantoccini::key::Key) {
        let focused = self.client.active_element().await.expect("an element");
        let keys = format!("{}{key}{}", fantoccini::key::Key::Shift, fantoccini::key::Key::Null);
        focused.send_keys(&keys).await.expect("it takes keys");
    }

    /// Drags the middle of an element by this many pixels with the mouse.
    pub async fn drag(&self, selector: &str, dx: f64, dy: f64) {
        let middle = format!(
            "const one = document.querySelector('{selector}'); one.scrollIntoView({{ block: 'center' }}); \
             const box = one.getBoundingClientRect(), middle = [box.x + box.width / 2, box.y + box.height / 2];"
        );
        // A transition between pages covers the page.
        let uncovered = format!(
            "(() => {{ {middle} return one.contains(document.elementFromPoint(...middle)) }})()"
        );
        self.wait_until("the element is reachable", &uncovered).await;
        let from = self.run(&format!("{middle} return middle")).await;
        let (x, y) = (from[0].as_f64().expect("x"), from[1].as_f64().expect("y"));
        for (kind, share, buttons) in [
            ("mouseMoved", 0.0, 0),
            ("mousePressed", 0.0, 1),
            ("mouseMoved", 0.5, 1),
            ("mouseMoved", 1.0, 1),
            ("mouseReleased", 1.0, 0),
        ] {
            let event = json!({
                "type": kind, "x": x + dx * share, "y": y + dy * share, "button": "left",
                "buttons": buttons, "clickCount": 1,
            });
            self.devtools("Input.dispatchMouseEvent", event).await;
        }
    }

    /// Types into the focused element.
    pub async fn type_text(&self, text: &str) {
        let focused = self.client.active_element().await.expect("an element");
        focused.send_keys(text).await.expect("it takes text");
    }

    /// Returns to the page before.
    pub async fn back(&self) {
        self.client.back().await.expect("a page before");
    }

    /// Returns the URL of the page.
    pub async fn url(&self) -> Url {
        self.client.current_url().await.expect("a URL")
    }

    /// Waits until a script returns true.
    pub async fn wait_until(&self, what: &str, condition: &str) {
        let begun = std::time::Instant::now();
        let script = format!("return {condition}");
        // A script fails while the browser replaces the page.
        while !self.client.execute(&script, Vec::new()).await.is_ok_and(|found| found == true) {
            assert!(begun.elapsed() < TEST_TIMEOUT, "timed out: {what}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Whether a dialog is open.
    pub async fn is_asking(&self) -> bool {
        self.client.get_alert_text().await.is_ok()
    }

    /// Presses a key in the focused element.
    pub async fn press(&self, key: fantoccini::key::Key) {
        let focused = self.client.active_element().await.expect("an element");
        focused.send_keys(&key.to_string()).await.expect("it takes keys");
    }

    /// Emulates a screen of this width, with the color scheme `light` or `dark`.
    pub async fn look(&self, width: u32, scheme: &str) {
        let screen =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": true });
        self.devtools("Emulation.setDeviceMetricsOverride", screen).await;
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": scheme })).await;
    }

    /// Makes pages run no scripts, as some people set their browser.
    pub async fn refuse_scripts(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    }

    /// Prints the page as a PDF, in base64.
    pub async fn print(&self) -> String {
        let printed = self.devtools("Page.printToPDF", json!({})).await;
        printed["data"].as_str().expect("a document").to_owned()
    }

    async fn devtools(&self, command: &'static str, parameters: Value) -> Value {
        let command = Devtools { command, parameters };
        self.client.issue_cmd(command).await.expect("the browser does it")
    }

    /// Returns a screenshot of the page as a PNG.
    pub async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("a picture")
    }

    /// Closes the browser's session.
    pub async fn close(self) {
        self.client.clone().close().await.expect("it closes");
    }
}

/// A `DevTools` command, which chromedriver passes on.
#[derive(Debug)]
struct Devtools {
    command: &'static str,
    parameters: Value,
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

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.driver), Signal::TERM);
        let _ = self.driver.wait();
    }
}

fn port(driver: &mut Child) -> String {
    let lines = BufReader::new(driver.stdout.take().expect("stdout is a pipe")).lines();
    lines
        .map(|line| line.expect("a line"))
        .find_map(|line| {
            line.split_once("successfully on port ")
                .map(|(_, port)| port.trim_end_matches('.').to_owned())
        })
        .filter(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
        .expect("the driver's port")
}
