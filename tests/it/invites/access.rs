//! Tests of the private projects in an invite: the format, and which levels a member may grant.

use crate::support::prelude::*;

const NO_PROJECT: &str = "Project does not exist on this organization, or it is private and you do not have access to it.";
const TOO_HIGH: &str = "You cannot invite to a private project with a higher level than your own.";

fn sent(access: Value) -> Value {
    json!({ "target_email": "new@x.example", "private_project_access": access })
}

/// Asserts that the request fails with this detail.
#[track_caller]
fn refused(answer: TestResponse, detail: &str) {
    answer.assert_bad("private_project_access", detail);
}

async fn private_project(workspace: &Workspace) -> Value {
    let sent = json!({ "name": "Secret", "access_control": true });
    workspace.owner.post(&workspace.organization("projects/"), sent).await.ok()["id"].clone()
}

/// Grants a member of the first organization a level on a project.
async fn grant(workspace: &Workspace, project: &Value, email: &str, level: &str) {
    let member = workspace.membership(email).await;
    let sent = json!({ "organization_member": member, "access_level": level });
    workspace.owner.put(&format!("/api/projects/{project}/access_controls/"), sent).await.ok();
}

#[tokio::test]
async fn access_list_format_is_checked_before_the_projects() {
    let workspace = Workspace::new().await;
    let path = invites(&workspace, "");
    let number = "The \"id\" field must be an integer.";
    let level = "The \"level\" field must be a valid access level.";
    for (access, detail) in [
        (json!({}), "The field must be a list of dictionaries."),
        (json!([1]), "Each item in the list must be a dictionary."),
        (json!([{ "id": 1 }]), "Each dictionary must contain \"id\" and \"level\" keys."),
        (json!([{ "id": "1", "level": 1 }]), number),
        (json!([{ "id": null, "level": 1 }]), number),
        (json!([{ "id": 1, "level": 15 }]), level),
        (json!([{ "id": 1, "level": [] }]), level),
        (json!([{ "id": 999, "level": 1 }, { "id": 1, "level": 2 }]), level),
        (json!([{ "id": 999, "level": 1 }]), NO_PROJECT),
        (json!([{ "id": -1, "level": 1 }]), NO_PROJECT),
        (json!([{ "id": u64::MAX, "level": 1 }]), NO_PROJECT),
    ] {
        refused(workspace.owner.post(&path, sent(access)).await, detail);
    }
    let many: Value = (0..501).map(|_| json!({ "id": 1, "level": 1 })).collect();
    let detail = "Ensure this field has no more than 500 elements.";
    let answer = workspace.owner.post(&path, sent(many)).await;
    answer.assert_invalid("private_project_access", "max_length", detail);
}

#[tokio::test]
async fn project_access_of_an_invite_is_returned_as_sent_and_null_as_empty() {
    let workspace = Workspace::new().await;
    let web = json!(workspace.made.project_id);
    let secret = private_project(&workspace).await;
    for access in [
        json!([{ "id": web, "level": 8 }, { "id": secret, "level": "member" }]),
        json!([{ "id": secret, "level": "none" }, { "id": secret, "level": 1 }]),
        json!([{ "id": secret, "level": "admin" }]),
        json!([]),
    ] {
        let made = invite(&workspace.owner, &workspace, sent(access.clone())).await;
        assert_eq!(made["private_project_access"], access);
    }
    let made = invite(&workspace.owner, &workspace, sent(json!(null))).await;
    assert_eq!(made["private_project_access"], json!([]));
    let more = json!([{ "id": web, "level": 1, "name": "Web" }]);
    let made = invite(&workspace.owner, &workspace, sent(more)).await;
    assert_eq!(made["private_project_access"], json!([{ "id": web, "level": 1 }]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn member_cannot_grant_more_project_access_than_their_own() {
    let workspace = Workspace::new().await;
    let path = invites(&workspace, "");
    let web = json!(workspace.made.project_id);
    let secret = private_project(&workspace).await;
    let (_, foreign) = workspace.outsider("eve").await;
    let ann = workspace.member("ann", Level::Member).await;
    let adam = workspace.member("adam", Level::Admin).await;
    let one = |id: &Value, level: Value| sent(json!([{ "id": id, "level": level }]));
    let refuses = async |caller: &TestClient, body: Value, detail: &str| {
        refused(caller.post(&path, body).await, detail);
    };
    // A project of another organization fails for every caller.
    for caller in [&ann, &adam, &workspace.owner] {
        refuses(caller, one(&foreign["project_id"], json!(1)), NO_PROJECT).await;
    }
    // On an open project, members may grant up to their own level there, which is at least `member`. On a private
    // project, they need a level of their own.
    for level in [json!("none"), json!(1), json!("member")] {
        invite(&ann, &workspace, one(&web, level)).await;
    }
    refuses(&ann, one(&web, json!("admin")), TOO_HIGH).await;
    grant(&workspace, &web, ANN, "admin").await;
    invite(&ann, &workspace, one(&web, json!(8))).await;
    for level in [json!(1), json!("none")] {
        refuses(&ann, one(&secret, level), NO_PROJECT).await;
    }
    grant(&workspace, &secret, ANN, "none").await;
    refuses(&ann, one(&secret, json!(1)), NO_PROJECT).await;
    grant(&workspace, &secret, ANN, "member").await;
    invite(&ann, &workspace, one(&secret, json!("member"))).await;
    for level in [json!(8), json!("admin")] {
        refuses(&ann, one(&secret, level), TOO_HIGH).await;
    }
    grant(&workspace, &secret, ANN, "admin").await;
    invite(&ann, &workspace, one(&secret, json!(8))).await;
    invite(&adam, &workspace, one(&secret, json!("admin"))).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn combined_invite_keeps_the_highest_access_per_project_the_inviter_may_grant() {
    let (workspace, owner) = Workspace::owned().await;
    let web = json!(workspace.made.project_id);
    let (one, two) = (private_project(&workspace).await, private_project(&workspace).await);
    let ann = workspace.member("ann", Level::Member).await;
    grant(&workspace, &one, ANN, "member").await;
    let combining = |access: Value| {
        let mut sent = sent(access);
        sent["combine_pending_invites"] = json!(true);
        sent
    };
    let own = json!([{ "id": one, "level": 1 }]);
    let made = invite(&owner, &workspace, combining(own.clone())).await;
    assert_eq!(made["private_project_access"], own, "without a pending invite");
    let more = json!([{ "id": two, "level": 8 }, { "id": web, "level": "none" }, { "id": one, "level": "none" }]);
    let made = invite(&owner, &workspace, combining(more)).await;
    let all = json!([
        { "id": web, "level": "none" },
        { "id": one, "level": "member" },
        { "id": two, "level": "admin" },
    ]);
    assert_eq!(made["private_project_access"], all);
    let made = invite(&owner, &workspace, combining(json!([{ "id": one, "level": 8 }]))).await;
    assert_eq!(made["private_project_access"][1], json!({ "id": one, "level": "admin" }));
    // Ann's level is `member` on the first project, and she cannot see the second.
    let made = invite(&ann, &workspace, combining(json!([]))).await;
    let hers = json!([{ "id": web, "level": "none" }, { "id": one, "level": "member" }]);
    assert_eq!(made["private_project_access"], hers);
    workspace.assert_file_valid().await;
}
