//! `reset_token`: a new public token for a project.

use crate::support::prelude::*;

/// Returns the three paths of `reset_token` of the first project.
fn paths(workspace: &Workspace) -> [String; 3] {
    let id = workspace.made.project_id;
    [
        format!("/api/projects/{id}/reset_token/"),
        format!("/api/environments/{id}/reset_token/"),
        workspace.organization(&format!("projects/{id}/reset_token/")),
    ]
}

#[tokio::test]
async fn admin_replaces_the_token_of_a_project() {
    let (workspace, admin) = Workspace::with_member("ada", Level::Admin).await;
    let project = workspace.project("");
    let mut tokens = vec![admin.get(&project).await.ok()["api_token"].clone()];
    for path in paths(&workspace) {
        let before = admin.get(&project).await.ok();
        let sent = json!({"api_token": "phc_mine", "name": "ignored"});
        let after = admin.patch(path.trim_end_matches('/'), sent).await;
        assert_eq!(after.status, 200, "{}", after.body);
        let token = after.body["api_token"].as_str().expect("a token");
        assert!(token.starts_with("phc_") && token.len() == 48, "{token}");
        assert!(!tokens.contains(&json!(token)), "{token}");
        tokens.push(json!(token));
        let mut expected = before.clone();
        for changed in ["api_token", "updated_at", "live_events_token"] {
            assert_ne!(after.body[changed], before[changed], "{changed}");
            expected[changed] = after.body[changed].clone();
        }
        assert_eq!(after.body, expected);
        admin.get(&project).await.assert_is(200, after.body.clone());
        let list = admin.get("/api/projects/").await.ok();
        assert_eq!(list["results"][0]["api_token"], after.body["api_token"]);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn token_reset_takes_no_fields_and_honours_if_match() {
    let workspace = Workspace::new().await;
    let [path, ..] = paths(&workspace);
    let project = path.replace("reset_token/", "");
    let shown = workspace.owner.get(&project).await;
    let tag = shown.headers["etag"].to_str().expect("a tag").to_owned();
    let invalid = workspace.owner.patch(&path, json!([1])).await;
    assert_eq!((invalid.status, &invalid.body["type"]), (400, &json!("validation_error")));
    workspace.owner.get(&project).await.assert_is(200, shown.body);
    let headers = [("if-match", tag.as_str()), JSON[0]];
    for status in [200, 412] {
        let answer = workspace.owner.fetch(Method::PATCH, &path, &headers, "").await;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    for id in ["99", "abc"] {
        let unknown = format!("/api/projects/{id}/reset_token/");
        workspace.owner.patch(&unknown, Value::Null).await.assert_not_found("Project not found.");
    }
}
