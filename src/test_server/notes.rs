//! What a client sends without effect: what PostHog would ignore, and what Steward does not serve.

use serde::Serialize;
use serde_json::Value;
use url::form_urlencoded;
use utoipa::ToSchema;

use crate::http::routes::{Cardinality, RouteSpec};

/// The status of a path that is not served.
const NOT_FOUND: u16 = 404;
/// The parameters that every operation takes or may ignore without harm.
const ANYWHERE: [&str; 1] = ["format"];
/// The parameters of a page.
const OF_PAGES: [&str; 2] = ["limit", "offset"];

/// Something that a client sent without effect.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = TestNote)]
pub(super) struct Note {
    /// `unknown_field`, `unknown_parameter`, `unserved_route`, `deprecated_path` or `next_not_followed`.
    pub(super) code: &'static str,
    /// What that means, for a person.
    pub(super) detail: String,
    /// The field or the parameter.
    pub(super) attr: Option<String>,
}

/// Returns what is unknown in a request: the fields of its body, and its parameters.
pub(super) fn unknown(spec: &RouteSpec, query: Option<&str>, body: Option<&Value>) -> Vec<Note> {
    let mut notes = Vec::new();
    for (name, _) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if !knows_parameter(spec, &name) {
            let detail = format!("The operation {} has no parameter {name}.", spec.operation);
            notes.push(Note { code: "unknown_parameter", detail, attr: Some(name.into_owned()) });
        }
    }
    let Some(body) = body else { return notes };
    let schema = spec.body.map(|body| serde_json::to_value((body.schema)()).unwrap_or_default());
    match (body, schema) {
        (Value::Array(items), Some(schema)) => {
            for (number, item) in items.iter().enumerate() {
                unknown_fields(spec, &schema, &number.to_string(), item, &mut notes);
            }
        }
        (body, schema) => unknown_fields(spec, &schema.unwrap_or_default(), "", body, &mut notes),
    }
    notes
}

fn knows_parameter(spec: &RouteSpec, name: &str) -> bool {
    let is_page = spec.response.is_some_and(|gives| gives.cardinality == Cardinality::Page);
    ANYWHERE.contains(&name)
        || is_page && OF_PAGES.contains(&name)
        || spec.query.iter().any(|known| known.name == name)
}

/// Adds the members of an object that its schema does not name, and those of the objects in it.
fn unknown_fields(
    spec: &RouteSpec,
    schema: &Value,
    within: &str,
    body: &Value,
    notes: &mut Vec<Note>,
) {
    let Value::Object(members) = body else { return };
    for (name, value) in members {
        let attr = if within.is_empty() { name.clone() } else { format!("{within}__{name}") };
        match schema.get("properties").and_then(|known| known.get(name)) {
            Some(known) if known.get("properties").is_some() => {
                unknown_fields(spec, known, &attr, value, notes);
            }
            Some(_) => {}
            None => {
                let detail = format!("The operation {} has no field {attr}.", spec.operation);
                notes.push(Note { code: "unknown_field", detail, attr: Some(attr) });
            }
        }
    }
}

/// Returns what the response tells about the path.
pub(super) fn of_path(path: &str, operation: Option<&str>, status: Option<u16>) -> Option<Note> {
    if operation.is_none() && status == Some(NOT_FOUND) && path.starts_with("/api/") {
        let detail = format!("Steward does not serve {path}.");
        return Some(Note { code: "unserved_route", detail, attr: None });
    }
    if path.starts_with("/api/environments/") && operation.is_some() {
        let detail = "Write /api/projects/ for /api/environments/.".to_owned();
        return Some(Note { code: "deprecated_path", detail, attr: None });
    }
    None
}
