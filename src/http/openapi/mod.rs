//! The `OpenAPI` 3.1 document, made from the route table, and a page to read it and try it out.

mod docs;
mod document;
mod headers;
mod links;
mod operation;
mod parameters;
mod refusals;
mod schemas;

use std::sync::{Arc, OnceLock};

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use crate::access::Needs;
use crate::error::{Error, Result};

use super::constant::Constant;
use super::path::Query;
use super::routes::{Routes, Row};

pub use document::document;

/// The document's two forms, each made when it is first asked for: a start does not pay for them.
#[derive(Default)]
struct Texts {
    rows: OnceLock<Vec<Row>>,
    yaml: OnceLock<Result<Constant>>,
    json: OnceLock<Result<Constant>>,
}

/// Serves the document of what was declared so far, and of itself, and the page that shows it.
pub fn routes(routes: &mut Routes) {
    let texts = Arc::new(Texts::default());
    routes.noun("schema", "This document, and a page to read it and try it out.");
    let needs = Needs::nothing("describes the service, not its data");
    let serve = {
        let texts = Arc::clone(&texts);
        move |query: Query| async move { texts.answer(query.last("format")) }
    };
    routes
        .get("/api/schema/", "schema_retrieve", needs, serve)
        .summary("Retrieve this document: as YAML, or as JSON where the query says so.")
        .query::<parameters::Format>("format", "The form: `yaml` or `json`.")
        .media(&[YAML, JSON])
        .may(404);
    docs::routes(routes);
    // Nothing is served before the table is complete, so nobody has asked yet.
    let _set = texts.rows.set(routes.rows().to_vec());
}

const YAML: &str = "application/vnd.oai.openapi";
const JSON: &str = "application/vnd.oai.openapi+json";

impl Texts {
    fn answer(&self, format: Option<&str>) -> Result<Response> {
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

fn yaml(rows: &[Row]) -> Result<Constant> {
    let text = yaml_serde::to_string(&document(rows)).map_err(Error::internal)?;
    Ok(Constant::new(Bytes::from(text)))
}

fn json(rows: &[Row]) -> Result<Constant> {
    let text = serde_json::to_vec(&document(rows)).map_err(Error::internal)?;
    Ok(Constant::new(Bytes::from(text)))
}
