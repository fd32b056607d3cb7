//! Tests that a removed member's permissions are deleted, a limited number of them in one transaction.

use steward::testing::error::Result;
use steward::testing::resources::access_controls::AccessRule;
use steward::testing::resources::cascade_delete::{self, PendingDeletion};
use steward::testing::resources::members::{self, Membership};
use steward::testing::resources::users;

use crate::prelude::*;
use crate::support::idempotency::stored;

const BEN: &str = "ben@corp.example";
/// The maximum number of records that one transaction deletes.
const DELETE_BATCH: usize = 500;

/// Returns the membership of a user in the first organization.
fn membership(workspace: &Workspace, tx: &impl Tx, email: &str) -> Result<Membership> {
    let user = users::find_by_email(tx, email)?.expect("a user").meta.id;
    Ok(members::find(tx, workspace.made.organization_id, user)?.expect("a member"))
}

/// Hides each of these dashboards from Ben with an access rule.
async fn hide_from_ben(workspace: &Workspace, dashboards: &[u64]) {
    let none = workspace.rule_for(Some(BEN), "none").await;
    for some in dashboards.chunks(20) {
        let set = some.iter().map(async |id| {
            let path = workspace.dashboards(&format!("{id}/access_controls/"));
            workspace.owner.put(&path, none.clone()).await.ok()
        });
        join_all(set).await;
    }
}

#[tokio::test]
async fn grants_of_a_removed_member_are_deleted_in_batches_and_not_restored() {
    let workspace = Workspace::new().await;
    let ben = workspace.member("ben", Level::Member).await;
    let mut hidden = Vec::new();
    for number in 0..DELETE_BATCH + 20 {
        let sent = json!({ "name": format!("D{number}") });
        hidden.push(make(&workspace, &workspace.owner, sent).await.0);
    }
    hide_from_ben(&workspace, &hidden).await;
    let one = workspace.dashboards(&format!("{}/", hidden[DELETE_BATCH + 10]));
    assert_eq!(ben.get(&one).await.status, 403);

    // Runs the removal without the HTTP request, so that the background task does not wake.
    let snapshot = workspace.app.store().snapshot().expect("a snapshot");
    let owner = membership(&workspace, &*snapshot, OWNER).expect("a member");
    let user = membership(&workspace, &*snapshot, BEN).expect("a member").user;
    drop(snapshot);
    workspace.write(move |tx| cascade_delete::delete_member(tx, &owner, user)).await;
    let left = || (stored::<AccessRule>(&workspace), stored::<PendingDeletion>(&workspace));
    assert_eq!(left(), (20, 1));
    workspace.assert_file_valid().await;
    // No response shows the remaining records.
    for id in &hidden[DELETE_BATCH..] {
        let path = workspace.dashboards(&format!("{id}/access_controls/"));
        assert_eq!(workspace.owner.get(&path).await.ok()["access_controls"], json!([]));
    }
    assert_eq!(ben.get(&one).await.status, 403);
    let known = new_user(BEN, Some(workspace.made.organization_id));
    let rejoin =
        Operation::UserCreate(UserOptions { level: Level::Admin, existing: true, ..known });
    let refused = perform(&workspace.app, rejoin, Progress::silent()).await;
    assert_eq!(refused.expect_err("refused").status(), 503);

    while workspace.write(cascade_delete::delete_batch).await {}
    assert_eq!(left(), (0, 0));
    workspace.rejoin(BEN, Level::Admin).await;
    assert_eq!(ben.get(&one).await.ok()["id"], hidden[DELETE_BATCH + 10]);
    workspace.assert_file_valid().await;

    // The HTTP request wakes the background task.
    hide_from_ben(&workspace, &hidden).await;
    workspace.remove_member(BEN).await;
    eventually("all records are deleted", || (left() == (0, 0)).then_some(())).await;
    workspace.assert_file_valid().await;
}
