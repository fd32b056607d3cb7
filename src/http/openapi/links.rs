//! Links from an operation that creates an object to the operations on that object.

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::http::route_spec::RouteSpec;

/// Returns links to the operations on the object that `spec` creates, and on the lists below it.
pub(super) fn operation_links(spec: &RouteSpec, specs: &[RouteSpec]) -> Map<String, Value> {
    let mut links = Map::new();
    if spec.method != Method::POST || spec.status != 201 {
        return links;
    }
    for other in specs {
        let Some(rest) = other.path.strip_prefix(spec.path) else { continue };
        let mut named = parameter_names(rest);
        if let (Some(parameter), None) = (named.next(), named.next())
            && rest.starts_with('{')
        {
            links.insert(other.operation.to_owned(), link(spec, parameter, other));
        }
    }
    links
}

/// Returns a link to `other` with the value of `parameter` from the response. The member of `user__uuid` is
/// `user_uuid`, and that of a name without `__` is `id`.
fn link(spec: &RouteSpec, parameter: &str, other: &RouteSpec) -> Value {
    let given = parameter_names(spec.path).map(|name| (name, format!("$request.path.{name}")));
    let member = parameter.split_once("__").map(|(object, field)| format!("{object}_{field}"));
    let member = member.as_deref().unwrap_or("id");
    let found = (parameter, format!("$response.body#/{member}"));
    let parameters: Map<String, Value> =
        given.chain([found]).map(|(name, place)| (name.to_owned(), json!(place))).collect();
    json!({ "operationId": other.operation, "parameters": parameters })
}

/// Returns the names of a path's parameters.
pub(super) fn parameter_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}
