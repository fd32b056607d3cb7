//! Path, query and header parameters.

use serde_json::{Value, json};

use crate::http::route_spec::{Cardinality, Parameter, RouteSpec};
use crate::ids::UUID_PATTERN;
use crate::input::{Choices, choices_schema};

use super::schemas::ResponseSchemas;

/// The values of the document's `format` parameter.
pub(super) struct DocumentFormat;

impl Choices for DocumentFormat {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["yaml", "json"];
}

choices_schema!(DocumentFormat);

/// Returns the parameters of an operation: of the path, the query and the headers.
pub(super) fn operation_parameters(spec: &RouteSpec) -> Vec<Value> {
    let tenant = parameter_names(spec.path).filter_map(tenant_parameter).map(reference);
    let schema_of = |parameter: &Parameter| ResponseSchemas::inline(&(parameter.schema)());
    let in_path = spec.in_path.iter();
    let in_path = in_path.map(|one| path(one.name, one.description, &schema_of(one)));
    let page: &[&str] = match spec.response {
        Some(gives) if gives.cardinality == Cardinality::Page => &["Limit", "Offset"],
        _ => &[],
    };
    let query = spec.query.iter();
    let query = query.map(|one| optional("query", one.name, one.description, &schema_of(one)));
    let headers = headers(spec);
    let dry_run: &[&str] = if spec.accepts_dry_run() { &["DryRun"] } else { &[] };
    let shared = page.iter().chain(headers).chain(dry_run).map(|name| reference(name));
    tenant.chain(in_path).chain(query).chain(shared).collect()
}

/// Returns the request headers that an operation reads.
fn headers(spec: &RouteSpec) -> &'static [&'static str] {
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

/// The shared parameter definitions.
pub(super) fn shared_parameters() -> Value {
    json!({
        "Organization": path(
            "organization_id",
            "The organization's id, or `@current` for your current organization.",
            &matching(UUID_PATTERN, "@current"),
        ),
        "Project": path(
            "project_id",
            "The project's id, or `@current` for your current project.",
            &matching("[0-9]+", "@current"),
        ),
        "Limit": optional(
            "query",
            "limit",
            "The number of objects to return. Values above 1000 count as 1000; anything but a positive \
                number counts as 100.",
            &json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
        ),
        "Offset": optional(
            "query",
            "offset",
            "The number of objects to skip. Anything but a number counts as 0.",
            &json!({ "type": "integer", "minimum": 0, "default": 0 }),
        ),
        "IfNoneMatch": header(
            "If-None-Match",
            "The `ETag` of a response that you have. If the object is unchanged, the response is a 304 \
                without a body.",
            &tags(),
        ),
        "IfMatch": header(
            "If-Match",
            "The `ETag` of the version that you read. If the object changed since, the request fails with 412.",
            &tags(),
        ),
        "IdempotencyKey": header(
            "Idempotency-Key",
            "A unique key for this request. If the same request is repeated within a day, the first \
                response is replayed and nothing is done. If a response with a dashboard exceeds 64 KiB, \
                its body is not stored, and the replay returns the dashboard's current state.",
            &json!({ "type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$" }),
        ),
        "DryRun": header(
            "Dry-Run",
            "If `true`, the request runs with all checks and changes nothing. Errors are those of the real \
                request. A success returns 200 with a `DryRunResult`.",
            &json!({ "type": "string", "enum": ["true", "false"] }),
        ),
    })
}

fn path(name: &str, about: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
}

/// A string that matches a pattern or equals a word.
fn matching(written: &str, or: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^({or}|{written})$") })
}

/// A header parameter. It has no example, because the documentation page would send it.
fn header(name: &str, about: &str, schema: &Value) -> Value {
    optional("header", name, about, schema)
}

fn optional(place: &str, name: &str, about: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": place, "description": about, "schema": schema })
}

/// The schema of `*` or a list of entity tags. It is one pattern, because generators accept anything for
/// alternatives without a type.
fn tags() -> Value {
    let tag = r#"(W/)?"[!#-~]*""#;
    json!({ "type": "string", "pattern": format!(r"^(\*|{tag}( *, *{tag})*)$") })
}

/// Returns the names of a path's parameters.
pub(super) fn parameter_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}
