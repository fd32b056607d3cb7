//! Removing a project or an organization hides it at once and sweeps it in the background.

use serde_json::{Value, json};
use steward::ids::{OrganizationId, ProjectId};
use steward::operator::Operation;
use steward::resources::activity::Entry;
use steward::resources::dashboards::{Dashboard, Details};
use steward::resources::members::{Level, Membership};
use steward::resources::projects::grants::Grant;
use steward::resources::projects::{Project, Settings};
use steward::resources::sweeps::{self, Sweep};
use steward::store::{Key, Order, Record, Tx, Window};

use crate::support::{Caller, OWNER, Workspace};

/// How many records of a kind begin with `prefix`.
fn count<R: Record>(workspace: &Workspace, prefix: &impl Key) -> usize {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let all = Window { offset: 0, limit: usize::MAX, order: Order::Ascending };
    let mut count = 0;
    let counted = tx.scan::<R, _>(prefix, all, |_| {
        count += 1;
        Ok(())
    });
    counted.expect("counted");
    count
}

/// Waits until nothing is left to sweep.
async fn swept(workspace: &Workspace) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while count::<Sweep>(workspace, &()) > 0 {
        assert!(std::time::Instant::now() < deadline, "the sweeper does not end");
        tokio::task::yield_now().await;
    }
}

/// A project of the first organization with dashboards, details and a grant, and its member.
async fn furnished(workspace: &Workspace) -> (ProjectId, Caller) {
    let ann = workspace.member("ann", Level::Member).await;
    let sent = json!({ "name": "Full", "access_control": true });
    let made = workspace.owner.post(&workspace.organization("projects/"), sent).await.ok();
    let project = ProjectId(made["id"].as_u64().expect("an id"));
    let dashboards = format!("/api/projects/{project}/dashboards/");
    for number in 0..3 {
        let sent = json!({ "name": format!("D {number}"), "filters": { "number": number } });
        workspace.owner.post(&dashboards, sent).await.ok();
    }
    let member = workspace.membership("ann@corp.example").await;
    let grant = json!({ "organization_member": member, "access_level": "member" });
    let controls = format!("/api/projects/{project}/access_controls/");
    workspace.owner.put(&controls, grant).await.ok();
    (project, ann)
}

/// What is left in the file of a project.
fn left_of_project(workspace: &Workspace, project: ProjectId) -> [usize; 5] {
    let organization = workspace.made.organization_id;
    [
        count::<Project>(workspace, &(organization, project)),
        count::<Settings>(workspace, &(organization, project)),
        count::<Dashboard>(workspace, &project),
        count::<Details>(workspace, &project),
        count::<Grant>(workspace, &(organization, project)),
    ]
}

async fn project_is_hidden(workspace: &Workspace, project: ProjectId, ann: &Caller) {
    for caller in [&workspace.owner, ann] {
        let paths = [
            workspace.organization(&format!("projects/{project}/")),
            format!("/api/projects/{project}/"),
        ];
        for path in paths {
            caller.get(&path).await.misses("Not found.");
            caller.patch(&path, json!({ "name": "Back" })).await.misses("Not found.");
            caller.delete(&path).await.misses("Not found.");
        }
        let below = format!("/api/projects/{project}/dashboards/");
        caller.get(&below).await.misses("Project not found.");
        caller.post(&below, json!({})).await.misses("Project not found.");
        assert_eq!(caller.get("/api/projects/").await.ok()["count"], 1);
        assert_eq!(caller.get("/api/users/@me/").await.ok()["team"]["name"], "Web");
        let organization = caller.get(&workspace.organization("")).await.ok();
        assert_eq!(organization["teams"].as_array().expect("a list").len(), 1);
    }
}

#[tokio::test]
async fn a_removed_project_is_hidden_before_it_is_swept() {
    let workspace = Workspace::new().await;
    let (project, ann) = furnished(&workspace).await;
    assert_eq!(left_of_project(&workspace, project), [1, 1, 3, 3, 1]);
    // Without waking the sweeper: the state in which every request between the two finds the file.
    let organization = workspace.made.organization_id;
    let removed =
        workspace.app.store().write(move |tx| sweeps::remove_project(tx, organization, project));
    removed.await.expect("removed");
    assert_eq!(left_of_project(&workspace, project), [0, 0, 3, 3, 1]);
    project_is_hidden(&workspace, project, &ann).await;
    workspace.check().await;

    workspace.app.sweep();
    swept(&workspace).await;
    assert_eq!(left_of_project(&workspace, project), [0; 5]);
    project_is_hidden(&workspace, project, &ann).await;
    workspace.check().await;
}

#[tokio::test]
async fn a_project_deleted_over_http_is_swept_to_the_last_record() {
    let workspace = Workspace::new().await;
    let (project, ann) = furnished(&workspace).await;
    let kept =
        workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Kept" })).await.ok();
    workspace.owner.delete(&format!("/api/projects/{project}/")).await.is_empty(204);
    project_is_hidden(&workspace, project, &ann).await;
    swept(&workspace).await;
    assert_eq!(left_of_project(&workspace, project), [0; 5]);
    let path = workspace.dashboards(&format!("{}/", kept["id"]));
    workspace.owner.get(&path).await.is(200, kept);
    workspace.check().await;
}

/// What is left in the file of an organization.
fn left_of_organization(workspace: &Workspace, organization: OrganizationId) -> [usize; 5] {
    [
        count::<Project>(workspace, &organization),
        count::<Settings>(workspace, &organization),
        count::<Membership>(workspace, &organization),
        count::<Grant>(workspace, &organization),
        count::<Entry>(workspace, &organization),
    ]
}

async fn organization_is_hidden(workspace: &Workspace, project: ProjectId, callers: &[&Caller]) {
    for caller in callers {
        for rest in ["", "members/", "projects/", &format!("projects/{project}/")] {
            caller.get(&workspace.organization(rest)).await.misses("Organization not found.");
        }
        caller
            .patch(&workspace.organization(""), json!({}))
            .await
            .misses("Organization not found.");
        caller.delete(&workspace.organization("")).await.misses("Organization not found.");
        caller.get(&format!("/api/projects/{project}/")).await.misses("Not found.");
        let below = format!("/api/projects/{project}/dashboards/");
        caller.get(&below).await.misses("Project not found.");
        for list in ["/api/organizations/", "/api/projects/"] {
            assert_eq!(caller.get(list).await.ok()["count"], 0, "{list}");
        }
        let me = caller.get("/api/users/@me/").await.ok();
        let nothing = (&Value::Null, &Value::Null, &json!([]));
        assert_eq!((&me["organization"], &me["team"], &me["organizations"]), nothing);
    }
}

#[tokio::test]
async fn a_removed_organization_is_hidden_before_it_is_swept() {
    let workspace = Workspace::new().await;
    let (project, ann) = furnished(&workspace).await;
    let organization = workspace.made.organization_id;
    let before = left_of_organization(&workspace, organization);
    assert_eq!((before[..4].to_vec(), before[4] > 3), (vec![2, 2, 2, 1], true));
    let removed =
        workspace.app.store().write(move |tx| sweeps::remove_organization(tx, organization));
    removed.await.expect("removed");
    assert_eq!(left_of_organization(&workspace, organization), before);
    organization_is_hidden(&workspace, project, &[&workspace.owner, &ann]).await;
    workspace.check().await;

    // Its slug is free at once.
    let made = workspace.owner.post("/api/organizations/", json!({ "name": "Corp" })).await.ok();
    assert_eq!(made["slug"], "corp");

    workspace.app.sweep();
    swept(&workspace).await;
    assert_eq!(left_of_organization(&workspace, organization), [0; 5]);
    assert_eq!(left_of_project(&workspace, project), [0; 5]);
    workspace.check().await;
    let mine = workspace.owner.get("/api/organizations/").await.ok();
    assert_eq!((&mine["count"], &mine["results"][0]), (&json!(1), &made));
}

#[tokio::test]
async fn an_organization_deleted_over_http_is_swept_to_the_last_record() {
    let workspace = Workspace::new().await;
    let (project, ann) = furnished(&workspace).await;
    let (eve, foreign) = workspace.outsider("eve").await;
    let organization = workspace.made.organization_id;
    workspace.owner.delete(&workspace.organization("")).await.is_empty(204);
    organization_is_hidden(&workspace, project, &[&workspace.owner, &ann]).await;
    swept(&workspace).await;
    assert_eq!(left_of_organization(&workspace, organization), [0; 5]);
    assert_eq!(left_of_project(&workspace, project), [0; 5]);
    organization_is_hidden(&workspace, project, &[&workspace.owner, &ann]).await;
    workspace.check().await;
    let path = format!("/api/projects/{}/", foreign["project_id"]);
    assert_eq!(eve.get(&path).await.ok()["id"], foreign["project_id"]);
    assert_eq!(eve.get("/api/organizations/").await.ok()["count"], 1);
}

#[tokio::test]
async fn a_large_project_is_swept_piece_by_piece_and_the_file_is_sound_between() {
    let workspace = Workspace::new().await;
    let (project, _) = furnished(&workspace).await;
    let dashboards = workspace.app.store();
    let template = {
        let tx = dashboards.snapshot().expect("a snapshot");
        let keys = tx.keys(&steward::resources::dashboards::BY_NAME, &project, 1).expect("keys");
        tx.get::<Dashboard>(&keys[0]).expect("a dashboard")
    };
    let many = dashboards.write(move |tx| {
        for number in 1_000..2_100 {
            let mut dashboard = template.clone();
            dashboard.head.id = steward::ids::DashboardId(number);
            dashboard.head.detailed = false;
            dashboard.shown.id = dashboard.head.id;
            tx.put(&dashboard)?;
        }
        Ok(())
    });
    many.await.expect("made");
    workspace.check().await;
    let organization = workspace.made.organization_id;
    let removed = dashboards.write(move |tx| sweeps::remove_project(tx, organization, project));
    removed.await.expect("removed");
    let mut left: usize = left_of_project(&workspace, project).iter().sum();
    assert_eq!(left, 3 + 3 + 1_100 + 1);
    let mut pieces = 0;
    while workspace.app.store().write(sweeps::sweep).await.expect("swept") {
        let now = left_of_project(&workspace, project).iter().sum();
        assert!(left - now <= 500 && (now < left || now == 0), "{left} to {now}");
        left = now;
        pieces += 1;
        workspace.check().await;
    }
    assert_eq!((left, pieces), (0, 4));
}

#[tokio::test]
async fn an_organization_of_many_projects_is_swept_in_bounded_pieces() {
    let workspace = Workspace::new().await;
    let organization = workspace.made.organization_id;
    let template = {
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        let key = (organization, workspace.made.project_id);
        (tx.get::<Project>(&key).expect("one"), tx.get::<Settings>(&key).expect("one"))
    };
    let many = workspace.app.store().write(move |tx| {
        for number in 1_000..1_300 {
            let (mut project, mut settings) = template.clone();
            project.head.id = ProjectId(number);
            project.shown.id = ProjectId(number);
            settings.key.1 = ProjectId(number);
            tx.put(&project)?;
            tx.put(&settings)?;
        }
        Ok(())
    });
    many.await.expect("made");
    let removed =
        workspace.app.store().write(move |tx| sweeps::remove_organization(tx, organization));
    removed.await.expect("removed");
    let left = || -> usize { left_of_organization(&workspace, organization).iter().sum() };
    let mut before = left();
    while workspace.app.store().write(sweeps::sweep).await.expect("swept") {
        let now = left();
        assert!(before - now <= 500, "{before} to {now}");
        before = now;
    }
    assert_eq!(left(), 0);
    workspace.check().await;
}

#[tokio::test]
async fn keys_limited_to_what_was_removed_open_nothing_more() {
    let workspace = Workspace::new().await;
    let second =
        Operation::OrganizationCreate { name: "Second".to_owned(), owner: OWNER.to_owned() };
    let second = workspace.operate(second).await;
    let by_organization = json!({ "organizations": [second["id"]] });
    let by_organization = workspace.limited_key(OWNER, &["*"], by_organization).await;
    let by_project = json!({ "projects": [second["project_id"]] });
    let by_project = workspace.limited_key(OWNER, &["*"], by_project).await;
    let path = format!("/api/organizations/{}/", second["id"].as_str().expect("an id"));
    workspace.owner.delete(&path).await.is_empty(204);
    swept(&workspace).await;
    for caller in [&by_organization, &by_project] {
        assert_eq!(caller.get("/api/projects/").await.ok()["count"], 0);
        let me = caller.get("/api/users/@me/").await.ok();
        assert_eq!((&me["organization"], &me["organizations"]), (&Value::Null, &json!([])));
        assert_eq!(caller.get(&workspace.dashboards("")).await.status, 403);
    }
    assert_eq!(by_organization.get("/api/organizations/").await.ok()["count"], 0);
}
