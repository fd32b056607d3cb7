//! Tests of pausing and unpausing.

use crate::batch_exports::{MOMENT, add};
use crate::support::prelude::*;

const FIRST: &str = "2023-11-14T22:13:20Z";
const SECOND: &str = "2023-11-14T22:14:20Z";
const THIRD: &str = "2023-11-14T22:15:20Z";
const FOURTH: &str = "2023-11-14T22:16:20Z";
const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn pause_and_unpause_change_three_fields_and_repeating_changes_none() {
    for place in [0, 1] {
        let (workspace, clock) = Workspace::timed().await;
        let (made, paths) = add(&workspace, nowhere("a")).await;
        let path = &paths[place];
        assert_eq!(made["created_at"], FIRST);
        // Unpausing an export that is not paused succeeds without effect.
        workspace.owner.post(&format!("{path}unpause/"), json!({})).await.assert_empty(200);
        workspace.owner.get(path).await.assert_is(200, made.clone());
        let times = json!({ "last_paused_at": SECOND, "last_updated_at": SECOND });
        let paused = with(with(made.clone(), times), json!({ "paused": true }));
        let unpaused = with(paused.clone(), json!({ "paused": false, "last_updated_at": FOURTH }));
        for (what, sent, then) in [
            ("pause/", None, &paused),
            ("pause/", Some(json!({})), &paused),
            ("unpause/", None, &unpaused),
            ("unpause/", Some(json!({})), &unpaused),
        ] {
            clock.advance(MINUTE);
            let path_of_state = format!("{path}{what}");
            workspace.owner.send(Method::POST, &path_of_state, sent).await.assert_empty(200);
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
    let (workspace, clock) = Workspace::timed().await;
    let (made, [path, _]) = add(&workspace, nowhere("a")).await;
    clock.advance(MINUTE);
    let sent = json!({
        "name": "other", "model": "persons", "destination": { "type": "S3", "config": { "aws_secret_access_key": "k" } },
        "interval": "never", "paused": false, "last_paused_at": "2001-01-01", "start_at": "2001-01-01",
        "end_at": null, "hogql_query": "no query", "filters": [1], "backfill": true, "unknown": {},
    });
    for what in ["pause", "unpause"] {
        let path = format!("{path}{what}/");
        let groups = Refusal::new("model", "invalid_choice", "\"groups\" is not a valid choice.");
        let cases = [
            ("name", json!([]), Refusal::invalid("name", "Not a valid string.")),
            ("model", json!("groups"), groups),
            ("paused", json!("maybe"), Refusal::invalid("paused", "Must be a valid boolean.")),
            ("last_paused_at", json!("x"), Refusal::invalid("last_paused_at", MOMENT)),
            ("start_at", json!(1), Refusal::invalid("start_at", MOMENT)),
            ("end_at", json!({}), Refusal::invalid("end_at", MOMENT)),
            ("hogql_query", json!({}), Refusal::invalid("hogql_query", "Not a valid string.")),
        ];
        let cases = cases
            .map(|(field, value, refusal)| (with(sent.clone(), json!({ field: value })), refusal));
        workspace.owner.assert_refusals(Method::POST, &path, cases).await;
        let text = "Invalid data. Expected a dictionary, but got list.";
        workspace.owner.post(&path, json!([1])).await.assert_bad_body(text);
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
