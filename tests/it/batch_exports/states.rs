//! Tests of pausing and unpausing.

use serde_json::{Value, json};
use steward::Config;
use steward::testing::time::{Clock, ManualClock, Timestamp};

use crate::batch_exports::{add, with};
use crate::domains::entries_about;
use crate::support::Workspace;
use crate::support::batch_exports::nowhere;

/// Creates a workspace with a manual clock.
async fn still() -> (Workspace, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_micros(1_735_787_045_000_000));
    let mut config = Config::default();
    config.clock = Clock::Manual(clock.clone());
    (Workspace::with(config).await, clock)
}

const FIRST: &str = "2025-01-02T03:04:05Z";
const SECOND: &str = "2025-01-02T03:05:05Z";
const THIRD: &str = "2025-01-02T03:06:05Z";
const FOURTH: &str = "2025-01-02T03:07:05Z";
const MINUTE: std::time::Duration = std::time::Duration::from_mins(1);

#[tokio::test]
async fn pause_and_unpause_change_three_fields_and_repeating_changes_none() {
    for place in [0, 1] {
        let (workspace, clock) = still().await;
        let (made, paths) = add(&workspace, nowhere("a")).await;
        let path = &paths[place];
        assert_eq!(made["created_at"], FIRST);
        // Unpausing an export that is not paused succeeds without effect.
        workspace.owner.post(&format!("{path}unpause/"), json!({})).await.assert_empty(200);
        workspace.owner.get(path).await.assert_is(200, made.clone());
        let times = json!({ "last_paused_at": SECOND, "last_updated_at": SECOND });
        let paused = with(with(made.clone(), times), json!({ "paused": true }));
        let unpaused = with(paused.clone(), json!({ "paused": false, "last_updated_at": FOURTH }));
        for (what, then) in [
            ("pause/", &paused),
            ("pause", &paused),
            ("unpause/", &unpaused),
            ("unpause", &unpaused),
        ] {
            clock.advance(MINUTE);
            workspace.owner.post(&format!("{path}{what}"), json!({})).await.assert_empty(200);
            workspace.owner.get(path).await.assert_is(200, then.clone());
        }
        let entry =
            |what: &str, changes: Value| json!(["BatchExport", made["id"], what, "a", changes]);
        let changes = json!({ "paused": [false, true], "last_paused_at": [null, SECOND] });
        assert_eq!(
            entries_about(&workspace, &made["id"]),
            [
                entry("created", json!({})),
                entry("paused", changes),
                entry("unpaused", json!({ "paused": [true, false] })),
            ]
        );
        workspace.assert_file_valid().await;
    }
}

#[tokio::test]
async fn pause_request_body_is_validated_and_has_no_effect() {
    let (workspace, clock) = still().await;
    let (made, [path, _]) = add(&workspace, nowhere("a")).await;
    clock.advance(MINUTE);
    let moment = "Datetime has wrong format. Use one of these formats instead: \
                  YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
    let sent = json!({
        "name": "other", "model": "persons", "destination": { "type": "S3", "config": { "aws_secret_access_key": "k" } },
        "interval": "never", "paused": false, "last_paused_at": "2001-01-01", "start_at": "2001-01-01",
        "end_at": null, "hogql_query": "no query", "filters": [1], "backfill": true, "unknown": {},
    });
    for what in ["pause", "unpause"] {
        let path = format!("{path}{what}/");
        for (field, value, code, detail) in [
            ("name", json!([]), "invalid_input", "Not a valid string."),
            ("model", json!("groups"), "invalid_choice", "\"groups\" is not a valid choice."),
            ("paused", json!("maybe"), "invalid_input", "Must be a valid boolean."),
            ("last_paused_at", json!("x"), "invalid_input", moment),
            ("start_at", json!(1), "invalid_input", moment),
            ("end_at", json!({}), "invalid_input", moment),
            ("hogql_query", json!({}), "invalid_input", "Not a valid string."),
        ] {
            let refused =
                workspace.owner.post(&path, with(sent.clone(), json!({ field: value }))).await;
            refused.assert_invalid(field, code, detail);
        }
        let text = "Invalid data. Expected a dictionary, but got list.";
        workspace.owner.post(&path, json!([1])).await.assert_invalid_body("invalid_input", text);
    }
    workspace.owner.get(&path).await.assert_is(200, made.clone());

    workspace.owner.post(&format!("{path}pause/"), sent.clone()).await.assert_empty(200);
    let paused = json!({ "paused": true, "last_paused_at": SECOND, "last_updated_at": SECOND });
    let paused = with(made, paused);
    workspace.owner.get(&path).await.assert_is(200, paused.clone());
    clock.advance(MINUTE);
    let sent = with(sent, json!({ "paused": true }));
    workspace.owner.post(&format!("{path}unpause/"), sent).await.assert_empty(200);
    let unpaused = json!({ "paused": false, "last_updated_at": THIRD });
    workspace.owner.get(&path).await.assert_is(200, with(paused, unpaused));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn pause_and_unpause_need_no_request_body() {
    let (workspace, _) = still().await;
    let (_, [path, _]) = add(&workspace, nowhere("a")).await;
    for (what, paused) in [("pause", true), ("unpause", false)] {
        let answer =
            workspace.owner.send(axum::http::Method::POST, &format!("{path}{what}/"), None).await;
        answer.assert_empty(200);
        assert_eq!(workspace.owner.get(&path).await.ok()["paused"], paused);
    }
}

#[tokio::test]
async fn concurrent_pauses_take_effect_once() {
    let workspace = Workspace::new().await;
    let (made, [path, _]) = add(&workspace, nowhere("a")).await;
    let pause = format!("{path}pause/");
    let many = (0..8).map(|_| workspace.owner.post(&pause, json!({})));
    for answer in futures_util::future::join_all(many).await {
        answer.assert_empty(200);
    }
    assert_eq!(entries_about(&workspace, &made["id"]).len(), 2);
}
