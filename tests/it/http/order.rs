//! Tests the order of checks: if a request has two errors, which of them the response reports.

use crate::http::errors::READ_ONLY;
use crate::support::prelude::*;

const MALFORMED: &str = "{";
const EOF: &str = "EOF while parsing an object at line 1 column 1";
const NOWHERE: &str = "/api/projects/999999/dashboards/1/";

#[tokio::test]
async fn credentials_membership_level_and_method_are_checked_before_body_and_object() {
    let workspace = Workspace::new().await;
    let (_, one) = make(&workspace, &workspace.owner, json!({})).await;
    let anonymous = workspace.anonymous();
    anonymous.get(NOWHERE).await.is_no_key();
    anonymous.fetch(Method::PUT, &one, &JSON, MALFORMED).await.is_no_key();
    anonymous.fetch(Method::PATCH, &one, &[("content-type", "x/y")], MALFORMED).await.is_no_key();
    anonymous.delete(&one).await.is_no_key();
    let (outsider, _) = workspace.outsider("eve").await;
    outsider.fetch(Method::PUT, &one, &[], "").await.assert_denied(NO_ACCESS);
    outsider.delete(&one).await.assert_denied(NO_ACCESS);
    outsider.fetch(Method::PATCH, &one, &JSON, MALFORMED).await.assert_denied(NO_ACCESS);
    outsider.get(&workspace.dashboards("999999/")).await.assert_denied(NO_ACCESS);
    outsider.patch(&workspace.organization(""), json!({})).await.assert_denied(NOT_ALLOWED);
    let member = workspace.member("max", Level::Member).await;
    let organization = workspace.organization("");
    member.fetch(Method::PATCH, &organization, &JSON, MALFORMED).await.assert_denied(TOO_LOW);
    member.patch(&workspace.organization("domains/1/"), json!({})).await.assert_denied(TOO_LOW);
    workspace.owner.fetch(Method::PUT, &one, &JSON, MALFORMED).await.is_wrong_method("PUT");
    let unknown = workspace.dashboards("999999/");
    workspace.owner.fetch(Method::PUT, &unknown, &[], "").await.is_wrong_method("PUT");
}

#[tokio::test]
async fn project_and_organization_are_checked_before_key_limits_and_these_before_scope_and_body() {
    let workspace = Workspace::new().await;
    let two = workspace.owner.post(&workspace.organization("projects/"), json!({})).await.ok();
    let limits = json!({"projects": [two["id"]]});
    let limited = workspace.limited_key(OWNER, &["user:read"], limits).await;
    limited.get(NOWHERE).await.assert_not_found("Project not found.");
    limited.delete(NOWHERE).await.assert_not_found("Project not found.");
    let put = workspace.owner.fetch(Method::PUT, NOWHERE, &JSON, MALFORMED).await;
    put.assert_not_found("Project not found.");
    let unknown = "/api/organizations/01890000-0000-7000-8000-000000000000/";
    limited.patch(unknown, json!({})).await.assert_not_found("Organization not found.");
    let (_, one) = make(&workspace, &workspace.owner, json!({})).await;
    let (_, other) = workspace.outsider("eve").await;
    let project = workspace.made.project_id;
    let text = format!("API key does not have access to the requested project: ID {project}.");
    limited.fetch(Method::PATCH, &one, &JSON, MALFORMED).await.assert_denied(&text);
    limited.fetch(Method::PUT, &one, &[], "").await.assert_denied(&text);
    let eve = "eve@other.example";
    let limits = json!({"projects": [other["project_id"]]});
    workspace.limited_key(eve, &["*"], limits).await.get(&one).await.assert_denied(&text);
    let limits = json!({"organizations": [other["id"]]});
    workspace.limited_key(eve, &["user:read"], limits).await.get(&one).await.assert_denied(&text);
}

#[tokio::test]
async fn scope_is_checked_before_membership_level_body_object_and_the_405_of_delete() {
    let workspace = Workspace::new().await;
    let (_, one) = make(&workspace, &workspace.owner, json!({})).await;
    workspace.outsider("eve").await;
    let stranger = workspace.key("eve@other.example", &["dashboard:read"]).await;
    stranger.patch(&one, json!({})).await.assert_denied(READ_ONLY);
    let reader = workspace.key(OWNER, &["dashboard:read"]).await;
    reader.delete(&one).await.assert_denied(READ_ONLY);
    reader.fetch(Method::PATCH, &one, &JSON, MALFORMED).await.assert_denied(READ_ONLY);
    reader.patch(&workspace.dashboards("abc/"), json!({})).await.assert_denied(READ_ONLY);
    workspace.member("max", Level::Member).await;
    let low = workspace.key("max@corp.example", &["organization:read"]).await;
    let lacks = "API key missing required scope 'organization:write'";
    low.patch(&workspace.organization(""), json!({})).await.assert_denied(lacks);
}

#[tokio::test]
async fn body_is_checked_before_the_object_and_the_object_before_rights_and_fields() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, one) = make(&workspace, &owner, json!({"restriction_level": 37})).await;
    for gone in ["999999/", "abc/", "-1/"] {
        let gone = workspace.dashboards(gone);
        owner.fetch(Method::PATCH, &gone, &JSON, MALFORMED).await.is_parse_error(EOF);
        let typed = owner.fetch(Method::PATCH, &gone, &[("content-type", "x/y")], "{}").await;
        let detail = "Unsupported media type \"x/y\" in request.";
        typed.assert_error(415, "invalid_request", "unsupported_media_type", detail, None);
        let detail = "Invalid data. Expected a dictionary, but got list.";
        owner.patch(&gone, json!([])).await.assert_bad_body(detail);
        owner.patch(&gone, json!({"name": [1]})).await.assert_not_found("Not found.");
    }
    let member = workspace.member("max", Level::Member).await;
    member.fetch(Method::PATCH, &one, &JSON, MALFORMED).await.is_parse_error(EOF);
    member.patch(&one, json!({"name": [1]})).await.assert_denied(NO_EDIT);
}

#[tokio::test]
async fn first_invalid_field_in_the_documented_order_is_reported() {
    let (workspace, owner) = Workspace::owned().await;
    let of_dashboard = "name description pinned deleted use_template use_dashboard \
        delete_insights tags restriction_level";
    let of_insight = "name derived_name filters query order deleted dashboards description tags \
        favorited saved";
    for (list, fields) in
        [(workspace.dashboards(""), of_dashboard), (workspace.project("insights/"), of_insight)]
    {
        let fields: Vec<_> = fields.split(' ').collect();
        let (_, one) = owner.create(&list, json!({})).await;
        for (number, first) in fields.iter().enumerate() {
            let invalid = fields[number..].iter().rev().map(|name| (*name, json!([[{}]])));
            let sent: Value = invalid.collect();
            for answer in
                [owner.post(&list, sent.clone()).await, owner.patch(&one, sent.clone()).await]
            {
                assert_eq!(answer.status, 400, "{list} {first}");
                let attr = answer.body["attr"].as_str().expect("a field");
                assert_eq!(attr.split("__").next(), Some(*first), "{}", answer.body);
            }
        }
    }
}
