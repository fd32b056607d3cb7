//! Changes of more role memberships than one transaction changes.

use steward::testing::ids::RoleMembershipId;
use steward::testing::resources::members;
use steward::testing::resources::roles::{self, PendingListing, Role, RoleMembership};
use steward::testing::resources::users::find_by_email;

use crate::support::prelude::*;

/// The number of role memberships of the user in each organization.
const IN_EACH: u128 = 300;

/// A user with [`IN_EACH`] role memberships in each of three organizations.
struct ManyRoles {
    workspace: Workspace,
    ann: TestClient,
    user: UserId,
    organizations: Vec<OrganizationId>,
}

impl ManyRoles {
    async fn new() -> Self {
        let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
        let mut organizations = vec![workspace.made.organization_id];
        for name in ["Second", "Third"] {
            let made = ann.post("/api/organizations/", json!({ "name": name })).await.ok();
            organizations.push(serde_json::from_value(made["id"].clone()).expect("an id"));
        }
        let (model, _) = add_role(&workspace, "Model").await;
        let model: RoleId = serde_json::from_value(model["id"].clone()).expect("an id");
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        let user = find_by_email(&*tx, ANN).expect("read").expect("a user").meta.id;
        let model: Role = tx.get(&(organizations[0], model)).expect("a role");
        let filled = organizations.clone();
        let written = workspace.write(move |tx| {
            for (place, organization) in filled.iter().enumerate() {
                let member: Membership = tx.get(&(*organization, user))?;
                for number in 0..IN_EACH {
                    let id = Uuid::from_u128((place as u128 + 1) * 1000 + number);
                    let mut role = model.clone();
                    (role.meta, role.fields.id) = ((*organization, RoleId(id)), RoleId(id));
                    role.fields.name = format!("Role {number}");
                    tx.put(&role)?;
                    tx.put(&RoleMembership {
                        organization: *organization,
                        role: RoleId(id),
                        user,
                        id: RoleMembershipId(id),
                        joined_at: member.joined_at,
                        updated_at: member.joined_at,
                        listed: member.listed,
                    })?;
                }
            }
            Ok(())
        });
        written.await;
        Self { workspace, ann, user, organizations }
    }

    fn listed(&self) -> usize {
        self.workspace.records::<RoleMembership>(&()).iter().filter(|member| member.listed).count()
    }

    fn is_pending(&self) -> bool {
        !self.workspace.records::<PendingListing>(&()).is_empty()
    }

    /// Enables or disables the user as the operator does, without waking the background task.
    async fn set_active(&self, active: bool) {
        let user = self.user;
        let written = self.workspace.write(move |tx| {
            let mut user: User = tx.get(&user)?;
            user.meta.is_active = active;
            tx.put(&user)?;
            members::set_listed(tx, &user)?;
            roles::set_listed(tx, user.meta.id)
        });
        written.await;
    }

    /// Asserts that every role of the first organization has one state everywhere. Returns how many list the user.
    async fn roles_that_list_the_user(&self) -> usize {
        let path = self.workspace.organization("roles/");
        let list = self.workspace.owner.get(&format!("{path}?limit=1000")).await.ok();
        let mut listing = 0;
        for role in list["results"].as_array().expect("roles") {
            let one = format!("{path}{}/", role["id"].as_str().expect("an id"));
            let members = &role["members"];
            assert_eq!(self.workspace.owner.get(&one).await.ok()["members"], *members);
            let page = self.workspace.owner.get(&format!("{one}role_memberships/")).await.ok();
            let count = members.as_array().expect("members").len();
            assert_eq!((&page["results"], &page["count"]), (members, &json!(count)));
            listing += count;
        }
        listing
    }

    async fn continue_listing(&self) -> bool {
        self.workspace.write(roles::continue_listing).await
    }
}

#[tokio::test]
async fn many_role_memberships_of_a_disabled_user_are_hidden_in_batches() {
    let scene = ManyRoles::new().await;
    assert_eq!(scene.roles_that_list_the_user().await, 300);
    scene.set_active(false).await;
    scene.ann.get(ME).await.is_bad_key();
    assert_eq!((scene.listed(), scene.is_pending()), (400, true));
    assert_eq!(scene.roles_that_list_the_user().await, 0);
    scene.workspace.assert_file_valid().await;

    // The user is enabled meanwhile: what is still listed stays listed.
    scene.set_active(true).await;
    assert_eq!((scene.listed(), scene.is_pending()), (900, true));
    assert_eq!(scene.roles_that_list_the_user().await, 300);
    assert!(scene.continue_listing().await);
    assert_eq!((scene.listed(), scene.is_pending()), (900, false));
    assert!(!scene.continue_listing().await);
    scene.workspace.assert_file_valid().await;

    scene.set_active(false).await;
    assert!(scene.continue_listing().await);
    assert_eq!((scene.listed(), scene.is_pending()), (0, false));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn many_role_memberships_of_an_enabled_user_are_shown_in_the_background() {
    let scene = ManyRoles::new().await;
    for (active, listed) in [(false, 0), (true, 900)] {
        scene.workspace.set_active(ANN, active).await;
        eventually("all role memberships follow", || (!scene.is_pending()).then_some(())).await;
        assert_eq!(scene.listed(), listed);
        scene.workspace.assert_file_valid().await;
    }
    assert_eq!(scene.ann.get(ME).await.status, 200);
}

#[tokio::test]
async fn takeover_deletes_many_role_memberships_in_batches() {
    let scene = ManyRoles::new().await;
    let (joined, user, store) = (scene.organizations[0], scene.user, scene.workspace.app.store());
    // The role memberships of two organizations exceed one batch.
    for left in [2, 1, 0] {
        let snapshot = store.snapshot().expect("a snapshot");
        let needed = cascade_delete::needs_batches(&*snapshot, joined, user).expect("read");
        assert_eq!(needed, left > 0);
        drop(snapshot);
        let delete =
            move |tx: &mut WriteTx<'_>| cascade_delete::delete_account_data(tx, joined, user);
        assert_eq!(scene.workspace.write(delete).await, left > 0);
        let members = scene.workspace.records::<Membership>(&());
        assert_eq!(members.iter().filter(|member| member.user == user).count(), left);
        assert_eq!(scene.workspace.records::<RoleMembership>(&()).len(), left * 300);
        scene.workspace.assert_file_valid().await;
    }
    scene.ann.get(ME).await.is_bad_key();
    while scene.workspace.write(cascade_delete::delete_batch).await {
        scene.workspace.assert_file_valid().await;
    }
    let roles = scene.organizations.iter().map(|id| scene.workspace.records::<Role>(id).len());
    assert_eq!(roles.collect::<Vec<_>>(), [301, 0, 0]);
}
