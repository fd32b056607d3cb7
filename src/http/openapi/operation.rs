//! Describes one operation, with links from one that creates an object to the operations on that object.

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::auth::Requirements;
use crate::http::route_spec::{BodySpec, Cardinality, RouteSpec};

use super::error_responses;
use super::parameters::{
    header_references, operation_parameters, parameter_names, success_headers,
};
use super::schemas::{ResponseSchemas, reference};

/// The content type of pages.
const HTML_TYPE: &str = "text/html";

/// Returns the operation of `spec`. Adds its response schema to `answers`. `specs` are all operations, for links.
pub(super) fn operation(
    spec: &RouteSpec,
    specs: &[RouteSpec],
    answers: &mut ResponseSchemas,
) -> Value {
    let mut operation = Map::from_iter([
        ("operationId".to_owned(), json!(spec.operation)),
        ("tags".to_owned(), json!([spec.resource.name])),
        ("summary".to_owned(), json!(spec.summary)),
    ]);
    let notes = description_of_requirements(spec);
    if !notes.is_empty() {
        operation.insert("description".to_owned(), json!(notes));
    }
    let parameters = operation_parameters(spec);
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), json!(parameters));
    }
    if let Some(body) = &spec.body {
        operation.insert("requestBody".to_owned(), request(spec, body));
    }
    operation
        .insert("responses".to_owned(), responses(spec, operation_links(spec, specs), answers));
    operation.insert("security".to_owned(), security(spec));
    operation.into()
}

/// Returns the access requirements as text.
fn description_of_requirements(spec: &RouteSpec) -> String {
    let Requirements { scope, level, can_invite, unscoped_key, public, optional: _ } =
        spec.requirements;
    let notes = [
        scope.filter(|_| public.is_none()).map(|scope| format!("Scope: `{scope}`.")),
        level.is_admin().then(|| format!("Minimum organization level: {}.", level.as_str())),
        can_invite.then(|| "Members need the organization's permission to invite.".to_owned()),
        unscoped_key.map(|what| {
            format!("A key that is limited to organizations or projects cannot {what}.")
        }),
        public.map(|why| format!("No API key required: {why}.")),
    ];
    notes.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn security(spec: &RouteSpec) -> Value {
    let scopes: Vec<&str> = spec.requirements.scope.into_iter().collect();
    let with_key = json!({ "key": scopes });
    match (spec.requirements.public, spec.requirements.optional) {
        (None, _) => json!([with_key]),
        (Some(_), true) => json!([{}, with_key]),
        (Some(_), false) => json!([]),
    }
}

fn request(spec: &RouteSpec, body: &BodySpec) -> Value {
    let one = reference(body.name);
    let schema = match body.max_items {
        Some(most) => {
            let array = json!({ "type": "array", "items": one, "minItems": 1, "maxItems": most });
            json!({ "anyOf": [array, one] })
        }
        None => one,
    };
    let mut media = Map::from_iter([("schema".to_owned(), schema)]);
    if let Ok(example) = serde_json::from_str::<Value>(spec.example) {
        media.insert("example".to_owned(), example);
    }
    // An empty body counts as an empty object.
    json!({ "required": is_required(body), "content": { "application/json": media } })
}

/// Whether an empty object is rejected.
fn is_required(body: &BodySpec) -> bool {
    let schema = json!((body.schema)());
    body.max_items.is_some() || ["required", "allOf"].iter().any(|name| schema.get(name).is_some())
}

fn responses(spec: &RouteSpec, links: Map<String, Value>, answers: &mut ResponseSchemas) -> Value {
    let mut success = success(spec, answers);
    if let Some(members) = success.as_object_mut().filter(|_| !links.is_empty()) {
        members.insert("links".to_owned(), links.into());
    }
    let mut responses = vec![(spec.status, success)];
    for status in spec.extra_statuses.iter().filter(|status| **status < 400) {
        responses.push((*status, empty(spec, "Success without a body.", &[])));
    }
    if spec.method == Method::GET && spec.has_etag() {
        responses.push((304, empty(spec, "The object is unchanged.", &["ETag"])));
    }
    if spec.accepts_dry_run() && !spec.has_dry_run_in_success() {
        responses.push((200, json!({ "$ref": "#/components/responses/DryRun" })));
    }
    responses.extend(
        error_responses::error_responses(spec).filter(|(status, _)| *status != spec.status),
    );
    if spec.media_types.contains(&HTML_TYPE) && spec.extra_statuses.contains(&404) {
        responses.retain(|(status, _)| *status != 404);
        responses.push((404, nothing()));
    }
    responses.sort_by_key(|(status, _)| *status);
    let named = responses.into_iter().map(|(status, response)| (status.to_string(), response));
    Value::Object(named.collect())
}

fn success(spec: &RouteSpec, answers: &mut ResponseSchemas) -> Value {
    if let Some((_, refusal)) =
        error_responses::error_responses(spec).find(|(status, _)| *status == spec.status)
    {
        return refusal;
    }
    let mut content = Map::new();
    for media in spec.media_types {
        let kind = if media.ends_with("+json") { "object" } else { "string" };
        content.insert((*media).to_owned(), json!({ "schema": { "type": kind } }));
    }
    if let Some(gives) = &spec.response {
        let mut schema = answers.add(gives);
        if spec.has_dry_run_in_success() {
            schema = json!({ "anyOf": [schema, reference("DryRunResult")] });
        }
        content.insert("application/json".to_owned(), json!({ "schema": schema }));
    }
    if content.is_empty() {
        return match spec.status {
            405 => {
                let description = "Always fails. Set `deleted` with PATCH instead.";
                empty(spec, description, &["Allow", "DryRun"])
            }
            _ => empty(spec, "Success without a body.", &[]),
        };
    }
    let tag: &[&str] = match (spec.has_etag(), spec.has_dry_run_in_success()) {
        (true, false) => &["ETag"],
        (true, true) => &["ETagUnlessDryRun"],
        (false, _) => &[],
    };
    let headers = success_headers(spec, tag);
    json!({ "description": description(spec), "headers": headers, "content": content })
}

fn description(spec: &RouteSpec) -> String {
    match spec.response {
        Some(gives) if gives.cardinality == Cardinality::Page => {
            format!("A page of {}.", spec.resource.name)
        }
        Some(gives) if gives.cardinality == Cardinality::All => {
            format!("All {}.", spec.resource.name)
        }
        Some(gives) => format!("{}.", (gives.name)()),
        None => "Success.".to_owned(),
    }
}

fn empty(spec: &RouteSpec, description: &str, headers: &[&str]) -> Value {
    json!({ "description": description, "headers": success_headers(spec, headers) })
}

/// The 404 of a page: HTML or the error body.
fn nothing() -> Value {
    json!({
        "description": "The page does not exist.",
        "headers": header_references([].iter()),
        "content": {
            HTML_TYPE: { "schema": { "type": "string" } },
            "application/json": { "schema": reference("Error") },
        },
    })
}

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
