//! A real browser, which measures pages as people see them: chromium, driven over `WebDriver`.

use std::path::Path;

use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

use crate::chromedriver::{Chromedriver, Devtools, capabilities};
use crate::{Context, Result};

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
    _driver: Chromedriver,
}

impl Browser {
    /// Opens a browser with its profile in `folder`. Its requests name this client's address.
    pub async fn open(folder: &Path, address: &str) -> Result<Self> {
        let driver = Chromedriver::start().context("the browser")?;
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities(folder, &[]))
            .connect(&driver.url)
            .await
            .context("the browser")?;
        let browser = Self { client, _driver: driver };
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
