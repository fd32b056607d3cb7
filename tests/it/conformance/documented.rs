//! `document.txt` lists the documented routes of PostHog's API (method, path, scope, status, response, body; `-` for
//! none) and its fields (schema, type, members). The `OpenAPI` document must describe all of them.

use crate::support::contract::Operation;
use crate::support::prelude::*;

use super::fields::member;

const DOCUMENT: &str = include_str!("document.txt");

/// Returns the words of each documented route.
fn documented() -> impl Iterator<Item = [&'static str; 6]> {
    let routes = DOCUMENT.lines().take_while(|line| !line.is_empty());
    routes.map(|line| line.split(' ').collect::<Vec<_>>().try_into().expect("six words"))
}

/// Returns each documented field, and its type.
fn documented_fields() -> impl Iterator<Item = (String, &'static str)> {
    let lines = DOCUMENT.lines().skip_while(|line| !line.is_empty()).skip(1);
    lines.flat_map(|line| {
        let mut words = line.split(' ');
        let (schema, kind) = (words.next().expect("a schema"), words.next().expect("a type"));
        words.map(move |name| (format!("{schema}.{name}"), kind))
    })
}

/// Returns the segments of a path, with all parameters replaced by `:`, because their names may differ.
fn shape(path: &str) -> Vec<&str> {
    path.split('/').map(|part| if part.starts_with([':', '{']) { ":" } else { part }).collect()
}

fn is_served_by(operation: &Operation, method: &str, path: &str) -> bool {
    operation.method.eq_ignore_ascii_case(method) && shape(&operation.path) == shape(path)
}

/// Whether PostHog documents this operation.
pub fn is_documented(operation: &Operation) -> bool {
    documented().any(|[method, path, ..]| is_served_by(operation, method, path))
}

/// Returns the operation of a documented route.
fn operation(method: &str, path: &str) -> &'static Operation {
    let mut operations = contract().operations().iter();
    let found = operations.find(|it| is_served_by(it, method, path));
    found.unwrap_or_else(|| panic!("there is no {method} {path}"))
}

#[test]
fn route_and_field_list_is_complete() {
    assert_eq!((documented().count(), documented_fields().count()), (29, 307));
}

/// Whether `value` refers to this schema.
fn refers(value: &Value, schema: &str) -> bool {
    value.to_string().contains(&format!("\"#/components/schemas/{schema}\""))
}

#[test]
fn openapi_document_agrees_with_the_documented_routes() {
    let parameter = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
    for [method, path, scope, status, answer, body] in documented() {
        let route = format!("{method} {path}");
        let found = operation(method, path);
        let told = contract().document.pointer(&found.pointer).expect("an operation");
        assert_eq!(told["security"], json!([{ "key": [scope] }]), "{route}");
        let responses = told["responses"].as_object().expect("responses");
        let dry_run = json!({ "$ref": "#/components/responses/DryRun" });
        let good = responses.iter().filter(|(code, _)| code.starts_with('2'));
        let good: Vec<&String> =
            good.filter(|(_, told)| **told != dry_run).map(|(code, _)| code).collect();
        assert!(good == [status] || status == "405" && good.is_empty(), "{route}: {good:?}");
        let content = &responses[status]["content"];
        let answers = if answer == "-" { content.is_null() } else { refers(content, answer) };
        assert!(answers, "{route}: {content}");
        let request = &told["requestBody"];
        let takes = if body == "-" { request.is_null() } else { refers(request, body) };
        assert!(takes, "{route}: {request}");
        let parameters = told["parameters"].as_array().expect("parameters");
        let pages = ["Limit", "Offset"].iter().all(|name| parameters.contains(&parameter(name)));
        assert_eq!(pages, answer.starts_with("Paginated"), "{route}: {parameters:?}");
    }
}

#[test]
fn openapi_document_agrees_with_the_documented_path_ids() {
    let document = &contract().document;
    let mut seen = 0;
    for [method, path, ..] in documented() {
        let told = document.pointer(&operation(method, path).pointer).expect("an operation");
        for parameter in told["parameters"].as_array().expect("parameters") {
            let shared = parameter["$ref"].as_str().and_then(|place| document.pointer(&place[1..]));
            let parameter = shared.unwrap_or(parameter);
            let kind = match parameter["name"].as_str().expect("a name") {
                _ if parameter["in"] != "path" => continue,
                "id" if path.contains("/dashboards/") => ["integer", "int64"],
                "dashboard_id" => ["integer", "int64"],
                "id" => ["string", "uuid"],
                _ => ["string", ""],
            };
            let schema = &parameter["schema"];
            let shown = [&schema["type"], &schema["format"]].map(|it| it.as_str().unwrap_or(""));
            assert_eq!(shown, kind, "{path}: {parameter}");
            seen += 1;
        }
    }
    assert!(seen > 29, "{seen}");
}

#[test]
fn openapi_document_agrees_with_the_documented_fields() {
    for (field, kind) in documented_fields() {
        let Some(told) = member(&field) else { panic!("there is no {field}") };
        let (kind, format) = kind.split_once(':').unwrap_or((kind, ""));
        let is = match kind {
            "any" => true,
            "User" => refers(told, kind),
            // `type` is a string, or a list with null.
            kind => told["type"].to_string().contains(&format!("\"{kind}\"")),
        };
        let is_formed = told["format"].as_str().unwrap_or_default().ends_with(format);
        assert!(is && is_formed, "{field}: {told} is no {kind} {format}");
    }
}
