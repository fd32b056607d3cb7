//! `docs/api/test-control.md`, which is written from the document of the control plane.

use std::fmt::Write as _;

use super::test_control::Run;
use crate::prelude::*;
use crate::support::process::request;

/// Set this variable to write the page.
const UPDATE: &str = "UPDATE_DOCS";

#[test]
fn page_of_the_control_plane_says_what_its_document_says() {
    let run = Run::with(&[]);
    let (status, document) = run.call("GET", "schema?format=json", None);
    assert_eq!(status, 200, "{document}");
    run.server.stop();
    let page = page(&document);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api/test-control.md");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &page).expect("written");
    }
    let written = fs::read_to_string(&path).expect("the page");
    assert!(written == page, "the page is not of these routes: run this test with {UPDATE}=1");
}

/// Every path and method of the control plane, and what it would be if the service had it.
#[test]
fn serve_has_no_path_of_the_control_plane() {
    let run = Run::with(&[]);
    let (_, document) = run.call("GET", "schema?format=json", None);
    run.server.stop();
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    let server = site.serve(&[]);
    let not_found = json!({
        "type": "invalid_request", "code": "not_found", "detail": "API endpoint not found.", "attr": null,
    });
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            let path = path.replace("{name}", "a");
            for path in [path.trim_end_matches('/'), &path] {
                let mut connection = server.connect();
                let method = method.to_uppercase();
                let sent =
                    request(&method, path, key, "", "").replace("Host: steward", "Host: localhost");
                connection.write(sent).expect("sent");
                let reply = connection.reply().expect("a response");
                assert_eq!(
                    (reply.status, reply.json()),
                    (404, not_found.clone()),
                    "{method} {path}"
                );
                asked += 1;
            }
        }
    }
    assert!(asked > 40, "{asked}");
    server.stop();
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn page(document: &Value) -> String {
    let mut page = "# The control plane of a test run\n\nWritten from the routes by `UPDATE_DOCS=1 cargo test --test system -- test_docs`. \
                    [testing.md](../testing.md) explains it.\n"
        .to_owned();
    for tag in document["tags"].as_array().expect("tags") {
        write!(page, "\n## {}\n\n{}\n", text(&tag["name"]), text(&tag["description"]))
            .expect("a text");
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                if operation["tags"][0] == tag["name"] {
                    page += &section(document, (method, path), operation);
                }
            }
        }
    }
    page
}

fn section(document: &Value, (method, path): (&str, &str), operation: &Value) -> String {
    let mut section =
        format!("\n### `{} {path}`\n\n{}\n", method.to_uppercase(), text(&operation["summary"]));
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameters: Vec<_> = parameters.map(|one| resolve(document, one)).collect();
    let named = parameters.iter().filter(|one| one["in"] == "query" || one["in"] == "path");
    let rows: Vec<_> = named
        .map(|one| (text(&one["name"]).to_owned(), text(&one["description"]).to_owned()))
        .collect();
    section += &table("Parameter", &rows);
    let sent =
        resolve(document, &operation["requestBody"]["content"]["application/json"]["schema"]);
    section += &table("Field", &fields(document, sent));
    let answers = operation["responses"].as_object().expect("responses");
    let done =
        answers.iter().find(|(status, _)| status.starts_with(['2', '3'])).expect("a success");
    let shown = resolve(document, &done.1["content"]["application/json"]["schema"]);
    section += &table(&format!("Member of the {}", done.0), &fields(document, shown));
    if shown.get("properties").is_none() {
        write!(section, "\nReturns {}.\n", done.0).expect("a text");
    }
    section
}

/// Returns what a reference refers to.
fn resolve<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str().and_then(|name| name.strip_prefix('#')) {
        Some(pointer) => document.pointer(pointer).expect("a component"),
        None => value,
    }
}

/// Returns the members of an object with their descriptions.
fn fields(document: &Value, schema: &Value) -> Vec<(String, String)> {
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let objects = parts.chain([schema]).map(|part| resolve(document, part));
    let members = objects.filter_map(|object| object["properties"].as_object()).flatten();
    members.map(|(name, member)| (name.clone(), text(&member["description"]).to_owned())).collect()
}

fn table(of: &str, rows: &[(String, String)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = format!("\n| {of} | |\n|---|---|\n");
    for (name, description) in rows {
        let line = description.replace('\n', " ").replace('|', "\\|");
        writeln!(table, "| `{name}` | {line} |").expect("a text");
    }
    table
}
