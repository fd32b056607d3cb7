//! Dashboards.

use serde_json::Value;

use super::{TestClient, Workspace};

/// Creates a dashboard, and returns its ID and path.
pub async fn make(workspace: &Workspace, maker: &TestClient, sent: Value) -> (u64, String) {
    let made = maker.post(&workspace.dashboards(""), sent).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let id = made.body["id"].as_u64().expect("an id");
    (id, workspace.dashboards(&format!("{id}/")))
}
