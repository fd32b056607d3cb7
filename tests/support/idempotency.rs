//! Requests with an `Idempotency-Key`.

use axum::http::Method;
use serde_json::Value;
use steward::testing::store::Record;

use super::{JSON, TestClient, TestResponse, Workspace};

pub async fn post_once(caller: &TestClient, path: &str, key: &str, body: &Value) -> TestResponse {
    let headers = [("idempotency-key", key), JSON[0]];
    caller.fetch(Method::POST, path, &headers, body.to_string()).await
}

/// Returns the number of records of a type in the file.
pub fn stored<R: Record>(workspace: &Workspace) -> usize {
    workspace.records::<R>(&()).len()
}
