//! The sharing configuration of a dashboard: who may change it, and which tokens are valid when.

pub mod insights;
mod shared;

use std::time::Duration;

use serde_json::{Value, json};
use steward::testing::ids::{CollaboratorId, DashboardId, InsightId, UserId};
use steward::testing::resources::access_controls::levels::AccessLevel;
use steward::testing::resources::access_controls::rules::AccessRule;
use steward::testing::resources::access_objects::{Kind, Object};
use steward::testing::resources::access_subject::Subject;
use steward::testing::resources::activity::Entry;
use steward::testing::resources::collaborators::Collaborator;
use steward::testing::resources::dashboards::Dashboard;
use steward::testing::resources::members::Level;
use steward::testing::resources::sharing::{Sharing, SharingTokens};
use steward::testing::resources::{cascade_delete, users};
use steward::testing::secret::Seed;
use steward::testing::store::{Order, Record, Tx, Window};

use crate::support::sharing::{Board, token};
use crate::support::{TestClient, Workspace, with_clock};

const NO_EDIT: &str = "You don't have edit permissions for this dashboard.";

/// Asserts whether a token opens both the JSON and the page, or neither.
#[track_caller]
fn assert_opens(answers: (u16, u16), opens: bool, what: &str) {
    let expected = if opens { (200, 200) } else { (404, 404) };
    assert_eq!(answers, expected, "{what}");
}

/// Opens a token, and returns the status of the JSON and of the page.
pub async fn opened(workspace: &Workspace, token: &str) -> (u16, u16) {
    let anyone = workspace.anonymous();
    let json = anyone.get(&format!("/shared/{token}.json")).await.status;
    (json, anyone.get(&format!("/shared/{token}")).await.status)
}

/// The number of records of a type.
fn count<R: Record>(workspace: &Workspace) -> usize {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let mut count = 0;
    let counted = tx.scan::<R, _>(&(), Window::all(Order::Ascending), |_| {
        count += 1;
        Ok(())
    });
    counted.expect("counted");
    count
}

#[tokio::test]
async fn token_of_an_unshared_dashboard_opens_nothing() {
    let workspace = Workspace::new().await;
    let (one, other) =
        (Board::make(&workspace, json!({})).await, Board::make(&workspace, json!({})).await);
    let shown = workspace.owner.get(&one.sharing).await;
    let token = token(&shown.body);
    shown.assert_is(200, json!({ "created_at": null, "enabled": false, "access_token": token }));
    let names: Vec<_> = shown.body.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["created_at", "enabled", "access_token"]);
    assert_eq!(token.len(), 30);
    assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
    for path in [&one.sharing, one.sharing.trim_end_matches('/')] {
        workspace.owner.get(path).await.assert_is(200, shown.body.clone());
    }
    assert_ne!(other.token(&workspace.owner).await, token);
    assert_opens(opened(&workspace, &token).await, false, "before");
    assert_eq!(count::<Sharing>(&workspace), 0, "a GET writes nothing");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn token_of_a_disabled_page_is_shown_only_to_callers_with_edit_access() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({ "restriction_level": 37 })).await;
    let viewer = workspace.member("mia", Level::Member).await;
    let editor = workspace.member("ben", Level::Member).await;
    let ben = json!({ "user_uuid": workspace.uuid("ben@corp.example").await, "level": 37 });
    workspace.owner.post(&format!("{}collaborators/", board.one), ben).await.ok();
    let off = async |times: u32| {
        let shown = viewer.get(&board.sharing).await.ok();
        assert_eq!(shown["access_token"], Value::Null, "{times}");
        assert_eq!(board.token(&editor).await, board.token(&workspace.owner).await);
    };
    off(0).await;
    let reading = workspace.key("ben@corp.example", &["sharing_configuration:read"]).await;
    let shown = reading.get(&board.sharing).await.ok();
    assert_eq!(shown["access_token"], Value::Null, "the editor may share, but this key may not");
    board.refresh(&editor).await;
    off(1).await;
    let token = board.enable(&editor, true).await;
    assert_eq!(board.token(&viewer).await, token, "a viewer of the dashboard may open its page");
    board.enable(&editor, false).await;
    off(2).await;
    board.enable(&editor, true).await;
    assert_opens(opened(&workspace, &token).await, false, "the token that the viewer had");
}

#[tokio::test]
async fn same_dashboard_in_another_data_file_has_another_token() {
    let (one, other) = (Workspace::new().await, Workspace::new().await);
    let (here, there) = (Board::make(&one, json!({})).await, Board::make(&other, json!({})).await);
    assert_eq!(here.id, there.id);
    assert_ne!(here.token(&one.owner).await, there.token(&other.owner).await);
}

#[tokio::test]
async fn enabling_sharing_keeps_the_token_and_sets_is_shared() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let board = Board::make(&workspace, json!({ "name": "Numbers" })).await;
    let before = board.token(&workspace.owner).await;
    let mut dashboard = workspace.owner.get(&board.one).await.ok();
    assert_eq!(dashboard["is_shared"], false);
    let enabled = workspace.owner.patch(&board.sharing, json!({ "enabled": true })).await;
    let expected = json!({
        "created_at": "2023-11-14T22:13:20Z", "enabled": true, "access_token": before,
    });
    enabled.assert_is(200, expected.clone());
    assert_opens(opened(&workspace, &before).await, true, "enabled");
    dashboard["is_shared"] = json!(true);
    workspace.owner.get(&board.one).await.assert_is(200, dashboard.clone());
    let list = workspace.owner.get(&workspace.dashboards("")).await.ok();
    assert_eq!(list["results"][0]["is_shared"], true);

    // Enabling an enabled page, or sending no field, changes nothing.
    clock.advance(Duration::from_mins(1));
    let entries = count::<Entry>(&workspace);
    for sent in [json!({ "enabled": "yes" }), json!({}), json!({ "access_token": "x" })] {
        workspace.owner.patch(&board.sharing, sent).await.assert_is(200, expected.clone());
    }
    assert_eq!(count::<Entry>(&workspace), entries);
    workspace.owner.get(&board.sharing).await.assert_is(200, expected.clone());

    // An update of the dashboard does not affect its sharing.
    let sent = json!({ "name": "More", "is_shared": false });
    assert_eq!(workspace.owner.patch(&board.one, sent).await.ok()["is_shared"], true);
    assert_opens(opened(&workspace, &before).await, true, "renamed");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn disabling_sharing_revokes_the_token_permanently() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let board = Board::make(&workspace, json!({})).await;
    let first = board.enable(&workspace.owner, true).await;
    clock.advance(Duration::from_mins(1));
    let disabled = workspace.owner.patch(&board.sharing, json!({ "enabled": false })).await;
    let second = token(&disabled.body);
    assert_ne!(second, first);
    let expected = |enabled: bool| {
        json!({
            "created_at": "2023-11-14T22:13:20Z", "enabled": enabled, "access_token": second,
        })
    };
    disabled.assert_is(200, expected(false));
    workspace.owner.get(&board.sharing).await.assert_is(200, expected(false));
    assert_eq!(workspace.owner.get(&board.one).await.ok()["is_shared"], false);
    for token in [&first, &second] {
        assert_opens(opened(&workspace, token).await, false, "disabled");
    }
    // Disabling a disabled page changes nothing.
    workspace
        .owner
        .patch(&board.sharing, json!({ "enabled": 0 }))
        .await
        .assert_is(200, expected(false));
    workspace
        .owner
        .patch(&board.sharing, json!({ "enabled": true }))
        .await
        .assert_is(200, expected(true));
    assert_opens(opened(&workspace, &second).await, true, "enabled again");
    assert_opens(opened(&workspace, &first).await, false, "the first token");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn disabling_sharing_that_was_never_enabled_changes_nothing() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    let before = workspace.owner.get(&board.sharing).await.ok();
    let sent = json!({ "enabled": false });
    workspace.owner.patch(&board.sharing, sent).await.assert_is(200, before);
    assert_eq!(count::<Sharing>(&workspace), 0);
}

#[tokio::test]
async fn replaced_sharing_token_works_for_five_more_minutes() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let board = Board::make(&workspace, json!({})).await;
    let first = board.enable(&workspace.owner, true).await;
    clock.advance(Duration::from_mins(1));
    let answer = workspace.owner.post(&board.refresh, json!({ "anything": [] })).await;
    let second = token(&answer.body);
    assert_ne!(second, first);
    let expected = json!({
        "created_at": "2023-11-14T22:13:20Z", "enabled": true, "access_token": second,
    });
    answer.assert_is(200, expected.clone());
    workspace.owner.get(&board.sharing).await.assert_is(200, expected);
    clock.advance(Duration::from_secs(299));
    for token in [&first, &second] {
        assert_opens(opened(&workspace, token).await, true, "within five minutes");
    }
    clock.advance(Duration::from_secs(1));
    assert_opens(opened(&workspace, &first).await, false, "after five minutes");
    assert_opens(opened(&workspace, &second).await, true, "the present token");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn of_two_refreshes_within_five_minutes_only_the_last_old_token_remains() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let board = Board::make(&workspace, json!({})).await;
    let first = board.enable(&workspace.owner, true).await;
    let second = board.refresh(&workspace.owner).await;
    clock.advance(Duration::from_secs(200));
    let third = board.refresh(&workspace.owner).await;
    for (token, opens) in [(&first, false), (&second, true), (&third, true)] {
        assert_opens(opened(&workspace, token).await, opens, token);
    }
    clock.advance(Duration::from_secs(299));
    assert_opens(opened(&workspace, &second).await, true, "its own five minutes");
    clock.advance(Duration::from_secs(1));
    assert_opens(opened(&workspace, &second).await, false, "after them");
    // Disabling the page revokes the replaced token too.
    let fourth = board.refresh(&workspace.owner).await;
    let fifth = board.enable(&workspace.owner, false).await;
    for token in [&third, &fourth, &fifth] {
        assert_opens(opened(&workspace, token).await, false, "disabled");
    }
    board.enable(&workspace.owner, true).await;
    for (token, opens) in [(&third, false), (&fourth, false), (&fifth, true)] {
        assert_opens(opened(&workspace, token).await, opens, "enabled again");
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn refreshing_a_disabled_token_returns_one_that_opens_nothing() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    let first = board.token(&workspace.owner).await;
    let answer = workspace.owner.post(&board.refresh, json!({})).await;
    let second = token(&answer.body);
    assert_ne!(second, first);
    answer.assert_is(200, json!({ "created_at": null, "enabled": false, "access_token": second }));
    for token in [&first, &second] {
        assert_opens(opened(&workspace, token).await, false, "not enabled");
    }
    assert_eq!(board.enable(&workspace.owner, true).await, second);
    assert_opens(opened(&workspace, &second).await, true, "enabled");
    assert_opens(opened(&workspace, &first).await, false, "the one before");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn invalid_boolean_is_rejected() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    let null = workspace.owner.patch(&board.sharing, json!({ "enabled": null })).await;
    null.assert_invalid("enabled", "null", "This field may not be null.");
    for value in [json!("maybe"), json!(2), json!([]), json!({}), json!("")] {
        let answer = workspace.owner.patch(&board.sharing, json!({ "enabled": value })).await;
        answer.assert_invalid("enabled", "invalid_input", "Must be a valid boolean.");
    }
    let list = workspace.owner.patch(&board.sharing, json!([true])).await;
    list.assert_invalid_body("invalid_input", "Invalid data. Expected a dictionary, but got list.");
    assert_eq!(count::<Sharing>(&workspace), 0);
}

#[tokio::test]
async fn sharing_of_a_missing_dashboard_returns_404() {
    let workspace = Workspace::new().await;
    let removed = Board::make(&workspace, json!({})).await;
    removed.enable(&workspace.owner, true).await;
    workspace.owner.patch(&removed.one, json!({ "deleted": true })).await.ok();
    let beside = workspace.owner.post(&workspace.organization("projects/"), json!({})).await.ok();
    let elsewhere = format!("/api/projects/{}/dashboards/", beside["id"]);
    let elsewhere = workspace.owner.post(&elsewhere, json!({})).await.ok();
    let ids = [removed.id.to_string(), elsewhere["id"].to_string(), "99999".into(), "x".into()];
    for id in ids {
        let one = workspace.dashboards(&format!("{id}/sharing/"));
        let missing = "Dashboard not found.";
        workspace.owner.get(&one).await.assert_not_found(missing);
        workspace.owner.patch(&one, json!({ "enabled": true })).await.assert_not_found(missing);
        workspace.owner.patch(&one, json!({ "enabled": "maybe" })).await.assert_not_found(missing);
        workspace.owner.post(&format!("{one}refresh/"), json!({})).await.assert_not_found(missing);
    }
}

#[tokio::test]
async fn other_methods_return_405() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    for (method, path, allow) in [
        ("DELETE", &board.sharing, "GET, PATCH, HEAD, OPTIONS"),
        ("PUT", &board.sharing, "GET, PATCH, HEAD, OPTIONS"),
        ("POST", &board.sharing, "GET, PATCH, HEAD, OPTIONS"),
        ("GET", &board.refresh, "POST, OPTIONS"),
        ("PATCH", &board.refresh, "POST, OPTIONS"),
    ] {
        let named = method.parse().expect("a method");
        let answer = workspace.owner.send(named, path, None).await;
        let text = format!("Method \"{method}\" not allowed.");
        answer.assert_error(405, "invalid_request", "method_not_allowed", &text, None);
        assert_eq!(answer.headers["allow"], allow);
    }
}

fn user(workspace: &Workspace, email: &str) -> UserId {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    users::find_by_email(&*tx, email).expect("read").expect("a user").meta.id
}

/// Sets a member's level on a dashboard.
async fn rule(workspace: &Workspace, board: &Board, user: UserId, level: AccessLevel) {
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    let object = Some(board.id);
    let put = workspace.app.operate(move |tx, now| {
        tx.put(&AccessRule {
            organization,
            project,
            kind: Kind::Dashboard,
            object,
            subject: Subject::User(user),
            level,
            created_at: now,
            updated_at: now,
        })
    });
    put.await.expect("a rule");
}

async fn collaborate(workspace: &Workspace, board: &Board, user: UserId) {
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    let (dashboard, seed) = (DashboardId(board.id), Seed::generate());
    let put = workspace.app.operate(move |tx, now| {
        tx.put(&Collaborator {
            organization,
            project,
            dashboard,
            user,
            id: CollaboratorId(seed.rng().uuid(now)),
            level: 37,
            added_at: now,
            updated_at: now,
        })
    });
    put.await.expect("a collaborator");
}

/// Asserts that the caller may read the configuration, and that every change is refused.
async fn reads_only(board: &Board, caller: &TestClient) {
    assert_eq!(caller.get(&board.sharing).await.status, 200);
    for sent in [json!({ "enabled": true }), json!({}), json!({ "enabled": "maybe" })] {
        caller.patch(&board.sharing, sent).await.assert_denied(NO_EDIT);
    }
    caller.post(&board.refresh, json!({})).await.assert_denied(NO_EDIT);
}

async fn changes(board: &Board, caller: &TestClient) {
    board.enable(caller, true).await;
    board.refresh(caller).await;
    board.enable(caller, false).await;
}

#[tokio::test]
async fn sharing_requires_edit_access_to_the_dashboard() {
    let workspace = Workspace::new().await;
    let ann = workspace.member("ann", Level::Member).await;
    let ada = workspace.member("ada", Level::Admin).await;
    let id = user(&workspace, "ann@corp.example");
    let board = Board::make(&workspace, json!({})).await;
    changes(&board, &ann).await;
    for (level, reads, edits) in [
        (AccessLevel::None, false, false),
        (AccessLevel::Viewer, true, false),
        (AccessLevel::Editor, true, true),
        (AccessLevel::Manager, true, true),
    ] {
        rule(&workspace, &board, id, level).await;
        match (reads, edits) {
            (_, true) => changes(&board, &ann).await,
            (true, _) => reads_only(&board, &ann).await,
            _ => {
                let shown = ann.get(&board.sharing).await;
                shown.assert_denied("You do not have viewer access to this resource.");
                ann.patch(&board.sharing, json!({ "enabled": true })).await.assert_denied(NO_EDIT);
                ann.post(&board.refresh, json!({})).await.assert_denied(NO_EDIT);
            }
        }
        changes(&board, &ada).await;
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn restricted_dashboard_is_shared_only_by_its_collaborators() {
    let workspace = Workspace::new().await;
    let ann = workspace.member("ann", Level::Member).await;
    let ada = workspace.member("ada", Level::Admin).await;
    let board = Board::make(&workspace, json!({ "restriction_level": 37 })).await;
    reads_only(&board, &ann).await;
    changes(&board, &ada).await;
    changes(&board, &workspace.owner).await;
    collaborate(&workspace, &board, user(&workspace, "ann@corp.example")).await;
    changes(&board, &ann).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn every_sharing_change_increments_the_dashboard_version() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    let key = (workspace.made.project_id, DashboardId(board.id));
    let version = || {
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        let seen = tx.view::<Dashboard, _>(&key, |row| Ok(row.version)).expect("read");
        seen.expect("a dashboard")
    };
    assert_eq!(version(), 1);
    board.enable(&workspace.owner, true).await;
    assert_eq!(version(), 2);
    board.enable(&workspace.owner, true).await;
    assert_eq!(version(), 2);
    board.refresh(&workspace.owner).await;
    assert_eq!(version(), 3);
    board.enable(&workspace.owner, false).await;
    assert_eq!(version(), 4);
    board.refresh(&workspace.owner).await;
    assert_eq!(version(), 5);
    board.token(&workspace.owner).await;
    assert_eq!(version(), 5);
}

#[tokio::test]
async fn every_sharing_change_creates_a_log_entry_without_the_token() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({ "name": "Numbers" })).await;
    let mut tokens = vec![board.enable(&workspace.owner, true).await];
    tokens.push(board.refresh(&workspace.owner).await);
    tokens.push(board.enable(&workspace.owner, false).await);
    tokens.push(board.refresh(&workspace.owner).await);
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let mut told = Vec::new();
    let read = tx.scan::<Entry, _>(&(), Window::all(Order::Ascending), |row| {
        let text = String::from_utf8_lossy(row.fields).into_owned();
        assert!(tokens.iter().all(|token| !text.contains(token)), "{text}");
        let entry = row.into_record()?;
        assert_eq!(entry.meta.project.is_some(), entry.fields.scope == "Dashboard");
        if entry.fields.scope == "Dashboard" {
            let changes: Vec<_> = entry
                .fields
                .detail
                .changes
                .iter()
                .map(|change| json!([change.field, change.before, change.after]))
                .collect();
            let shown = entry.fields;
            told.push(json!([shown.item_id, shown.activity, shown.detail.name, changes]));
        }
        Ok(())
    });
    read.expect("entries");
    let id = board.id.to_string();
    let replaced = json!(["access_token", null, null]);
    let expected = json!([
        [id, "created", "Numbers", []],
        [id, "sharing enabled", "Numbers", [["is_shared", false, true]]],
        [id, "access token refreshed", "Numbers", [replaced]],
        [id, "sharing disabled", "Numbers", [replaced, ["is_shared", true, false]]],
        [id, "access token refreshed", "Numbers", [replaced]],
    ]);
    assert_eq!(json!(told), expected);
}

#[tokio::test]
async fn new_and_copied_dashboards_are_not_shared() {
    let workspace = Workspace::new().await;
    let source = Board::make(&workspace, json!({})).await;
    let token = source.enable(&workspace.owner, true).await;
    for sent in [json!({ "is_shared": true }), json!({ "use_dashboard": source.id })] {
        let board = Board::make(&workspace, sent).await;
        assert_eq!(workspace.owner.get(&board.one).await.ok()["is_shared"], false);
        let sharing = workspace.owner.get(&board.sharing).await.ok();
        assert_eq!((&sharing["enabled"], &sharing["created_at"]), (&json!(false), &Value::Null));
        assert_ne!(sharing["access_token"], token);
    }
}

#[tokio::test]
async fn deleting_a_dashboard_closes_its_page_and_restoring_reopens_it() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    let token = board.enable(&workspace.owner, true).await;
    workspace.owner.patch(&board.one, json!({ "deleted": true })).await.ok();
    assert_opens(opened(&workspace, &token).await, false, "removed");
    workspace.owner.patch(&board.one, json!({ "deleted": false })).await.ok();
    assert_opens(opened(&workspace, &token).await, true, "restored");
    assert_eq!(board.token(&workspace.owner).await, token);
    board.enable(&workspace.owner, false).await;
    workspace.owner.patch(&board.one, json!({ "deleted": true })).await.ok();
    workspace.owner.patch(&board.one, json!({ "deleted": false })).await.ok();
    assert_opens(opened(&workspace, &token).await, false, "disabled, removed and restored");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_project_closes_its_pages_before_its_records_are_deleted() {
    let (config, _clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let board = Board::make(&workspace, json!({})).await;
    let first = board.enable(&workspace.owner, true).await;
    let second = board.refresh(&workspace.owner).await;
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    // The background task has not yet deleted the project's records. Requests that follow the deletion find this state.
    let removed = workspace
        .app
        .store()
        .write(move |tx| cascade_delete::delete_project(tx, organization, project));
    removed.await.expect("removed");
    assert_eq!(count::<Sharing>(&workspace), 1);
    for token in [&first, &second] {
        assert_opens(opened(&workspace, token).await, false, "a deleted project");
    }
    workspace.assert_file_valid().await;
    while workspace.app.store().write(cascade_delete::delete_batch).await.expect("deleted") {}
    assert_eq!(count::<Sharing>(&workspace), 0);
    assert_opens(opened(&workspace, &second).await, false, "deleted");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_organization_closes_its_pages_before_its_records_are_deleted() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    let first = board.enable(&workspace.owner, true).await;
    let second = board.refresh(&workspace.owner).await;
    let organization = workspace.made.organization_id;
    let removed = workspace
        .app
        .store()
        .write(move |tx| cascade_delete::delete_organization(tx, organization));
    removed.await.expect("removed");
    for token in [&first, &second] {
        assert_opens(opened(&workspace, token).await, false, "a removed organization");
    }
    workspace.assert_file_valid().await;
    while workspace.app.store().write(cascade_delete::delete_batch).await.expect("deleted") {}
    assert_eq!(count::<Sharing>(&workspace), 0);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn after_concurrent_sharing_changes_only_current_and_previous_tokens_work() {
    let (config, _clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let board = Board::make(&workspace, json!({})).await;
    for round in 0..10_u32 {
        board.enable(&workspace.owner, true).await;
        let patch = |enabled| workspace.owner.patch(&board.sharing, json!({ "enabled": enabled }));
        let refresh = || workspace.owner.post(&board.refresh, json!({}));
        let answers =
            tokio::join!(refresh(), patch(round % 2 == 0), refresh(), patch(false), refresh());
        let shown = workspace.owner.get(&board.sharing).await.ok();
        let (now, enabled) = (token(&shown), shown["enabled"] == true);
        assert_opens(opened(&workspace, &now).await, enabled, "the shown token");
        let mut others: Vec<String> = Vec::new();
        for answer in <[_; 5]>::from(answers) {
            others.push(token(&answer.ok()));
        }
        others.retain(|other| *other != now);
        for other in &others {
            let (json, page) = opened(&workspace, other).await;
            assert_eq!(json, page);
            assert!(enabled || json == 404, "disabled, yet {other} opens");
        }
    }
    workspace.assert_file_valid().await;
}

/// The file holds keyed hashes of tokens, and no token itself.
#[tokio::test]
async fn data_file_contains_no_sharing_token() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    let first = board.enable(&workspace.owner, true).await;
    let second = board.refresh(&workspace.owner).await;
    let secret = workspace.app.store().signing_secret().expect("the secret");
    let tokens = SharingTokens::new(&secret).expect("tokens");
    let object = Object::Dashboard(DashboardId(board.id));
    assert_eq!(tokens.token(object, 1), second);
    assert_ne!(tokens.token(Object::Insight(InsightId(board.id)), 1), second);
    let bytes = std::fs::read(workspace.path()).expect("the file");
    for token in [&first, &second] {
        assert!(!bytes.windows(token.len()).any(|window| window == token.as_bytes()));
    }
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let record: Sharing = tx.get(&(workspace.made.project_id, object)).expect("a record");
    assert_eq!(record.meta.token, Some(tokens.hash(&second)));
}
