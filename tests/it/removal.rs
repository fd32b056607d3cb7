//! Removing a project or an organization hides it at once and sweeps it in the background.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use steward::access::levels::AccessLevel;
use steward::ids::{CollaboratorId, DashboardId, OrganizationId, ProjectId, UserId};
use steward::operator::Operation;
use steward::resources::access_controls::rules::{self, Rule};
use steward::resources::activity::{Entry, NO_ORGANIZATION};
use steward::resources::collaborators::{self, Collaborator};
use steward::resources::dashboards::removals::Removal;
use steward::resources::dashboards::tiles::Tile;
use steward::resources::dashboards::{Dashboard, Details};
use steward::resources::members::{Level, Membership};
use steward::resources::projects::grants::{self, Grant};
use steward::resources::projects::{Project, Settings};
use steward::resources::sharing::Sharing;
use steward::resources::sweeps::{self, Sweep};
use steward::resources::users;
use steward::store::{Key, Order, Raw, Record, Table, Tx, Window};

use crate::dashboard_access::Scene;
use crate::support::{Caller, OWNER, Workspace};
use crate::{domains, invites};

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
    let second = Operation::OrganizationCreate {
        name: "Second".to_owned(),
        owner: OWNER.to_owned(),
        existing: false,
    };
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

/// How many entries each table has that has any.
fn filled(workspace: &Workspace) -> BTreeMap<Table, usize> {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let mut filled = BTreeMap::new();
    for table in Table::ALL {
        let mut count = |_: &[u8], _: &[u8]| {
            *filled.entry(*table).or_default() += 1;
            Ok(ControlFlow::Continue(()))
        };
        tx.raw_walk(*table, &[], 0, Order::Ascending, &mut count).expect("walked");
    }
    filled
}

/// What is kept of projects, with its indexes; and what has yet to be swept.
const OF_PROJECTS: [Table; 29] = [
    Table::Projects,
    Table::ProjectsById,
    Table::ProjectsPrivate,
    Table::ProjectSettings,
    Table::Grants,
    Table::GrantsByUser,
    Table::Dashboards,
    Table::DashboardsByName,
    Table::DashboardDetails,
    Table::Removals,
    Table::RemovalsByMoment,
    Table::Tiles,
    Table::TilesByInsight,
    Table::TilesByText,
    Table::Insights,
    Table::Texts,
    Table::AccessRules,
    Table::AccessRulesByMember,
    Table::AccessRulesForAll,
    Table::Collaborators,
    Table::CollaboratorsByUser,
    Table::BatchExports,
    Table::BatchExportsById,
    Table::BatchExportsOfOrganization,
    Table::BatchExportsOfProject,
    Table::BatchExportSecrets,
    Table::Sharing,
    Table::SharingTokens,
    Table::Sweeps,
];

/// What is kept of organizations besides their projects, and the counts, which are all per organization, project
/// or dashboard.
const OF_ORGANIZATIONS: [Table; 17] = [
    Table::Organizations,
    Table::OrganizationsBySlug,
    Table::Memberships,
    Table::MembershipsByUser,
    Table::MembershipsByJoining,
    Table::Domains,
    Table::DomainsByName,
    Table::DomainsOfOrganization,
    Table::Invites,
    Table::InvitesById,
    Table::InvitesByAddress,
    Table::InvitesBySerial,
    Table::Activity,
    Table::ActivityByProject,
    Table::ActivityByUser,
    Table::ActivityByItem,
    Table::Counts,
];

/// All records of a type that begin with `prefix`.
fn all<R: Record>(workspace: &Workspace, prefix: &impl Key) -> Vec<R> {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let mut found = Vec::new();
    let scanned = tx.scan::<R, _>(prefix, Window::all(Order::Ascending), |row| {
        found.push(row.into_record()?);
        Ok(())
    });
    scanned.expect("scanned");
    found
}

/// Gives a project of the scene a record of everything that a project can hold.
async fn fill(scene: &Scene, project: ProjectId) {
    let owner = scene.owner();
    let at = format!("/api/projects/{project}/");
    let dashboards = format!("{at}dashboards/");
    owner.patch(&at, json!({ "access_control": true })).await.ok();
    for name in ["ann", "bob", "max"] {
        let grant = scene.sent(Some(name), "member").await;
        owner.put(&format!("{at}access_controls/"), grant).await.ok();
    }
    let made = owner.post(&dashboards, json!({ "use_template": "DEFAULT_APP" })).await.ok();
    let one = format!("{dashboards}{}/", made["id"]);
    let filters = json!({ "date_from": "-7d" });
    let tiles = json!([{ "text": { "body": "Mind the gap." } }]);
    let sent = json!({ "restriction_level": 37, "filters": filters, "tiles": tiles });
    owner.patch(&one, sent).await.ok();
    for caller in [&scene.ann, &scene.bob, &scene.max] {
        let uuid = caller.get("/api/users/@me/").await.ok()["uuid"].clone();
        let sent = json!({ "user_uuid": uuid, "level": 37 });
        owner.post(&format!("{one}collaborators/"), sent).await.ok();
    }
    for name in [None, Some("ann"), Some("bob")] {
        let mut rule = scene.sent(name, "viewer").await;
        owner.put(&format!("{one}access_controls/"), rule.clone()).await.ok();
        rule["resource"] = json!("dashboard");
        owner.put(&format!("{at}resource_access_controls/"), rule).await.ok();
    }
    owner.patch(&format!("{one}sharing/"), json!({ "enabled": true })).await.ok();
    let destination =
        json!({ "type": "HTTP", "config": { "url": "https://in.example", "token": "SECRET" } });
    let export = json!({ "name": "Nightly", "interval": "day", "destination": destination });
    assert_eq!(owner.post(&format!("{at}batch_exports/"), export).await.status, 201);
    owner.post(&format!("{one}sharing/refresh/"), json!({})).await.ok();
    let removed = owner.post(&dashboards, json!({ "name": "Removed" })).await.ok();
    let removed = format!("{dashboards}{}/", removed["id"]);
    owner.patch(&removed, json!({ "deleted": true })).await.ok();
    multiply(&scene.workspace, project, DashboardId(made["id"].as_u64().expect("an id"))).await;
}

/// Adds 300 dashboards which hold what `model` holds, so that every kind takes more than one piece or
/// ends within one.
async fn multiply(workspace: &Workspace, project: ProjectId, model: DashboardId) {
    let of = (project, model);
    let dashboard = all::<Dashboard>(workspace, &of).remove(0);
    let details = all::<Details>(workspace, &of);
    let tiles = all::<Tile>(workspace, &of);
    let collaborators = all::<Collaborator>(workspace, &of);
    let sharing = all::<Sharing>(workspace, &of);
    let removal = all::<Removal>(workspace, &project).remove(0);
    let mut rules = all::<Rule>(workspace, &project);
    rules.retain(|rule| rule.dashboard.is_some());
    let found = [details.len(), sharing.len(), collaborators.len(), rules.len()];
    assert_eq!((found, tiles.len() > 2), ([1, 1, 3, 3], true));
    let many = workspace.app.store().write(move |tx| {
        for id in (project.0 * 10_000..).take(300).map(DashboardId) {
            let mut dashboard = dashboard.clone();
            (dashboard.head.id, dashboard.shown.id) = (id, id);
            tx.put(&dashboard)?;
            for mut details in details.clone() {
                details.key.1 = id;
                tx.put(&details)?;
            }
            for mut tile in tiles.clone() {
                tile.head.dashboard = id;
                tx.put(&tile)?;
            }
            for row in collaborators.clone() {
                tx.put(&Collaborator { dashboard: id, ..row })?;
            }
            for rule in rules.clone() {
                tx.put(&Rule { dashboard: Some(id), ..rule })?;
            }
            for mut sharing in sharing.clone() {
                sharing.head.dashboard = id;
                (sharing.head.token, sharing.head.replaced) = (None, None);
                tx.put(&sharing)?;
            }
            tx.put(&Removal { dashboard: id, ..removal.clone() })?;
        }
        Ok(())
    });
    many.await.expect("made");
}

/// Sweeps one piece and checks the file; answers whether there may be more.
async fn sweep_and_check(workspace: &Workspace) -> bool {
    let more = workspace.app.store().write(sweeps::sweep).await.expect("swept");
    workspace.check().await;
    more
}

#[tokio::test]
async fn a_full_project_leaves_nothing_and_the_file_is_sound_between_all_pieces() {
    let scene = Scene::new().await;
    let workspace = &scene.workspace;
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    fill(&scene, project).await;
    workspace.check().await;
    let before = filled(workspace);
    let removed =
        workspace.app.store().write(move |tx| sweeps::remove_project(tx, organization, project));
    removed.await.expect("removed");
    workspace.check().await;
    let mut pieces = 0;
    while sweep_and_check(workspace).await {
        pieces += 1;
    }
    assert!(pieces > 8, "{pieces}");

    let mut expected = before;
    for table in OF_PROJECTS {
        assert_eq!(expected.remove(&table).is_none(), table == Table::Sweeps, "{table:?}");
    }
    // That of the members, those of each member's organizations, the bytes of the organization and of each member; and
    // those of the log, which stays: nobody's and the organization's, what of it is open to all members, the project's,
    // and three dashboards'.
    expected.insert(Table::Counts, 1 + 6 + 7 + 4 + 3);
    assert_eq!(filled(workspace), expected);
}

#[tokio::test]
async fn a_full_organization_leaves_nothing_and_the_file_is_sound_between_all_pieces() {
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
    invites::invite(scene.owner(), workspace, sent).await;
    let before = filled(workspace);
    // One of the two was removed before, and is half swept.
    let removed =
        workspace.app.store().write(move |tx| sweeps::remove_project(tx, organization, second));
    removed.await.expect("removed");
    assert!(sweep_and_check(workspace).await);
    let removed =
        workspace.app.store().write(move |tx| sweeps::remove_organization(tx, organization));
    removed.await.expect("removed");
    workspace.check().await;
    while sweep_and_check(workspace).await {}

    let mut expected = before;
    for table in OF_PROJECTS.into_iter().chain(OF_ORGANIZATIONS) {
        let held = expected.remove(&table).is_some();
        assert_eq!(held, table != Table::Sweeps, "{table:?}");
    }
    // What users change of themselves is no organization's, and counted: the entries of all, and the bytes of each.
    let kept = count::<Entry>(workspace, &NO_ORGANIZATION);
    expected.extend([
        (Table::Activity, kept),
        (Table::ActivityByItem, kept),
        (Table::Counts, 1 + 6),
    ]);
    assert_eq!(count::<Entry>(workspace, &organization), 0);
    assert_eq!(filled(workspace), expected);
}

#[tokio::test]
async fn a_member_who_leaves_leaves_nothing_also_while_a_project_is_being_swept() {
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
            !tx.keys(&rules::BY_MEMBER, &of, 1).expect("read").is_empty(),
            !tx.keys(&collaborators::BY_USER, &of, 1).expect("read").is_empty(),
            !tx.keys(&grants::BY_USER, &of, 1).expect("read").is_empty(),
        ]
    };
    assert_eq!((holds("ann"), holds("bob")), ([true; 4], [true; 4]));
    scene.leave("ann").await;
    workspace.check().await;
    assert_eq!((holds("ann"), holds("bob")), ([false; 4], [true; 4]));

    let removed =
        workspace.app.store().write(move |tx| sweeps::remove_project(tx, organization, project));
    removed.await.expect("removed");
    assert!(sweep_and_check(workspace).await);
    assert_eq!(holds("bob"), [true; 4]);
    scene.leave("bob").await;
    workspace.check().await;
    assert_eq!(holds("bob"), [false; 4]);
    while sweep_and_check(workspace).await {}
    assert_eq!(holds("max"), [true, false, false, false]);
}

fn user(workspace: &Workspace, name: &str) -> UserId {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let email = format!("{name}@corp.example");
    users::find_by_email(&*tx, &email).expect("read").expect("a user").head.id
}

/// What `check` tells of the file, sorted.
async fn problems(workspace: &Workspace) -> Value {
    let mut findings = workspace.operate(Operation::Check).await;
    let problems = findings["problems"].as_array_mut().expect("a list");
    problems.sort_by_key(ToString::to_string);
    findings["problems"].take()
}

#[tokio::test]
async fn rules_and_collaborators_that_point_at_nothing_are_found_whatever_is_being_swept() {
    let scene = Scene::new().await;
    let workspace = &scene.workspace;
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    let (ann, nobody, nowhere) = (user(workspace, "ann"), UserId(77), DashboardId(88));
    let board = DashboardId(scene.id);
    let written = workspace.app.operate(move |tx, now| {
        for (dashboard, user) in [(board, nobody), (nowhere, ann)] {
            let (created_at, updated_at) = (now, now);
            let (level, named, dashboard) = (AccessLevel::Viewer, Some(user), Some(dashboard));
            tx.put(&Rule {
                organization,
                project,
                dashboard,
                user: named,
                level,
                created_at,
                updated_at,
            })?;
        }
        for (dashboard, user) in [(board, nobody), (nowhere, ann)] {
            let id = CollaboratorId(uuid::Uuid::nil());
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
        format!("{:016x}00{:016x}00{:016x}", project.0, dashboard.0, user.0)
    };
    let editor = |dashboard: DashboardId, user: UserId| {
        format!("{:016x}{:016x}{:016x}", project.0, dashboard.0, user.0)
    };
    let line = |table: &str, key: String, target: &str| {
        format!("{table}: the record {key} points at nothing in {target}")
    };
    let found = json!([
        line("access_rules/1", rule(board, nobody), "memberships/1"),
        line("access_rules/1", rule(nowhere, ann), "dashboards/1"),
        line("collaborators/1", editor(board, nobody), "memberships/1"),
        line("collaborators/1", editor(nowhere, ann), "dashboards/1"),
    ]);
    assert_eq!(problems(workspace).await, found);
    // A project whose number is the user's excuses nothing, and neither does the organization.
    for sweep in
        [Sweep::Project(organization, ProjectId(nobody.0)), Sweep::Organization(organization)]
    {
        let put = workspace.app.store().write(move |tx| tx.put(&sweep));
        put.await.expect("put");
        assert_eq!(problems(workspace).await, found);
    }
}
