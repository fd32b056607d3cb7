//! Stored responses of idempotent requests expire after a day.

use steward::testing::idempotency::StoredBodyPart;

use crate::support::prelude::*;

const DAY: Duration = Duration::from_hours(24);

/// Waits until exactly `count` responses are stored, each in one part.
async fn left(workspace: &Workspace, count: usize) {
    let kept = || (stored::<StoredResponse>(workspace), stored::<StoredBodyPart>(workspace));
    eventually("expired responses are deleted", || (kept() == (count, count)).then_some(())).await;
}

#[tokio::test]
async fn expired_stored_responses_are_deleted_without_further_requests() {
    let (workspace, clock) = Workspace::timed().await;
    let (path, body) = (workspace.dashboards(""), json!({ "name": "Sales" }));
    let first = post_once(&workspace.owner, &path, "one", &body).await;
    clock.advance(DAY / 2);
    post_once(&workspace.owner, &path, "two", &body).await.ok();
    clock.advance((DAY / 2).saturating_sub(Duration::from_secs(1)));
    is_replayed(&post_once(&workspace.owner, &path, "one", &body).await, &first, &first.body);
    assert_eq!(stored::<StoredResponse>(&workspace), 2);
    clock.advance(Duration::from_hours(1));
    left(&workspace, 1).await;
    clock.advance(DAY / 2);
    left(&workspace, 0).await;
    // A later response expires too.
    post_once(&workspace.owner, &path, "one", &body).await.ok();
    clock.advance(DAY + Duration::from_hours(1));
    left(&workspace, 0).await;
    let (ann, made) = workspace.outsider("ann").await;
    let path = format!("/api/organizations/{}/", made["id"].as_str().expect("an id"));
    let invite = json!({ "target_email": "somebody@corp.example" });
    post_once(&ann, &format!("{path}invites/"), "one", &invite).await.ok();
    ann.delete(&path).await.assert_empty(204);
    clock.advance(DAY + Duration::from_hours(1));
    left(&workspace, 0).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn startup_deletes_expired_stored_responses_in_batches() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config.clone()).await;
    // More responses than one transaction deletes.
    let refresh = workspace.dashboards("1/sharing/refresh/");
    workspace.owner.post(&workspace.dashboards(""), json!({})).await.ok();
    for number in 0..600 {
        post_once(&workspace.owner, &refresh, &format!("n{number}"), &json!({})).await.ok();
    }
    assert_eq!(stored::<StoredResponse>(&workspace), 600);
    workspace.app.close().await;
    clock.advance(DAY);
    left(&workspace.reopened(config).await, 0).await;
}
