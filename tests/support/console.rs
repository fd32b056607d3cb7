//! A browser without scripts that opens pages of the console: it keeps the cookie, and sends what browsers send.

use axum::http::{HeaderMap, Method};

use super::{TestClient, TestResponse, Workspace};

/// A browser.
#[derive(Clone)]
pub struct Visitor {
    client: TestClient,
    /// The cookie, as the browser sends it.
    pub cookie: Option<String>,
}

/// A page.
pub struct Page {
    pub status: u16,
    pub headers: HeaderMap,
    pub html: String,
}

impl Page {
    fn of(answer: TestResponse) -> Self {
        let html = String::from_utf8(answer.bytes).expect("UTF-8");
        Self { status: answer.status, headers: answer.headers, html }
    }

    /// Returns the target of a redirection.
    #[track_caller]
    pub fn location(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.html);
        self.headers["location"].to_str().expect("text")
    }

    /// Asserts a page with this status and this heading.
    #[track_caller]
    pub fn assert_shows(&self, status: u16, heading: &str) {
        assert_eq!(self.status, status, "{}", self.html);
        assert_eq!(self.headers["content-type"], "text/html; charset=utf-8");
        let heading_start = self.html.find("<h1").expect("a heading");
        let end = heading_start + self.html[heading_start..].find("</h1>").expect("its end");
        let shown = &self.html[heading_start..end];
        assert!(shown.ends_with(heading), "{shown}");
    }

    /// Returns the text between the first `start` and the next `end`.
    #[track_caller]
    pub fn between(&self, start: &str, end: &str) -> &str {
        let (_, rest) =
            self.html.split_once(start).unwrap_or_else(|| panic!("{start}: {}", self.html));
        rest.split_once(end).expect("the end").0
    }
}

impl Visitor {
    /// Returns a browser that is not signed in.
    pub fn new(workspace: &Workspace) -> Self {
        Self { client: workspace.anonymous(), cookie: None }
    }

    /// Returns a browser that signed in with this API key.
    pub async fn with_key(workspace: &Workspace, key: &str) -> Self {
        let mut visitor = Self::new(workspace);
        let page = visitor.post("/console/sign_in/", &[("key", key)]).await;
        assert_eq!(page.location(), "/console/");
        visitor
    }

    /// Returns a browser that the owner's key signed in.
    pub async fn owner(workspace: &Workspace) -> Self {
        Self::with_key(workspace, &workspace.made.api_key).await
    }

    /// Returns a browser that a link signed in as the first user.
    pub async fn with_link(workspace: &Workspace, is_operator: bool) -> Self {
        let user = workspace.made.user_id;
        let link = workspace.app.create_sign_in_link(user, is_operator).await.expect("a link");
        let mut visitor = Self::new(workspace);
        let page = visitor.post("/console/enter/confirm/", &[("code", &link.code)]).await;
        assert_eq!(page.location(), "/console/");
        visitor
    }

    pub async fn get(&self, path: &str) -> Page {
        self.fetch(Method::GET, path, &[], "").await
    }

    /// Sends a form from a page of the console, and keeps the cookie of the response.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let body =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let headers = [
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let page = self.fetch(Method::POST, path, &headers, &body).await;
        if let Some(set) = page.headers.get("set-cookie") {
            let set = set.to_str().expect("text");
            let (pair, _) = set.split_once(';').expect("attributes");
            self.cookie = (!pair.ends_with('=')).then(|| pair.to_owned());
        }
        page
    }

    /// Sends a request with these headers.
    pub async fn fetch(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Page {
        let mut headers = headers.to_vec();
        headers.extend(self.cookie.as_deref().map(|cookie| ("cookie", cookie)));
        Page::of(self.client.fetch(method, path, &headers, body.to_owned()).await)
    }
}
