//! Deleting a role with its memberships.

use futures_util::future::join;
use steward::testing::ids::{MembershipId, RoleMembershipId};
use steward::testing::resources::cascade_delete::{self, PendingDeletion};
use steward::testing::resources::roles::RoleMembership;

use crate::support::prelude::*;

fn id_of(role: &Value) -> RoleId {
    serde_json::from_value(role["id"].clone()).expect("an id")
}

#[tokio::test]
async fn deleted_role_is_gone_with_its_memberships() {
    let workspace = Workspace::new().await;
    workspace.member("ann", Level::Member).await;
    let (_, path) = add_role(&workspace, "Analysts").await;
    let (kept, other) = add_role(&workspace, "Billing").await;
    let added = add_to_role(&workspace, &path, ANN).await;
    let member = add_to_role(&workspace, &other, ANN).await;
    workspace.member("ada", Level::Admin).await.delete(&path).await.assert_empty(204);
    workspace.owner.delete(&path).await.assert_not_found("Not found.");
    workspace.owner.get(&path).await.assert_not_found("Not found.");
    let one = format!("{path}role_memberships/{}/", added["id"].as_str().expect("an id"));
    workspace.owner.get(&one).await.assert_not_found("Not found.");
    let mut expected = kept;
    expected["members"] = json!([member]);
    let list = workspace.owner.get(&workspace.organization("roles/")).await.ok();
    assert_eq!(list["results"], json!([expected]));
    assert_eq!(stored::<RoleMembership>(&workspace), 1);
    assert_eq!(stored::<PendingDeletion>(&workspace), 0);
    workspace.assert_file_valid().await;
}

/// Adds members to a role until it has this number of them.
async fn crowd(workspace: &Workspace, role: RoleId, size: u64) {
    let organization = workspace.made.organization_id;
    let added = workspace.app.store().write(move |tx| {
        let model: Membership = tx.get(&(organization, UserId(1)))?;
        let user: steward::testing::resources::users::User = tx.get(&UserId(1))?;
        for number in (1000..).take(usize::try_from(size).expect("a number")) {
            let id = UserId(number);
            let mut other = user.clone();
            (other.meta.id, other.fields.id) = (id, id);
            other.meta.uuid.0 = Uuid::from_u128(number.into());
            other.fields.email = format!("u{number}@corp.example");
            tx.put(&other)?;
            tx.put(&Membership {
                user: id,
                id: MembershipId(Uuid::from_u128(number.into())),
                level: Level::Member,
                ..model.clone()
            })?;
            tx.put(&RoleMembership {
                organization,
                role,
                user: id,
                id: RoleMembershipId(Uuid::from_u128(number.into())),
                joined_at: model.joined_at,
                updated_at: model.joined_at,
                listed: true,
            })?;
        }
        Ok(())
    });
    added.await.expect("added");
}

#[tokio::test]
async fn large_role_is_gone_at_once_and_its_memberships_are_deleted_in_batches() {
    let (workspace, owner) = Workspace::owned().await;
    let (role, path) = add_role(&workspace, "Analysts").await;
    crowd(&workspace, id_of(&role), 1200).await;
    let shown = owner.get(&path).await.ok();
    assert_eq!(shown["members"].as_array().expect("members").len(), 1200);
    let renamed = owner.patch(&path, json!({ "name": "Data" })).await.ok();
    assert_eq!((&renamed["name"], &renamed["members"]), (&json!("Data"), &shown["members"]));

    let (organization, id) = (workspace.made.organization_id, id_of(&role));
    let (store, now) = (workspace.app.store(), workspace.app.now());
    let deleted = store.write(move |tx| cascade_delete::delete_role(tx, organization, id, now));
    deleted.await.expect("deleted");
    owner.get(&path).await.assert_not_found("Not found.");
    assert_eq!(stored::<RoleMembership>(&workspace), 700);
    let member = format!("{path}role_memberships/{}/", Uuid::from_u128(1700));
    owner.get(&member).await.assert_not_found("Not found.");
    workspace.assert_file_valid().await;
    // A new role may have the name at once, and members may leave meanwhile.
    add_role(&workspace, "Data").await;
    let leaver = Uuid::from_u128(1800);
    owner.delete(&workspace.organization(&format!("members/{leaver}/"))).await.assert_empty(204);
    while store.write(cascade_delete::delete_batch).await.expect("deleted") {
        workspace.assert_file_valid().await;
    }
    assert_eq!(stored::<RoleMembership>(&workspace), 0);
}

#[tokio::test]
async fn role_deleted_while_it_is_given_leaves_a_valid_file() {
    let (workspace, owner) = Workspace::owned().await;
    let sent = json!({ "user_uuid": workspace.uuid(OWNER).await });
    for round in 0..8 {
        let (role, path) = add_role(&workspace, &format!("R{round}")).await;
        let list = format!("{path}role_memberships/");
        let default = json!({ "default_role_id": role["id"] });
        let organization = workspace.organization("");
        let given = join(owner.post(&list, sent.clone()), owner.patch(&organization, default));
        // The order of the requests alternates.
        let ((added, default), deleted) = if round % 2 == 0 {
            join(given, owner.delete(&path)).await
        } else {
            let (deleted, given) = join(owner.delete(&path), given).await;
            (given, deleted)
        };
        deleted.assert_empty(204);
        match added.status {
            201 => {}
            _ => added.assert_bad_body("Role does not exist."),
        }
        let id = role["id"].as_str().expect("an id");
        let detail = format!("Invalid pk \"{id}\" - object does not exist.");
        match default.status {
            200 => {}
            _ => default.assert_invalid("default_role_id", "does_not_exist", &detail),
        }
        assert_eq!(owner.get(&organization).await.ok()["default_role_id"], Value::Null);
        assert_eq!(stored::<RoleMembership>(&workspace), 0);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn roles_are_deleted_with_their_organization() {
    let (workspace, owner) = Workspace::owned().await;
    let (role, path) = add_role(&workspace, "Analysts").await;
    add_to_role(&workspace, &path, OWNER).await;
    owner.patch(&workspace.organization(""), json!({ "default_role_id": role["id"] })).await.ok();
    // A second role is deleted before, and its records are still pending.
    let (second, _) = add_role(&workspace, "Billing").await;
    crowd(&workspace, id_of(&second), 600).await;
    let (organization, second) = (workspace.made.organization_id, id_of(&second));
    let (store, now) = (workspace.app.store(), workspace.app.now());
    let deleted = store.write(move |tx| {
        cascade_delete::delete_role(tx, organization, second, now)?;
        cascade_delete::delete_organization(tx, organization)
    });
    deleted.await.expect("deleted");
    workspace.assert_file_valid().await;
    while store.write(cascade_delete::delete_batch).await.expect("deleted") {
        workspace.assert_file_valid().await;
    }
    assert_eq!(stored::<RoleMembership>(&workspace), 0);
    assert_eq!(stored::<steward::testing::resources::roles::Role>(&workspace), 0);
    assert_eq!(stored::<steward::testing::resources::roles::DefaultRole>(&workspace), 0);
}
