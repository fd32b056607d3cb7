//! Dashboards.

use serde_json::{Value, json};

use super::{TestClient, TestResponse, Workspace};

/// Creates a dashboard, and returns its ID and path.
pub async fn make(workspace: &Workspace, maker: &TestClient, sent: Value) -> (u64, String) {
    let (made, path) = maker.create(&workspace.dashboards(""), sent).await;
    (made["id"].as_u64().expect("an id"), path)
}

/// Sends the request that creates a dashboard of these tiles from a template.
pub async fn from_tiles(caller: &TestClient, workspace: &Workspace, tiles: Value) -> TestResponse {
    let template = json!({
        "template_name": "T", "dashboard_description": "", "dashboard_filters": {}, "tiles": tiles,
    });
    let path = workspace.dashboards("create_from_template_json/");
    caller.post(&path, json!({ "template": template })).await
}
