//! Tests creating and rolling keys with an `Idempotency-Key`: it happens once, and only the first response has the
//! value.

use crate::api_keys::limits::{PLACES, SCOPES, World};
use crate::idempotency::is_reused;
use crate::support::prelude::*;

/// Returns the expected replay of a response.
fn told_again(first: &Value) -> Value {
    let mut again = first.clone();
    again["value"] = Value::Null;
    again
}

#[tokio::test]
async fn key_value_is_returned_once_and_not_stored() {
    let (workspace, owner) = Workspace::owned().await;
    let sent = json!({"label": "quite-a-label", "scopes": ["user:read"]});
    let made = post_once(&owner, KEYS, "one", &sent).await;
    assert_eq!(made.status, 201);
    let path = at(&made.body, "roll/");
    let rolled = post_once(&owner, &path, "one", &json!({"grace_seconds": 60})).await;
    assert_eq!(rolled.status, 200);
    for (path, sent, first) in
        [(KEYS, &sent, &made), (path.as_str(), &json!({"grace_seconds": 60}), &rolled)]
    {
        is_replayed(&post_once(&owner, path, "one", sent).await, first, &told_again(&first.body));
    }
    // Both values work, so nothing was rolled twice.
    for value in [&made.body, &rolled.body] {
        assert_eq!(holder(&workspace, value).get(ME).await.status, 200);
    }
    // A check also brings all commits of a copy to the file.
    workspace.assert_file_valid().await;
    let file = std::fs::read(workspace.path()).expect("the data file");
    let lies = |text: &str| file.windows(text.len()).any(|found| found == text.as_bytes());
    assert!(lies("quite-a-label"));
    for value in [&made.body, &rolled.body] {
        let value = value["value"].as_str().expect("a value");
        assert!(!lies(value) && !lies(&value[26..70]), "the data file contains the secret");
    }
}

#[tokio::test]
async fn stored_key_response_is_not_replayed_to_a_key_that_cannot_grant_it() {
    let world = World::new().await;
    let ((one, _), (two, _)) = (&world.one, &world.two);
    let maker = world.key(&["personal_api_key:write", "dashboard:write"], json!({})).await;
    let sent = json!({"label": "x", "scopes": ["dashboard:write"]});
    let first = post_once(&maker, KEYS, "one", &sent).await;
    let roll = at(&first.body, "roll/");
    post_once(&maker, &roll, "one", &json!({})).await.ok();
    let less = json!({"scopes": ["personal_api_key:write", "dashboard:read"]});
    maker.patch(&at(&maker.get(CURRENT).await.ok(), ""), less).await.ok();
    post_once(&maker, KEYS, "one", &sent).await.assert_denied(SCOPES);
    let text = "This API key cannot change a key with more access: scopes.";
    post_once(&maker, &roll, "one", &json!({})).await.assert_denied(text);

    let sent = json!({"label": "x", "scopes": ["*"], "scoped_organizations": [two]});
    post_once(&world.workspace.owner, KEYS, "two", &sent).await.ok();
    let limited = world.key(&["*"], json!({"organizations": [one]})).await;
    post_once(&limited, KEYS, "two", &sent).await.assert_denied(PLACES);

    // A response about a deleted key is not replayed.
    world.workspace.owner.delete(&at(&first.body, "")).await.assert_empty(204);
    let again = post_once(&world.workspace.owner, &roll, "one", &json!({})).await;
    again.assert_not_found("Not found.");
}

/// Omitted fields default to those of the presented key, so the same body with another key is a different request.
#[tokio::test]
async fn idempotency_key_reused_with_different_key_permissions_is_rejected() {
    let world = World::new().await;
    let ((one, [web, _]), _) = (&world.one, &world.two);
    let sent = json!({"label": "x", "scopes": ["dashboard:read"]});
    let first = post_once(&world.workspace.owner, KEYS, "one", &sent).await;
    assert_eq!((first.status, &first.body["scoped_teams"]), (201, &json!([])));
    for limits in
        [json!({"projects": [web]}), json!({"organizations": [one]}), json!({"expires_in": 60})]
    {
        let limited = world.key(&["*"], limits.clone()).await;
        is_reused(&post_once(&limited, KEYS, "one", &sent).await);
        let own = post_once(&limited, KEYS, &limits.to_string(), &sent).await;
        assert_eq!(own.status, 201, "{}", own.body);
        is_reused(&post_once(&world.workspace.owner, KEYS, &limits.to_string(), &sent).await);
        is_replayed(
            &post_once(&limited, KEYS, &limits.to_string(), &sent).await,
            &own,
            &told_again(&own.body),
        );
    }
    // A key with the same permissions sends the same request.
    let same = world.key(&["*"], json!({})).await;
    is_replayed(&post_once(&same, KEYS, "one", &sent).await, &first, &told_again(&first.body));
    // After an update of that key, it is a different request.
    same.patch(&at(&same.get(CURRENT).await.ok(), ""), json!({"scoped_teams": [web]})).await.ok();
    is_reused(&post_once(&same, KEYS, "one", &sent).await);
    assert_eq!(stored::<StoredResponse>(&world.workspace), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_idempotent_key_requests_run_once_and_return_the_value_once() {
    let workspace = Workspace::new().await;
    let key = make_key(&workspace.owner, json!({"label": "x", "scopes": ["user:read"]})).await;
    for (path, sent) in [
        (KEYS.to_owned(), json!({"label": "y", "scopes": ["user:read"]})),
        (at(&key, "roll/"), json!({})),
    ] {
        let herd = (0..8).map(|_| {
            let (owner, path, sent) = (workspace.owner.clone(), path.clone(), sent.clone());
            tokio::spawn(async move { post_once(&owner, &path, "one", &sent).await.ok() })
        });
        let answers: Vec<Value> =
            join_all(herd).await.into_iter().map(|answer| answer.expect("no panic")).collect();
        let told: Vec<_> = answers.iter().filter(|answer| !answer["value"].is_null()).collect();
        assert_eq!(told.len(), 1, "{path}");
        assert_eq!(holder(&workspace, told[0]).get(ME).await.status, 200, "{path}");
        assert!(answers.iter().all(|answer| told_again(answer) == told_again(told[0])));
    }
    assert_eq!(workspace.owner.get(KEYS).await.ok().as_array().map(Vec::len), Some(3));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn self_rotation_is_not_replayed_to_the_old_value() {
    let workspace = Workspace::new().await;
    let key = workspace.key(OWNER, &["*"]).await;
    let path = at(&key.get(CURRENT).await.ok(), "roll/");
    let rolled = post_once(&key, &path, "one", &json!({})).await.ok();
    post_once(&key, &path, "one", &json!({})).await.is_bad_key();
    let new = holder(&workspace, &rolled);
    let again = post_once(&new, &path, "one", &json!({})).await;
    assert_eq!((again.status, &again.body["value"]), (200, &Value::Null));
    assert_eq!(new.get(ME).await.status, 200);
}
