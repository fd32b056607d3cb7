//! Personal API keys.

use serde_json::Value;

use super::TestClient;

pub const KEYS: &str = "/api/personal_api_keys/";

/// Returns the path of a key, or of a route below it.
pub fn at(key: &Value, rest: &str) -> String {
    format!("{KEYS}{}/{rest}", key["id"].as_str().expect("an id"))
}

/// Creates a key.
pub async fn make_key(maker: &TestClient, sent: Value) -> Value {
    let made = maker.post(KEYS, sent).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.body
}
