//! From what was made to what can be done with it.

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::http::row::Row;

/// The operations on what `row` makes, and on the lists that hang on it.
pub(super) fn of(row: &Row, rows: &[Row]) -> Map<String, Value> {
    let mut links = Map::new();
    if row.method != Method::POST || row.status != 201 {
        return links;
    }
    for other in rows {
        let Some(rest) = other.path.strip_prefix(row.path) else { continue };
        let mut named = names(rest);
        if let (Some(made), None) = (named.next(), named.next())
            && rest.starts_with('{')
        {
            links.insert(other.operation.to_owned(), link(row, made, other));
        }
    }
    links
}

fn link(row: &Row, made: &str, other: &Row) -> Value {
    let given = names(row.path).map(|name| (name, format!("$request.path.{name}")));
    let member = if made == "user__uuid" { "user_uuid" } else { "id" };
    let found = (made, format!("$response.body#/{member}"));
    let parameters: Map<String, Value> =
        given.chain([found]).map(|(name, place)| (name.to_owned(), json!(place))).collect();
    json!({ "operationId": other.operation, "parameters": parameters })
}

/// The names of a path's parameters.
pub(super) fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}
