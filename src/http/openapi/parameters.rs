//! The parameters of operations, in the path, the query and headers, and the headers of responses.

use serde_json::{Value, json};

use crate::http::route_spec::{Cardinality, Parameter, RouteSpec};
use crate::input::choices;

use super::schemas::ResponseSchemas;

choices! {
    /// The values of the document's `format` parameter.
    pub(super) struct DocumentFormat: &'static str = ["yaml", "json"];
}

/// Returns the parameters of an operation: of the path, the query and the headers.
pub(super) fn operation_parameters(spec: &RouteSpec) -> Vec<Value> {
    let tenant = parameter_names(spec.path).filter_map(tenant_parameter).map(reference);
    let schema_of = |parameter: &Parameter| ResponseSchemas::inline(&(parameter.schema)());
    let in_path = spec.in_path.iter().map(|one| {
        let (name, about, schema) = (one.name, one.description, schema_of(one));
        json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
    });
    let page: &[&str] = match spec.response {
        Some(gives) if gives.cardinality == Cardinality::Page => &["Limit", "Offset"],
        _ => &[],
    };
    let query = spec.query.iter().map(|one| {
        let (name, about, schema) = (one.name, one.description, schema_of(one));
        json!({ "name": name, "in": "query", "description": about, "schema": schema })
    });
    let headers = request_headers(spec);
    let dry_run: &[&str] = if spec.accepts_dry_run() { &["DryRun"] } else { &[] };
    let shared = page.iter().chain(headers).chain(dry_run).map(|name| reference(name));
    tenant.chain(in_path).chain(query).chain(shared).collect()
}

/// Returns the request headers that an operation reads.
fn request_headers(spec: &RouteSpec) -> &'static [&'static str] {
    match spec.method.as_str() {
        "GET" if spec.has_etag() => &["IfNoneMatch"],
        "POST" if spec.accepts_idempotency_key() => &["IdempotencyKey"],
        "PATCH" | "PUT" | "DELETE" if spec.accepts_if_match() => &["IfMatch"],
        _ => &[],
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

/// Returns the shared definition of a path parameter that the authorization reads.
fn tenant_parameter(name: &str) -> Option<&'static str> {
    match name {
        "organization_id" => Some("Organization"),
        "project_id" => Some("Project"),
        _ => None,
    }
}

/// Returns the names of a path's parameters.
pub(super) fn parameter_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// The headers of responses, each with its name in the document and on the wire.
const RESPONSE_HEADERS: [(&str, &str); 10] = [
    ("RequestId", "X-Request-Id"),
    ("Allow", "Allow"),
    ("RetryAfter", "Retry-After"),
    ("ETag", "ETag"),
    ("ETagUnlessDryRun", "ETag"),
    ("IdempotentReplayed", "Idempotent-Replayed"),
    ("DryRun", "Dry-Run"),
    ("RateLimitLimit", "RateLimit-Limit"),
    ("RateLimitRemaining", "RateLimit-Remaining"),
    ("RateLimitReset", "RateLimit-Reset"),
];

pub(super) const RATE_LIMIT_HEADERS: [&str; 3] =
    ["RateLimitLimit", "RateLimitRemaining", "RateLimitReset"];

/// The headers of a successful response to this operation: `others` and those of every such response.
pub(super) fn success_headers(spec: &RouteSpec, others: &[&str]) -> Value {
    let status = RATE_LIMIT_HEADERS.iter().filter(|_| spec.reads_key());
    let once = spec.accepts_idempotency_key();
    let dry_run = spec.has_dry_run_in_success();
    let marks =
        once.then_some(&"IdempotentReplayed").into_iter().chain(dry_run.then_some(&"DryRun"));
    header_references(others.iter().chain(status).chain(marks))
}

/// References to these headers, and to the request id that every response carries.
pub(super) fn header_references<'n>(names: impl Iterator<Item = &'n &'n str>) -> Value {
    let wanted: Vec<&str> = names.copied().chain(["RequestId"]).collect();
    let found = RESPONSE_HEADERS.iter().filter(|(name, _)| wanted.contains(name));
    let entries = found.map(|(name, wire)| {
        ((*wire).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))
    });
    Value::Object(entries.collect())
}
