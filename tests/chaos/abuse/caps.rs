//! Tests of the limits on what a tenant may create.

use steward::testing::config::Caps;
use steward::testing::input::{Input, JsonObject};
use steward::testing::resources::organizations::{self, NewOrganization};
use steward::testing::resources::projects::{self, NewProject};
use steward::testing::secret::Seed;

use super::addresses::handed_over;
use super::writer::fill as fill_dashboard;
use crate::prelude::*;

async fn capped(limit: impl FnOnce(&mut Caps)) -> Workspace {
    Workspace::configured(|config| limit(&mut config.caps)).await
}

#[track_caller]
fn refused(answer: &TestResponse, detail: &str) {
    answer.assert_invalid_body("limit_reached", detail);
}

/// Creates organizations or projects until one fails. Returns their number and the error.
async fn create_until_full(caller: &TestClient, path: &str, most: usize) -> (usize, TestResponse) {
    for number in 0..=most {
        let answer = caller.post(path, json!({ "name": format!("Number {number}") })).await;
        if answer.status != 201 {
            return (number, answer);
        }
    }
    panic!("more than {most} objects were created at {path}");
}

#[tokio::test]
async fn organizations_per_user_are_limited() {
    let workspace = capped(|caps| caps.max_organizations = 3).await;
    let owner = &workspace.owner;
    let (created, answer) = create_until_full(owner, "/api/organizations/", 3).await;
    assert_eq!(created, 2, "the first one already existed");
    refused(&answer, "A user can belong to at most 3 organizations.");

    let (eve, _) = workspace.outsider("eve").await;
    let sent = json!({ "target_email": OWNER, "send_email": false });
    let invite = eve.post("/api/organizations/@current/invites/", sent).await.ok();
    let answer = handed_over(&workspace, &invite).await.accept(owner, json!({})).await;
    refused(&answer, "A user can belong to at most 3 organizations.");

    // At the limit, updates still succeed, and a deletion makes room.
    owner.patch(&workspace.organization(""), json!({ "name": "Renamed" })).await.ok();
    let listed = owner.get("/api/organizations/").await.ok();
    let last = listed["results"][2]["id"].as_str().expect("an id").to_owned();
    owner.delete(&format!("/api/organizations/{last}/")).await.assert_empty(204);
    let again = eventually_async("there is room", async || {
        let again = owner.post("/api/organizations/", json!({ "name": "Again" })).await;
        (again.status != 400).then_some(again.status)
    });
    assert_eq!(again.await, 201);
    workspace.add_organization("Fourth", OWNER).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn projects_and_members_per_organization_are_limited() {
    let workspace = capped(|caps| (caps.max_projects, caps.max_members) = (3, 2)).await;
    let path = workspace.organization("projects/");
    let (created, answer) = create_until_full(&workspace.owner, &path, 3).await;
    assert_eq!(created, 2, "the first one already existed");
    refused(&answer, "An organization can have at most 3 projects.");

    let offer = async |email: &str| {
        let sent = json!({ "target_email": email, "send_email": false });
        Offer::of(&invite(&workspace.owner, &workspace, sent).await)
    };
    let (ann, ben) = (offer("ann@new.example").await, offer("ben@new.example").await);
    let (anonymous, fields) = (workspace.anonymous(), json!({ "first_name": "A" }));
    ann.accept(&anonymous, fields.clone()).await.ok();
    let answer = ben.accept(&anonymous, fields.clone()).await;
    refused(&answer, "An organization can have at most 2 members.");
    let users = column(&workspace.run_operation(Operation::UserList).await, "id");
    assert_eq!(users.len(), 2, "no user was created");
    // The limit does not apply to the operator, and a member that leaves makes room.
    workspace.member("cyd", Level::Member).await;
    for email in ["ann@new.example", "cyd@corp.example"] {
        workspace.remove_member(email).await;
    }
    ben.accept(&anonymous, fields).await.ok();
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn live_dashboards_per_project_are_limited_for_every_way_of_creating_them() {
    const TOLD: &str = "A project can have at most 3 live dashboards.";
    let workspace = capped(|caps| caps.max_dashboards = 3).await;
    let (owner, path) = (&workspace.owner, workspace.dashboards(""));
    let (created, answer) = create_until_full(owner, &path, 3).await;
    assert_eq!(created, 3);
    refused(&answer, TOLD);
    let listed = owner.get(&path).await.ok();
    let ids: Vec<_> = (0..3).map(|at| listed["results"][at]["id"].clone()).collect();
    refused(&owner.post(&path, json!({ "use_dashboard": ids[0] })).await, TOLD);
    refused(&owner.post(&path, json!({ "use_template": "DEFAULT_APP" })).await, TOLD);
    let tiles = json!([{ "type": "TEXT", "body": "Hello" }]);
    refused(&from_tiles(owner, &workspace, tiles).await, TOLD);

    let one = workspace.dashboards(&format!("{}/", ids[0]));
    owner.patch(&one, json!({ "deleted": true })).await.ok();
    owner.post(&path, json!({ "name": "In its place" })).await.ok();
    refused(&owner.patch(&one, json!({ "deleted": false })).await, TOLD);
    assert_eq!(owner.get(&path).await.ok()["count"], 3);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn live_insights_per_project_are_limited() {
    const TOLD: &str = "A project can have at most 3 live insights.";
    let workspace = capped(|caps| caps.max_dashboards = 3).await;
    let owner = &workspace.owner;
    let insight = |name: &str| json!({ "type": "INSIGHT", "name": name, "query": { "kind": "Q" } });
    let two = json!([insight("a"), insight("b")]);
    let made = from_tiles(owner, &workspace, two.clone()).await.ok();
    refused(&from_tiles(owner, &workspace, two).await, TOLD);
    let one = workspace.dashboards(&format!("{}/", made["id"]));
    let tiles: Vec<_> = made["tiles"].as_array().expect("tiles").iter().collect();
    let twice = json!({ "duplicate_tiles": [{ "id": tiles[0]["id"] }, { "id": tiles[1]["id"] }] });
    refused(&owner.patch(&one, twice).await, TOLD);
    let deep = json!({ "use_dashboard": made["id"], "duplicate_tiles": true });
    refused(&owner.post(&workspace.dashboards(""), deep).await, TOLD);
    owner.post(&workspace.dashboards(""), json!({ "use_dashboard": made["id"] })).await.ok();
    owner.patch(&one, json!({ "duplicate_tiles": [{ "id": tiles[0]["id"] }] })).await.ok();
    workspace.assert_file_valid().await;
}

/// Adds organizations with a project each to the first user, and projects to the first organization, beyond the limits,
/// as commands of the operator can.
async fn fill(workspace: &Workspace, organizations: usize, projects: usize) {
    let (first, seed) = (workspace.made.organization_id, Seed::generate());
    let user = UserId(workspace.made.user_id.0);
    let added = workspace.app.operate(move |tx, now| {
        let mut rng = seed.rng();
        let named = |name: String| JsonObject::from_iter([("name".to_owned(), Value::from(name))]);
        let owner =
            steward::testing::resources::members::find(tx, first, user)?.expect("the owner");
        for number in 0..projects {
            let new = NewProject::of(&named(format!("Project {number}")));
            projects::create(tx, &owner, &new, &mut rng, now)?;
        }
        for number in 0..organizations {
            let new = NewOrganization::parse(&named(format!("Organization {number}")))?;
            let id = organizations::create(tx, &new, &mut rng, now)?;
            let new = NewProject::of(&JsonObject::new());
            projects::create_first(tx, id, user, &new, &mut rng, now)?;
        }
        steward::testing::resources::users::set_current_tenant(tx, user, first, None)
    });
    added.await.expect("they are added");
}

fn length(body: &Value, pointer: &str) -> usize {
    body.pointer(pointer).and_then(Value::as_array).expect("an array").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_lists_are_truncated_beyond_the_caps() {
    let workspace = Workspace::new().await;
    fill(&workspace, 150, 1_100).await;
    let owner = &workspace.owner;
    let me = "/api/users/@me/";
    let patched = owner.patch(me, json!({ "first_name": "Olga" })).await.ok();
    for body in [owner.get(me).await.ok(), patched] {
        assert_eq!(length(&body, "/organizations"), 100);
        assert_eq!(length(&body, "/organization/teams"), 1_000);
        assert_eq!(length(&body, "/organization/projects"), 1_000);
    }
    let path = workspace.organization("");
    let patched = owner.patch(&path, json!({ "name": "Renamed" })).await.ok();
    let current = owner.get("/api/organizations/@current/").await.ok();
    assert_eq!(patched["name"], "Renamed");
    for body in [owner.get(&path).await.ok(), current, patched] {
        assert_eq!((length(&body, "/teams"), length(&body, "/projects")), (1_000, 1_000));
    }
    let listed = owner.get("/api/organizations/").await.ok();
    assert_eq!((&listed["count"], length(&listed, "/results")), (&json!(151), 100));
    let teams = (0..100).map(|at| length(&listed, &format!("/results/{at}/teams")));
    assert_eq!(teams.sum::<usize>(), 1_000, "the maximum in one response");
    // Paging reaches the rest.
    assert_eq!(length(&owner.get("/api/organizations/?offset=100").await.ok(), "/results"), 51);
    let projects = workspace.organization("projects/?limit=1000&offset=1000");
    assert_eq!(length(&owner.get(&projects).await.ok(), "/results"), 101);
    let mine = owner.get("/api/projects/?limit=1000&offset=1000").await.ok();
    assert_eq!((&mine["count"], length(&mine, "/results")), (&json!(1_251), 251));
    // Beyond the limits, existing objects remain usable, but no more can be created.
    let beyond = owner.post("/api/organizations/", json!({ "name": "One more" })).await;
    refused(&beyond, "A user can belong to at most 100 organizations.");
    let beyond = owner.post(&workspace.organization("projects/"), json!({ "name": "P" })).await;
    refused(&beyond, "An organization can have at most 1000 projects.");
    let set = json!({ "set_current_team": mine["results"][250]["id"] });
    assert_eq!(owner.patch(me, set).await.ok()["team"]["id"], mine["results"][250]["id"]);
    workspace.assert_file_valid().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_update_with_a_large_response_changes_nothing() {
    let workspace = Workspace::new().await;
    fill(&workspace, 0, 70).await;
    let (_, dashboard) = make(&workspace, &workspace.owner, json!({})).await;
    fill_dashboard(&workspace.owner, &dashboard, 30).await;
    for (path, field, count) in [
        ("/api/users/@me/".to_owned(), "first_name", 400),
        (workspace.organization(""), "name", 400),
        (dashboard, "name", 12),
    ] {
        let before = workspace.owner.get(&path).await.version();
        let patches: Vec<_> = (0..count)
            .map(|number| {
                let (owner, path) = (workspace.owner.clone(), path.clone());
                tokio::spawn(async move {
                    let answer = owner.patch(&path, json!({ field: format!("N{number}") })).await;
                    if answer.status == 503 {
                        return None;
                    }
                    let version = answer.version();
                    let own = format!("N{number}");
                    assert_eq!(answer.ok()[field], own, "the response shows its own update");
                    Some(version)
                })
            })
            .collect();
        let mut versions = Vec::new();
        for patch in patches {
            versions.extend(patch.await.expect("an answer"));
        }
        assert!(!versions.is_empty(), "every update of {path} was rejected");
        versions.sort_unstable();
        let after = workspace.owner.get(&path).await.version();
        assert_eq!(versions, (before + 1..=after).collect::<Vec<_>>(), "{path}");
    }
}
