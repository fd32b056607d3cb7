//! `Idempotency-Key`: a repeated POST takes effect once. See `docs/spec/requests.md`.

mod rights;
mod upkeep;

use steward::testing::idempotency::StoredBodyPart;

use crate::batch_exports;
use crate::support::prelude::*;

const REUSED: &str = "This Idempotency-Key was used for a request with another body.";

#[track_caller]
pub fn is_replayed(again: &TestResponse, first: &TestResponse, body: &Value) {
    assert_eq!(again.headers["idempotent-replayed"], "true");
    again.assert_is(first.status, body.clone());
    assert_eq!(again.bytes.is_empty(), first.bytes.is_empty());
    assert_eq!(again.headers.get("content-type"), first.headers.get("content-type"));
    let version = |answer: &TestResponse| {
        let tag = answer.headers.get("etag")?.to_str().ok()?.split_once('-')?.0.to_owned();
        Some(tag)
    };
    assert_eq!(version(again), version(first));
}

#[track_caller]
pub fn is_reused(answer: &TestResponse) {
    answer.assert_error(422, "invalid_request", "idempotency_key_reused", REUSED, None);
}

/// Returns every POST in the first organization and project that creates something with a key.
async fn posts(workspace: &Workspace) -> Vec<(String, Value)> {
    let owner = &workspace.owner;
    workspace.member("ann", Level::Member).await;
    let ann = workspace.uuid(ANN).await;
    owner.post(&workspace.dashboards(""), json!({ "restriction_level": 37 })).await.ok();
    let template = json!({
        "template_name": "T", "dashboard_description": "", "dashboard_filters": {},
        "tiles": [{ "type": "TEXT", "body": "x", "layouts": {} }],
    });
    let key = json!({ "label": "x", "scopes": ["user:read"] });
    let key = at(&owner.post(KEYS, key).await.ok(), "roll/");
    let (_, [export, _]) = batch_exports::add(workspace, nowhere("Nightly")).await;
    let (_, role) = add_role(workspace, "Analysts").await;
    vec![
        (KEYS.to_owned(), json!({ "label": "y", "scopes": ["user:read"] })),
        (key, json!({ "grace_seconds": 60 })),
        (batch_exports::list_of(workspace), nowhere("Hourly")),
        (format!("{export}pause/"), json!({})),
        ("/api/organizations/".to_owned(), json!({ "name": "Second" })),
        (workspace.organization("projects/"), json!({ "name": "Shop" })),
        (workspace.organization("domains/"), json!({ "domain": "corp.example" })),
        (workspace.organization("roles/"), json!({ "name": "Readers" })),
        (format!("{role}role_memberships/"), json!({ "user_uuid": ann })),
        (workspace.organization("invites/"), json!({ "target_email": "bob@corp.example" })),
        (workspace.organization("invites/bulk/"), json!([{ "target_email": "eve@corp.example" }])),
        (workspace.project("insights/"), json!({ "name": "Visits" })),
        (workspace.dashboards(""), json!({ "name": "Sales" })),
        (workspace.dashboards("create_from_template_json/"), json!({ "template": template })),
        (workspace.dashboards("1/collaborators/"), json!({ "user_uuid": ann, "level": 37 })),
        (workspace.dashboards("1/sharing/refresh/"), json!({})),
    ]
}

#[tokio::test]
async fn repeated_post_is_replayed_and_takes_effect_once() {
    let workspace = Workspace::new().await;
    for (path, body) in posts(&workspace).await {
        let first = post_once(&workspace.owner, &path, "one", &body).await;
        assert!(first.status < 300, "{path}: {}", first.body);
        assert!(!first.headers.contains_key("idempotent-replayed"));
        let known = entries(&workspace);
        let mut shown = first.body.clone();
        for name in ["accept_url", "value", "access_token", "live_events_token"] {
            if let Some(secret) = shown.get_mut(name) {
                assert!(secret.is_string());
                *secret = Value::Null;
            }
        }
        for again in [&path, path.trim_end_matches('/')] {
            is_replayed(&post_once(&workspace.owner, again, "one", &body).await, &first, &shown);
        }
        assert_eq!(entries(&workspace), known, "{path}: done twice");
        is_reused(&post_once(&workspace.owner, &path, "one", &json!({ "x": 1 })).await);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn idempotency_keys_are_separate_per_user_path_and_text() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let (path, body) = (workspace.dashboards(""), json!({ "name": "Sales" }));
    let first = post_once(&workspace.owner, &path, "one", &body).await;
    for (caller, path, key) in [
        (&ann, &path, "one"),
        (&workspace.owner, &path, "One"),
        (&workspace.owner, &path, "one "),
        (&workspace.owner, &workspace.dashboards("1/sharing/refresh/"), "one"),
    ] {
        let other = post_once(caller, path, key, &body).await;
        assert!(!other.headers.contains_key("idempotent-replayed"), "{path} {key:?}");
        assert_ne!(other.ok()["id"], first.body["id"]);
    }
    let second = workspace.key(OWNER, &["dashboard:write"]).await;
    for path in [&path, &path.replace("/1/", "/@current/")] {
        is_replayed(&post_once(&second, path, "one", &body).await, &first, &first.body);
    }
}

#[tokio::test]
async fn error_responses_are_not_stored() {
    let (workspace, owner) = Workspace::owned().await;
    let path = workspace.dashboards("");
    assert_eq!(post_once(&owner, &path, "one", &json!({ "pinned": "maybe" })).await.status, 400);
    assert_eq!(stored::<StoredResponse>(&workspace), 0);
    assert_eq!(post_once(&owner, &path, "one", &json!({ "pinned": true })).await.status, 201);
}

#[tokio::test]
async fn idempotency_key_can_be_reused_after_a_day() {
    let (workspace, clock) = Workspace::timed().await;
    let (path, body) = (workspace.dashboards(""), json!({ "name": "x".repeat(300) }));
    let first = post_once(&workspace.owner, &path, "one", &body).await;
    clock.advance(Duration::from_secs(24 * 60 * 60 - 1));
    is_replayed(&post_once(&workspace.owner, &path, "one", &body).await, &first, &first.body);
    clock.advance(Duration::from_secs(1));
    let again = post_once(&workspace.owner, &path, "one", &json!({})).await;
    assert_ne!(again.ok()["id"], first.body["id"]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn long_response_is_replayed_completely() {
    for (count, bytes, parts) in [(8, 50_000, 2), (40, 200_000, 0)] {
        let workspace = Workspace::new().await;
        let texts: Vec<Value> = (0..count)
            .map(|number| json!({ "text": { "body": format!("{number} {}", "ä".repeat(3000)) } }))
            .collect();
        workspace.owner.post(&workspace.dashboards(""), json!({})).await.ok();
        workspace.owner.patch(&workspace.dashboards("1/"), json!({ "tiles": texts })).await.ok();
        let (path, body) = (workspace.dashboards(""), json!({ "use_dashboard": 1 }));
        let first = post_once(&workspace.owner, &path, "one", &body).await;
        assert!(first.bytes.len() > bytes);
        let again = post_once(&workspace.owner, &path, "one", &body).await;
        is_replayed(&again, &first, &first.body);
        assert_eq!(again.bytes, first.bytes);
        let stored = stored::<StoredBodyPart>(&workspace);
        assert_eq!(stored, parts, "a response above 64 KiB is not stored");
        workspace.assert_file_valid().await;
    }
}

#[tokio::test]
async fn response_is_not_replayed_to_a_caller_who_lost_access() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Admin).await;
    let uuid = workspace.uuid(ANN).await;
    let members = workspace.organization(&format!("members/{uuid}/"));
    let (domains, domain) = (workspace.organization("domains/"), json!({ "domain": "a.example" }));
    post_once(&ann, &domains, "one", &domain).await.ok();
    owner.post(&workspace.dashboards(""), json!({})).await.ok();
    let refresh = workspace.dashboards("1/sharing/refresh/");
    post_once(&ann, &refresh, "one", &json!({})).await.ok();

    owner.patch(&members, json!({ "level": 1 })).await.ok();
    let refused = post_once(&ann, &domains, "one", &domain).await;
    refused.assert_denied(TOO_LOW);
    owner.patch(&workspace.dashboards("1/"), json!({ "restriction_level": 37 })).await.ok();
    let refused = post_once(&ann, &refresh, "one", &json!({})).await;
    refused.assert_denied(NO_EDIT);
    workspace.remove_member(ANN).await;
    let refused = post_once(&ann, &refresh, "one", &json!({})).await;
    refused.assert_denied(NO_ACCESS);
    let narrow = workspace.key(OWNER, &["dashboard:read"]).await;
    let path = workspace.dashboards("");
    post_once(&owner, &path, "one", &json!({})).await.ok();
    let refused = post_once(&narrow, &path, "one", &json!({})).await;
    refused.assert_denied("API key missing required scope 'dashboard:write'");
    assert_eq!(post_once(&workspace.anonymous(), &path, "one", &json!({})).await.status, 401);
}

#[tokio::test]
async fn concurrent_requests_with_one_key_run_once_and_all_get_the_response() {
    let workspace = Workspace::new().await;
    let path = workspace.dashboards("");
    let asked = (0..32).map(|_| {
        let (owner, path) = (workspace.owner.clone(), path.clone());
        tokio::spawn(async move { post_once(&owner, &path, "one", &json!({ "name": "x" })).await })
    });
    let mut replayed = 0;
    for asked in asked.collect::<Vec<_>>() {
        let answer = asked.await.expect("an answer");
        assert_eq!((answer.status, &answer.body["id"]), (201, &json!(1)));
        replayed += usize::from(answer.headers.contains_key("idempotent-replayed"));
    }
    assert_eq!(replayed, 31);
    assert_eq!(workspace.owner.get(&path).await.ok()["count"], 1);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn invalid_idempotency_key_is_rejected_after_authorization() {
    let (workspace, owner) = Workspace::owned().await;
    let path = workspace.dashboards("");
    let text = "Send one key of 1 to 255 ASCII characters.";
    for key in ["", &"x".repeat(256), "é"] {
        post_once(&owner, &path, key, &json!({})).await.assert_bad("Idempotency-Key", text);
    }
    let headers = [("idempotency-key", "a"), ("idempotency-key", "b"), JSON[0]];
    owner.fetch(Method::POST, &path, &headers, "{}").await.assert_bad("Idempotency-Key", text);
    assert_eq!(post_once(&workspace.anonymous(), &path, "", &json!({})).await.status, 401);
    let long = "x".repeat(255);
    post_once(&owner, &path, &long, &json!({})).await.ok();
    let headers = [("idempotency-key", "c"), ("content-type", "text/plain")];
    assert_eq!(owner.fetch(Method::POST, &path, &headers, "{}").await.status, 415);
    let read = owner.fetch(Method::GET, &path, &[("idempotency-key", "")], "").await;
    assert_eq!(read.status, 200, "only POST reads the header");
}

#[tokio::test]
async fn repeated_signup_returns_no_key_and_requires_the_same_token_and_account() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let offer = offer(&workspace, "new@corp.example", 1).await;
    let body = json!({ "token": offer.token, "first_name": "New" });
    let nobody = workspace.anonymous();
    let first = post_once(&nobody, &offer.path, "one", &body).await;
    let key = first.body["personal_api_key"]["value"].as_str().expect("a key").to_owned();
    let mut shown = first.body.clone();
    shown["personal_api_key"] = Value::Null;
    is_replayed(&post_once(&nobody, &offer.path, "one", &body).await, &first, &shown);
    workspace.with_key(&key).get(ME).await.ok();
    is_reused(&post_once(&ann, &offer.path, "one", &body).await);
    let other = json!({ "token": "other", "first_name": "New" });
    is_reused(&post_once(&nobody, &offer.path, "one", &other).await);
    for (path, key) in [(offer.path.as_str(), "two"), ("/api/signup/none/", "one")] {
        let unknown = post_once(&nobody, path, key, &body).await;
        unknown.assert_bad_body("The provided invite ID is not valid.");
    }
}

#[tokio::test]
async fn repeated_verification_is_replayed_after_the_domain_is_verified() {
    let dns = Dns::start().await;
    let workspace = Workspace::with(dns.config()).await;
    let (domain, path) = crate::domains::add(&workspace, "corp.example").await;
    let path = format!("{path}verify/");
    let challenge = domain["verification_challenge"].as_str().expect("a challenge").to_owned();
    post_once(&workspace.owner, &path, "early", &json!({})).await.assert_empty(200);
    dns.set("_posthog-challenge.corp.example.", Reply::texts(&[&[&challenge]]));
    let again = post_once(&workspace.owner, &path, "early", &json!({})).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    again.assert_empty(200);
    let first = post_once(&workspace.owner, &path, "late", &json!({})).await;
    first.assert_empty(200);
    let again = post_once(&workspace.owner, &path, "late", &json!({})).await;
    is_replayed(&again, &first, &Value::Null);
    let refused = post_once(&workspace.owner, &path, "third", &json!({})).await;
    refused.assert_invalid_body("already_verified", "This domain has already been verified.");
}
