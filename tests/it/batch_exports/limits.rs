//! Tests of the limits on the fields of batch exports.

use axum::http::Method;
use serde_json::{Value, json};

use crate::batch_exports::{add, list_of, with};
use crate::support::Workspace;
use crate::support::batch_exports::{nowhere, to};
use crate::support::refusals::Refusal;

#[tokio::test]
async fn hogql_query_must_select_only_from_events() {
    let workspace = Workspace::new().await;
    let (_, paths) = add(&workspace, nowhere("a")).await;
    for (query, detail) in [
        (json!(""), "Failed to parse query"),
        (json!("SELECT * FROM events UNION ALL SELECT * FROM events"), "UNIONs are not supported"),
        (json!("SELECT * FROM events AS a JOIN events AS b ON 1"), "JOINs are not supported"),
        (json!("SELECT * FROM persons"), "Query must only SELECT FROM events"),
        (json!(true), "Not a valid string."),
    ] {
        let sent = json!({ "hogql_query": query });
        let case = |sent: Value| [(sent, Refusal::invalid("hogql_query", detail))];
        for path in &paths {
            workspace.owner.assert_refusals(Method::PATCH, path, case(sent.clone())).await;
        }
        let created = case(with(nowhere("b"), sent));
        workspace.owner.assert_refusals(Method::POST, &list_of(&workspace), created).await;
    }
    let sent = json!({ "hogql_query": "SELECT *\nFROM persons" });
    let refused = workspace.owner.patch(&paths[0], sent).await;
    assert_eq!(refused.headers["error-position"], "line=2, column=6");
    let long = json!({ "hogql_query": "x".repeat(256 * 1024 + 1) });
    let detail = "Ensure this field has no more than 262144 characters.";
    let refused = workspace.owner.patch(&paths[0], long).await;
    refused.assert_invalid("hogql_query", "max_length", detail);
}

#[tokio::test]
async fn too_long_or_deep_values_are_rejected() {
    let workspace = Workspace::new().await;
    let (_, [path, _]) = add(&workspace, nowhere("a")).await;
    let bytes = "Ensure this field has no more than 32768 bytes of JSON.";
    let containers = "Ensure this field has no more than 32 nested containers.";
    let config = |config: Value| json!({ "destination": { "type": "NoOp", "config": config } });
    let deep = |depth: usize| (0..depth).fold(json!([]), |inner, _| json!({ "a": inner }));
    let too_much = |attr: &str, detail: &str| Refusal::new(attr, "max_length", detail);
    let cases = [
        (config(json!({ "arg": "x".repeat(1_000_000) })), too_much("destination__config", bytes)),
        (config(json!({ "arg": deep(40) })), too_much("destination__config", containers)),
        (json!({ "filters": deep(40) }), too_much("filters", containers)),
    ];
    workspace.owner.assert_refusals(Method::PATCH, &path, cases).await;
    workspace.owner.patch(&path, json!({ "filters": deep(31) })).await.ok();

    // Several small updates cannot exceed the limit either.
    let least = json!({ "bucket_name": "b", "region": "r", "prefix": "p" });
    let (_, [path, _]) = add(&workspace, to("S3", &least)).await;
    let events = vec!["x".repeat(300); 70];
    let piece = |key: &str| json!({ "destination": { "config": { key: events } } });
    workspace.owner.patch(&path, piece("include_events")).await.ok();
    let refused = workspace.owner.patch(&path, piece("exclude_events")).await;
    refused.assert_invalid("destination__config", "max_length", bytes);
    workspace.assert_file_valid().await;
}
