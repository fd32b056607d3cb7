//! Tests of console sessions: signing in, what a session may do, when it ends, and `/api/users/@me/sessions/`.

mod gate;
mod links;
mod storage;

use axum::http::header::COOKIE;
use steward::testing::resources::sessions::Fields;

use crate::support::log;
use crate::support::prelude::*;
use crate::support::sessions::{SESSIONS, USER_AGENT};

/// Asserts a 401 for a session.
#[track_caller]
pub fn assert_ended(answer: &TestResponse) {
    let detail = "The session is invalid or has ended. Sign in again.";
    answer.assert_error(401, "authentication_error", "authentication_failed", detail, None);
}

/// Returns the ids in a list of sessions.
pub async fn listed(caller: &TestClient) -> Vec<String> {
    let listed = caller.get(SESSIONS).await.ok();
    let ids = listed.as_array().expect("an array").iter();
    ids.map(|session| session["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn session_list_shows_the_callers_live_sessions_newest_first() {
    let (workspace, clock) = Workspace::timed().await;
    let key = workspace.owner.get(CURRENT).await.ok();
    workspace.owner.get(SESSIONS).await.assert_is(200, json!([]));
    let by_key = sign_in(&workspace, &workspace.made.api_key).await;
    clock.advance(Duration::from_mins(1));
    let by_link = sign_in_by_link(&workspace).await;
    let stranger = workspace.member("ann", Level::Member).await;
    sign_in(&workspace, stranger.key.as_deref().expect("a key")).await;

    let newer = json!({
        "id": by_link.id(), "created_at": "2023-11-14T22:14:20Z", "last_used_at": "2023-11-14T22:14:20Z",
        "expires_at": "2023-11-21T22:14:20Z", "user_agent": USER_AGENT, "ip_address": "203.0.113.7",
        "source": "link", "key": null, "current": false,
    });
    let older = json!({
        "id": by_key.id(), "created_at": "2023-11-14T22:13:20Z", "last_used_at": "2023-11-14T22:13:20Z",
        "expires_at": "2023-11-21T22:13:20Z", "user_agent": USER_AGENT, "ip_address": "203.0.113.7",
        "source": "key", "current": false,
        "key": { "id": key["id"], "label": "First key", "mask_value": key["mask_value"] },
    });
    workspace.owner.get(SESSIONS).await.assert_is(200, json!([newer, older]));
    let (mut mine, mut other) = (older.clone(), newer.clone());
    mine["current"] = json!(true);
    by_key.client.get(SESSIONS).await.assert_is(200, json!([newer, mine]));
    other["current"] = json!(true);
    by_link.client.get(SESSIONS).await.assert_is(200, json!([other, older]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn session_list_names_keys_only_to_callers_who_may_list_keys() {
    let workspace = Workspace::new().await;
    sign_in(&workspace, &workspace.made.api_key).await;
    let reader = workspace.key(OWNER, &["user:read"]).await;
    let listed = reader.get(SESSIONS).await.ok();
    assert_eq!((&listed[0]["source"], &listed[0]["key"]), (&json!("key"), &Value::Null));
    let reader = workspace.key(OWNER, &["user:read", "personal_api_key:read"]).await;
    assert_eq!(reader.get(SESSIONS).await.ok()[0]["key"]["label"], "First key");
}

#[tokio::test]
async fn stored_user_agent_is_cut_to_200_characters() {
    let workspace = Workspace::new().await;
    let client = Fields::new(&"é".repeat(300), browser().ip_address);
    workspace.app.sign_in_with_key(&workspace.made.api_key, client, None).await.expect("a session");
    assert_eq!(workspace.owner.get(SESSIONS).await.ok()[0]["user_agent"], "é".repeat(200));
}

#[tokio::test]
async fn ended_session_fails_and_leaves_the_list_and_users_end_only_their_own() {
    let workspace = Workspace::new().await;
    let [first, second] =
        [sign_in(&workspace, &workspace.made.api_key).await, sign_in_by_link(&workspace).await];
    workspace.owner.delete(&first.path()).await.assert_empty(204);
    assert_ended(&first.client.get(ME).await);
    assert!(workspace.app.verify_session(&first.text).is_err());
    workspace.owner.delete(&first.path()).await.assert_not_found("Not found.");
    assert_eq!(listed(&workspace.owner).await, [second.id()]);
    second.client.delete(&second.path()).await.assert_empty(204);
    assert_ended(&second.client.get(SESSIONS).await);
    workspace.owner.get(SESSIONS).await.assert_is(200, json!([]));
    let ann = workspace.member("ann", Level::Owner).await;
    let session = sign_in(&workspace, &workspace.made.api_key).await;
    ann.delete(&session.path()).await.assert_not_found("Not found.");
    let unknown = format!("{SESSIONS}01890000-0000-7000-8000-000000000000/");
    ann.delete(&unknown).await.assert_not_found("Not found.");
    assert_eq!(session.client.get(ME).await.status, 200);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn log_reports_the_end_of_a_session_but_not_a_dry_run_of_it() {
    log::capture();
    let workspace = Workspace::new().await;
    let session = sign_in(&workspace, &workspace.made.api_key).await;
    let ends = || {
        let lines = log::lines_about(session.id());
        lines.iter().filter(|line| line["message"] == "session ended by its user").count()
    };
    let tried = dry_run(&workspace.owner, Method::DELETE, &session.path(), None).await;
    let expected = json!({ "dry_run": true, "status": 204, "response": null, "activity": [] });
    tried.assert_is(200, expected);
    assert_eq!(ends(), 0);
    workspace.owner.delete(&session.path()).await.assert_empty(204);
    assert_eq!(ends(), 1);
}

#[tokio::test]
async fn signing_out_needs_no_scope() {
    let workspace = Workspace::new().await;
    let narrow = workspace.key(OWNER, &["dashboard:read"]).await;
    let session = sign_in(&workspace, narrow.key.as_deref().expect("a key")).await;
    let refused = session.client.delete(&session.path()).await;
    refused.assert_denied("API key missing required scope 'user:write'");
    let verified = workspace.app.verify_session(&session.text).expect("a session");
    workspace.app.sign_out(&verified).await.expect("signed out");
    assert_ended(&session.client.get(&workspace.dashboards("")).await);
    assert_eq!(workspace.app.sign_out(&verified).await.expect_err("no session").status(), 404);
}

#[tokio::test]
async fn further_session_of_a_user_ends_the_oldest_of_fifty() {
    let (workspace, clock) = Workspace::timed().await;
    let mut sessions = Vec::new();
    for _ in 0..51 {
        clock.advance(Duration::from_secs(1));
        sessions.push(sign_in(&workspace, &workspace.made.api_key).await);
    }
    assert_ended(&sessions[0].client.get(ME).await);
    let ids: Vec<_> = sessions[1..].iter().rev().map(SignedIn::id).collect();
    assert_eq!(listed(&workspace.owner).await, ids);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn sign_ins_with_one_key_do_not_end_the_sessions_of_others() {
    let (workspace, clock) = Workspace::timed().await;
    let narrow = workspace.key(OWNER, &["dashboard:read"]).await;
    let sign_in_at_next_second = async |key: Option<&str>| {
        clock.advance(Duration::from_secs(1));
        match key {
            Some(key) => sign_in(&workspace, key).await,
            None => sign_in_by_link(&workspace).await,
        }
    };
    let owner = Some(workspace.made.api_key.as_str());
    let mut kept = vec![sign_in_at_next_second(owner).await, sign_in_at_next_second(None).await];
    for _ in 0..51 {
        sign_in_at_next_second(narrow.key.as_deref()).await;
    }
    // A further sign-in ends a session of the key that has the most.
    kept.push(sign_in_at_next_second(owner).await);
    for session in &kept {
        assert_eq!(session.client.get(ME).await.status, 200);
    }
    assert_eq!(listed(&workspace.owner).await.len(), 50);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn session_comes_before_a_key_and_its_text_does_not_open_the_api() {
    let workspace = Workspace::new().await;
    let session = sign_in(&workspace, &workspace.made.api_key).await;
    workspace.with_key(&session.text).get(ME).await.is_bad_key();
    for name in ["steward", "steward-8000", "__Host-steward", "session"] {
        let cookie = format!("{name}={}", session.text);
        let headers = [(COOKIE.as_str(), cookie.as_str())];
        workspace.anonymous().fetch(Method::GET, ME, &headers, "").await.is_no_key();
    }
    assert_eq!(session.client.get(ME).await.status, 200);
    let ann = workspace.member("ann", Level::Member).await;
    let session = sign_in(&workspace, ann.key.as_deref().expect("a key")).await;
    let value = format!("Bearer {}", workspace.made.api_key);
    let headers = [("authorization", value.as_str())];
    assert_eq!(session.client.fetch(Method::GET, ME, &headers, "").await.ok()["email"], ANN);
}

#[tokio::test]
async fn current_key_of_a_session_is_the_key_that_signed_in() {
    let workspace = Workspace::new().await;
    let key = workspace.owner.get(CURRENT).await.ok();
    let session = sign_in(&workspace, &workspace.made.api_key).await;
    assert_eq!(session.client.get(CURRENT).await.ok()["id"], key["id"]);
    sign_in_by_link(&workspace).await.client.get(CURRENT).await.assert_not_found("Not found.");
}

#[tokio::test]
async fn keys_created_in_a_session_have_at_most_its_permissions() {
    let workspace = Workspace::new().await;
    let narrow = workspace.key(OWNER, &["personal_api_key:write", "user:read"]).await;
    let session = sign_in(&workspace, narrow.key.as_deref().expect("a key")).await;
    let sent = json!({ "label": "x", "scopes": ["dashboard:read"] });
    let refused = session.client.post("/api/personal_api_keys/", sent.clone()).await;
    refused.assert_denied("This API key cannot grant more access than it has: scopes.");

    let by_link = sign_in_by_link(&workspace).await;
    let made = make_key(&by_link.client, json!({ "label": "x", "scopes": ["*"] })).await;
    assert_eq!((&made["scopes"], &made["expires_at"]), (&json!(["*"]), &Value::Null));
    let widened = json!({ "scopes": ["dashboard:write"], "expires_at": null });
    by_link.client.patch(&at(&made, ""), widened).await.ok();
    assert_eq!(holder(&workspace, &made).get(&workspace.dashboards("")).await.status, 200);
}

#[tokio::test]
async fn changes_in_a_session_are_logged_for_its_user() {
    let workspace = Workspace::new().await;
    let session = sign_in_by_link(&workspace).await;
    session.client.post(&workspace.dashboards(""), json!({ "name": "Sales" })).await.ok();
    let entries = workspace.owner.get(&workspace.project("activity_log/")).await.ok();
    assert_eq!(entries["results"][0]["user"]["email"], OWNER);
    assert_eq!(entries["results"][0]["detail"]["name"], "Sales");
}
