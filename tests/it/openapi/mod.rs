//! The OpenAPI document: it is complete, consistent, and served correctly. All other tests verify that it is true,
//! because the test client checks every response against it.

mod forms;

use crate::support::prelude::*;

/// Collects every member called `name` at any depth of `value`.
fn all<'v>(value: &'v Value, name: &str, out: &mut Vec<&'v Value>) {
    match value {
        Value::Object(members) => {
            out.extend(members.get(name));
            members.values().for_each(|member| all(member, name, out));
        }
        Value::Array(items) => items.iter().for_each(|item| all(item, name, out)),
        _ => {}
    }
}

/// Returns the operations of the document, each with its path and method.
fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let contract = contract();
    contract.operations().iter().map(|it| {
        let operation = contract.document.pointer(&it.pointer).expect("an operation");
        (it.path.as_str(), it.method.as_str(), operation)
    })
}

#[test]
fn every_operation_has_a_unique_name_a_tag_and_a_summary() {
    let mut names = BTreeSet::new();
    let tags = contract().document["tags"].as_array().expect("tags");
    for (path, method, operation) in operations() {
        let name = operation["operationId"].as_str().expect("a name");
        assert!(names.insert(name), "{name} is named twice");
        let summary = operation["summary"].as_str().expect("a summary");
        assert!(summary.ends_with('.') && summary.len() > 3, "{method} {path}: {summary:?}");
        let tag = &operation["tags"][0];
        let described = tags.iter().any(|it| it["name"] == *tag && it["description"] != "");
        assert!(described, "{name}: {tag}");
    }
}

#[test]
fn every_schema_is_valid_every_reference_resolves_and_every_component_is_used() {
    let document = &contract().document;
    let mut references = Vec::new();
    all(document, "$ref", &mut references);
    let places: BTreeSet<&str> =
        references.iter().map(|place| place.as_str().expect("a place")).collect();
    for place in &places {
        let pointer = place.strip_prefix('#').expect("a place in the document");
        assert!(document.pointer(pointer).is_some(), "{place} leads nowhere");
    }
    for (kind, components) in document["components"].as_object().expect("components") {
        for name in components.as_object().expect("components").keys() {
            let place = format!("#/components/{kind}/{name}");
            // No operation refers to `MethodNotAllowed`: it is the response to a method that a path lacks.
            let known = kind == "securitySchemes" || name == "MethodNotAllowed";
            assert!(known || places.contains(place.as_str()), "{place} is not used");
        }
    }
    for name in document["components"]["schemas"].as_object().expect("schemas").keys() {
        let schema = &document["components"]["schemas"][name];
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name}");
        contract().schema(&format!("/components/schemas/{name}"));
    }
}

#[test]
fn response_schemas_describe_every_member() {
    let document = &contract().document;
    let mut shown = BTreeSet::new();
    for (_, _, operation) in operations() {
        let mut places = Vec::new();
        all(&operation["responses"], "$ref", &mut places);
        shown.extend(places.into_iter().filter_map(Value::as_str));
    }
    let named = |place: &str| place.strip_prefix("#/components/schemas/").map(str::to_owned);
    let mut schemas: BTreeSet<String> = shown.into_iter().filter_map(named).collect();
    let mut seen = 0;
    while let Some(name) = schemas.pop_first() {
        let schema = &document["components"]["schemas"][&name];
        if let Some(choices) = schema["oneOf"].as_array() {
            schemas.extend(choices.iter().filter_map(|choice| named(choice["$ref"].as_str()?)));
            continue;
        }
        assert_eq!(schema["additionalProperties"], false, "{name} is open");
        let described = schema["description"].as_str().is_some_and(|text| !text.is_empty());
        assert!(described, "{name} is not described");
        for (member, property) in schema["properties"].as_object().expect("members") {
            let listed_when_removed =
                ["DashboardSummary", "Insight", "BasicInsight", "InsightOnDashboard"];
            let only_of_removed = listed_when_removed.contains(&name.as_str())
                && ["deleted_at", "deleted_by"].contains(&member.as_str());
            let required = schema["required"].as_array().expect("a list").contains(&json!(member));
            assert_ne!(required, only_of_removed, "{name}.{member}");
            assert!(property.is_object(), "{name}.{member}");
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn every_request_body_has_a_valid_example() {
    let mut seen = 0;
    for (path, method, operation) in operations() {
        let body = &operation["requestBody"]["content"]["application/json"];
        if body.is_null() {
            continue;
        }
        let example = body.get("example").unwrap_or_else(|| panic!("{method} {path}: no example"));
        let place = format!("/paths/{}/{method}", path.replace('/', "~1"));
        let place = format!("{place}/requestBody/content/application~1json/schema");
        let errors: Vec<String> =
            contract().schema(&place).iter_errors(example).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{method} {path}: {errors:?}");
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn every_shared_response_has_a_valid_example() {
    for (name, response) in
        contract().document["components"]["responses"].as_object().expect("them")
    {
        let content = &response["content"]["application/json"];
        let schema = contract()
            .schema(&format!("/components/responses/{name}/content/application~1json/schema"));
        let examples = content["examples"].as_object().expect("examples");
        assert!(!examples.is_empty(), "{name}");
        for example in examples.values() {
            assert!(schema.is_valid(&example["value"]), "{name}: {example}");
        }
        let other = json!({"type": "server_error", "code": "blank", "detail": "", "attr": null});
        assert!(!schema.is_valid(&other), "{name} takes anything");
    }
}

#[test]
fn every_path_parameter_has_a_type() {
    let document = &contract().document;
    for (path, method, operation) in operations() {
        let named: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let mut told = BTreeSet::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = match parameter["$ref"].as_str() {
                Some(place) => document.pointer(&place[1..]).expect("a parameter"),
                None => parameter,
            };
            if parameter["in"] == "path" {
                assert_eq!(parameter["required"], true);
                let name = parameter["name"].as_str().expect("a name");
                let schema = &parameter["schema"];
                let typed = schema["type"] == "integer" || schema["type"] == "string";
                assert!(typed, "{method} {path}: {name}");
                let is_id = schema["type"] == "integer"
                    || schema["format"] == "uuid"
                    || schema["pattern"].is_string();
                assert!(name != "id" || is_id, "{method} {path}: say what {{id}} is");
                told.insert(name);
            }
        }
        assert_eq!(named, told, "{method} {path}");
    }
}

#[test]
fn openapi_document_contains_exactly_the_served_routes_with_their_scopes() {
    let table = routes();
    assert_eq!(operations().count(), table.specs().len());
    for row in table.specs() {
        let place = format!(
            "/paths/{}/{}",
            row.path.replace('/', "~1"),
            row.method.as_str().to_lowercase()
        );
        let operation = contract().document.pointer(&place).expect("an operation");
        let scopes: Vec<&str> = row.requirements.scope.into_iter().collect();
        let expected = match (row.requirements.public, row.requirements.optional) {
            (None, _) => json!([{ "key": scopes }]),
            (Some(_), true) => json!([{}, { "key": scopes }]),
            (Some(_), false) => json!([]),
        };
        assert_eq!(operation["security"], expected, "{}", row.operation);
        assert_eq!(operation["operationId"], row.operation);
    }
}

fn operation(name: &str) -> &'static Value {
    let found = operations().map(|(_, _, operation)| operation);
    found.into_iter().find(|it| it["operationId"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Returns the last segment of each reference.
fn named<'v>(references: impl IntoIterator<Item = &'v Value>) -> Vec<&'v str> {
    let places = references.into_iter().filter_map(|it| it["$ref"].as_str());
    places.filter_map(|place| place.rsplit('/').next()).collect()
}

#[test]
fn conditional_headers_and_idempotency_are_documented_where_supported() {
    const TOLD: [(&str, &[&str], &[&str]); 10] = [
        ("dashboards_retrieve", &["IfNoneMatch"], &["304"]),
        ("dashboards_partial_update", &["DryRun", "IfMatch"], &["400", "408", "412", "413", "415"]),
        ("dashboards_move_tile_partial_update", &["DryRun", "IfMatch"], &["412"]),
        ("domains_destroy", &["DryRun", "IfMatch"], &["200", "204", "400", "412"]),
        ("dashboards_create", &["DryRun", "IdempotencyKey"], &["200", "201", "422"]),
        ("signup_create", &["DryRun", "IdempotencyKey"], &["200", "201", "400", "401", "422"]),
        ("personal_api_keys_operations_create", &["DryRun"], &["200"]),
        ("dashboards_list", &[], &["401", "403", "404", "429", "500", "503"]),
        ("dashboards_destroy", &[], &["405"]),
        ("dashboards_access_controls_update", &["DryRun"], &["200", "204", "400"]),
    ];
    for (name, headers, statuses) in TOLD {
        let operation = operation(name);
        let parameters = named(operation["parameters"].as_array().into_iter().flatten());
        for header in ["IfMatch", "IfNoneMatch", "IdempotencyKey", "DryRun"] {
            assert_eq!(parameters.contains(&header), headers.contains(&header), "{name}: {header}");
        }
        for status in statuses {
            assert!(operation["responses"].get(status).is_some(), "{name}: {status}");
        }
    }
    let sent = |name: &str, status: &str| {
        let headers = operation(name)["responses"][status]["headers"].as_object().expect("headers");
        headers.keys().map(String::as_str).collect::<Vec<_>>()
    };
    let limits = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];
    let with = |first: &[&'static str]| [&["X-Request-Id"], first, &limits].concat();
    assert_eq!(sent("dashboards_retrieve", "304"), with(&["ETag"]));
    assert_eq!(sent("dashboards_create", "201"), with(&["ETag", "Idempotent-Replayed"]));
    assert_eq!(sent("dashboards_list", "200"), with(&[]));
    assert_eq!(sent("domains_verify_create", "200"), with(&["Idempotent-Replayed", "Dry-Run"]));
    assert_eq!(sent("shared_retrieve", "200"), ["X-Request-Id"]);
    let throttled = &contract().document["components"]["responses"]["TooManyRequests"]["headers"];
    assert!(throttled.get("Retry-After").is_some() && throttled.get("RateLimit-Reset").is_some());
}

#[test]
fn create_responses_link_to_follow_up_operations() {
    let mut seen = 0;
    for (path, _, operation) in operations() {
        let links = operation["responses"]["201"]["links"].as_object();
        for (name, link) in links.into_iter().flatten() {
            let (to, ..) = operations()
                .find(|(_, _, it)| it["operationId"] == link["operationId"])
                .unwrap_or_else(|| panic!("{path}: {name} leads nowhere"));
            let wanted: BTreeSet<&str> =
                to.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}')).collect();
            let given = link["parameters"].as_object().expect("parameters");
            assert_eq!(given.keys().map(String::as_str).collect::<BTreeSet<_>>(), wanted, "{name}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
    let links = &operation("dashboards_create")["responses"]["201"]["links"];
    let expected = json!({ "project_id": "$request.path.project_id", "id": "$response.body#/id" });
    assert_eq!(links["dashboards_retrieve"]["parameters"], expected);
}

#[tokio::test]
async fn openapi_document_is_served_as_yaml_and_json() {
    let workspace = Workspace::new().await;
    let anyone = workspace.anonymous();
    for path in ["/api/schema/", "/api/schema", "/api/schema/?format=yaml"] {
        let yaml = anyone.get(path).await;
        assert_eq!(yaml.status, 200);
        assert_eq!(yaml.headers["content-type"], "application/vnd.oai.openapi");
        let read: Value = yaml_serde::from_slice(&yaml.bytes).expect("YAML");
        assert_eq!(read, contract().document);
    }
    let json = anyone.get("/api/schema/?format=json").await;
    assert_eq!(json.headers["content-type"], "application/vnd.oai.openapi+json");
    assert_eq!(json.headers["x-content-type-options"], "nosniff");
    assert_eq!(json.body, contract().document);
    anyone.get("/api/schema/?format=xml").await.assert_not_found("Not found.");
    let head = anyone.send(Method::HEAD, "/api/schema/", None).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    assert_eq!(head.headers["content-type"], "application/vnd.oai.openapi");
}

#[tokio::test]
async fn api_docs_files_are_immutable_only_under_their_version() {
    let workspace = Workspace::new().await;
    let anyone = workspace.anonymous();
    let html = String::from_utf8(anyone.get("/api/docs/").await.bytes).expect("text");
    let files: Vec<_> = html.split('"').filter(|text| text.starts_with("/api/docs/")).collect();
    assert_eq!(files.len(), 2, "{html}");
    for (url, media) in files.into_iter().zip(["text/css", "text/javascript"]) {
        let path = url.split('?').next().expect("a path");
        for (url, kept) in [(url, "public, max-age=31536000, immutable"), (path, "no-cache")] {
            let file = anyone.get(url).await;
            assert_eq!(
                (file.status, &file.headers["content-type"]),
                (200, &media.parse().unwrap())
            );
            assert_eq!(file.headers["cache-control"], kept, "{url}");
            assert_eq!(file.headers["vary"], "accept-encoding");
        }
    }
}

#[tokio::test]
async fn api_docs_page_loads_nothing_from_other_origins() {
    let workspace = Workspace::new().await;
    let anyone = workspace.anonymous();
    for path in ["/api/docs/", "/api/docs"] {
        let page = anyone.get(path).await;
        assert_eq!(page.status, 200);
        let policy = page.headers["content-security-policy"].to_str().expect("text");
        let (_, allowed) = policy.split_once("default-src 'none';").expect("no default");
        for open in ["http", "*", "unsafe-eval"] {
            assert!(!allowed.contains(open), "{policy}");
        }
        assert!(!allowed.split(';').any(|it| it.contains("script-src") && it.contains("unsafe")));
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        let html = String::from_utf8(page.bytes).expect("text");
        for foreign in ["http:", "https:", "=\"//"] {
            assert!(!html.contains(foreign), "{html}");
        }
    }
    for other in
        ["index.html", "swagger-initializer.js", "%2e%2e%2fschema", "x", "oauth2-redirect.html"]
    {
        anyone.get(&format!("/api/docs/{other}")).await.assert_not_found("Not found.");
    }
}
