//! One operation of the document.

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::http::row::{Body, Many, Row};

use super::schemas::{Answers, reference};
use super::{headers, links, parameters, refusals};

/// The type of pages.
const HTML: &str = "text/html";

/// The operation of a row among all of them; what it answers is added to `answers`.
pub(super) fn of(row: &Row, rows: &[Row], answers: &mut Answers) -> Value {
    let mut operation = Map::from_iter([
        ("operationId".to_owned(), json!(row.operation)),
        ("tags".to_owned(), json!([row.noun.name])),
        ("summary".to_owned(), json!(row.summary)),
    ]);
    let notes = notes(row);
    if !notes.is_empty() {
        operation.insert("description".to_owned(), json!(notes));
    }
    let parameters = parameters::of(row);
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), json!(parameters));
    }
    if let Some(body) = &row.takes {
        operation.insert("requestBody".to_owned(), request(row, body));
    }
    operation.insert("responses".to_owned(), responses(row, links::of(row, rows), answers));
    operation.insert("security".to_owned(), security(row));
    operation.into()
}

/// What a caller needs, in words.
fn notes(row: &Row) -> String {
    let scope =
        row.needs.scope.filter(|_| !row.is_public()).map(|scope| format!("Scope: `{scope}`."));
    let level = row
        .needs
        .level
        .administers()
        .then(|| format!("Least level in the organization: {}.", row.needs.level.word()));
    let inviting = row
        .needs
        .inviting
        .then(|| "Plain members: where the organization lets them invite.".to_owned());
    let unlimited = row
        .needs
        .unlimited
        .map(|what| format!("A key that is limited to organizations or projects cannot {what}."));
    let public = row.needs.public.map(|why| format!("Open without a key: {why}."));
    let notes: Vec<String> =
        [scope, level, inviting, unlimited, public].into_iter().flatten().collect();
    notes.join(" ")
}

fn security(row: &Row) -> Value {
    let scopes: Vec<&str> = row.needs.scope.into_iter().collect();
    let with_key = json!({ "key": scopes });
    match (row.needs.public, row.needs.optional) {
        (None, _) => json!([with_key]),
        (Some(_), true) => json!([{}, with_key]),
        (Some(_), false) => json!([]),
    }
}

fn request(row: &Row, body: &Body) -> Value {
    let one = reference(body.name);
    let schema = match body.most {
        Some(most) => {
            let array = json!({ "type": "array", "items": one, "minItems": 1, "maxItems": most });
            json!({ "anyOf": [array, one] })
        }
        None => one,
    };
    let mut media = Map::from_iter([("schema".to_owned(), schema)]);
    if let Ok(example) = serde_json::from_str::<Value>(row.example) {
        media.insert("example".to_owned(), example);
    }
    // An empty body counts as an empty object.
    json!({ "required": is_required(body), "content": { "application/json": media } })
}

/// Whether an empty object would be refused.
fn is_required(body: &Body) -> bool {
    let schema = json!((body.schema)());
    body.most.is_some() || ["required", "allOf"].iter().any(|name| schema.get(name).is_some())
}

fn responses(row: &Row, links: Map<String, Value>, answers: &mut Answers) -> Value {
    let mut success = success(row, answers);
    if let Some(members) = success.as_object_mut().filter(|_| !links.is_empty()) {
        members.insert("links".to_owned(), links.into());
    }
    let mut responses = vec![(row.status, success)];
    for status in row.may.iter().filter(|status| **status < 400) {
        responses.push((*status, empty(row, "Done. There is nothing to show.", &[])));
    }
    if row.method == Method::GET && row.is_tagged() {
        responses.push((304, empty(row, "What you have is still the answer.", &["ETag"])));
    }
    responses.extend(refusals::of(row).filter(|(status, _)| *status != row.status));
    if row.media.contains(&HTML) && row.may.contains(&404) {
        responses.retain(|(status, _)| *status != 404);
        responses.push((404, nothing()));
    }
    responses.sort_by_key(|(status, _)| *status);
    let named = responses.into_iter().map(|(status, response)| (status.to_string(), response));
    Value::Object(named.collect())
}

fn success(row: &Row, answers: &mut Answers) -> Value {
    if let Some((_, refusal)) = refusals::of(row).find(|(status, _)| *status == row.status) {
        return refusal;
    }
    let mut content = Map::new();
    for media in row.media {
        let kind = if media.ends_with("+json") { "object" } else { "string" };
        content.insert((*media).to_owned(), json!({ "schema": { "type": kind } }));
    }
    if let Some(gives) = &row.gives {
        let schema = answers.add(gives);
        content.insert("application/json".to_owned(), json!({ "schema": schema }));
    }
    if content.is_empty() {
        return match row.status {
            405 => empty(row, "Refused, always. Set `deleted` by PATCH.", &["Allow"]),
            _ => empty(row, "Done. There is nothing to show.", &[]),
        };
    }
    let tag: &[&str] = if row.is_tagged() { &["ETag"] } else { &[] };
    let headers = headers::of_success(row, tag);
    json!({ "description": description(row), "headers": headers, "content": content })
}

fn description(row: &Row) -> String {
    match row.gives {
        Some(gives) if gives.many == Many::Page => format!("A page of {}.", row.noun.name),
        Some(gives) if gives.many == Many::All => format!("All {}.", row.noun.name),
        Some(gives) => format!("{}.", (gives.name)()),
        None => "Found.".to_owned(),
    }
}

fn empty(row: &Row, description: &str, headers: &[&str]) -> Value {
    json!({ "description": description, "headers": headers::of_success(row, headers) })
}

/// A page, or the error envelope, which tells that there is nothing.
fn nothing() -> Value {
    json!({
        "description": "There is nothing here.",
        "headers": headers::references([].iter()),
        "content": {
            HTML: { "schema": { "type": "string" } },
            "application/json": { "schema": reference("Error") },
        },
    })
}
