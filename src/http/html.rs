//! Pages: HTML that stands alone, with a policy that lets nothing in but its own style and script.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// The parts of a page. Style and script are this crate's own text; what the body holds of others' is escaped.
#[derive(Debug, Clone, Copy)]
pub struct Document<'p> {
    /// The title: text that needs no escaping.
    pub title: &'static str,
    /// The style sheet.
    pub style: &'static str,
    /// The script; empty for none.
    pub script: &'static str,
    /// What stands in the body.
    pub body: &'p str,
}

impl IntoResponse for Document<'_> {
    fn into_response(self) -> Response {
        let Self { title, style, script, body } = self;
        let script_tag = match script {
            "" => String::new(),
            script => format!("<script>{script}</script>"),
        };
        let html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\"><title>{title}</title><style>{style}</style></head>\
             <body>{body}{script_tag}</body></html>"
        );
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
            (CONTENT_SECURITY_POLICY, policy(style, script)),
            (REFERRER_POLICY, "no-referrer".to_owned()),
            (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
            (X_FRAME_OPTIONS, "DENY".to_owned()),
            (CACHE_CONTROL, "no-store".to_owned()),
        ];
        (headers, html).into_response()
    }
}

/// Only the page's own style and script run, and the script may speak to this service only.
fn policy(style: &str, script: &str) -> String {
    let mut policy = format!("default-src 'none'; style-src '{}'", hash(style));
    if !script.is_empty() {
        policy = format!("{policy}; script-src '{}'; connect-src 'self'", hash(script));
    }
    policy + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
