//! The API documentation page: Swagger UI, whose files are embedded in the binary.

use std::sync::{Arc, LazyLock};

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa_swagger_ui::{Config, SwaggerFile, serve};

use crate::auth::Requirements;
use crate::base::error::{Error, Result};
use crate::http::assets::{Asset, Assets, VERSION};
use crate::http::html::csp_hash;
use crate::http::path::PathParam;
use crate::http::query::QueryParams;
use crate::http::routes::{PathParameter, Routes};
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
            VERSION,
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
        let (style, bundle) = (assets()?.url(STYLE)?, assets()?.url(BUNDLE)?);
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

/// Returns the files of the page.
fn assets() -> Result<&'static Assets> {
    static ASSETS: LazyLock<Result<Assets>> = LazyLock::new(|| {
        let files: Result<_> = [STYLE, BUNDLE].into_iter().map(vendored).collect();
        Ok(Assets::new(PAGE, files?))
    });
    ASSETS.as_ref().map_err(Clone::clone)
}

/// Loads a file of Swagger UI from the binary, which has it compressed.
fn vendored(name: &'static str) -> Result<Asset> {
    let found = serve(name, Arc::new(Config::default())).map_err(Error::internal)?;
    let SwaggerFile { bytes, content_type, .. } = found.ok_or_else(Error::not_found)?;
    Asset::from_gzip(name, content_type, Bytes::from(bytes.into_owned()))
}

async fn asset(PathParam(name): PathParam<PathAsset>, query: QueryParams) -> Result<Response> {
    let PathAsset(name) = name?;
    assets()?.response(&name, query.last(VERSION))
}
