//! What paths and queries take.

use serde_json::{Value, json};

use crate::http::row::{Many, Row};
use crate::input::{Choices, choices_schema};

use super::links;
use super::schemas::Answers;

/// What `format` of the document's own route takes.
pub(super) struct Format;

impl Choices for Format {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["yaml", "json"];
}

choices_schema!(Format);

/// Those of an operation: the path's, then the query's, then headers.
pub(super) fn of(row: &Row) -> Vec<Value> {
    let in_path = links::names(row.path).map(|name| in_path(row, name));
    let page: &[&str] = match row.gives {
        Some(gives) if gives.many == Many::Page => &["Limit", "Offset"],
        _ => &[],
    };
    let query = row.query.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "in": "query",
            "description": parameter.about,
            "schema": Answers::inline(&(parameter.schema)()),
        })
    });
    let headers = headers(row);
    let shared = page.iter().chain(headers).map(|name| reference(name));
    in_path.chain(query).chain(shared).collect()
}

/// The headers that an operation looks at (decisions §1).
fn headers(row: &Row) -> &'static [&'static str] {
    match row.method.as_str() {
        "GET" if row.is_tagged() => &["IfNoneMatch"],
        "POST" if row.keyed() => &["IdempotencyKey"],
        "PATCH" | "DELETE" if row.is_conditional() => &["IfMatch"],
        _ => &[],
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

fn in_path(row: &Row, name: &str) -> Value {
    let (about, schema) = match name {
        "organization_id" => return reference("Organization"),
        "project_id" => return reference("Project"),
        "user__uuid" => return reference("User"),
        "dashboard_id" => (
            "The dashboard's number.",
            json!({ "type": "integer", "format": "int64", "minimum": 0 }),
        ),
        "id" => {
            ("Its id.", row.id.map_or(json!({ "type": "string" }), |id| Answers::inline(&id())))
        }
        "token" => (
            "The token of the public page. With `.json` behind it, JSON is answered.",
            json!({ "type": "string" }),
        ),
        _ => ("Its name.", json!({ "type": "string" })),
    };
    path(name, about, &schema)
}

/// Those that several operations share.
pub(super) fn shared() -> Value {
    json!({
        "Organization": path(
            "organization_id",
            "The organization's id, or `@current` for the one that you are in.",
            &matching(UUID, "@current"),
        ),
        "Project": path(
            "project_id",
            "The project's number, or `@current` for the one that you are in.",
            &matching("[0-9]+", "@current"),
        ),
        "User": path("user__uuid", "The user's UUID, or `@me` for you.", &matching(UUID, "@me")),
        "Limit": number(
            "limit",
            "How many to show. What is more than 1000 counts as 1000; what is no positive number as 100.",
            &json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
        ),
        "Offset": number(
            "offset",
            "How many to pass over. What is no number counts as 0.",
            &json!({ "type": "integer", "minimum": 0, "default": 0 }),
        ),
        "IfNoneMatch": header(
            "If-None-Match",
            "The `ETag` of an answer that you have; where it is still the answer, it is not sent again.",
            &tags(),
        ),
        "IfMatch": header(
            "If-Match",
            "The `ETag` of what you saw; where it was changed meanwhile, nothing is done.",
            &tags(),
        ),
        "IdempotencyKey": header(
            "Idempotency-Key",
            "A text of your own for this request. Sent again within a day, the same request is answered as it \
             was the first time, and nothing is done. Of an answer above 64 KiB that shows a dashboard, the body is not \
             kept: the same request again is answered with the dashboard as it is then.",
            &json!({ "type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$" }),
        ),
    })
}

fn path(name: &str, about: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
}

/// How a UUID is written.
const UUID: &str = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";

/// A text that is written like this, or this word.
fn matching(written: &str, or: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^({or}|{written})$") })
}

fn number(name: &str, about: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "description": about, "schema": schema })
}

/// Without an example: the page that shows the document would send it.
fn header(name: &str, about: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "header", "description": about, "schema": schema })
}

/// `*`, or entity tags: in one pattern, because generators take an alternative without a type for anything.
fn tags() -> Value {
    let tag = r#"(W/)?"[!#-~]*""#;
    json!({ "type": "string", "pattern": format!(r"^(\*|{tag}( *, *{tag})*)$") })
}
