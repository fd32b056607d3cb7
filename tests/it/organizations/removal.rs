//! Tests of deleting projects and organizations: they are hidden at once, and their records are deleted in the
//! background.

use std::ops::ControlFlow;

use steward::testing::ids::CollaboratorId;
use steward::testing::resources::access_controls;
use steward::testing::resources::cascade_delete::{self, PendingDeletion};
use steward::testing::resources::collaborators::{self, Collaborator};
use steward::testing::resources::dashboards::tiles::Tile;
use steward::testing::resources::dashboards::{Deletion, Details};
use steward::testing::resources::projects::grants::{self, Grant};
use steward::testing::resources::projects::{Project, Settings};
use steward::testing::resources::shared::Object;
use steward::testing::resources::sharing::Sharing;
use steward::testing::resources::users;
use steward::testing::store::Raw;

use crate::domains;
use crate::support::prelude::*;

/// Returns the number of records whose key begins with `prefix`.
fn count<R: Record>(workspace: &Workspace, prefix: &impl Key) -> usize {
    workspace.records::<R>(prefix).len()
}

/// Creates a project with dashboards, details and an access control for a member. Returns the project and the member.
async fn furnished(workspace: &Workspace) -> (ProjectId, TestClient) {
    let ann = workspace.member("ann", Level::Member).await;
    let sent = json!({ "name": "Full", "access_control": true });
    let made = workspace.owner.post(&workspace.organization("projects/"), sent).await.ok();
    let project = ProjectId(made["id"].as_u64().expect("an id"));
    for number in 0..3 {
        let sent = json!({ "name": format!("D {number}"), "filters": { "number": number } });
        workspace.owner.post(&format!("/api/projects/{project}/dashboards/"), sent).await.ok();
    }
    let member = workspace.membership(ANN).await;
    let grant = json!({ "organization_member": member, "access_level": "member" });
    workspace.owner.put(&format!("/api/projects/{project}/access_controls/"), grant).await.ok();
    (project, ann)
}

/// Returns the numbers of a project's remaining records.
fn left_of_project(workspace: &Workspace, project: ProjectId) -> [usize; 5] {
    [
        count::<Project>(workspace, &(workspace.made.organization_id, project)),
        count::<Settings>(workspace, &(workspace.made.organization_id, project)),
        count::<Dashboard>(workspace, &project),
        count::<Details>(workspace, &project),
        count::<Grant>(workspace, &(workspace.made.organization_id, project)),
    ]
}

/// Deletes a project as a request does, but does not wake the background task: its records still exist, as for a request in
/// between.
async fn delete_project(workspace: &Workspace, project: ProjectId) {
    let organization = workspace.made.organization_id;
    workspace.write(move |tx| cascade_delete::delete_project(tx, organization, project)).await;
}

/// Deletes the first organization like [`delete_project`].
async fn delete_organization(workspace: &Workspace) {
    let organization = workspace.made.organization_id;
    workspace.write(move |tx| cascade_delete::delete_organization(tx, organization)).await;
}

async fn project_is_hidden(workspace: &Workspace, project: ProjectId, ann: &TestClient) {
    for caller in [&workspace.owner, ann] {
        let paths = [
            workspace.organization(&format!("projects/{project}/")),
            format!("/api/projects/{project}/"),
        ];
        for path in paths {
            caller.get(&path).await.assert_not_found("Not found.");
            caller.patch(&path, json!({ "name": "Back" })).await.assert_not_found("Not found.");
            caller.delete(&path).await.assert_not_found("Not found.");
        }
        let below = format!("/api/projects/{project}/dashboards/");
        caller.get(&below).await.assert_not_found("Project not found.");
        caller.post(&below, json!({})).await.assert_not_found("Project not found.");
        assert_eq!(caller.get("/api/projects/").await.ok()["count"], 1);
        assert_eq!(caller.get(ME).await.ok()["team"]["name"], "Web");
        let organization = caller.get(&workspace.organization("")).await.ok();
        assert_eq!(organization["teams"].as_array().expect("a list").len(), 1);
    }
}

#[tokio::test]
async fn deleted_project_is_hidden_before_its_records_are_deleted() {
    let workspace = Workspace::new().await;
    let (project, ann) = furnished(&workspace).await;
    assert_eq!(left_of_project(&workspace, project), [1, 1, 3, 3, 2]);
    delete_project(&workspace, project).await;
    assert_eq!(left_of_project(&workspace, project), [0, 0, 3, 3, 2]);
    project_is_hidden(&workspace, project, &ann).await;
    workspace.assert_file_valid().await;

    workspace.app.wake_maintenance();
    workspace.completes_deletions().await;
    assert_eq!(left_of_project(&workspace, project), [0; 5]);
    project_is_hidden(&workspace, project, &ann).await;
    workspace.assert_file_valid().await;
}

/// Returns the numbers of an organization's remaining records.
fn left_of_organization(workspace: &Workspace, organization: OrganizationId) -> [usize; 5] {
    [
        count::<Project>(workspace, &organization),
        count::<Settings>(workspace, &organization),
        count::<Membership>(workspace, &organization),
        count::<Grant>(workspace, &organization),
        count::<Entry>(workspace, &organization),
    ]
}

async fn organization_is_hidden(
    workspace: &Workspace,
    project: ProjectId,
    callers: &[&TestClient],
) {
    for caller in callers {
        let gone = "Organization not found.";
        for rest in ["", "members/", "projects/", &format!("projects/{project}/")] {
            caller.get(&workspace.organization(rest)).await.assert_not_found(gone);
        }
        let path = workspace.organization("");
        caller.patch(&path, json!({})).await.assert_not_found(gone);
        caller.delete(&path).await.assert_not_found(gone);
        caller.get(&format!("/api/projects/{project}/")).await.assert_not_found("Not found.");
        let below = format!("/api/projects/{project}/dashboards/");
        caller.get(&below).await.assert_not_found("Project not found.");
        for list in ["/api/organizations/", "/api/projects/"] {
            assert_eq!(caller.get(list).await.ok()["count"], 0, "{list}");
        }
        let me = caller.get(ME).await.ok();
        let nothing = (&Value::Null, &Value::Null, &json!([]));
        assert_eq!((&me["organization"], &me["team"], &me["organizations"]), nothing);
    }
}

#[tokio::test]
async fn deleted_organization_is_hidden_before_its_records_are_deleted() {
    let workspace = Workspace::new().await;
    let (project, ann) = furnished(&workspace).await;
    let before = left_of_organization(&workspace, workspace.made.organization_id);
    assert_eq!((before[..4].to_vec(), before[4] > 3), (vec![2, 2, 2, 2], true));
    delete_organization(&workspace).await;
    assert_eq!(left_of_organization(&workspace, workspace.made.organization_id), before);
    organization_is_hidden(&workspace, project, &[&workspace.owner, &ann]).await;
    workspace.assert_file_valid().await;

    // The slug can be used again at once.
    let made = workspace.owner.post("/api/organizations/", json!({ "name": "Corp" })).await.ok();
    assert_eq!(made["slug"], "corp");

    workspace.app.wake_maintenance();
    workspace.completes_deletions().await;
    assert_eq!(left_of_organization(&workspace, workspace.made.organization_id), [0; 5]);
    assert_eq!(left_of_project(&workspace, project), [0; 5]);
    workspace.assert_file_valid().await;
    let mine = workspace.owner.get("/api/organizations/").await.ok();
    assert_eq!((&mine["count"], &mine["results"][0]), (&json!(1), &made));
    organization_is_hidden(&workspace, project, &[&ann]).await;
}

#[tokio::test]
async fn requests_delete_all_records_of_projects_and_organizations() {
    let (workspace, owner) = Workspace::owned().await;
    let (project, _) = furnished(&workspace).await;
    let (eve, foreign) = workspace.outsider("eve").await;
    let (kept, path) = owner.create(&workspace.dashboards(""), json!({ "name": "Kept" })).await;
    owner.delete(&format!("/api/projects/{project}/")).await.assert_empty(204);
    workspace.completes_deletions().await;
    assert_eq!(left_of_project(&workspace, project), [0; 5]);
    owner.get(&path).await.assert_is(200, kept);
    owner.delete(&workspace.organization("")).await.assert_empty(204);
    workspace.completes_deletions().await;
    assert_eq!(left_of_organization(&workspace, workspace.made.organization_id), [0; 5]);
    assert_eq!(left_of_project(&workspace, workspace.made.project_id), [0; 5]);
    workspace.assert_file_valid().await;
    let path = format!("/api/projects/{}/", foreign["project_id"]);
    assert_eq!(eve.get(&path).await.ok()["id"], foreign["project_id"]);
    assert_eq!(eve.get("/api/organizations/").await.ok()["count"], 1);
}

#[tokio::test]
async fn organization_with_many_projects_is_deleted_in_limited_batches() {
    let workspace = Workspace::new().await;
    let organization = workspace.made.organization_id;
    let key = (organization, workspace.made.project_id);
    let project = workspace.records::<Project>(&key).remove(0);
    let settings = workspace.records::<Settings>(&key).remove(0);
    let many = workspace.write(move |tx| {
        for number in 1_000..1_300 {
            let (mut project, mut settings) = (project.clone(), settings.clone());
            project.meta.id = ProjectId(number);
            project.fields.id = ProjectId(number);
            settings.meta.1 = ProjectId(number);
            tx.put(&project)?;
            tx.put(&settings)?;
        }
        Ok(())
    });
    many.await;
    delete_organization(&workspace).await;
    let left = || -> usize { left_of_organization(&workspace, organization).iter().sum() };
    let mut before = left();
    while workspace.write(cascade_delete::delete_batch).await {
        let now = left();
        assert!(before - now <= 500, "{before} to {now}");
        before = now;
    }
    assert_eq!(left(), 0);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn keys_limited_to_deleted_objects_give_no_access() {
    let workspace = Workspace::new().await;
    let (id, project) = workspace.second_organization().await;
    let by_organization = json!({ "organizations": [id] });
    let by_organization = workspace.limited_key(OWNER, &["*"], by_organization).await;
    let by_project = json!({ "projects": [project] });
    let by_project = workspace.limited_key(OWNER, &["*"], by_project).await;
    workspace.owner.delete(&format!("/api/organizations/{id}/")).await.assert_empty(204);
    workspace.completes_deletions().await;
    for caller in [&by_organization, &by_project] {
        assert_eq!(caller.get("/api/projects/").await.ok()["count"], 0);
        let me = caller.get(ME).await.ok();
        assert_eq!((&me["organization"], &me["organizations"]), (&Value::Null, &json!([])));
        assert_eq!(caller.get(&workspace.dashboards("")).await.status, 403);
    }
    assert_eq!(by_organization.get("/api/organizations/").await.ok()["count"], 0);
}

/// Returns the number of entries of each table that is not empty.
fn filled(workspace: &Workspace) -> BTreeMap<&'static str, usize> {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let mut filled = BTreeMap::new();
    for table in Table::ALL {
        let mut count = |_: &[u8], _: &[u8]| {
            *filled.entry(table.plain_name()).or_default() += 1;
            Ok(ControlFlow::Continue(()))
        };
        tx.raw_walk(*table, &[], 0, Order::Ascending, &mut count).expect("walked");
    }
    filled
}

/// The tables with records of projects and their indexes, and the table of pending deletions.
const OF_PROJECTS: &str = "\
    projects projects_by_id projects_private project_settings grants grants_by_user dashboards \
    dashboards_by_name dashboard_details tiles tiles_by_insight tiles_by_text insights \
    insights_by_short_id deletions deletions_by_time texts access_rules access_rules_by_member \
    access_rules_by_role access_rules_for_all collaborators collaborators_by_user batch_exports \
    batch_exports_by_id batch_exports_of_organization batch_exports_of_project batch_export_secrets \
    sharing sharing_tokens sweeps";

/// The tables with other records of organizations, and the counters, which belong to an organization, project or
/// dashboard.
const OF_ORGANIZATIONS: &str = "\
    organizations organizations_by_slug memberships memberships_by_user memberships_by_id \
    memberships_by_joining roles roles_by_name domains domains_by_name domains_of_organization \
    invites invites_by_id invites_by_address invites_by_serial activity activity_by_project \
    activity_by_user activity_by_item counts";

/// Creates a record of every type in a project.
async fn fill(scene: &Scene, project: ProjectId) {
    let owner = scene.owner();
    let at = format!("/api/projects/{project}/");
    let dashboards = format!("{at}dashboards/");
    owner.patch(&at, json!({ "access_control": true })).await.ok();
    for name in ["ann", "bob", "max"] {
        let grant = scene.sent(Some(name), "member").await;
        owner.put(&format!("{at}access_controls/"), grant).await.ok();
    }
    let (made, one) = owner.create(&dashboards, json!({ "use_template": "DEFAULT_APP" })).await;
    let filters = json!({ "date_from": "-7d" });
    let tiles = json!([{ "text": { "body": "Mind the gap." } }]);
    let sent = json!({ "restriction_level": 37, "filters": filters, "tiles": tiles });
    owner.patch(&one, sent).await.ok();
    for caller in [&scene.ann, &scene.bob, &scene.max] {
        let uuid = caller.get(ME).await.ok()["uuid"].clone();
        let sent = json!({ "user_uuid": uuid, "level": 37 });
        owner.post(&format!("{one}collaborators/"), sent).await.ok();
    }
    let role = scene.role(&format!("Readers of {project}"), &[]).await;
    for name in [None, Some("ann"), Some("bob"), Some("role")] {
        let mut sent = match name {
            Some("role") => json!({ "role": role, "access_level": "viewer" }),
            name => scene.sent(name, "viewer").await,
        };
        owner.put(&format!("{one}access_controls/"), sent.clone()).await.ok();
        sent["resource"] = json!("dashboard");
        owner.put(&format!("{at}resource_access_controls/"), sent).await.ok();
    }
    owner.patch(&format!("{one}sharing/"), json!({ "enabled": true })).await.ok();
    let destination =
        json!({ "type": "HTTP", "config": { "url": "https://in.example", "token": "SECRET" } });
    let export = json!({ "name": "Nightly", "interval": "day", "destination": destination });
    owner.create(&format!("{at}batch_exports/"), export).await;
    owner.post(&format!("{one}sharing/refresh/"), json!({})).await.ok();
    for list in [&dashboards, &format!("{at}insights/")] {
        let (_, removed) = owner.create(list, json!({ "name": "Removed" })).await;
        owner.patch(&removed, json!({ "deleted": true })).await.ok();
    }
    multiply(&scene.workspace, project, DashboardId(made["id"].as_u64().expect("an id"))).await;
}

/// Adds 300 dashboards with copies of the records of `model`, so that the deletion of every type of record spans
/// several batches or ends within one.
async fn multiply(workspace: &Workspace, project: ProjectId, model: DashboardId) {
    let of = (project, model);
    let dashboard = workspace.records::<Dashboard>(&of).remove(0);
    let details = workspace.records::<Details>(&of);
    let tiles = workspace.records::<Tile>(&of);
    let collaborators = workspace.records::<Collaborator>(&of);
    let sharing = workspace.records::<Sharing>(&(project, Object::Dashboard(model)));
    let removal = workspace.records::<Deletion>(&(project, Kind::Dashboard)).remove(0);
    let mut rules = workspace.records::<AccessRule>(&project);
    rules.retain(|rule| rule.object.is_some());
    let found = [details.len(), sharing.len(), collaborators.len(), rules.len()];
    assert_eq!((found, tiles.len() > 2), ([1, 1, 3, 4], true));
    let many = workspace.write(move |tx| {
        for id in (project.0 * 10_000..).take(300).map(DashboardId) {
            let mut dashboard = dashboard.clone();
            (dashboard.meta.id, dashboard.fields.id) = (id, id);
            tx.put(&dashboard)?;
            for mut details in details.clone() {
                details.meta.1 = id;
                tx.put(&details)?;
            }
            for mut tile in tiles.clone() {
                tile.meta.dashboard = id;
                tx.put(&tile)?;
            }
            for row in collaborators.clone() {
                tx.put(&Collaborator { dashboard: id, ..row })?;
            }
            for rule in rules.clone() {
                tx.put(&AccessRule { object: Some(id.0), ..rule })?;
            }
            for mut sharing in sharing.clone() {
                sharing.meta.object = Object::Dashboard(id);
                (sharing.meta.token, sharing.meta.replaced) = (None, None);
                tx.put(&sharing)?;
            }
            tx.put(&Deletion { object: Object::Dashboard(id), ..removal.clone() })?;
        }
        Ok(())
    });
    many.await;
}

/// Deletes one batch and checks the file. Returns whether there may be more.
async fn sweep_and_check(workspace: &Workspace) -> bool {
    let more = workspace.write(cascade_delete::delete_batch).await;
    workspace.assert_file_valid().await;
    more
}

#[tokio::test]
async fn each_record_is_deleted_after_all_records_that_refer_to_it() {
    let workspace = Workspace::new().await;
    let objects = Objects::make(&workspace, "objects").await;
    let organization = objects.organization().parse().expect("an id");
    workspace.write(move |tx| cascade_delete::delete_organization(tx, organization)).await;
    while workspace.write(|tx| cascade_delete::delete_up_to(tx, 1)).await {
        workspace.assert_file_valid().await;
    }
}

#[tokio::test]
async fn deleting_a_filled_project_leaves_no_records_and_a_valid_file_after_each_batch() {
    let scene = Scene::new().await;
    let workspace = &scene.workspace;
    let project = workspace.made.project_id;
    fill(&scene, project).await;
    workspace.assert_file_valid().await;
    let before = filled(workspace);
    delete_project(workspace, project).await;
    workspace.assert_file_valid().await;
    let mut left: usize = left_of_project(workspace, project).iter().sum();
    let mut pieces = 0;
    while sweep_and_check(workspace).await {
        let now: usize = left_of_project(workspace, project).iter().sum();
        assert!(left - now <= 500, "{left} to {now}");
        (left, pieces) = (now, pieces + 1);
    }
    assert!(left == 0 && pieces > 8, "{left} {pieces}");

    let mut expected = before;
    for table in OF_PROJECTS.split(' ') {
        assert_eq!(expected.remove(table).is_none(), table == "sweeps", "{table}");
    }
    // These counters remain: one each for the members and the roles of the organization, six for the organizations of members, seven for
    // the stored bytes of the organization and the members. The activity log remains too: its counters are for no
    // organization, the organization, its entries that are open to all members, the project, three dashboards, and an
    // insight.
    expected.insert("counts", 2 + 6 + 7 + 4 + 4);
    assert_eq!(filled(workspace), expected);
}

#[tokio::test]
async fn deleting_a_filled_organization_leaves_no_records_and_a_valid_file() {
    let scene = Scene::new().await;
    let workspace = &scene.workspace;
    let organization = workspace.made.organization_id;
    let second = scene.owner().post(&workspace.organization("projects/"), json!({})).await.ok();
    let second = ProjectId(second["id"].as_u64().expect("an id"));
    fill(&scene, workspace.made.project_id).await;
    fill(&scene, second).await;
    domains::add(workspace, "corp.example").await;
    let access = json!([{ "id": second, "level": "member" }]);
    let sent = json!({ "target_email": "new@corp.example", "private_project_access": access });
    invite(scene.owner(), workspace, sent).await;
    let before = filled(workspace);
    // One of the two projects was deleted before, and a part of its records is deleted.
    delete_project(workspace, second).await;
    assert!(sweep_and_check(workspace).await);
    delete_organization(workspace).await;
    workspace.assert_file_valid().await;
    while sweep_and_check(workspace).await {}

    let mut expected = before;
    for table in OF_PROJECTS.split(' ').chain(OF_ORGANIZATIONS.split(' ')) {
        assert_eq!(expected.remove(table).is_none(), table == "sweeps", "{table}");
    }
    // The entries about users' own accounts belong to no organization and remain, as do the counters: one for the
    // number of entries, and one for the stored bytes of each user.
    let kept = count::<Entry>(workspace, &NO_ORGANIZATION);
    expected.extend([("activity", kept), ("activity_by_item", kept), ("counts", 1 + 6)]);
    assert_eq!(count::<Entry>(workspace, &organization), 0);
    assert_eq!(filled(workspace), expected);
}

#[tokio::test]
async fn leaving_member_leaves_no_records_during_a_project_deletion() {
    let scene = Scene::new().await;
    let workspace = &scene.workspace;
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    fill(&scene, project).await;
    let holds = |name: &str| {
        let user = user(workspace, name);
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        let of = (organization, user);
        [
            tx.exists::<Membership>(&of).expect("read"),
            !tx.keys(&access_controls::BY_MEMBER, &of, 1).expect("read").is_empty(),
            !tx.keys(&collaborators::BY_USER, &of, 1).expect("read").is_empty(),
            !tx.keys(&grants::BY_USER, &of, 1).expect("read").is_empty(),
        ]
    };
    assert_eq!((holds("ann"), holds("bob")), ([true; 4], [true; 4]));
    scene.leave("ann").await;
    workspace.assert_file_valid().await;
    assert_eq!((holds("ann"), holds("bob")), ([false; 4], [true; 4]));

    delete_project(workspace, project).await;
    assert!(sweep_and_check(workspace).await);
    assert_eq!(holds("bob"), [true; 4]);
    scene.leave("bob").await;
    workspace.assert_file_valid().await;
    assert_eq!(holds("bob"), [false; 4]);
    while sweep_and_check(workspace).await {}
    assert_eq!(holds("max"), [true, false, false, false]);
}

fn user(workspace: &Workspace, name: &str) -> UserId {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let email = format!("{name}@corp.example");
    users::find_by_email(&*tx, &email).expect("read").expect("a user").meta.id
}

/// Returns the problems that `check` finds, sorted.
async fn problems(workspace: &Workspace) -> Value {
    let mut findings = workspace.run_operation(Operation::Check).await;
    findings["problems"].as_array_mut().expect("a list").sort_by_key(ToString::to_string);
    findings["problems"].take()
}

#[tokio::test]
async fn check_finds_dangling_rules_and_collaborators_during_a_deletion() {
    let scene = Scene::new().await;
    let workspace = &scene.workspace;
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    let (ann, nobody, nowhere) = (user(workspace, "ann"), UserId(77), DashboardId(88));
    let board = DashboardId(scene.id);
    let written = workspace.app.operate(move |tx, now| {
        for (dashboard, user) in [(board, nobody), (nowhere, ann)] {
            let (created_at, updated_at) = (now, now);
            tx.put(&AccessRule {
                organization,
                project,
                kind: Kind::Dashboard,
                object: Some(dashboard.0),
                subject: Subject::User(user),
                level: AccessLevel::Viewer,
                created_at,
                updated_at,
            })?;
        }
        for (dashboard, user) in [(board, nobody), (nowhere, ann)] {
            let id = CollaboratorId(Uuid::nil());
            tx.put(&Collaborator {
                organization,
                project,
                dashboard,
                user,
                id,
                level: 37,
                added_at: now,
                updated_at: now,
            })?;
        }
        Ok(())
    });
    written.await.expect("written");
    let rule = |dashboard: DashboardId, user: UserId| {
        format!("{:016x}0300{:016x}02{:016x}", project.0, dashboard.0, user.0)
    };
    let editor = |dashboard: DashboardId, user: UserId| {
        format!("{:016x}{:016x}{:016x}", project.0, dashboard.0, user.0)
    };
    let line = |table: &str, key: String, target: &str| {
        format!("{table}: the record {key} refers to a missing record in {target}")
    };
    let found = json!([
        line("access_rules/1", rule(board, nobody), "memberships/1"),
        line("access_rules/1", rule(nowhere, ann), "dashboards/1"),
        line("collaborators/1", editor(board, nobody), "memberships/1"),
        line("collaborators/1", editor(nowhere, ann), "dashboards/1"),
    ]);
    assert_eq!(problems(workspace).await, found);
    // The pending deletion of a project whose id equals the user's id, or of the organization, does not excuse them.
    for sweep in [
        PendingDeletion::Project(organization, ProjectId(nobody.0)),
        PendingDeletion::Organization(organization),
    ] {
        workspace.write(move |tx| tx.put(&sweep)).await;
        assert_eq!(problems(workspace).await, found);
    }
}
