//! Tests of when a session is valid and of what it may do, in requests and inside writes.

use bytes::Bytes;
use steward::testing::ids::SessionId;
use steward::testing::resources::sessions::Session;

use crate::support::prelude::*;
use crate::support::sessions::SESSIONS;

/// Creates a key with every scope and a session that is bound to it.
async fn bound(workspace: &Workspace) -> (Value, SignedIn) {
    let key = make_key(&workspace.owner, json!({ "label": "console", "scopes": ["*"] })).await;
    let session = sign_in(workspace, key["value"].as_str().expect("a value")).await;
    (key, session)
}

/// Asserts that the session ended for requests, for the console and for its own list.
async fn assert_dead(workspace: &Workspace, session: &SignedIn) {
    assert_ended(&session.client.get(ME).await);
    let Err(refused) = workspace.app.verify_session(&session.text) else {
        panic!("the session is valid")
    };
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.detail(), "The session is invalid or has ended. Sign in again.");
    let listed = workspace.owner.get(SESSIONS).await.ok();
    assert!(!listed.to_string().contains(&session.id()), "{listed}");
}

#[tokio::test]
async fn session_ends_when_its_key_is_revoked_rolled_or_expires() {
    let (workspace, clock) = Workspace::timed().await;
    let (key, session) = bound(&workspace).await;
    assert_eq!(session.client.get(ME).await.status, 200);
    workspace.owner.delete(&at(&key, "")).await.assert_empty(204);
    assert_dead(&workspace, &session).await;

    let (key, session) = bound(&workspace).await;
    workspace.owner.post(&at(&key, "roll/"), json!({ "grace_seconds": 3600 })).await.ok();
    assert_eq!(holder(&workspace, &key).get(ME).await.status, 200, "the old value has grace");
    assert_dead(&workspace, &session).await;
    let old = key["value"].as_str().expect("a value");
    let refused = workspace.app.sign_in_with_key(old, browser(), None).await;
    assert_eq!(refused.err().map(|error| error.status()), Some(401));

    let key = workspace.limited_key(OWNER, &["*"], json!({ "expires_in": 60 })).await;
    let session = sign_in(&workspace, key.key.as_deref().expect("a key")).await;
    clock.advance(Duration::from_secs(59));
    assert_eq!(session.client.get(ME).await.status, 200);
    clock.advance(Duration::from_secs(1));
    assert_dead(&workspace, &session).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn session_has_exactly_the_permissions_of_its_key_also_after_updates() {
    let workspace = Workspace::new().await;
    let (key, session) = bound(&workspace).await;
    workspace.owner.patch(&at(&key, ""), json!({ "scopes": ["user:read"] })).await.ok();
    let refused = session.client.get(&workspace.dashboards("")).await;
    refused.assert_denied("API key missing required scope 'dashboard:read'");
    workspace.owner.patch(&at(&key, ""), json!({ "scopes": ["dashboard:read"] })).await.ok();
    assert_eq!(session.client.get(&workspace.dashboards("")).await.status, 200);
    let (eve, other) = workspace.outsider("eve").await;
    let limits = json!({ "organizations": [other["id"]] });
    let limited = workspace.limited_key("eve@other.example", &["*"], limits).await;
    let session = sign_in(&workspace, limited.key.as_deref().expect("a key")).await;
    let refused = session.client.post("/api/organizations/", json!({ "name": "New" })).await;
    let text = "API keys limited to organizations or projects cannot create an organization.";
    refused.assert_denied(text);
    assert_eq!(eve.get(ME).await.status, 200);
}

#[tokio::test]
async fn session_by_link_has_all_permissions_of_its_user_and_no_more() {
    let workspace = Workspace::new().await;
    let session = sign_in_by_link(&workspace).await;
    session.client.post("/api/organizations/", json!({ "name": "New" })).await.ok();
    let (_, other) = workspace.outsider("eve").await;
    let path = format!("/api/projects/{}/dashboards/", other["project_id"]);
    session.client.get(&path).await.assert_denied(NO_ACCESS);
}

#[tokio::test]
async fn ban_of_member_keys_applies_to_sessions_of_keys_and_not_of_links() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let by_key = sign_in(&workspace, ann.key.as_deref().expect("a key")).await;
    let me = ann.get(ME).await.ok();
    let user = serde_json::from_value(me["id"].clone()).expect("an id");
    let link = workspace.app.create_sign_in_link(user, false).await.expect("a link");
    let text =
        workspace.app.sign_in_with_link(&link.code, browser(), None).await.expect("a session");
    let by_link = SignedIn::of(&workspace, text.encode());
    let closed = json!({ "members_can_use_personal_api_keys": false });
    workspace.owner.patch(&workspace.organization(""), closed).await.ok();

    let text = "Organization 'Corp' does not allow using personal API keys. Contact an admin to enable personal API keys for this organization.";
    by_key.client.get(&workspace.dashboards("")).await.assert_denied(text);
    assert_eq!(by_key.client.get(ME).await.ok()["organization"], Value::Null);
    by_link.client.post(&workspace.dashboards(""), json!({ "name": "Mine" })).await.ok();
    let me = by_link.client.get(ME).await.ok();
    assert_eq!(me["organization"]["name"], "Corp");
    assert_eq!(me["organizations"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn sessions_of_a_deactivated_user_end_for_good() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let session = sign_in(&workspace, ann.key.as_deref().expect("a key")).await;
    for active in [false, true] {
        workspace.set_active(ANN, active).await;
        assert_dead(&workspace, &session).await;
    }
    assert_eq!(ann.get(ME).await.status, 200);
}

/// Waits until a use of the session at this time is recorded.
async fn recorded(workspace: &Workspace, session: &SignedIn) {
    let id: SessionId = session.id().parse().expect("an id");
    let now = workspace.app.now();
    eventually("the use is recorded", || {
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        let stored = tx.meta::<Session>(&id).expect("read").expect("a session");
        (stored.last_used_at == now).then_some(())
    })
    .await;
}

/// Uses the session as a new request of the browser does.
async fn used(workspace: &Workspace, session: &SignedIn) {
    SignedIn::of(workspace, session.text.clone()).client.get(ME).await.ok();
}

#[tokio::test]
async fn use_of_a_session_is_recorded_after_ten_minutes_and_keeps_it_alive() {
    let (workspace, clock) = Workspace::timed().await;
    let (key, session) = bound(&workspace).await;
    clock.advance(Duration::from_mins(10));
    used(&workspace, &session).await;
    recorded(&workspace, &session).await;
    let shown = workspace.owner.get(&at(&key, "")).await.ok();
    assert_eq!(shown["last_used_at"], "2023-11-14T22:23:20Z", "it is a use of its key");
    clock.advance(Duration::from_secs(599));
    used(&workspace, &session).await;
    clock.advance(Duration::from_secs(1));
    used(&workspace, &session).await;
    recorded(&workspace, &session).await;
    clock.advance(Duration::from_secs(12 * 3600 - 1));
    used(&workspace, &session).await;
    recorded(&workspace, &session).await;
    assert_eq!(workspace.owner.get(SESSIONS).await.ok()[0]["last_used_at"], "2023-11-15T10:33:19Z");
}

#[tokio::test]
async fn session_ends_seven_days_after_sign_in_and_twelve_hours_after_its_last_recorded_use() {
    let (workspace, clock) = Workspace::timed().await;
    let session = sign_in(&workspace, &workspace.made.api_key).await;
    for _ in 0..14 {
        clock.advance(Duration::from_hours(12) - Duration::from_secs(1));
        used(&workspace, &session).await;
        recorded(&workspace, &session).await;
    }
    clock.advance(Duration::from_secs(13));
    used(&workspace, &session).await;
    clock.advance(Duration::from_secs(1));
    assert_dead(&workspace, &session).await;
    let session = sign_in(&workspace, &workspace.made.api_key).await;
    clock.advance(Duration::from_secs(12 * 3600 - 1));
    assert!(workspace.app.verify_session(&session.text).is_ok());
    clock.advance(Duration::from_secs(1));
    assert_dead(&workspace, &session).await;
}

#[tokio::test]
async fn altered_text_of_a_session_is_rejected() {
    let workspace = Workspace::new().await;
    let [one, two] = [
        sign_in(&workspace, &workspace.made.api_key).await,
        sign_in(&workspace, &workspace.made.api_key).await,
    ];
    let (id, secret) = one.text.split_once('.').expect("two parts");
    let (_, other) = two.text.split_once('.').expect("two parts");
    for text in ["", ".", id, &format!("{id}."), &format!("{id}.{other}"), &format!(".{secret}")] {
        let refused = workspace.app.verify_session(text).err().expect("not a session");
        assert_eq!(refused.status(), 401, "{text}");
    }
}

/// Sends a PATCH whose body arrives after `meanwhile`, when the request was authorized already.
async fn patch_after<F: Future<Output = ()>>(
    client: &TestClient,
    path: &str,
    body: Value,
    meanwhile: impl FnOnce() -> F,
) -> TestResponse {
    let (asked, is_asked) = oneshot::channel::<()>();
    let (go, may_go) = oneshot::channel::<()>();
    let body = stream::once(async move {
        asked.send(()).expect("a test that waits");
        may_go.await.expect("a test that goes on");
        Ok::<_, std::convert::Infallible>(Bytes::from(body.to_string()))
    });
    let request = Request::builder().method(Method::PATCH).uri(path);
    let request = request.header("content-type", "application/json");
    let request = request.body(Body::from_stream(body)).expect("a request");
    let client = client.clone();
    let sent = tokio::spawn(async move { client.raw(request).await });
    is_asked.await.expect("the handler reads the body");
    meanwhile().await;
    go.send(()).expect("a body that waits");
    sent.await.expect("no panic")
}

#[tokio::test]
async fn session_that_ends_during_a_request_changes_nothing() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, dashboard) = owner.create(&workspace.dashboards(""), json!({ "name": "before" })).await;
    let changed = json!({ "name": "after" });

    let (key, session) = bound(&workspace).await;
    let revoke = async || owner.delete(&at(&key, "")).await.assert_empty(204);
    assert_ended(&patch_after(&session.client, &dashboard, changed.clone(), revoke).await);

    let (key, session) = bound(&workspace).await;
    let roll = async || drop(owner.post(&at(&key, "roll/"), json!({})).await.ok());
    assert_ended(&patch_after(&session.client, &dashboard, changed.clone(), roll).await);

    for session in [bound(&workspace).await.1, sign_in_by_link(&workspace).await] {
        let end = async || owner.delete(&session.path()).await.assert_empty(204);
        assert_ended(&patch_after(&session.client, &dashboard, changed.clone(), end).await);
    }

    let ann = workspace.member("ann", Level::Admin).await;
    let session = sign_in(&workspace, ann.key.as_deref().expect("a key")).await;
    let deactivate = async || workspace.set_active(ANN, false).await;
    assert_ended(&patch_after(&session.client, &dashboard, changed.clone(), deactivate).await);

    assert_eq!(owner.get(&dashboard).await.ok()["name"], "before");
    let (_, session) = bound(&workspace).await;
    let done = patch_after(&session.client, &dashboard, changed, async || ()).await;
    assert_eq!(done.ok()["name"], "after");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn session_of_a_key_counts_towards_the_rate_limit_of_the_key() {
    let (mut config, _) = with_clock();
    config.rate_limits = vec!["4/h".parse().expect("a rate")];
    let workspace = Workspace::with(config).await;
    // The sign-in is the first request of the key.
    let session = sign_in(&workspace, &workspace.made.api_key).await;
    let by_link = sign_in_by_link(&workspace).await;
    assert_eq!(session.client.get(ME).await.headers["ratelimit-remaining"], "2");
    assert_eq!(workspace.owner.get(CURRENT).await.headers["ratelimit-remaining"], "1");
    assert_eq!(session.client.get(ME).await.headers["ratelimit-remaining"], "0");
    assert_eq!(workspace.owner.get(ME).await.status, 429);
    assert_eq!(session.client.get(ME).await.status, 429);
    for left in ["3", "2", "1", "0"] {
        assert_eq!(by_link.client.get(ME).await.headers["ratelimit-remaining"], left);
    }
    assert_eq!(by_link.client.get(ME).await.status, 429);
}
