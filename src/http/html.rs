//! Pages: HTML that stands alone, with a policy that lets nothing in but its own style and script.

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

/// What goes with every answer whose address is itself a secret: nobody keeps it, lists it, guesses at its type
/// or tells the next site where its reader came from.
pub const UNLISTED: [(HeaderName, HeaderValue); 4] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex")),
];

/// The parts of a page. Style and script are this crate's own text; what the body holds of others' is escaped.
#[derive(Debug, Clone, Copy)]
pub struct Document<'p> {
    /// The title: any text.
    pub title: &'p str,
    /// The style sheet.
    pub style: &'static str,
    /// The script; empty for none.
    pub script: &'static str,
    /// What stands in the body.
    pub body: &'p str,
}

impl Document<'_> {
    /// The whole page.
    pub fn html(&self) -> String {
        let Self { title, style, script, body } = self;
        let title = escaped(title);
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

/// The headers of every page with this style and script: among them the policy that lets in nothing else.
pub fn headers(style: &str, script: &str) -> HeaderMap {
    let policy = HeaderValue::try_from(policy(style, script));
    let own = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CONTENT_SECURITY_POLICY, policy.unwrap_or(HeaderValue::from_static("default-src 'none'"))),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ];
    UNLISTED.into_iter().chain(own).collect()
}

impl IntoResponse for Document<'_> {
    fn into_response(self) -> Response {
        (headers(self.style, self.script), self.html()).into_response()
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Writing to a string cannot fail.
    let _written = Html.write_escaped_str(&mut out, text);
    out
}

/// Only the page's own style and script run, and the script may speak to this service only.
fn policy(style: &str, script: &str) -> String {
    let mut policy = format!("default-src 'none'; style-src '{}'", hash(style));
    if !script.is_empty() {
        policy = format!("{policy}; script-src '{}'; connect-src 'self'", hash(script));
    }
    policy + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

/// The word by which a policy lets a text in.
pub(super) fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
