//! `Dry-Run: true`: a request runs with all checks and changes nothing. See `docs/spec/requests.md`.

use crate::activity::secrets::{Walk, every_write};
use crate::support::dry_run::{DryRunOutcome, everything};
use crate::support::prelude::*;

/// Sends a request as a dry run, which changes nothing, and then as it is. Both have the same result. Returns the body of
/// the dry run.
async fn compare(
    workspace: &Workspace,
    caller: &TestClient,
    method: Method,
    path: &str,
    body: Value,
) -> Value {
    let tried = DryRunOutcome::of(workspace, caller, method.clone(), path, Some(&body)).await;
    let shown = tried.body().clone();
    tried.assert_like(workspace, &caller.send(method, path, Some(body)).await);
    shown
}

#[tokio::test]
async fn every_write_tells_in_a_dry_run_what_it_then_does_and_changes_nothing() {
    let mut walk = Walk::with_dry_runs().await;
    every_write(&mut walk).await;
    walk.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn dry_run_shows_the_response_and_the_activity_entries() {
    let (workspace, _clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let roles = workspace.organization("roles/");
    let (role, one) = owner.create(&roles, json!({ "name": "Analysts" })).await;
    let answer = dry_run(owner, Method::PATCH, &one, Some(&json!({ "name": "Readers" }))).await;
    let mut renamed = role.clone();
    renamed["name"] = json!("Readers");
    let change = json!({
        "type": "Role", "action": "changed", "field": "name", "before": "Analysts", "after": "Readers",
    });
    answer.assert_is(
        200,
        json!({
            "dry_run": true, "status": 200, "response": renamed,
            "activity": [{
                "id": answer.body["activity"][0]["id"], "user": embedded(owner).await, "scope": "Role",
                "item_id": role["id"], "activity": "updated",
                "detail": { "name": "Readers", "changes": [change] }, "project_id": null,
                "created_at": "2023-11-14T22:13:20Z",
            }],
        }),
    );
    assert_eq!(answer.headers["dry-run"], "true");
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(!answer.headers.contains_key("etag"));
    owner.get(&one).await.assert_is(200, role);
    let deleted = dry_run(owner, Method::DELETE, &one, None).await;
    let entry = &deleted.body["activity"][0];
    assert_eq!([&entry["activity"], &entry["detail"]["name"]], ["deleted", "Analysts"]);
    let expected = json!({ "dry_run": true, "status": 204, "response": null, "activity": [entry] });
    deleted.assert_is(200, expected);
    assert_eq!(owner.get(&one).await.status, 200);
}

/// Sends a PATCH of the caller with these headers.
async fn patch_me(caller: &TestClient, headers: &[(&str, &str)]) -> TestResponse {
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers);
    caller.fetch(Method::PATCH, ME, &all, r#"{"first_name": "Other"}"#).await
}

#[tokio::test]
async fn value_of_the_header_is_true_or_false() {
    let (workspace, owner) = Workspace::owned().await;
    for value in ["true", "TRUE", "True"] {
        assert_eq!(patch_me(&owner, &[("dry-run", value)]).await.body["dry_run"], true, "{value}");
    }
    for value in ["", "yes", "1", "true, true", "tru\u{e9}"] {
        let answer = patch_me(&owner, &[("dry-run", value)]).await;
        answer.assert_bad("Dry-Run", "Send `true` or `false`.");
        assert!(!answer.headers.contains_key("dry-run"));
    }
    let twice = patch_me(&owner, &[("dry-run", "true"), ("dry-run", "true")]).await;
    twice.assert_bad("Dry-Run", "Send `true` or `false`.");
    // Without a valid key, the value does not count.
    patch_me(&workspace.anonymous(), &[("dry-run", "yes")]).await.is_no_key();
    // A read ignores the header.
    let read = owner.fetch(Method::GET, ME, &[("dry-run", "yes")], "").await;
    assert_eq!((read.status, &read.body["first_name"]), (200, &json!("Olga")));
    assert!(!read.headers.contains_key("dry-run"));
    let changed = patch_me(&owner, &[("dry-run", "FALSE")]).await;
    assert_eq!((changed.status, &changed.body["first_name"]), (200, &json!("Other")));
    assert!(!changed.headers.contains_key("dry-run"));
}

#[tokio::test]
async fn errors_are_those_of_the_request() {
    let (mut config, _clock) = with_clock();
    config.caps.max_projects = 1;
    let workspace = Workspace::with(config).await;
    let owner = &workspace.owner;
    let member = workspace.member("ann", Level::Member).await;
    let reader = workspace.key(OWNER, &["dashboard:read"]).await;
    let board = Board::make(&workspace, json!({ "restriction_level": 37 })).await;
    let (organization, projects) =
        (workspace.organization(""), workspace.organization("projects/"));
    for (status, caller, method, path, body) in [
        (400, owner, Method::PATCH, &board.one, json!({ "tags": 5 })),
        (400, owner, Method::POST, &projects, json!({ "name": "Beyond the cap" })),
        (401, &workspace.anonymous(), Method::PATCH, &board.one, json!({})),
        (403, &member, Method::PATCH, &organization, json!({ "name": "x" })),
        (403, &member, Method::PATCH, &board.one, json!({ "name": "x" })),
        (403, &reader, Method::PATCH, &board.one, json!({ "name": "x" })),
        (404, owner, Method::PATCH, &workspace.dashboards("99/"), json!({ "name": "x" })),
        (405, owner, Method::DELETE, &board.one, json!({})),
    ] {
        let real = caller.send(method.clone(), path, Some(body.clone())).await;
        let tried = dry_run(caller, method, path, Some(&body)).await;
        assert_eq!(real.status, status, "{path}: {}", real.body);
        tried.assert_is(status, real.body);
    }
    let stale =
        [("dry-run", "true"), ("if-match", "\"99-0\""), ("content-type", "application/json")];
    let stale = owner.fetch(Method::PATCH, &board.one, &stale, r#"{"name": "x"}"#).await;
    let detail = "The object has changed: its version is not one that If-Match names.";
    stale.assert_error(412, "invalid_request", "precondition_failed", detail, None);
    assert_eq!(stale.headers["dry-run"], "true");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn secrets_are_null_and_no_key_becomes_valid() {
    let (workspace, owner) = Workspace::owned().await;
    let key = json!({ "label": "x", "scopes": ["user:read"] });
    let made = dry_run(&owner, Method::POST, KEYS, Some(&key)).await.ok();
    assert_eq!((&made["status"], &made["response"]["value"]), (&json!(201), &Value::Null));
    assert_eq!(owner.get(KEYS).await.ok().as_array().expect("keys").len(), 1);
    let board = Board::make(&workspace, json!({})).await;
    let shared = json!({ "enabled": true });
    let shown = dry_run(&owner, Method::PATCH, &board.sharing, Some(&shared)).await.ok();
    let shown = &shown["response"];
    assert_eq!((&shown["enabled"], &shown["access_token"]), (&json!(true), &Value::Null));
    // The token of a public page that is shared already is shown by GET alone.
    let token = board.enable(&owner, true).await;
    let shown = dry_run(&owner, Method::POST, &board.refresh, Some(&json!({}))).await;
    assert_eq!(shown.body["response"]["access_token"], Value::Null);
    assert!(!String::from_utf8_lossy(&shown.bytes).contains(&token));
    assert_eq!(workspace.anonymous().get(&format!("/shared/{token}.json")).await.status, 200);
    let invite = json!({ "target_email": "a@x.example" });
    let invites = workspace.organization("invites/");
    let shown = &dry_run(&owner, Method::POST, &invites, Some(&invite)).await.ok()["response"];
    assert_eq!(shown["target_email"], invite["target_email"]);
    assert_eq!(shown["accept_url"], Value::Null);
}

#[tokio::test]
async fn no_mail_is_queued() {
    let workspace = Workspace::with(with_mail()).await;
    let (owner, invites) = (&workspace.owner, workspace.organization("invites/"));
    let before = everything(&workspace).await;
    let invite = json!({ "target_email": "ann@x.example" });
    let several = json!([invite, { "target_email": "bob@x.example" }]);
    for (path, sent, status) in
        [(invites.clone(), invite, 201), (format!("{invites}bulk/"), several, 200)]
    {
        let shown = dry_run(owner, Method::POST, &path, Some(&sent)).await.ok();
        assert_eq!(shown["status"], status, "{shown}");
        assert_eq!(everything(&workspace).await, before);
    }
}

#[tokio::test]
async fn idempotency_key_is_neither_stored_nor_looked_up() {
    let workspace = Workspace::new().await;
    let (owner, path) = (&workspace.owner, workspace.dashboards(""));
    let tries = async |key: &str, body: Value| {
        let headers =
            [("dry-run", "true"), ("idempotency-key", key), ("content-type", "application/json")];
        owner.fetch(Method::POST, &path, &headers, body.to_string()).await
    };
    let shown = tries("one", json!({ "name": "A" })).await;
    assert_eq!((shown.status, &shown.body["response"]["id"]), (200, &json!(1)));
    assert_eq!(stored::<StoredResponse>(&workspace), 0);
    let first = post_once(owner, &path, "one", &json!({ "name": "B" })).await;
    assert_eq!((first.status, &first.body["id"]), (201, &json!(1)));
    // The same key with another body.
    let shown = tries("one", json!({ "name": "C" })).await;
    assert_eq!((shown.status, &shown.body["response"]["id"]), (200, &json!(2)));
    assert!(!shown.headers.contains_key("idempotent-replayed"));
    let again = post_once(owner, &path, "one", &json!({ "name": "B" })).await;
    is_replayed(&again, &first, &first.body);
    // A key that the request would refuse.
    assert_eq!(tries("", json!({})).await.body["attr"], "Idempotency-Key");
}

#[tokio::test]
async fn large_responses_are_those_of_the_request() {
    let (workspace, owner) = Workspace::owned().await;
    let board = Board::make(&workspace, json!({ "name": "Large" })).await;
    let texts: Vec<String> = (0..150).map(|number| format!("text {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for some in texts.chunks(50) {
        put_texts(&owner, &board.one, some).await;
    }
    let renamed = json!({ "name": "Renamed" });
    let shown = compare(&workspace, &owner, Method::PATCH, &board.one, renamed).await;
    assert_eq!(shown["response"]["tiles"].as_array().expect("tiles").len(), 150);
    let copied = json!({ "use_dashboard": board.id, "name": "Copy", "duplicate_tiles": true });
    let path = workspace.dashboards("");
    let shown = compare(&workspace, &owner, Method::POST, &path, copied).await;
    assert_eq!(shown["response"]["tiles"].as_array().expect("tiles").len(), 150);
    for number in 0..60 {
        workspace.add_project(json!({ "name": format!("P{number}") })).await;
    }
    let organization = workspace.organization("");
    for (path, sent) in [
        (organization.as_str(), json!({ "name": "Renamed" })),
        (ME, json!({ "theme_mode": "dark" })),
    ] {
        compare(&workspace, &owner, Method::PATCH, path, sent).await;
    }
    workspace.assert_file_valid().await;
}

/// Returns the scope and the action of each entry of a dry run.
fn summaries(shown: &Value) -> Vec<String> {
    let entries = shown["activity"].as_array().expect("entries").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    entries.map(|entry| format!("{} {}", text(&entry["scope"]), text(&entry["activity"]))).collect()
}

#[tokio::test]
async fn activity_has_only_entries_that_the_caller_may_read() {
    let (workspace, owner) = Workspace::owned().await;
    let board = Board::make(&workspace, json!({ "name": "Plan" })).await;
    let renamed = json!({ "name": "Other" });
    // A key without the scope of the log.
    let narrow = workspace.key(OWNER, &["dashboard:write", "organization:write"]).await;
    let shown = dry_run(&narrow, Method::PATCH, &board.one, Some(&renamed)).await.ok();
    assert_eq!((&shown["response"]["name"], &shown["activity"]), (&json!("Other"), &Value::Null));
    // A key limited to the project reads the project's log, and not the log of the organization.
    let limits = json!({ "projects": [workspace.made.project_id] });
    let limited = workspace.limited_key(OWNER, &["*"], limits).await;
    let member = workspace.member("ann", Level::Member).await;
    let (dashboards, leaves) = (workspace.dashboards(""), workspace.organization("members/@me/"));
    let own = Some(json!({ "name": "Mine" }));
    for (caller, method, path, sent, expected) in [
        (&limited, Method::PATCH, board.one.as_str(), Some(renamed), &["Dashboard updated"][..]),
        // A member sees what they create, and that they leave.
        (&member, Method::POST, &dashboards, Some(json!({})), &["Dashboard created"]),
        (&member, Method::POST, "/api/organizations/", own, &["Organization created"]),
        (&member, Method::DELETE, &leaves, None, &["OrganizationMembership deleted"]),
        // No log shows changes of one's own account; a dry run does.
        (&member, Method::PATCH, ME, Some(json!({ "first_name": "A" })), &["User updated"]),
        // A request that changes nothing records nothing.
        (&owner, Method::PATCH, &board.one, Some(json!({ "name": "Plan" })), &[]),
    ] {
        let shown = dry_run(caller, method, path, sent.as_ref()).await.ok();
        assert_eq!(summaries(&shown), expected, "{path}");
    }
    // The dashboard is hidden from the member once the rule applies.
    let sent = json!({ "access_control": true });
    dry_run(&owner, Method::PATCH, &workspace.project(""), Some(&sent)).await.ok();
    assert_eq!(member.get(&board.one).await.status, 200);
}
