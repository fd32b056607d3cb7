//! `docs/conformance.md`, from the `OpenAPI` document and the evidence.

use crate::support::contract::Operation;
use crate::support::prelude::*;

use super::documented::is_documented;
use super::evidence::Line;
use super::fields::{Field, SHARED, Types, fields};
use super::schema_words::describe;

/// What stands above the sections.
const HEAD: &str = "\
# Conformance

Every operation, field and rule of the API, and the tests that show it. The resources come first, in the order of the OpenAPI
document (`/api/schema/`), then the rules of all operations. [docs/spec/](spec/README.md) explains the rules.

- **Operations**: *PostHog* marks the operations that PostHog's API reference documents. Clients or operators need the others.
- **Fields**: the types and bounds of all schemas, without patterns. A field without a type under *In requests* is read-only.
  The test kit compares every response of every test with the OpenAPI document, so each test of an operation also shows the types
  of its response fields. The code that checks a request field also defines its schema. Fields with rules of their own name the
  tests of these rules.

A test is named by its module and its name under `tests/it/`, `tests/system/` or `tests/chaos/`.
`cargo test --test it -- domains::domain_name_is_immutable` runs one. `cargo test --test '*' -- NAME` finds one in any
of them.

This page is generated from the OpenAPI document and from `tests/it/conformance/evidence.txt`, which names the tests. After a
change of one of them, run `UPDATE_DOCS=1 cargo test --test it conformance_page`. Other tests in that folder compare the OpenAPI
document with the routes and fields that PostHog documents.
";

/// Returns the page.
pub fn page(evidence: &[Line]) -> String {
    let fields = fields();
    let sections = sections(evidence);
    let sections = sections.iter().map(|(title, description)| {
        let fields = fields.get(title).map_or(&[][..], Vec::as_slice);
        [
            format!("\n## {title}\n"),
            description.map(|text| format!("\n{text}\n")).unwrap_or_default(),
            operation_table(title, evidence),
            field_table(fields, evidence),
            rule_table(title, evidence),
        ]
        .concat()
    });
    HEAD.to_owned() + &sections.collect::<String>()
}

/// Returns the titles of all sections with their descriptions: the tags, the shared schemas, other headings of the
/// evidence.
fn sections<'t>(evidence: &[Line<'t>]) -> Vec<(&'t str, Option<&'static str>)> {
    let tags = contract().document["tags"].as_array().expect("tags");
    let tags =
        tags.iter().filter_map(|tag| Some((tag["name"].as_str()?, tag["description"].as_str())));
    let mut sections: Vec<_> = tags.collect();
    sections
        .push((SHARED, Some("Schemas that several resources use, pages of lists, and errors.")));
    for Line { heading, .. } in evidence {
        if !sections.iter().any(|(title, _)| title == heading) {
            sections.push((heading, None));
        }
    }
    sections
}

/// Returns a table, or nothing without rows.
fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rows: String = rows.map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    format!("\n| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len())) + &rows
}

fn operation_table(tag: &str, evidence: &[Line]) -> String {
    let operations = contract().operations().iter();
    let operations = operations.filter(|operation| operation.told()["tags"][0] == tag);
    let rows = operations.map(|operation| {
        let told = operation.told();
        let name = operation.name();
        let posthog = if is_documented(operation) { "yes" } else { "" };
        let request = &told["requestBody"]["content"]["application/json"]["schema"];
        let request = if request.is_null() { String::new() } else { describe(request) };
        vec![
            format!("`{name}`: {}", told["summary"].as_str().expect("a summary")),
            posthog.to_owned(),
            scope(&told["security"]),
            request,
            successes(operation),
            shown_by(evidence, |subject| subject == name),
        ]
    });
    table(&["Operation", "PostHog", "Scope", "Request", "Success", "Shown by"], rows)
}

/// Describes who may call an operation.
fn scope(security: &Value) -> String {
    let alternatives = security.as_array().expect("a list");
    let Some(key) = alternatives.iter().find_map(|it| it["key"].as_array()) else {
        return "public".to_owned();
    };
    let scope = match key.first().and_then(Value::as_str) {
        Some(scope) => format!("`{scope}`"),
        None => "any key".to_owned(),
    };
    if alternatives.len() > 1 { format!("public or {scope}") } else { scope }
}

/// Describes the successful responses of an operation.
fn successes(operation: &Operation) -> String {
    let describe_one = |(status, response): (&str, &Value)| {
        let content = response["content"].as_object().into_iter().flatten();
        let content: Vec<_> = content
            .map(|(media, content)| match media.as_str() {
                "application/json" => describe(&content["schema"]),
                other => other.to_owned(),
            })
            .collect();
        format!("{status} {}", content.join(" or ")).trim_end().to_owned()
    };
    let told: Vec<_> = operation.successes().map(describe_one).collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

fn field_table(fields: &[Field], evidence: &[Line]) -> String {
    let rows = fields.iter().map(|field| {
        vec![
            format!("`{}`", field.name),
            describe_types(&field.in_responses),
            describe_types(&field.in_requests),
            shown_by(evidence, |subject| field.names().any(|name| name == subject)),
        ]
    });
    table(&["Field", "In responses", "In requests", "Rules shown by"], rows)
}

fn describe_types(types: &Types) -> String {
    let types = types.iter().map(|(words, schemas)| format!("{}: {words}", schemas.join(", ")));
    types.collect::<Vec<_>>().join("; ")
}

fn rule_table(heading: &str, evidence: &[Line]) -> String {
    let rules = evidence.iter().filter(|line| line.heading == heading && line.is_rule());
    let rows = rules.map(|line| vec![line.subject.to_owned(), tests(line)]);
    table(&["Rule", "Shown by"], rows)
}

/// Returns the tests of the subjects.
fn shown_by(evidence: &[Line], is_subject: impl Fn(&str) -> bool) -> String {
    let lines = evidence.iter().filter(|line| is_subject(line.subject));
    lines.map(tests).collect::<Vec<_>>().join(" ")
}

fn tests(line: &Line) -> String {
    line.tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join(" ")
}
