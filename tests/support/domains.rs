//! Domains.

use serde_json::{Value, json};

use super::Workspace;

/// Creates a domain in the first organization. Returns it and its path.
pub async fn add(workspace: &Workspace, name: &str) -> (Value, String) {
    let list = workspace.organization("domains/");
    let made = workspace.owner.post(&list, json!({ "domain": name })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let path = format!("{list}{}/", made.body["id"].as_str().expect("an id"));
    (made.body, path)
}
