//! The `OpenAPI` 3.1 document, generated from the route table, and the documentation page.

mod error_responses;
mod operation;
mod parameters;
mod schemas;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, OnceLock};

use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa_swagger_ui::{Config, SwaggerFile, serve};

use crate::auth::Requirements;
use crate::base::error::{Error, Result};
use crate::input::Schema;

use super::assets::{Asset, Assets, StaticResponse, VERSION};
use super::html::csp_hash;
use super::path::PathParam;
use super::query::QueryParams;
use super::route_spec::BodySpec;
use super::routes::{PathParameter, RouteSpec, RouteTable, Routes};

use schemas::{ResponseSchemas, add_schema, extract_titled};

/// The document as YAML and JSON, each generated on first request so that a start does not pay for
/// them.
struct Documents {
    about: About,
    table: RouteTable,
    yaml: OnceLock<Result<StaticResponse>>,
    json: OnceLock<Result<StaticResponse>>,
}

/// What a document says of itself.
#[derive(Clone, Copy)]
pub struct About {
    /// The name of the API.
    pub title: &'static str,
    /// What holds for all operations.
    pub description: &'static str,
}

/// The API of the service.
const SERVICE: About = About { title: "Steward", description: DESCRIPTION };

/// Adds the routes of the document and of the documentation page.
pub fn routes(routes: &mut Routes) {
    routes.resource("schema", "This document, and a page to read it and send requests.");
    add_document(routes, "/api/schema/", "schema_retrieve", SERVICE);
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

/// Adds the route of the document of all routes of a table.
pub fn add_document(
    routes: &mut Routes,
    path: &'static str,
    operation: &'static str,
    about: About,
) {
    let (table, yaml, json) = (routes.table(), OnceLock::new(), OnceLock::new());
    let texts = Arc::new(Documents { about, table, yaml, json });
    let needs = Requirements::public("it describes the service, not its data");
    let serve = move |query: QueryParams| async move { texts.response(query.last("format")) };
    routes
        .get(path, operation, needs, serve)
        .summary("Retrieve this document as YAML, or as JSON.")
        .query::<parameters::DocumentFormat>("format", "The format: `yaml` (default) or `json`.")
        .media_types(&[YAML, JSON])
        .may_return(404);
}

const YAML: &str = "application/vnd.oai.openapi";
const JSON: &str = "application/vnd.oai.openapi+json";

impl Documents {
    fn response(&self, format: Option<&str>) -> Result<Response> {
        let document = || document(self.about, self.table.specs());
        let (media, text) = match format {
            None | Some("" | "yaml") => (YAML, self.yaml.get_or_init(|| yaml(&document()))),
            Some("json") => (JSON, self.json.get_or_init(|| json(&document()))),
            Some(_) => return Err(Error::not_found()),
        };
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(media)),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        Ok((headers, text.clone()?).into_response())
    }
}

fn yaml(document: &Value) -> Result<StaticResponse> {
    let text = yaml_serde::to_string(&YamlValue(document)).map_err(Error::internal)?;
    Ok(StaticResponse::new(Bytes::from(text)))
}

/// JSON that serializes to another format. `serde_json` hands numbers only to its own serializer.
struct YamlValue<'v>(&'v Value);

impl Serialize for YamlValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => to.serialize_i64(integer),
                (None, Some(float)) => to.serialize_f64(float),
                (None, None) => to.serialize_str(number.as_str()),
            },
            Value::Array(items) => to.collect_seq(items.iter().map(YamlValue)),
            Value::Object(members) => {
                to.collect_map(members.iter().map(|(name, value)| (name, YamlValue(value))))
            }
            other => other.serialize(to),
        }
    }
}

fn json(document: &Value) -> Result<StaticResponse> {
    let text = serde_json::to_vec(document).map_err(Error::internal)?;
    Ok(StaticResponse::new(Bytes::from(text)))
}

const DESCRIPTION: &str = "The admin API of an analytics workspace, compatible with PostHog: organizations, \
domains, invites, members, projects, dashboards, batch exports and the activity log.

Every path is served with and without its trailing slash, and every path below `/api/projects/` also below \
`/api/environments/`. HEAD works where GET does. OPTIONS returns 204 with `Allow`, and any other method \
returns 405 with `Allow`. Request bodies are JSON in UTF-8 of at most 1 MiB (`--max-body`), or 16 KiB without \
an API key. An empty body counts as `{}`. Unknown fields are ignored, and PATCH leaves absent fields \
unchanged. Strings are trimmed. Strings that spell a boolean or a number are accepted in its place. Free-form \
fields hold up to 32 KiB and 32 levels, a dashboard up to 1,000 tiles. A filtered activity log searches the \
newest 100,000 entries of its time range. Times are in UTC.

A POST with an `Idempotency-Key` is performed once. Responses with a single object carry an `ETag`: \
`If-None-Match` avoids reading an unchanged object again, and `If-Match` prevents a PATCH or DELETE from \
overwriting another client's change. With `Dry-Run: true`, a request runs with all checks and changes nothing. Errors report one problem at a time, in four fields.";

/// The components of the document. Those that depend on no operation are in a file of their own. There, a header has no
/// example, because the documentation page would send it. A list of entity tags is one pattern, because generators accept
/// anything for alternatives without a type.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Components {
    schemas: Map<String, Value>,
    responses: Map<String, Value>,
    parameters: Value,
    headers: Value,
    security_schemes: Value,
}

impl Components {
    fn shared() -> Self {
        serde_json::from_str(include_str!("components.json")).unwrap_or_default()
    }
}

/// Returns the document of these operations of the service.
#[must_use]
pub fn build_document(specs: &[RouteSpec]) -> Value {
    document(SERVICE, specs)
}

fn document(About { title, description }: About, specs: &[RouteSpec]) -> Value {
    let mut paths = Map::new();
    let mut answers = ResponseSchemas::default();
    for row in specs {
        if let Value::Object(path) = paths.entry(row.path).or_insert_with(|| json!({})) {
            let operation = operation::operation(row, specs, &mut answers);
            path.insert(row.method.as_str().to_lowercase(), operation);
        }
    }
    let shared = Components::shared();
    let mut schemas = answers.finish();
    for (name, schema) in error_responses::schemas().chain(shared.schemas) {
        add_schema(&mut schemas, &name, &schema);
    }
    for BodySpec { name, schema, .. } in specs.iter().filter_map(|row| row.body.as_ref()) {
        let mut schema = json!(schema());
        extract_titled(&mut schemas, &mut schema);
        add_schema(&mut schemas, name, &schema);
    }
    let mut responses = error_responses::responses();
    responses.extend(shared.responses);
    let components = Components { schemas, responses, ..shared };
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "description": description,
            "license": { "name": "MIT", "identifier": "MIT" },
            "version": env!("CARGO_PKG_VERSION"),
        },
        "servers": [{ "url": "/" }],
        "tags": tags(specs),
        "paths": paths,
        "components": components,
    })
}

fn tags(specs: &[RouteSpec]) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let resources =
        specs.iter().map(|row| row.resource).filter(|resource| seen.insert(resource.name));
    resources
        .map(|resource| json!({ "name": resource.name, "description": resource.description }))
        .collect()
}

/// The page of Swagger UI, whose files are embedded in the binary.
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
