//! Dry runs of requests, compared with the requests themselves.

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use steward::testing::resources::activity::Entry;
use steward::testing::resources::record_registry;
use steward::testing::store::{ExportOptions, Progress, Table};
use steward::testing::time::Timestamp;

use super::activity::entries;
use super::{TestClient, TestResponse, Workspace, eventually};

/// Sends a request with `Dry-Run: true`.
pub async fn dry_run(
    caller: &TestClient,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> TestResponse {
    let headers = [("dry-run", "true"), ("content-type", "application/json")];
    let sent = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let headers = if body.is_some() { &headers[..] } else { &headers[..1] };
    caller.fetch(method, path, headers, sent).await
}

/// A dry run that changed nothing, to compare with the request.
pub struct DryRunOutcome {
    answer: TestResponse,
    known: Vec<Entry>,
}

impl DryRunOutcome {
    /// Sends a request as a dry run. Asserts that the data file has the same contents before and after.
    pub async fn of(
        workspace: &Workspace,
        caller: &TestClient,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Self {
        let before = contents(workspace).await;
        let answer = dry_run(caller, method.clone(), path, body).await;
        let after = contents(workspace).await;
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before, after, "{method} {path}: {}", answer.body);
        }
        assert_eq!(before.len(), after.len(), "{method} {path}: {}", answer.body);
        Self { answer, known: entries(workspace) }
    }

    /// Returns the body of the response.
    pub fn body(&self) -> &Value {
        &self.answer.body
    }

    /// Asserts that the request, which was sent next, has the same result, apart from what differs from run to run. The
    /// caller must be able to read all entries.
    pub fn assert_like(self, workspace: &Workspace, real: &TestResponse) {
        let dry = &self.answer;
        let marked = dry.headers.get("dry-run").is_some_and(|value| value == "true");
        assert!(marked && !dry.headers.contains_key("etag"), "{:?}", dry.headers);
        if real.status >= 300 {
            assert_eq!((dry.status, &dry.body), (real.status, &real.body));
            return;
        }
        let reads_log = dry.body["activity"].is_array();
        let mut new = entries(workspace);
        new.retain(|entry| reads_log && !self.known.contains(entry));
        let summary =
            |fields: &Value| json!([fields["scope"], fields["activity"], fields["detail"]]);
        let sorted = |entries: Vec<Value>| {
            let mut lines: Vec<String> =
                entries.into_iter().map(|entry| stable(entry).to_string()).collect();
            lines.sort();
            lines
        };
        let shown = dry.body["activity"].as_array().into_iter().flatten().map(summary).collect();
        let recorded = new.iter().map(|entry| summary(&json!(entry.fields))).collect();
        assert_eq!(sorted(shown), sorted(recorded), "{}", dry.body);
        let expected = json!({
            "dry_run": true, "status": real.status, "response": stable(real.body.clone()),
            "activity": dry.body["activity"],
        });
        let mut found = dry.body.clone();
        found["response"] = stable(found["response"].take());
        assert_eq!((dry.status, found), (200, expected));
    }
}

/// Returns the lines of [`everything`], once the background deletion has ended. Leaves out the tables of mails, which the
/// mail worker changes at any time.
async fn contents(workspace: &Workspace) -> Vec<String> {
    let store = workspace.app.store();
    eventually("the background deletion ends", || {
        let left = store.snapshot().expect("a snapshot").len(Table::Sweeps).expect("a number");
        (left == 0).then_some(())
    })
    .await;
    let mut lines = everything(workspace).await;
    let mails = ["outbox", "mail_paces", "invite_mails"];
    lines.retain(|line| !mails.iter().any(|table| is_of(line, table)));
    lines
}

/// Returns the records and sequences of the data file as the lines of an export. Leaves out the last uses of keys, which
/// any request records.
pub async fn everything(workspace: &Workspace) -> Vec<String> {
    let export = workspace
        .app
        .store()
        .export(ExportOptions {
            registry: record_registry(),
            secrets: true,
            organization: None,
            folder: std::env::temp_dir(),
            progress: Progress::silent(),
        })
        .await
        .expect("an export");
    let mut bytes = Vec::new();
    export.write_to(&mut bytes).expect("written");
    let text = String::from_utf8(bytes).expect("UTF-8");
    text.lines().skip(1).filter(|line| !is_of(line, "api_key_uses")).map(str::to_owned).collect()
}

fn is_of(line: &str, table: &str) -> bool {
    line.starts_with(&format!("{{\"table\":\"{table}\","))
}

/// Replaces what differs from run to run: UUIDs, times, and values that are random or signed.
fn stable(mut value: Value) -> Value {
    const RANDOM: [&str; 11] = [
        "accept_url",
        "access_token",
        "api_token",
        "distinct_id",
        "live_events_token",
        "mask_value",
        "personal_api_key",
        "short_id",
        "slug",
        "value",
        "verification_challenge",
    ];
    match &mut value {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                let random = RANDOM.contains(&name.as_str());
                *value = if random { Value::Null } else { stable(value.take()) };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = stable(item.take())),
        Value::String(text) if Timestamp::parse(text).is_some() => "[time]".clone_into(text),
        Value::String(text) if uuid::Uuid::try_parse(text).is_ok() => "[id]".clone_into(text),
        _ => {}
    }
    value
}
