//! A page to read the document and try it out: Swagger UI, whose files lie in the binary.

use std::sync::{Arc, LazyLock};

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use utoipa_swagger_ui::{Config, SwaggerFile, serve};
use xxhash_rust::xxh3::xxh3_64;

use crate::access::Needs;
use crate::error::{Error, Result};
use crate::http::constant::Constant;
use crate::http::html::hash;
use crate::http::path::{Asset, Query};
use crate::http::routes::Routes;

const PAGE: &str = "/api/docs/";
const ASSET: &str = "/api/docs/{asset}/";

/// The files of Swagger UI that the page needs: its style sheet.
const STYLE: &str = "swagger-ui.css";
/// And its script.
const BUNDLE: &str = "swagger-ui-bundle.js";

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
        .query::<String>("v", "Its version, as the page names it: that one may be kept for good.")
        .media(&["text/css", "text/javascript"])
        .may(404);
}

async fn page() -> Result<Response> {
    static HTML: LazyLock<Result<String>> = LazyLock::new(|| {
        let [style, bundle] = [STYLE, BUNDLE].map(|name| file(name).map(File::url));
        let (style, bundle) = (style?, bundle?);
        Ok(format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\"><title>Steward: the API</title>\
             <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"{style}\"></head>\
             <body><div id=\"docs\"></div><script src=\"{bundle}\"></script>\
             <script>{SCRIPT}</script></body></html>"
        ))
    });
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, policy()),
        (CACHE_CONTROL, "no-cache".to_owned()),
        (REFERRER_POLICY, "no-referrer".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (X_FRAME_OPTIONS, "DENY".to_owned()),
    ];
    let html = HTML.as_deref().map_err(Clone::clone)?;
    Ok((headers, html).into_response())
}

/// Nothing comes from, or goes to, anywhere else. Swagger UI writes styles into the elements that it makes.
fn policy() -> String {
    let script = hash(SCRIPT);
    format!(
        "default-src 'none'; script-src 'self' '{script}'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// A file of the page.
struct File {
    name: &'static str,
    media: String,
    content: Constant,
    /// Another one for every content, so that no browser takes a file of another version for this one.
    version: String,
}

impl File {
    /// The file as it lies in the binary: compressed.
    fn vendored(name: &'static str) -> Result<Self> {
        let found = serve(name, Arc::new(Config::default())).map_err(Error::internal)?;
        let SwaggerFile { bytes, content_type: media, gzpipped, .. } =
            found.ok_or_else(Error::not_found)?;
        let version = format!("{:016x}", xxh3_64(&bytes));
        let bytes = Bytes::from(bytes.into_owned());
        let content = if gzpipped { Constant::packed(bytes)? } else { Constant::new(bytes) };
        Ok(Self { name, media, content, version })
    }

    fn url(&self) -> String {
        format!("{PAGE}{}?v={}", self.name, self.version)
    }
}

/// The file of this name.
fn file(name: &str) -> Result<&'static File> {
    static FILES: LazyLock<Result<Vec<File>>> =
        LazyLock::new(|| [STYLE, BUNDLE].into_iter().map(File::vendored).collect());
    let files = FILES.as_ref().map_err(Clone::clone)?;
    files.iter().find(|file| file.name == name).ok_or_else(Error::not_found)
}

async fn asset(Asset(name): Asset, query: Query) -> Result<Response> {
    let File { media, content, version, .. } = file(&name)?;
    let is_of_version = query.last("v") == Some(version);
    let kept = if is_of_version { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [
        (CONTENT_TYPE, media.as_str()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, kept),
        (VARY, "accept-encoding"),
    ];
    Ok((headers, content.clone()).into_response())
}
