//! Who may create, read, update and delete projects.

use crate::projects::{both, make, projects};
use crate::support::prelude::*;

const RESTRICTING: &str =
    "Your organization access level is insufficient to configure project access restrictions.";

#[tokio::test]
async fn admins_create_projects_and_members_only_demo_projects() {
    let workspace = Workspace::new().await;
    let path = projects(&workspace, "");
    let admin = workspace.member("adam", Level::Admin).await;
    let member = workspace.member("ann", Level::Member).await;
    for sent in
        [json!({}), json!({ "name": "" }), json!({ "is_demo": false }), json!({ "is_demo": "x" })]
    {
        member.post(&path, sent).await.assert_denied(TOO_LOW);
    }
    for (caller, sent, field, level) in [
        (&admin, json!({ "name": "Web" }), "name", 8),
        (&member, json!({ "is_demo": true }), "is_demo", 1),
    ] {
        let made = make(caller, &workspace, sent.clone()).await;
        assert_eq!(made[field], sent[field]);
        assert_eq!(made["effective_membership_level"], json!(level));
        assert_eq!(caller.get(ME).await.ok()["team"]["id"], made["id"]);
    }
    let blank = member.post(&path, json!({ "is_demo": "true", "name": "" })).await;
    blank.assert_invalid("name", "blank", "This field may not be blank.");
    let private = json!({ "is_demo": true, "access_control": true });
    member.post(&path, private).await.assert_denied(RESTRICTING);
    assert_eq!(workspace.owner.get(&path).await.ok()["count"], 3);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn only_admins_change_project_access_and_delete_projects() {
    let (workspace, member) = Workspace::with_member("ann", Level::Member).await;
    let admin = workspace.member("adam", Level::Admin).await;
    let id = json!(workspace.made.project_id);
    for path in both(&workspace, &id) {
        let before = member.get(&path).await.ok();
        let sent = json!({ "access_control": true, "name": "Changed" });
        member.patch(&path, sent).await.assert_denied(RESTRICTING);
        let same = member.patch(&path, json!({ "access_control": false })).await.ok();
        assert_eq!(same["access_control"], false);
        let null = member.patch(&path, json!({ "access_control": null })).await;
        null.assert_invalid("access_control", "null", "This field may not be null.");
        member.get(&path).await.assert_is(200, before);
        member.delete(&path).await.assert_denied(TOO_LOW);
        let closed = admin.patch(&path, json!({ "access_control": true })).await.ok();
        assert_eq!(closed["access_control"], true);
        admin.patch(&path, json!({ "access_control": "no" })).await.ok();
    }
    let [path, _] = both(&workspace, &id);
    admin.delete(path.trim_end_matches('/')).await.assert_empty(204);
    admin.delete(&path).await.assert_not_found("Not found.");
    let made = make(&admin, &workspace, json!({})).await;
    assert!(made["id"].as_u64() > id.as_u64(), "an ID is never reused");
    let [_, path] = both(&workspace, &made["id"]);
    admin.delete(&path).await.assert_empty(204);
    admin.get(&path).await.assert_not_found("Not found.");
    assert_eq!(admin.get("/api/projects/").await.ok()["count"], 0);
    admin.get("/api/projects/@current/").await.assert_not_found("Not found.");
}

#[tokio::test]
async fn project_of_another_organization_is_not_found() {
    let workspace = Workspace::new().await;
    let (eve, foreign) = workspace.outsider("eve").await;
    let [below_ours, theirs] = both(&workspace, &foreign["project_id"]);
    let owner = &workspace.owner;
    for (caller, path) in [(owner, &below_ours), (owner, &theirs), (&eve, &workspace.project(""))] {
        for method in [Method::GET, Method::PATCH, Method::DELETE] {
            let answer = caller.send(method, path, Some(json!({ "name": "" }))).await;
            answer.assert_not_found("Not found.");
        }
    }
}
