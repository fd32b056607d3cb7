//! Who may create, read, update and delete projects.

use axum::http::Method;
use serde_json::json;
use steward::testing::resources::members::Level;

use crate::projects::{both, column, make, projects};
use crate::support::{OWNER, Workspace};

const TOO_LOW: &str = "Your organization access level is insufficient.";
const RESTRICTING: &str =
    "Your organization access level is insufficient to configure project access restrictions.";
const NO_MEMBER: &str = "You do not have permission to perform this action.";

#[tokio::test]
async fn admins_create_projects_and_members_only_demo_projects() {
    let workspace = Workspace::new().await;
    let path = projects(&workspace, "");
    let admin = workspace.member("adam", Level::Admin).await;
    let member = workspace.member("ann", Level::Member).await;
    let made = make(&admin, &workspace, json!({ "name": "Web" })).await;
    assert_eq!((&made["name"], &made["effective_membership_level"]), (&json!("Web"), &json!(8)));
    assert_eq!(admin.get("/api/users/@me/").await.ok()["team"]["id"], made["id"]);

    for sent in
        [json!({}), json!({ "name": "" }), json!({ "is_demo": false }), json!({ "is_demo": "x" })]
    {
        member.post(&path, sent).await.assert_denied(TOO_LOW);
    }
    let demo = make(&member, &workspace, json!({ "is_demo": "true" })).await;
    assert_eq!((&demo["is_demo"], &demo["effective_membership_level"]), (&json!(true), &json!(1)));
    assert_eq!(member.get("/api/users/@me/").await.ok()["team"]["id"], demo["id"]);
    let blank = member.post(&path, json!({ "is_demo": true, "name": "" })).await;
    blank.assert_invalid("name", "blank", "This field may not be blank.");
    let private = json!({ "is_demo": true, "access_control": true });
    member.post(&path, private).await.assert_denied(RESTRICTING);
    assert_eq!(workspace.owner.get(&path).await.ok()["count"], 3);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn only_admins_change_project_access_and_delete_projects() {
    let workspace = Workspace::new().await;
    let member = workspace.member("ann", Level::Member).await;
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
        assert_eq!(
            admin.patch(&path, json!({ "access_control": true })).await.ok()["access_control"],
            true
        );
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
async fn resources_of_other_organizations_return_403_or_404() {
    let workspace = Workspace::new().await;
    let (eve, foreign) = workspace.outsider("eve").await;
    let ours = json!(workspace.made.project_id);
    let body = json!({ "name": "" });
    // In an organization of which the caller is not a member.
    let [here, direct] = both(&workspace, &ours);
    eve.get(&projects(&workspace, "")).await.assert_denied(NO_MEMBER);
    eve.post(&projects(&workspace, ""), body.clone()).await.assert_denied(NO_MEMBER);
    for (path, in_organization) in [(&here, true), (&direct, false)] {
        for method in [Method::GET, Method::PATCH, Method::DELETE] {
            let answer = eve.send(method, path, Some(body.clone())).await;
            if in_organization {
                answer.assert_denied(NO_MEMBER);
            } else {
                answer.assert_not_found("Not found.");
            }
        }
    }
    eve.get(&workspace.dashboards("")).await.assert_denied("You don't have access to the project.");
    assert_eq!(
        column(&eve.get("/api/projects/").await.ok(), "id"),
        [foreign["project_id"].clone()]
    );
    // Projects that do not exist, or belong to another organization.
    let theirs = foreign["project_id"].to_string();
    for id in ["999", "0", "-1", "abc", "1.0", "18446744073709551616", "%20", theirs.as_str()] {
        let [here, direct] =
            [projects(&workspace, &format!("{id}/")), format!("/api/projects/{id}/")];
        for method in [Method::GET, Method::PATCH, Method::DELETE] {
            for path in [&here, &direct] {
                workspace
                    .owner
                    .send(method.clone(), path, Some(body.clone()))
                    .await
                    .assert_not_found("Not found.");
            }
        }
        let below = format!("/api/projects/{id}/dashboards/");
        let below = workspace.owner.get(&below).await;
        if id == theirs {
            below.assert_denied("You don't have access to the project.");
        } else {
            below.assert_not_found("Project not found.");
        }
    }
    let unknown = format!("/api/organizations/{}/projects/{ours}/", uuid::Uuid::max());
    workspace.owner.get(&unknown).await.assert_not_found("Organization not found.");
}

#[tokio::test]
async fn project_routes_require_their_scopes_and_methods() {
    let workspace = Workspace::new().await;
    let reads = workspace.key(OWNER, &["project:read"]).await;
    let other = workspace.key(OWNER, &["organization:write"]).await;
    let [here, direct] = both(&workspace, &json!(workspace.made.project_id));
    let list = projects(&workspace, "");
    for path in [&list, &here, &direct, &"/api/projects/".to_owned()] {
        reads.get(path).await.ok();
        other.get(path).await.assert_denied("API key missing required scope 'project:read'");
    }
    let missing = "API key missing required scope 'project:write'";
    reads.post(&list, json!({})).await.assert_denied(missing);
    for path in [&here, &direct] {
        reads.patch(path, json!({})).await.assert_denied(missing);
        reads.delete(path).await.assert_denied(missing);
        let put = workspace.owner.send(Method::PUT, path, None).await;
        assert_eq!(put.headers["allow"], "GET, PATCH, DELETE, HEAD, OPTIONS");
        put.assert_error(
            405,
            "invalid_request",
            "method_not_allowed",
            "Method \"PUT\" not allowed.",
            None,
        );
    }
    let post = workspace.owner.post("/api/projects/", json!({})).await;
    post.assert_error(
        405,
        "invalid_request",
        "method_not_allowed",
        "Method \"POST\" not allowed.",
        None,
    );
    let array = workspace.owner.post(&list, json!([])).await;
    array
        .assert_invalid_body("invalid_input", "Invalid data. Expected a dictionary, but got list.");
}

#[tokio::test]
async fn limited_key_lists_and_accesses_only_its_projects() {
    let workspace = Workspace::new().await;
    let web = json!(workspace.made.project_id);
    let other = make(&workspace.owner, &workspace, json!({})).await["id"].clone();
    let limited = workspace.limited_key(OWNER, &["*"], json!({ "projects": [web] })).await;
    let list = limited.get("/api/projects/").await.ok();
    assert_eq!((column(&list, "id"), &list["count"]), (vec![web.clone()], &json!(1)));
    let refused = format!("API key does not have access to the requested project: ID {other}.");
    for path in both(&workspace, &other) {
        limited.get(&path).await.assert_denied(&refused);
        limited.patch(&path, json!({})).await.assert_denied(&refused);
        limited.delete(&path).await.assert_denied(&refused);
    }
    limited.get(&format!("/api/projects/{other}/dashboards/")).await.assert_denied(&refused);
    limited.get("/api/projects/999/").await.assert_not_found("Not found.");
    for path in both(&workspace, &web) {
        limited.patch(&path, json!({ "anonymize_ips": true })).await.ok();
    }
}
