//! Roles.

use serde_json::{Value, json};

use super::Workspace;

/// Creates a role in the first organization. Returns it and its path.
pub async fn add_role(workspace: &Workspace, name: &str) -> (Value, String) {
    let list = workspace.organization("roles/");
    let made = workspace.owner.post(&list, json!({ "name": name })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let path = format!("{list}{}/", made.body["id"].as_str().expect("an id"));
    (made.body, path)
}

/// Adds the member with this address to the role at this path. Returns the role membership.
pub async fn add_to_role(workspace: &Workspace, role: &str, email: &str) -> Value {
    let sent = json!({ "user_uuid": workspace.uuid(email).await });
    let added = workspace.owner.post(&format!("{role}role_memberships/"), sent).await;
    assert_eq!(added.status, 201, "{}", added.body);
    added.body
}
