//! `docs/conformance.md` is complete and correct: each name in it exists, and every operation has a row.
//!
//! `document.txt` lists the documented routes of PostHog's API (method, path, scope, status, response, body; `-` for
//! none) and its fields (schema and member, type). The `OpenAPI` document must describe all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::contract::{Operation, contract};

const TABLE: &str = include_str!("../../../docs/conformance.md");
/// Other pages that name tests.
const PAGES: [&str; 1] = [include_str!("../../../SECURITY.md")];
const DOCUMENT: &str = include_str!("document.txt");

/// A row of the table.
struct Row<'t> {
    line: usize,
    /// The operations and fields of the `OpenAPI` document that it names, such as `GET /api/users/@me/` or `Domain.id`.
    told: Vec<&'t str>,
    /// The tests that it names, such as `domains::domain_name_is_immutable`.
    shown: Vec<&'t str>,
}

/// Returns the texts in backticks.
fn names(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns the rows of all tables on a page, without the headings.
fn rows(page: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (at, text) in page.lines().enumerate().filter(|(_, text)| text.starts_with('|')) {
        let cells: Vec<&str> = text.split('|').collect();
        let &[_, _, told, shown, _] = cells.as_slice() else {
            panic!("line {}: {} cells", at + 1, cells.len());
        };
        let is_head = shown.trim() == "Shown by" || shown.starts_with("---");
        if !is_head {
            rows.push(Row { line: at + 1, told: names(told), shown: names(shown) });
        }
    }
    rows
}

/// Returns the segments of a path, with all parameters replaced by `:`, because their names may differ.
fn shape(path: &str) -> Vec<&str> {
    path.split('/').map(|part| if part.starts_with([':', '{']) { ":" } else { part }).collect()
}

fn operation(method: &str, path: &str) -> Option<&'static Operation> {
    let mut operations = contract().operations().iter();
    operations.find(|it| it.method.eq_ignore_ascii_case(method) && shape(&it.path) == shape(path))
}

fn member(name: &str) -> Option<&'static Value> {
    let (schema, member) = name.split_once('.')?;
    let schema = contract().document["components"]["schemas"].get(schema)?;
    let parts = schema["allOf"].as_array().into_iter().flatten();
    std::iter::once(schema).chain(parts).find_map(|part| part["properties"].get(member))
}

/// Whether the `OpenAPI` document has this operation or schema member.
fn is_told(name: &str) -> bool {
    match name.split_once(' ') {
        Some((method, path)) => operation(method, path).is_some(),
        None => member(name).is_some(),
    }
}

/// Whether a test binary has a test of this name, in a module that is compiled.
fn is_test(name: &str) -> bool {
    ["it", "system", "chaos"].iter().any(|binary| is_test_of(binary, name))
}

fn is_test_of(binary: &str, name: &str) -> bool {
    let Some((module, test)) = name.rsplit_once("::") else { return false };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(binary);
    let read = |file: String| fs::read_to_string(folder.join(file)).ok();
    let source = |module: &[&str]| match module.join("/") {
        at if at.is_empty() => read("main.rs".to_owned()),
        at => read(format!("{at}.rs")).or_else(|| read(format!("{at}/mod.rs"))),
    };
    let parts: Vec<&str> = module.split("::").collect();
    let is_built = parts.iter().enumerate().all(|(at, part)| {
        let is_declared = |line: &str| line.trim_start_matches("pub ") == format!("mod {part};");
        source(&parts[..at]).is_some_and(|parent| parent.lines().any(is_declared))
    });
    let source = source(&parts).unwrap_or_default();
    // The attributes of the function follow the last empty line before it.
    let item = source
        .split_once(&format!("fn {test}("))
        .and_then(|(before, _)| before.rsplit("\n\n").next());
    let is_marked =
        item.is_some_and(|item| item.contains("#[test]") || item.contains("#[tokio::test"));
    is_built && is_marked
}

/// Returns the words of each documented route and field.
fn documented<const WORDS: usize>() -> impl Iterator<Item = [&'static str; WORDS]> {
    DOCUMENT.lines().filter_map(|line| line.split(' ').collect::<Vec<_>>().try_into().ok())
}

/// Returns the errors in the table.
fn gaps(page: &str) -> Vec<String> {
    let rows = rows(page);
    let mut gaps = Vec::new();
    for Row { line, told, shown } in &rows {
        let untold = told.iter().filter(|name| !is_told(name));
        gaps.extend(untold.map(|name| format!("line {line}: the OpenAPI document lacks {name}")));
        let missing = shown.iter().filter(|test| !is_test(test));
        gaps.extend(missing.map(|test| format!("line {line}: there is no test {test}")));
        if shown.is_empty() {
            gaps.push(format!("line {line}: no test shows it"));
        }
    }
    let named: BTreeSet<&str> = rows.iter().flat_map(|row| row.told.iter().copied()).collect();
    let routes: BTreeSet<_> = named
        .iter()
        .filter_map(|name| name.split_once(' '))
        .map(|(how, path)| (how, shape(path)))
        .collect();
    let mut wanted: Vec<(String, &str)> =
        documented::<6>().map(|[method, path, ..]| (method.to_owned(), path)).collect();
    let served = contract().operations().iter();
    wanted.extend(served.map(|it| (it.method.to_uppercase(), it.path.as_str())));
    let is_absent =
        |(method, path): &&(String, &str)| !routes.contains(&(method.as_str(), shape(path)));
    let absent = wanted.iter().filter(is_absent);
    gaps.extend(absent.map(|(method, path)| format!("no row names {method} {path}")));
    let absent = documented::<2>().filter(|[field, _]| !named.contains(field));
    gaps.extend(absent.map(|[field, _]| format!("no row names {field}")));
    gaps
}

/// Whether a text in backticks has the form of a test's name.
fn means_a_test(name: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    name.contains("::") && name.split("::").all(is_word)
}

#[test]
fn tests_named_on_other_pages_exist() {
    for page in PAGES {
        let named: Vec<_> = names(page).into_iter().filter(|name| means_a_test(name)).collect();
        let missing: Vec<_> = named.iter().filter(|name| !is_test(name)).collect();
        assert!(!named.is_empty() && missing.is_empty(), "{missing:#?}");
    }
}

#[test]
fn conformance_table_is_complete() {
    let gaps = gaps(TABLE);
    assert!(gaps.is_empty(), "\n{}", gaps.join("\n"));
}

#[test]
fn errors_in_the_conformance_table_are_found() {
    let known = gaps(TABLE);
    for (right, wrong, gap) in [
        ("`GET /api/users/@me/`", "`GET /api/users/`", "no row names GET /api/users/@me/"),
        ("`PATCH /api/users/@me/`", "`PUT /api/users/@me/`", "lacks PUT /api/users/@me/"),
        ("`Domain.has_saml`", "`Domain.saml`", "lacks Domain.saml"),
        ("`Domain.has_saml`", "", "no row names Domain.has_saml"),
        ("`domains::domain_name_is_immutable`", "`domains::nothing`", "no test domains::nothing"),
        ("`domains::domain_name_is_immutable`", "`domains::add`", "no test domains::add"),
        ("`domains::domain_name_is_immutable`", "`nowhere::x`", "no test nowhere::x"),
        ("`invites::invite_expires_after_its_time_to_live`", "", "no test shows it"),
    ] {
        let broken = TABLE.replace(right, wrong);
        assert_ne!(broken, TABLE, "the table lacks {right}");
        let found = gaps(&broken);
        assert!(
            found.iter().any(|it| it.ends_with(gap) && !known.contains(it)),
            "{gap}: {found:#?}"
        );
    }
}

#[test]
fn route_and_field_list_is_complete() {
    let lines = DOCUMENT.lines().filter(|line| !line.is_empty()).count();
    assert_eq!((documented::<6>().count(), documented::<2>().count(), lines), (29, 307, 29 + 307));
}

/// Whether `value` refers to this schema.
fn refers(value: &Value, schema: &str) -> bool {
    value.to_string().contains(&format!("\"#/components/schemas/{schema}\""))
}

#[test]
fn openapi_document_agrees_with_the_documented_routes() {
    let parameter = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
    for [method, path, scope, status, answer, body] in documented::<6>() {
        let route = format!("{method} {path}");
        let Some(found) = operation(method, path) else { panic!("there is no {route}") };
        let told = contract().document.pointer(&found.pointer).expect("an operation");
        assert_eq!(told["security"], json!([{ "key": [scope] }]), "{route}");
        let responses = told["responses"].as_object().expect("responses");
        let good: Vec<&String> = responses.keys().filter(|code| code.starts_with('2')).collect();
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
    for [method, path, ..] in documented::<6>() {
        let Some(found) = operation(method, path) else { panic!("there is no {path}") };
        let told = document.pointer(&found.pointer).expect("an operation");
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
    for [field, kind] in documented::<2>() {
        let Some(told) = member(field) else { panic!("there is no {field}") };
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
