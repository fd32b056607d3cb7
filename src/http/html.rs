//! Self-contained HTML pages. Their content security policy allows only their own style and script.

use askama::filters::{Escaper, Html};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// Headers of responses whose URL is a secret: no caching, no indexing, no referrer and no type sniffing.
pub const SECRET_URL_HEADERS: [(HeaderName, HeaderValue); 4] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex")),
];

/// The parts of a page. `style` and `script` must be text of this crate, and `body` must be escaped.
#[derive(Debug, Clone, Copy)]
pub struct HtmlPage<'p> {
    /// The title. It is escaped here.
    pub title: &'p str,
    /// The style sheet.
    pub style: &'static str,
    /// The script, or an empty string.
    pub script: &'static str,
    /// The HTML of the body.
    pub body: &'p str,
}

impl HtmlPage<'_> {
    /// Returns the whole page.
    pub fn html(&self) -> String {
        let Self { title, style, script, body } = self;
        let title = escape(title);
        let script_tag = match *script {
            "" => String::new(),
            script => format!("<script>{script}</script>"),
        };
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\"><title>{title}</title><style>{style}</style></head>\
             <body>{body}{script_tag}</body></html>"
        )
    }
}

/// Returns the headers of a page with this style and script, including its content security policy.
pub fn headers(style: &str, script: &str) -> HeaderMap {
    let policy = HeaderValue::try_from(content_security_policy(style, script));
    let own = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CONTENT_SECURITY_POLICY, policy.unwrap_or(HeaderValue::from_static("default-src 'none'"))),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ];
    SECRET_URL_HEADERS.into_iter().chain(own).collect()
}

impl IntoResponse for HtmlPage<'_> {
    fn into_response(self) -> Response {
        (headers(self.style, self.script), self.html()).into_response()
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Writing to a string cannot fail.
    let _written = Html.write_escaped_str(&mut out, text);
    out
}

/// Returns a policy that allows this style and script, and requests of the script to this service only.
fn content_security_policy(style: &str, script: &str) -> String {
    let mut policy = format!("default-src 'none'; style-src '{}'", csp_hash(style));
    if !script.is_empty() {
        policy = format!("{policy}; script-src '{}'; connect-src 'self'", csp_hash(script));
    }
    policy + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

/// Returns the CSP source expression that allows `text`.
pub fn csp_hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
