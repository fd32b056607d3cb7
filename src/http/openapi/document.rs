//! Assembles the document.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::http::route_spec::{BodySpec, RouteSpec};

use super::headers::{self, DRY_RUN_RESPONSE, DRY_RUN_SCHEMA, dry_run_response, dry_run_schema};
use super::schemas::{ResponseSchemas, add_schema, extract_titled};
use super::{error_responses, operation, parameters};

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
