//! Stored responses of idempotent requests expire after a day and contain no credentials.

use std::time::Duration;

use serde_json::{Value, json};
use steward::App;
use steward::Config;
use steward::testing::idempotency::{StoredBodyPart, StoredResponse};
use steward::testing::time::{Clock, ManualClock, Timestamp};

use crate::idempotency::{is_replayed, post_once, stored};
use crate::support::{Workspace, eventually};

const DAY: Duration = Duration::from_hours(24);

fn at(clock: &ManualClock) -> Config {
    let mut config = Config::default();
    config.clock = Clock::Manual(clock.clone());
    config
}

fn began() -> ManualClock {
    ManualClock::at(Timestamp::from_micros(1_735_787_045_000_000))
}

/// Waits until exactly `count` responses are stored, each in one part.
async fn left(workspace: &Workspace, count: usize) {
    let kept = || (stored::<StoredResponse>(workspace), stored::<StoredBodyPart>(workspace));
    eventually("expired responses are deleted", || (kept() == (count, count)).then_some(())).await;
}

#[tokio::test]
async fn expired_stored_responses_are_deleted_without_further_requests() {
    let clock = began();
    let workspace = Workspace::with(at(&clock)).await;
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
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn stored_responses_of_a_deleted_organization_expire() {
    let clock = began();
    let workspace = Workspace::with(at(&clock)).await;
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
    let clock = began();
    let workspace = Workspace::with(at(&clock)).await;
    // More responses than one transaction deletes.
    let refresh = workspace.dashboards("1/sharing/refresh/");
    workspace.owner.post(&workspace.dashboards(""), json!({})).await.ok();
    for number in 0..600 {
        post_once(&workspace.owner, &refresh, &format!("n{number}"), &json!({})).await.ok();
    }
    assert_eq!(stored::<StoredResponse>(&workspace), 600);
    workspace.app.close().await;
    clock.advance(DAY);
    let store = workspace.open_store();
    let app = App::new(store, at(&clock)).expect("a service");
    let reopened = || app.store().snapshot().expect("a snapshot");
    eventually("expired responses are deleted", || {
        use steward::testing::store::{Order, Tx, Window};
        let (tx, mut left) = (reopened(), 0);
        let count = tx.scan::<StoredResponse, _>(&(), Window::all(Order::Ascending), |_| {
            left += 1;
            Ok(())
        });
        count.expect("answers");
        (left == 0).then_some(())
    })
    .await;
    app.close().await;
}

#[tokio::test]
async fn credentials_are_neither_stored_nor_replayed() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    owner.post(&workspace.dashboards(""), json!({})).await.ok();
    let mut secrets = Vec::new();
    for (path, body, secret) in [
        (
            workspace.organization("projects/"),
            json!({ "name": "quite-a-name" }),
            "live_events_token",
        ),
        (workspace.dashboards("1/sharing/refresh/"), json!({}), "access_token"),
    ] {
        let first = post_once(owner, &path, "one", &body).await;
        let value = first.body[secret].as_str().expect("a credential").to_owned();
        let mut shown = first.body.clone();
        shown[secret] = Value::Null;
        is_replayed(&post_once(owner, &path, "one", &body).await, &first, &shown);
        secrets.push(value);
    }
    // A read still returns the credential.
    let shared = owner.get(&workspace.dashboards("1/sharing/")).await.ok();
    assert_eq!(shared["access_token"], secrets[1]);
    // A check also brings all commits of a copy to the file.
    workspace.assert_file_valid().await;
    let file = std::fs::read(workspace.path()).expect("the data file");
    let lies = |text: &str| file.windows(text.len()).any(|found| found == text.as_bytes());
    assert!(lies("quite-a-name"));
    for secret in &secrets {
        assert!(!lies(secret), "the file contains a credential");
    }
}
