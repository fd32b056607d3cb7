//! A real browser: Debian's chromium, driven over `WebDriver`.

use std::io::Read;
use std::sync::LazyLock;

use fantoccini::error::{CmdError, ErrorStatus};
use fantoccini::key::Key;
use fantoccini::wd::WindowHandle;
use fantoccini::{Client, ClientBuilder, Locator};
use flate2::read::GzDecoder;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use steward::{ServerLimits, router, serve};
use tempfile::TempDir;
use tokio::net::TcpListener;
use url::Url;

use super::Workspace;
use super::chromedriver::{Chromedriver, Devtools, capabilities};
use super::wait::{TEST_TIMEOUT, eventually_async};

/// Serves a workspace on this listener. No browser reaches its time limits.
pub fn serve_to_browsers(workspace: &Workspace, listener: TcpListener) {
    let router = router(workspace.app.clone());
    let limits = ServerLimits {
        header_timeout: TEST_TIMEOUT,
        write_timeout: TEST_TIMEOUT,
        ..ServerLimits::default()
    };
    tokio::spawn(async move { serve(listener, router, &limits, std::future::pending()).await });
}

/// What a command on an element answers while the page is not ready for it. A transition between pages covers the page.
const NOT_READY: [ErrorStatus; 4] = [
    ErrorStatus::NoSuchElement,
    ErrorStatus::StaleElementReference,
    ErrorStatus::ElementNotInteractable,
    ErrorStatus::ElementClickIntercepted,
];

/// Returns the result of a command on an element, or nothing if the page is not ready for it.
#[track_caller]
fn if_ready<T>(done: Result<T, CmdError>) -> Option<T> {
    match done {
        Err(CmdError::Standard(error)) if NOT_READY.contains(&error.error) => None,
        done => Some(done.expect("the browser does it")),
    }
}

/// A browser with its own profile. It is closed when it is dropped.
pub struct Browser {
    client: Client,
    _driver: Chromedriver,
    _profile: TempDir,
}

impl Browser {
    pub async fn open() -> Self {
        Self::open_with(&[]).await
    }

    /// Opens a browser with these arguments too.
    pub async fn open_with(more: &[&str]) -> Self {
        let profile = TempDir::new().expect("a folder");
        let driver = Chromedriver::start().expect("chromedriver starts");
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities(profile.path(), more))
            .connect(&driver.url)
            .await
            .expect("chromedriver starts a browser (apt install chromium chromium-driver)");
        Self { client, _driver: driver, _profile: profile }
    }

    /// Opens a page.
    pub async fn visit(&self, url: &str) {
        self.client.goto(url).await.expect("a page");
    }

    /// Waits for the element of this CSS selector and returns its text. If the page is replaced meanwhile, that is the text on
    /// the new page.
    pub async fn text(&self, selector: &str) -> String {
        eventually_async(selector, async || {
            let found = if_ready(self.client.find(Locator::Css(selector)).await)?;
            if_ready(found.text().await)
        })
        .await
    }

    /// Waits for a field and replaces its text.
    pub async fn fill(&self, selector: &str, text: &str) {
        eventually_async(selector, async || {
            let field = if_ready(self.client.find(Locator::Css(selector)).await)?;
            if_ready(field.clear().await)?;
            if_ready(field.send_keys(text).await)
        })
        .await;
    }

    /// Waits until an element can be clicked on, and clicks on it.
    pub async fn click(&self, selector: &str) {
        eventually_async(selector, async || {
            let found = if_ready(self.client.find(Locator::Css(selector)).await)?;
            if_ready(found.click().await)
        })
        .await;
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
        self.run_first(source).await;
    }

    /// Runs a script in each page before the scripts of the page.
    pub async fn run_first(&self, source: &str) {
        self.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source })).await;
    }

    /// Makes pages record errors of scripts too, in `window.faults`. A transition between pages that the browser skips or
    /// aborts, because something else comes first or it is too busy, is none.
    pub async fn note_faults(&self) {
        let source = "window.faults = []; addEventListener('error', event => faults.push(event.message)); \
                      addEventListener('unhandledrejection', event => { \
                      if (!/^Transition was (skipped|aborted)/.test(event.reason?.message)) faults.push(String(event.reason)) }); \
                      console.error = (...texts) => faults.push(texts.join(' '))";
        self.run_first(source).await;
    }

    /// Returns the violations of accessibility rules on the page, as axe-core finds them, each with its elements.
    pub async fn accessibility_violations(&self) -> Value {
        let run = "self.axe && axe.run().then(found => found.violations.map(one => \
                   [one.id, one.nodes.map(node => node.html + ' ' + node.failureSummary)]))";
        // A page keeps the script from one check to the next.
        for expression in [run, axe_core(), run] {
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
        self.type_text(&format!("{}{key}{}", Key::Control, Key::Null)).await;
    }

    /// Presses Shift and a key in the focused element.
    pub async fn press_with_shift(&self, key: Key) {
        self.type_text(&format!("{}{key}{}", Key::Shift, Key::Null)).await;
    }

    /// Drags the middle of an element by this many pixels with the mouse.
    pub async fn drag(&self, selector: &str, dx: f64, dy: f64) {
        let (x, y) = self.middle(selector).await;
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

    /// Does what [`drag`](Self::drag) does with a finger.
    pub async fn drag_by_touch(&self, selector: &str, dx: f64, dy: f64) {
        let (x, y) = self.middle(selector).await;
        for (kind, share) in [("touchStart", 0.0), ("touchMove", 0.5), ("touchMove", 1.0)] {
            let point = json!({ "x": x + dx * share, "y": y + dy * share });
            let event = json!({ "type": kind, "touchPoints": [point] });
            self.devtools("Input.dispatchTouchEvent", event).await;
        }
        let end = json!({ "type": "touchEnd", "touchPoints": [] });
        self.devtools("Input.dispatchTouchEvent", end).await;
    }

    /// Scrolls an element to the middle of the screen, and returns where its middle is.
    async fn middle(&self, selector: &str) -> (f64, f64) {
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
        (from[0].as_f64().expect("x"), from[1].as_f64().expect("y"))
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

    /// Returns the tab that is used.
    pub async fn tab(&self) -> WindowHandle {
        self.client.window().await.expect("a tab")
    }

    /// Opens another tab and uses it.
    pub async fn open_tab(&self) -> WindowHandle {
        let opened = self.client.new_window(true).await.expect("a tab").handle;
        self.switch_to(&opened).await;
        self.note_refusals().await;
        self.note_faults().await;
        opened
    }

    /// Uses another tab.
    pub async fn switch_to(&self, tab: &WindowHandle) {
        self.client.switch_to_window(tab.clone()).await.expect("the tab is open");
    }

    /// Returns the URL of the page.
    pub async fn url(&self) -> Url {
        self.client.current_url().await.expect("a URL")
    }

    /// Waits until a script returns true.
    pub async fn wait_until(&self, what: &str, condition: &str) {
        let script = format!("return {condition}");
        eventually_async(what, async || {
            // A script fails while the browser replaces the page.
            let found = self.client.execute(&script, Vec::new()).await;
            found.is_ok_and(|found| found == true).then_some(())
        })
        .await;
    }

    /// Whether a dialog is open.
    pub async fn is_asking(&self) -> bool {
        self.client.get_alert_text().await.is_ok()
    }

    /// Presses a key in the focused element.
    pub async fn press(&self, key: Key) {
        self.type_text(&key.to_string()).await;
    }

    /// Presses Tab. Chromedriver would put the focus back to the first part of a field for a date.
    pub async fn press_tab(&self) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event =
                json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
            self.devtools("Input.dispatchKeyEvent", event).await;
        }
    }

    /// Emulates a screen of this width, with the color scheme `light` or `dark`.
    pub async fn look(&self, width: u32, scheme: &str) {
        self.resize(width, 900).await;
        self.prefer(&[("prefers-color-scheme", scheme)]).await;
    }

    /// Emulates a screen of this width and height.
    pub async fn resize(&self, width: u32, height: u32) {
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": true });
        self.devtools("Emulation.setDeviceMetricsOverride", screen).await;
    }

    /// Emulates these preferences of the user, such as `forced-colors`.
    pub async fn prefer(&self, features: &[(&str, &str)]) {
        let features: Vec<_> =
            features.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// Makes pages behave as in the window that has the focus of the system.
    pub async fn keep_focus(&self) {
        self.devtools("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await;
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
        self.client.issue_cmd(Devtools { command, parameters }).await.expect("the browser does it")
    }

    /// Returns a screenshot of the page as a PNG.
    pub async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("a picture")
    }
}

/// Returns a script that defines axe-core.
fn axe_core() -> &'static str {
    static SCRIPT: LazyLock<String> = LazyLock::new(|| {
        let mut script = String::new();
        let packed = include_bytes!("axe-core/axe.min.js.gz");
        GzDecoder::new(&packed[..]).read_to_string(&mut script).expect("a script");
        script + ";0"
    });
    &SCRIPT
}
