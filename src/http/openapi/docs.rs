//! A page to read the document and try it out: Swagger UI, whose files lie in the binary.

use std::sync::{Arc, LazyLock};

use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use utoipa_swagger_ui::{Config, SwaggerFile, serve};

use crate::access::Needs;
use crate::error::{Error, Result};
use crate::http::html::hash;
use crate::http::path::Asset;
use crate::http::routes::Routes;

const PAGE: &str = "/api/docs/";
const ASSET: &str = "/api/docs/{asset}/";

/// The files of Swagger UI that the page needs.
const ASSETS: [&str; 2] = ["swagger-ui.css", "swagger-ui-bundle.js"];

/// Starts the page. A key that is entered is kept in the page's memory only.
const SCRIPT: &str = "SwaggerUIBundle({url:'/api/schema/?format=json',dom_id:'#docs',deepLinking:true,\
docExpansion:'none',filter:true,persistAuthorization:false,validatorUrl:null,requestSnippetsEnabled:true,\
tryItOutEnabled:true})";

/// The routes of the page.
pub(super) fn routes(routes: &mut Routes) {
    let needs = Needs::nothing("the page holds nothing; a key is entered there");
    routes
        .get(PAGE, "docs_retrieve", needs, page)
        .summary("Open a page to read this document and try it out.")
        .media(&["text/html"]);
    routes
        .get(ASSET, "docs_asset_retrieve", needs, asset)
        .summary("Retrieve a file of that page.")
        .media(&["text/css", "text/javascript"])
        .may(404);
}

async fn page() -> Response {
    static HTML: LazyLock<String> = LazyLock::new(|| {
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\"><title>Steward: the API</title>\
             <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"{PAGE}swagger-ui.css\"></head>\
             <body><div id=\"docs\"></div><script src=\"{PAGE}swagger-ui-bundle.js\"></script>\
             <script>{SCRIPT}</script></body></html>"
        )
    });
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, policy()),
        (CACHE_CONTROL, "no-cache".to_owned()),
        (REFERRER_POLICY, "no-referrer".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (X_FRAME_OPTIONS, "DENY".to_owned()),
    ];
    (headers, HTML.as_str()).into_response()
}

/// Nothing comes from, or goes to, anywhere else. Swagger UI writes styles into the elements that it makes.
fn policy() -> String {
    let script = hash(SCRIPT);
    format!(
        "default-src 'none'; script-src 'self' '{script}'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The files are in the binary as they go out: compressed.
async fn asset(Asset(name): Asset) -> Result<Response> {
    if !ASSETS.contains(&name.as_str()) {
        return Err(Error::not_found());
    }
    let found = serve(&name, Arc::new(Config::default())).map_err(Error::internal)?;
    let SwaggerFile { bytes, content_type, gzpipped, .. } = found.ok_or_else(Error::not_found)?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::try_from(content_type).map_err(Error::internal)?);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    if gzpipped {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok((headers, bytes.into_owned()).into_response())
}
