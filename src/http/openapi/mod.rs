//! The `OpenAPI` 3.1 document, generated from the route table, and the documentation page.

mod docs;
mod document;
mod error_responses;
mod headers;
mod operation;
mod parameters;
mod schemas;

use std::sync::{Arc, OnceLock};

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::auth::Requirements;
use crate::error::{Error, Result};

use super::assets::StaticResponse;
use super::query::QueryParams;
use super::routes::{RouteSpec, Routes};

pub use document::build_document;

/// The document as YAML and JSON, each generated on first request so that a start does not pay for
/// them.
#[derive(Default)]
struct Documents {
    rows: OnceLock<Vec<RouteSpec>>,
    yaml: OnceLock<Result<StaticResponse>>,
    json: OnceLock<Result<StaticResponse>>,
}

/// Adds the routes of the document and of the documentation page. The document covers all routes
/// declared so far and itself.
pub fn routes(routes: &mut Routes) {
    let texts = Arc::new(Documents::default());
    routes.resource("schema", "This document, and a page to read it and send requests.");
    let needs = Requirements::public("it describes the service, not its data");
    let serve = {
        let texts = Arc::clone(&texts);
        move |query: QueryParams| async move { texts.response(query.last("format")) }
    };
    routes
        .get("/api/schema/", "schema_retrieve", needs, serve)
        .summary("Retrieve this document as YAML, or as JSON.")
        .query::<parameters::DocumentFormat>("format", "The format: `yaml` (default) or `json`.")
        .media_types(&[YAML, JSON])
        .may_return(404);
    docs::routes(routes);
    // Requests are served only after the table is complete, so nothing was generated yet.
    let _set = texts.rows.set(routes.specs().to_vec());
}

const YAML: &str = "application/vnd.oai.openapi";
const JSON: &str = "application/vnd.oai.openapi+json";

impl Documents {
    fn response(&self, format: Option<&str>) -> Result<Response> {
        let rows = self.rows.get().map(Vec::as_slice).unwrap_or_default();
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
