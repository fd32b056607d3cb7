//! The console in a real browser. Every test ends with pages that violate no policy, log no error and have no
//! accessibility problem.

mod activity;
mod attacks;
mod boards;
mod commands;
mod conditions;
mod first_day;
mod flows;
mod forms;
mod hostile;
mod keys;
pub mod looks;
mod screenshots;

use crate::prelude::*;
use crate::support::browser::serve_to_browsers;

/// A workspace on a port that a browser can open.
pub struct Site {
    pub workspace: Workspace,
    port: u16,
    pub base: String,
}

impl Site {
    async fn new() -> Self {
        Self::at("steward.localhost").await
    }

    /// Serves a workspace under this host name, which is its public URL.
    pub async fn at(host: &str) -> Self {
        Self::with(host, Config::default()).await
    }

    /// Does what [`at`](Self::at) does, with this configuration.
    async fn with(host: &str, mut config: Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let base = format!("http://{host}:{port}");
        config.public_url = Some(base.clone());
        config.body_timeout = TEST_TIMEOUT;
        let workspace = Workspace::with(config).await;
        serve_to_browsers(&workspace, listener);
        Self { workspace, port, base }
    }

    /// Opens a page of the console.
    async fn visit(&self, browser: &Browser, path: &str) {
        browser.visit(&format!("{}/console/{path}", self.base)).await;
    }

    /// Signs in with the owner's key.
    async fn sign_in(&self, browser: &Browser) {
        self.visit(browser, "sign_in/").await;
        browser.fill("#key", &self.workspace.made.api_key).await;
        go_to(browser, "button.go", "Home").await;
    }

    /// Serves a workspace, and opens a browser in which the owner has signed in.
    async fn signed_in() -> (Self, Browser) {
        let site = Self::new().await;
        let browser = site.browser().await;
        (site, browser)
    }

    /// Opens a browser in which the owner has signed in.
    async fn browser(&self) -> Browser {
        let browser = browser().await;
        self.sign_in(&browser).await;
        browser
    }

    /// Signs in as the owner with a link of the operator.
    async fn sign_in_by_link(&self, browser: &Browser) {
        let user = self.workspace.made.user_id;
        let link = self.workspace.app.create_sign_in_link(user, true).await.expect("a link");
        self.visit(browser, &format!("enter#{}", link.code)).await;
        browser.text("form[action='/console/enter/confirm/']").await;
        go_to(browser, "button.go", "Home").await;
    }

    /// Creates a dashboard with a text and an insight.
    async fn board(&self, name: &str) -> Value {
        let tiles = json!([
            { "type": "TEXT", "body": "# Read this first\n\nThe **numbers** are rounded.",
              "layouts": { "sm": { "x": 0, "y": 0, "w": 6, "h": 4 } } },
            { "type": "INSIGHT", "name": "Visitors", "color": "blue",
              "layouts": { "sm": { "x": 6, "y": 0, "w": 6, "h": 4 } },
              "query": { "kind": "InsightVizNode", "source": { "kind": "TrendsQuery" } } },
        ]);
        let template = json!({ "template": {
            "template_name": name, "dashboard_description": "Who stays", "dashboard_filters": {}, "tags": ["weekly"], "tiles": tiles,
        }});
        let path = self.workspace.dashboards("create_from_template_json/");
        self.workspace.owner.post(&path, template).await.ok()
    }
}

/// Opens a browser that records what goes wrong on pages.
pub async fn browser() -> Browser {
    recording(Browser::open().await).await
}

async fn recording(browser: Browser) -> Browser {
    browser.look(1280, "light").await;
    browser.note_refusals().await;
    browser.note_faults().await;
    browser
}

/// Waits for the page with this title.
pub async fn shown(browser: &Browser, title: &str) {
    let condition =
        format!("document.readyState === 'complete' && document.title === '{title} · Steward'");
    browser.wait_until(title, &condition).await;
}

/// Presses a button or follows a link, and waits for the page with this title.
pub async fn go_to(browser: &Browser, selector: &str, title: &str) {
    browser.click(selector).await;
    shown(browser, title).await;
}

/// Asserts that nothing went wrong on the page, and that it is accessible.
pub async fn assert_sound(browser: &Browser, what: &str) {
    assert_quiet(browser, what).await;
    assert_accessible(browser, what).await;
}

async fn assert_accessible(browser: &Browser, what: &str) {
    let found = browser.accessibility_violations().await;
    assert_eq!(found, json!([]), "{what}: {found:#}");
}

/// The widths and color schemes in which pages about errors are read: on a desk and on a phone, light and dark.
const LOOKS: [(u32, &str); 4] = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")];

/// Does what [`assert_sound`] does, on a desk and on a phone, in light and in dark.
pub async fn assert_sound_in_every_look(browser: &Browser, what: &str) {
    // axe-core adds styles of its own to pages without a style sheet, and another screen ends a transition between pages.
    assert_quiet(browser, what).await;
    for (width, scheme) in LOOKS {
        browser.look(width, scheme).await;
        assert_accessible(browser, &format!("{what}, {width} pixels wide, {scheme}")).await;
    }
    browser.look(1280, "light").await;
}

/// Asserts that the page violated no policy, logged no error and asked no other server.
async fn assert_quiet(browser: &Browser, what: &str) {
    assert_eq!(browser.run("return refused").await, json!([]), "{what}");
    assert_eq!(browser.run("return faults").await, json!([]), "{what}");
    let foreign = "return performance.getEntriesByType('resource').map(one => one.name)\
        .filter(url => !url.startsWith(location.origin) && !url.startsWith('data:'))";
    assert_eq!(browser.run(foreign).await, json!([]), "{what}");
}
