//! The whole of the document.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::http::row::{Body, Row};

use super::schemas::{Answers, put, put_apart};
use super::{headers, operation, parameters, refusals};

const ABOUT: &str = "The admin API of an analytics workspace, as PostHog has it: organizations, domains, invites, \
members, projects, dashboards, batch exports and the log of what was done with them.

Every path is served with and without its trailing slash. HEAD works where GET does, and OPTIONS answers 204 with \
`Allow`; any other method is a 405 with `Allow`. Bodies are JSON (UTF-8, at most 1 MiB unless the service was started \
with another `--max-body`, and at most 16 KiB without a key); an empty body counts as `{}`. Members that are not known are ignored, and what PATCH does \
not name stays as it is. Text is trimmed. Free-form fields hold up to 32 KiB and 32 levels, a dashboard up to 1,000 \
tiles. An activity log that is narrowed looks at the newest 100,000 entries of its span of time. Moments are in UTC. \
Strings that spell a boolean or a number are taken for one.

A POST with an `Idempotency-Key` is done once. Single objects carry an `ETag`: `If-None-Match` saves reading one \
again, `If-Match` keeps a PATCH or DELETE from undoing what somebody else did. Refusals tell one thing at a time, \
in four members.";

/// The document of these operations.
#[must_use]
pub fn document(rows: &[Row]) -> Value {
    let mut paths = Map::new();
    let mut answers = Answers::default();
    for row in rows {
        if let Value::Object(path) = paths.entry(row.path).or_insert_with(|| json!({})) {
            let operation = operation::of(row, rows, &mut answers);
            path.insert(row.method.as_str().to_lowercase(), operation);
        }
    }
    let mut schemas = answers.settled();
    for (name, schema) in refusals::schemas() {
        put(&mut schemas, &name, &schema);
    }
    for Body { name, schema, .. } in rows.iter().filter_map(|row| row.takes.as_ref()) {
        let mut schema = json!(schema());
        put_apart(&mut schemas, &mut schema);
        put(&mut schemas, name, &schema);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Steward",
            "description": ABOUT,
            "license": { "name": "MIT", "identifier": "MIT" },
            "version": env!("CARGO_PKG_VERSION"),
        },
        "servers": [{ "url": "/" }],
        "tags": tags(rows),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": refusals::responses(),
            "parameters": parameters::shared(),
            "headers": headers::shared(),
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "phx_...",
                    "description": "A personal API key. It carries scopes, which each operation names.",
                },
            },
        },
    })
}

fn tags(rows: &[Row]) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let nouns = rows.iter().map(|row| row.noun).filter(|noun| seen.insert(noun.name));
    nouns.map(|noun| json!({ "name": noun.name, "description": noun.about })).collect()
}
