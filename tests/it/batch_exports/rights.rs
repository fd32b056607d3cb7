//! Tests which callers may see and change batch exports, and the exports of deleted projects.

use steward::testing::resources::batch_exports::{BatchExport, Secrets};

use crate::support::prelude::*;

/// Creates a project in the first organization. Returns its id.
async fn project(workspace: &Workspace, name: &str, private: bool) -> u64 {
    let made = workspace.add_project(json!({ "name": name, "access_control": private })).await;
    made.as_u64().expect("an id")
}

/// Creates an export with a secret in a project. Returns its id.
async fn export(workspace: &Workspace, project: u64, name: &str) -> String {
    let mut sent = to("HTTP", &json!({ "url": "https://a.example", "token": "t" }));
    sent["name"] = json!(name);
    let list = format!("/api/projects/{project}/batch_exports/");
    workspace.owner.post(&list, sent).await.ok()["id"].as_str().expect("an id").to_owned()
}

/// A workspace with an open project (the first) and two private ones, of which a plain member may see one. Each has
/// three exports, created alternately.
struct Mixed {
    workspace: Workspace,
    shown: u64,
    hidden: u64,
    ann: TestClient,
    /// Three rows with one export each of the open, the visible private and the hidden project.
    exports: Vec<[String; 3]>,
}

impl Mixed {
    async fn new() -> Self {
        let workspace = Workspace::new().await;
        let shown = project(&workspace, "Shown", true).await;
        let hidden = project(&workspace, "Hidden", true).await;
        let ann = workspace.member("ann", Level::Member).await;
        workspace.set_rule(&format!("/api/projects/{shown}/"), Some(ANN), "member").await;
        let open = workspace.made.project_id.0;
        let mut exports = Vec::new();
        for turn in 0..3 {
            exports.push([
                export(&workspace, open, &format!("open {turn}")).await,
                export(&workspace, shown, &format!("shown {turn}")).await,
                export(&workspace, hidden, &format!("hidden {turn}")).await,
            ]);
        }
        Self { workspace, shown, hidden, ann, exports }
    }

    fn list(&self) -> String {
        self.workspace.organization("batch_exports/")
    }
}

#[tokio::test]
async fn exports_of_hidden_projects_appear_in_no_list_count_or_page() {
    let mixed = Mixed::new().await;
    assert_eq!(mixed.workspace.owner.get(&mixed.list()).await.ok()["count"], 9);
    let expected = ["shown 2", "open 2", "shown 1", "open 1", "shown 0", "open 0"];
    let list = mixed.ann.get(&mixed.list()).await.ok();
    assert_eq!(column(&list, "name"), expected);
    assert_eq!(list["count"], 6);
    let mut paged = Vec::new();
    for offset in 0..7 {
        let page = mixed.ann.get(&format!("{}?limit=1&offset={offset}", mixed.list())).await.ok();
        assert_eq!((&page["count"], page["next"].is_null()), (&json!(6), offset >= 5), "{offset}");
        paged.extend(column(&page, "name"));
    }
    assert_eq!(paged, expected);
    let page = mixed.ann.get(&format!("{}?limit=4&offset=1", mixed.list())).await.ok();
    assert_eq!(column(&page, "name"), expected[1..5]);
    mixed.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn export_of_a_hidden_project_returns_404() {
    let mixed = Mixed::new().await;
    let [open, shown, hidden] = &mixed.exports[0];
    let requests = [
        (Method::GET, "", json!(null)),
        (Method::PATCH, "", json!({ "name": "" })),
        (Method::POST, "pause/", json!({ "model": 1 })),
        (Method::POST, "unpause/", json!({})),
        (Method::DELETE, "", json!(null)),
    ];
    for (method, rest, body) in &requests {
        let body = Some(body.clone()).filter(|body| !body.is_null());
        let path = format!("{}{hidden}/{rest}", mixed.list());
        mixed.ann.send(method.clone(), &path, body.clone()).await.assert_not_found("Not found.");
        let path = format!("/api/projects/{}/batch_exports/{hidden}/{rest}", mixed.hidden);
        mixed.ann.send(method.clone(), &path, body.clone()).await.assert_denied(NO_ACCESS);
        // An export cannot be accessed through the path of another project.
        for other in [mixed.shown, mixed.workspace.made.project_id.0] {
            let path = format!("/api/projects/{other}/batch_exports/{hidden}/{rest}");
            for caller in [&mixed.ann, &mixed.workspace.owner] {
                let answer = caller.send(method.clone(), &path, body.clone()).await;
                answer.assert_not_found("Not found.");
            }
        }
    }
    let gone = Refusal::unknown("project_id", &mixed.hidden.to_string());
    let case = (json!({ "project_id": mixed.hidden }), gone);
    mixed.ann.assert_refusals(Method::POST, &mixed.list(), [case]).await;
    // The path of another organization names no export of this one.
    let (eve, foreign) = mixed.workspace.outsider("eve").await;
    let foreign = foreign["id"].as_str().expect("an id");
    for id in [open, shown, hidden] {
        let path = format!("/api/organizations/{foreign}/batch_exports/{id}/");
        eve.get(&path).await.assert_not_found("Not found.");
        eve.delete(&path).await.assert_not_found("Not found.");
    }
    // A member may change exports that another member created.
    for id in [open, shown] {
        let path = format!("{}{id}/", mixed.list());
        mixed.ann.post(&format!("{path}pause/"), json!({})).await.assert_empty(200);
        mixed.ann.patch(&path, json!({ "name": "Ann's" })).await.ok();
        mixed.ann.delete(&path).await.assert_empty(204);
    }
    let untouched = mixed.workspace.owner.get(&format!("{}{hidden}/", mixed.list())).await.ok();
    assert_eq!((&untouched["name"], &untouched["paused"]), (&json!("hidden 0"), &json!(false)));
    mixed.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn exports_of_a_deleted_project_are_hidden_before_and_after_cleanup() {
    let mixed = Mixed::new().await;
    let Mixed { workspace, hidden, .. } = &mixed;
    let (organization, project) = (workspace.made.organization_id, ProjectId(*hidden));
    // Does not wake the background task, so the records still exist, as for a request in between.
    let removed = workspace
        .app
        .store()
        .write(move |tx| cascade_delete::delete_project(tx, organization, project));
    removed.await.expect("removed");
    let left = || (stored::<BatchExport>(workspace), stored::<Secrets>(workspace));
    assert_eq!(left(), (9, 9));
    let gone = async || {
        let list = workspace.owner.get(&mixed.list()).await.ok();
        assert_eq!((column(&list, "name").len(), &list["count"]), (6, &json!(6)));
        let path = format!("{}{}/", mixed.list(), mixed.exports[0][2]);
        workspace.owner.get(&path).await.assert_not_found("Not found.");
        let paused = workspace.owner.post(&format!("{path}pause/"), json!({})).await;
        paused.assert_not_found("Not found.");
        let path = format!("/api/projects/{hidden}/batch_exports/");
        workspace.owner.get(&path).await.assert_not_found("Project not found.");
        workspace.assert_file_valid().await;
    };
    gone().await;
    workspace.app.wake_maintenance();
    workspace.completes_deletions().await;
    assert_eq!(left(), (6, 6));
    gone().await;
}
