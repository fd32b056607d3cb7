//! A real browser: Debian's chromium, driven over the protocol that browsers are tested by.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use super::process::LONG;

/// A browser with a profile of its own, ended when it is dropped.
pub struct Browser {
    client: Client,
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    pub async fn open() -> Self {
        let profile = TempDir::new().expect("a folder");
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts (apt install chromium chromium-driver)");
        let port = port(&mut driver);
        let data = format!("--user-data-dir={}", profile.path().display());
        let args = [
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
        let mut wanted = Capabilities::new();
        wanted.insert("goog:chromeOptions".to_owned(), json!({ "args": args }));
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(wanted)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("a session");
        Self { client, driver, _profile: profile }
    }

    /// Opens a page.
    pub async fn visit(&self, url: &str) {
        self.client.goto(url).await.expect("a page");
    }

    /// The text of the element that this CSS selector finds, once there is one.
    pub async fn text(&self, selector: &str) -> String {
        let wait = self.client.wait().at_most(LONG);
        let found = wait.for_element(Locator::Css(selector)).await;
        found.unwrap_or_else(|_| panic!("in vain: {selector}")).text().await.expect("its text")
    }

    /// Types into a field, in the place of what stands in it.
    pub async fn fill(&self, selector: &str, text: &str) {
        let field = self.client.find(Locator::Css(selector)).await.expect("a field");
        field.clear().await.expect("it can be changed");
        field.send_keys(text).await.expect("it takes text");
    }

    pub async fn click(&self, selector: &str) {
        let found = self.client.find(Locator::Css(selector)).await.expect("something to click on");
        found.click().await.expect("it can be clicked on");
    }

    /// Ends the browser in order.
    pub async fn close(self) {
        self.client.clone().close().await.expect("it closes");
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
