//! Tests concurrent requests on API keys: the responses must be the same as for some sequential order.

use futures_util::future::join;
use steward::testing::resources::api_keys::ApiKey;

use crate::support::prelude::*;

/// Sends the same POST from all callers at once.
async fn post_at_once(callers: &[TestClient], path: &str, sent: &Value) -> Vec<TestResponse> {
    let herd = callers.iter().map(|caller| {
        let (caller, path, sent) = (caller.clone(), path.to_owned(), sent.clone());
        tokio::spawn(async move { caller.post(&path, sent).await })
    });
    join_all(herd).await.into_iter().map(|answer| answer.expect("no panic")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_rotations_leave_the_last_value_and_one_in_grace() {
    let (workspace, _) = Workspace::timed().await;
    let key = make_key(&workspace.owner, json!({"label": "x", "scopes": ["user:read"]})).await;
    let owners = vec![workspace.owner.clone(); 6];
    for (grace, working) in [(60, 2), (0, 1)] {
        let sent = json!({"grace_seconds": grace});
        let answers = post_at_once(&owners, &at(&key, "roll/"), &sent).await;
        let mut live = Vec::new();
        for answer in answers {
            assert_eq!(answer.status, 200, "{}", answer.body);
            let rolled = holder(&workspace, &answer.body).get(ME).await;
            live.extend((rolled.status == 200).then_some(answer.body["mask_value"].clone()));
        }
        assert_eq!(live.len(), working);
        let mask = workspace.owner.get(&at(&key, "")).await.ok()["mask_value"].clone();
        assert!(live.contains(&mask), "the mask belongs to a valid value");
    }
    holder(&workspace, &key).get(ME).await.is_bad_key();
    workspace.assert_file_valid().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_rotated_and_revoked_concurrently_is_revoked() {
    let workspace = Workspace::new().await;
    for _ in 0..8 {
        let key = make_key(&workspace.owner, json!({"label": "x", "scopes": ["user:read"]})).await;
        let owners = [workspace.owner.clone()];
        let (owner, one) = (workspace.owner.clone(), at(&key, ""));
        let ending = tokio::spawn(async move { owner.delete(&one).await });
        let (path, sent) = (at(&key, "roll/"), json!({"grace_seconds": 60}));
        let (rolls, end) = join(post_at_once(&owners, &path, &sent), ending).await;
        end.expect("no panic").assert_empty(204);
        if rolls[0].status == 200 {
            holder(&workspace, &rolls[0].body).get(ME).await.is_bad_key();
        } else {
            rolls[0].assert_not_found("Not found.");
        }
        holder(&workspace, &key).get(ME).await.is_bad_key();
        let id = serde_json::from_value(key["id"].clone()).expect("an id");
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        assert!(!tx.exists::<ApiKey>(&id).expect("read"));
    }
    workspace.assert_file_valid().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creations_of_the_hundredth_key_create_one() {
    let workspace = Workspace::new().await;
    for _ in 0..98 {
        make_key(&workspace.owner, json!({"label": "x", "scopes": ["user:read"]})).await;
    }
    let sent = json!({"label": "y", "scopes": ["user:read"]});
    let answers = post_at_once(&vec![workspace.owner.clone(); 8], KEYS, &sent).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!((made, answers.iter().filter(|answer| answer.status == 400).count()), (1, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_self_rotations_succeed_once() {
    let workspace = Workspace::new().await;
    let key = workspace.key(OWNER, &["*"]).await;
    let path = at(&key.get(CURRENT).await.ok(), "roll/");
    let answers = post_at_once(&vec![key; 8], &path, &json!({})).await;
    let (done, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|one| one.status == 200);
    assert_eq!(done.len(), 1);
    refused.into_iter().for_each(TestResponse::is_bad_key);
    assert_eq!(holder(&workspace, &done[0].body).get(ME).await.status, 200);
}
