//! The OpenAPI 3.1 document, made from the route table.

use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};

use crate::access::Needs;

use super::routes::{Body, Routes, Row};

/// Serves the document of what was declared so far, and of itself.
pub fn routes(routes: &mut Routes) {
    let document = document(routes.rows()).to_string();
    let serve = move || {
        let document = document.clone();
        async move { ([(CONTENT_TYPE, "application/json")], document).into_response() }
    };
    let needs = Needs::nothing("describes the service, not its data");
    routes.get("/api/schema/", "schema_retrieve", needs, serve);
}

fn document(rows: &[Row]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for row in rows {
        if let Some(Body { name, schema }) = row.takes {
            schemas.insert(name.to_owned(), json!(schema()));
        }
        if let Value::Object(path) = paths.entry(row.path).or_insert_with(|| json!({})) {
            path.insert(row.method.as_str().to_lowercase(), operation(row));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Steward", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(row: &Row) -> Value {
    let parameters: Vec<Value> = row
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    let description = row.gives.unwrap_or("No body");
    let mut operation = Map::from_iter([
        ("operationId".to_owned(), json!(row.operation)),
        ("parameters".to_owned(), json!(parameters)),
        ("responses".to_owned(), json!({ row.status.to_string(): { "description": description } })),
    ]);
    if let Some(Body { name, .. }) = row.takes {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        let body = json!({
            "required": row.method != Method::PATCH,
            "content": { "application/json": { "schema": schema } },
        });
        operation.insert("requestBody".to_owned(), body);
    }
    let scopes: Vec<&str> = row.needs.scope.into_iter().collect();
    let with_key = json!({ "key": scopes });
    let security = match (row.needs.public, row.needs.optional) {
        (None, _) => json!([with_key]),
        (Some(_), true) => json!([{}, with_key]),
        (Some(_), false) => json!([]),
    };
    operation.insert("security".to_owned(), security);
    operation.into()
}
