//! The `OpenAPI` 3.1 document, generated from the route table, and the documentation page.

mod docs;
mod error_responses;
mod headers;
mod operation;
mod parameters;
mod schemas;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::auth::Requirements;
use crate::base::error::{Error, Result};

use super::assets::StaticResponse;
use super::query::QueryParams;
use super::route_spec::BodySpec;
use super::routes::{RouteSpec, RouteTable, Routes};

use headers::{DRY_RUN_RESPONSE, DRY_RUN_SCHEMA, dry_run_response, dry_run_schema};
use schemas::{ResponseSchemas, add_schema, extract_titled};

/// The document as YAML and JSON, each generated on first request so that a start does not pay for
/// them.
#[derive(Default)]
struct Documents {
    table: RouteTable,
    yaml: OnceLock<Result<StaticResponse>>,
    json: OnceLock<Result<StaticResponse>>,
}

/// Adds the routes of the document and of the documentation page.
pub fn routes(routes: &mut Routes) {
    let texts = Documents { table: routes.table(), ..Documents::default() };
    let texts = Arc::new(texts);
    routes.resource("schema", "This document, and a page to read it and send requests.");
    let needs = Requirements::public("it describes the service, not its data");
    let serve = move |query: QueryParams| async move { texts.response(query.last("format")) };
    routes
        .get("/api/schema/", "schema_retrieve", needs, serve)
        .summary("Retrieve this document as YAML, or as JSON.")
        .query::<parameters::DocumentFormat>("format", "The format: `yaml` (default) or `json`.")
        .media_types(&[YAML, JSON])
        .may_return(404);
    docs::routes(routes);
}

const YAML: &str = "application/vnd.oai.openapi";
const JSON: &str = "application/vnd.oai.openapi+json";

impl Documents {
    fn response(&self, format: Option<&str>) -> Result<Response> {
        let rows = self.table.specs();
        let (media, text) = match format {
            None | Some("" | "yaml") => (YAML, self.yaml.get_or_init(|| yaml(rows))),
            Some("json") => (JSON, self.json.get_or_init(|| json(rows))),
            Some(_) => return Err(Error::not_found()),
        };
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(media)),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        Ok((headers, text.clone()?).into_response())
    }
}

fn yaml(specs: &[RouteSpec]) -> Result<StaticResponse> {
    let text =
        yaml_serde::to_string(&YamlValue(&build_document(specs))).map_err(Error::internal)?;
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

fn json(specs: &[RouteSpec]) -> Result<StaticResponse> {
    let text = serde_json::to_vec(&build_document(specs)).map_err(Error::internal)?;
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

/// Returns the document of these operations.
#[must_use]
pub fn build_document(specs: &[RouteSpec]) -> Value {
    let mut paths = Map::new();
    let mut answers = ResponseSchemas::default();
    for row in specs {
        if let Value::Object(path) = paths.entry(row.path).or_insert_with(|| json!({})) {
            let operation = operation::operation(row, specs, &mut answers);
            path.insert(row.method.as_str().to_lowercase(), operation);
        }
    }
    let mut schemas = answers.finish();
    for (name, schema) in error_responses::schemas() {
        add_schema(&mut schemas, &name, &schema);
    }
    add_schema(&mut schemas, DRY_RUN_SCHEMA, &dry_run_schema());
    for BodySpec { name, schema, .. } in specs.iter().filter_map(|row| row.body.as_ref()) {
        let mut schema = json!(schema());
        extract_titled(&mut schemas, &mut schema);
        add_schema(&mut schemas, name, &schema);
    }
    let mut responses = error_responses::responses();
    responses.insert(DRY_RUN_RESPONSE.to_owned(), dry_run_response());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Steward",
            "description": DESCRIPTION,
            "license": { "name": "MIT", "identifier": "MIT" },
            "version": env!("CARGO_PKG_VERSION"),
        },
        "servers": [{ "url": "/" }],
        "tags": tags(specs),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": responses,
            "parameters": parameters::shared_parameters(),
            "headers": headers::shared_headers(),
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "phx_...",
                    "description": "A personal API key. Each operation names the scope that the key needs.",
                },
            },
        },
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
