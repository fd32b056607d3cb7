//! The API documentation page: Swagger UI, whose files are embedded in the binary.

use std::sync::{Arc, LazyLock};

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa_swagger_ui::{Config, SwaggerFile, serve};
use xxhash_rust::xxh3::xxh3_64;

use crate::auth::Requirements;
use crate::error::{Error, Result};
use crate::http::html::csp_hash;
use crate::http::path::{PathParam, QueryParams};
use crate::http::routes::{PathParameter, Routes};
use crate::http::static_response::StaticResponse;
use crate::input::Schema;

const PAGE: &str = "/api/docs/";
const ASSET: &str = "/api/docs/{asset}/";

/// The style sheet of Swagger UI.
const STYLE: &str = "swagger-ui.css";
/// The script of Swagger UI.
const BUNDLE: &str = "swagger-ui-bundle.js";

/// Starts Swagger UI. An entered key is kept in the page's memory only.
const SCRIPT: &str = "SwaggerUIBundle({url:'/api/schema/?format=json',dom_id:'#docs',deepLinking:true,\
docExpansion:'none',filter:true,persistAuthorization:false,validatorUrl:null,requestSnippetsEnabled:true,\
tryItOutEnabled:true})";

/// Adds the routes of the page.
pub(super) fn routes(routes: &mut Routes) {
    let needs = Requirements::public("the page shows no data and asks for a key");
    routes
        .get(PAGE, "docs_retrieve", needs, page)
        .summary("Open a page to read this document and send requests.")
        .media_types(&["text/html"]);
    routes
        .get(ASSET, "docs_asset_retrieve", needs, asset)
        .summary("Retrieve a file of the documentation page.")
        .in_path::<PathAsset>()
        .query::<String>(
            "v",
            "The file's version. With the current version, the response may be cached forever.",
        )
        .media_types(&["text/css", "text/javascript"])
        .may_return(404);
}

/// The path's `{asset}`.
struct PathAsset(String);

impl PathParameter for PathAsset {
    const NAME: &'static str = "asset";
    const DESCRIPTION: &'static str = "The name of the file.";

    fn schema() -> RefOr<Schema> {
        String::schema()
    }

    fn parse(text: &str) -> Result<Self> {
        Ok(Self(text.to_owned()))
    }
}

async fn page() -> Result<Response> {
    static HTML: LazyLock<Result<String>> = LazyLock::new(|| {
        let [style, bundle] = [STYLE, BUNDLE].map(|name| file(name).map(VendoredFile::url));
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

/// Returns a policy that allows only this service. Inline styles are allowed because Swagger UI sets style
/// attributes.
fn policy() -> String {
    let script = csp_hash(SCRIPT);
    format!(
        "default-src 'none'; script-src 'self' '{script}'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// An embedded file of the page.
struct VendoredFile {
    name: &'static str,
    media: String,
    content: StaticResponse,
    /// A hash of the content, so that browsers never use a cached file of another version.
    version: String,
}

impl VendoredFile {
    /// Loads a file from the binary.
    fn vendored(name: &'static str) -> Result<Self> {
        let found = serve(name, Arc::new(Config::default())).map_err(Error::internal)?;
        let SwaggerFile { bytes, content_type: media, gzpipped, .. } =
            found.ok_or_else(Error::not_found)?;
        let version = format!("{:016x}", xxh3_64(&bytes));
        let bytes = Bytes::from(bytes.into_owned());
        let content =
            if gzpipped { StaticResponse::from_gzip(bytes)? } else { StaticResponse::new(bytes) };
        Ok(Self { name, media, content, version })
    }

    fn url(&self) -> String {
        format!("{PAGE}{}?v={}", self.name, self.version)
    }
}

/// Returns the file `name`, or 404.
fn file(name: &str) -> Result<&'static VendoredFile> {
    static FILES: LazyLock<Result<Vec<VendoredFile>>> =
        LazyLock::new(|| [STYLE, BUNDLE].into_iter().map(VendoredFile::vendored).collect());
    let files = FILES.as_ref().map_err(Clone::clone)?;
    files.iter().find(|file| file.name == name).ok_or_else(Error::not_found)
}

async fn asset(PathParam(name): PathParam<PathAsset>, query: QueryParams) -> Result<Response> {
    let PathAsset(name) = name?;
    let VendoredFile { media, content, version, .. } = file(&name)?;
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
