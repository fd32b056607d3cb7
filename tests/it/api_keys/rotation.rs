//! Tests of rolling keys: the new value, and the grace period of the old one.

use steward::testing::resources::api_keys::{ApiKey, Grantors, record_use};

use crate::api_keys::BEGAN;
use crate::support::prelude::*;

#[tokio::test]
async fn rotated_key_keeps_its_identity_and_has_a_new_value() {
    let (workspace, clock) = Workspace::timed().await;
    let mut key = workspace.owner.get(CURRENT).await.ok();
    clock.advance(Duration::from_secs(90));
    let rolled = workspace.owner.post(at(&key, "roll").as_str(), json!({})).await.ok();
    let value = rolled["value"].as_str().expect("a value");
    assert_ne!(value, workspace.made.api_key);
    key["value"] = json!(value);
    key["mask_value"] = json!(format!("phx_...{}", &value[value.len() - 4..]));
    key["last_rolled_at"] = json!("2023-11-14T22:14:50Z");
    key["last_used_at"] = rolled["last_used_at"].clone();
    assert_eq!(rolled, key);
    // The request rolled its own key. Without a grace period, the old value is invalid.
    workspace.owner.get(ME).await.is_bad_key();
    workspace.owner.post(&at(&key, "roll/"), json!({})).await.is_bad_key();
    let new = holder(&workspace, &rolled);
    key["value"] = json!(null);
    let shown = new.get(CURRENT).await.ok();
    key["last_used_at"] = shown["last_used_at"].clone();
    assert_eq!(shown, key);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rotation_keeps_last_used_at() {
    let (workspace, _) = Workspace::timed().await;
    let key = make_key(&workspace.owner, json!({"label": "x", "scopes": ["user:read"]})).await;
    let id = serde_json::from_value(key["id"].clone()).expect("an id");
    let now = Timestamp::from_micros(1_600_000_000_000_000);
    workspace.write(move |tx| record_use(tx, id, now)).await;
    let rolled = roll(&workspace.owner, &key, 0).await;
    assert_eq!(rolled["last_used_at"], "2020-09-13T12:26:40Z");
    assert_eq!(rolled["created_at"], BEGAN);
}

#[tokio::test]
async fn old_value_works_until_its_grace_period_ends() {
    let (workspace, clock) = Workspace::timed().await;
    let key = make_key(&workspace.owner, json!({"label": "x", "scopes": ["user:write"]})).await;
    let old = holder(&workspace, &key);
    // One key was used before the roll, so its old value is in the cache; the other was not.
    let unseen = make_key(&workspace.owner, json!({"label": "y", "scopes": ["user:write"]})).await;
    old.get(ME).await.ok();
    let new = holder(&workspace, &roll(&workspace.owner, &key, 60).await);
    let newer = holder(&workspace, &roll(&workspace.owner, &unseen, 60).await);
    let unseen = holder(&workspace, &unseen);
    clock.advance(Duration::from_micros(59_999_999));
    for caller in [&old, &new, &unseen, &newer] {
        assert_eq!(caller.get(ME).await.status, 200);
        assert_eq!(caller.patch(ME, json!({"first_name": "O"})).await.status, 200);
    }
    assert_eq!(old.get(CURRENT).await.ok()["id"], key["id"]);
    clock.advance(Duration::from_micros(1));
    for caller in [&old, &unseen] {
        caller.get(ME).await.is_bad_key();
        caller.patch(ME, json!({"first_name": "O"})).await.is_bad_key();
    }
    assert_eq!(new.get(ME).await.status, 200);
    assert_eq!(newer.get(ME).await.status, 200);
}

#[tokio::test]
async fn grace_period_ends_when_the_key_expires_or_is_revoked() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let sent = json!({"label": "x", "scopes": ["user:read"], "expires_at": "2023-11-14T22:13:30Z"});
    let expiring = make_key(owner, sent).await;
    let new = holder(&workspace, &roll(owner, &expiring, 86_400).await);
    let old = holder(&workspace, &expiring);
    assert_eq!(old.get(ME).await.status, 200);
    clock.advance(Duration::from_secs(10));
    old.get(ME).await.is_bad_key();
    new.get(ME).await.is_bad_key();

    let revoked = make_key(owner, json!({"label": "x", "scopes": ["user:read"]})).await;
    roll(owner, &revoked, 60).await;
    let old = holder(&workspace, &revoked);
    assert_eq!(old.get(ME).await.status, 200);
    owner.delete(&at(&revoked, "")).await.assert_empty(204);
    old.get(ME).await.is_bad_key();

    let by_operator = make_key(owner, json!({"label": "x", "scopes": ["user:read"]})).await;
    roll(owner, &by_operator, 60).await;
    let id = serde_json::from_value(by_operator["id"].clone()).expect("an id");
    workspace.run_operation(Operation::KeyRevoke { id }).await;
    holder(&workspace, &by_operator).get(ME).await.is_bad_key();
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    assert!(!tx.exists::<Grantors>(&id).expect("read"), "the records of creators are deleted");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn second_rotation_ends_the_grace_period_of_the_first() {
    let (workspace, clock) = Workspace::timed().await;
    let first = make_key(&workspace.owner, json!({"label": "x", "scopes": ["user:read"]})).await;
    let second = roll(&workspace.owner, &first, 3600).await;
    clock.advance(Duration::from_secs(10));
    let third = roll(&workspace.owner, &first, 60).await;
    let [first, second, third] = [&first, &second, &third].map(|value| holder(&workspace, value));
    first.get(ME).await.is_bad_key();
    assert_eq!(second.get(ME).await.status, 200);
    assert_eq!(third.get(ME).await.status, 200);
    roll(&workspace.owner, &third.get(CURRENT).await.ok(), 0).await;
    for caller in [&first, &second, &third] {
        caller.get(ME).await.is_bad_key();
    }
}

#[tokio::test]
async fn old_value_cannot_extend_its_lifetime() {
    let (workspace, clock) = Workspace::timed().await;
    let key = make_key(&workspace.owner, json!({"label": "x", "scopes": ["*"]})).await;
    let sibling = make_key(&workspace.owner, json!({"label": "y", "scopes": ["user:read"]})).await;
    roll(&workspace.owner, &key, 60).await;
    let old = holder(&workspace, &key);
    let more = "This API key cannot change a key with more access: expires_at.";
    for target in [&key, &sibling] {
        old.post(&at(target, "roll/"), json!({"grace_seconds": 86_400})).await.assert_denied(more);
        old.patch(&at(target, ""), json!({"label": "mine"})).await.assert_denied(more);
        old.delete(&at(target, "")).await.assert_denied(more);
    }
    let grant = "This API key cannot grant more access than it has: expires_at.";
    for end in [json!(null), json!("2023-11-14T22:14:20.000001Z"), json!("2024-01-01")] {
        let sent = json!({"label": "z", "scopes": ["*"], "expires_at": end});
        old.post(KEYS, sent).await.assert_denied(grant);
    }
    let child = make_key(&old, json!({"label": "z", "scopes": ["*"]})).await;
    assert_eq!(child["expires_at"], "2023-11-14T22:14:20Z");
    let sent = json!({"expires_at": null});
    holder(&workspace, &child).patch(&at(&child, ""), sent).await.assert_denied(grant);
    clock.advance(Duration::from_mins(1));
    holder(&workspace, &child).get(ME).await.is_bad_key();
}

#[tokio::test]
async fn restrictions_of_a_key_apply_to_its_old_value() {
    let (workspace, _) = Workspace::timed().await;
    let member = workspace.member("max", Level::Member).await;
    let key =
        make_key(&member, json!({"label": "x", "scopes": ["dashboard:write", "user:read"]})).await;
    let list = workspace.dashboards("");
    let new = holder(&workspace, &roll(&member, &key, 3600).await);
    let old = holder(&workspace, &key);
    for caller in [&old, &new] {
        caller.post(&list, json!({})).await.ok();
    }
    member.patch(&at(&key, ""), json!({"scopes": ["dashboard:read", "user:read"]})).await.ok();
    for caller in [&old, &new] {
        caller.get(&list).await.ok();
        let text = "API key missing required scope 'dashboard:write'";
        caller.post(&list, json!({})).await.assert_denied(text);
    }
    workspace.remove_member("max@corp.example").await;
    for caller in [&old, &new] {
        caller.get(&list).await.assert_denied(NO_ACCESS);
        assert_eq!(caller.get(ME).await.ok()["organizations"], json!([]));
    }
    workspace.set_active("max@corp.example", false).await;
    old.get(ME).await.is_bad_key();
    new.get(ME).await.is_bad_key();
}

#[tokio::test]
async fn grace_seconds_is_an_integer_of_at_most_one_day() {
    let (workspace, _) = Workspace::timed().await;
    let key = make_key(&workspace.owner, json!({"label": "x", "scopes": ["*"]})).await;
    let above = "Ensure this value is less than or equal to 86400.";
    let below = "Ensure this value is greater than or equal to 0.";
    let cases = [
        (json!(86_401), Refusal::new("grace_seconds", "max_value", above)),
        (json!(-1), Refusal::new("grace_seconds", "min_value", below)),
        (json!(1.5), Refusal::invalid("grace_seconds", "A valid integer is required.")),
        (json!(null), Refusal::null("grace_seconds")),
    ];
    let cases = cases.map(|(grace, refusal)| (json!({"grace_seconds": grace}), refusal));
    workspace.owner.assert_refusals(Method::POST, &at(&key, "roll/"), cases).await;
    let old = holder(&workspace, &key);
    assert_eq!(old.get(CURRENT).await.ok()["last_rolled_at"], json!(null));
    workspace.owner.post(&at(&key, "roll/"), json!({"grace_seconds": "86400"})).await.ok();
    assert_eq!(old.get(ME).await.status, 200);
}

#[tokio::test]
async fn grace_period_persists_over_a_restart() {
    let (config, clock) = with_clock();
    let mut workspace = Workspace::with(config.clone()).await;
    let key = make_key(&workspace.owner, json!({"label": "x", "scopes": ["user:read"]})).await;
    let rolled = roll(&workspace.owner, &key, 60).await;
    for (seconds, status) in [(59, 200), (1, 401)] {
        clock.advance(Duration::from_secs(seconds));
        workspace = workspace.reopened(config.clone()).await;
        assert_eq!(holder(&workspace, &key).get(ME).await.status, status);
        assert_eq!(holder(&workspace, &rolled).get(ME).await.status, 200);
    }
}

#[tokio::test]
async fn check_finds_the_creator_of_a_missing_key() {
    let workspace = Workspace::new().await;
    let key = make_key(&workspace.owner, json!({"label": "x", "scopes": ["user:read"]})).await;
    workspace.assert_file_valid().await;
    let id = serde_json::from_value(key["id"].clone()).expect("an id");
    workspace.write(move |tx| tx.remove::<ApiKey>(&id).map(drop)).await;
    let findings = workspace.run_operation(Operation::Check).await;
    assert_eq!(findings["problem_count"], 1, "{findings}");
    assert!(findings.to_string().contains("api_key_makers/1"), "{findings}");
}
