//! The sharing configuration of a dashboard: who may change it, and which tokens are valid when.

mod insights;
mod shared;

use steward::testing::resources::shared::Object;
use steward::testing::resources::sharing::{Sharing, SharingTokens};

use crate::support::prelude::*;
use crate::support::sharing::token;

const BEGAN: &str = "2023-11-14T22:13:20Z";

/// A dashboard and an insight, which are shared alike.
async fn both(workspace: &Workspace) -> [Board; 2] {
    let (insight, _) = Board::of_insight(workspace, json!({ "name": "Numbers" })).await;
    [Board::make(workspace, json!({ "name": "Numbers" })).await, insight]
}

/// The expected configuration.
fn configuration(created_at: Option<&str>, enabled: bool, token: &str) -> Value {
    json!({ "created_at": created_at, "enabled": enabled, "access_token": token })
}

/// Asserts whether a token opens both the JSON and the page, or neither.
#[track_caller]
fn assert_opens(answers: (u16, u16), opens: bool, what: &str) {
    assert_eq!(answers, if opens { (200, 200) } else { (404, 404) }, "{what}");
}

/// Opens a token, and returns the status of the JSON and of the page.
pub async fn opened(workspace: &Workspace, token: &str) -> (u16, u16) {
    let anyone = workspace.anonymous();
    let json = anyone.get(&format!("/shared/{token}.json")).await.status;
    (json, anyone.get(&format!("/shared/{token}")).await.status)
}

#[tokio::test]
async fn what_is_not_shared_opens_nothing_and_an_invalid_boolean_shares_nothing() {
    let workspace = Workspace::new().await;
    let mut tokens = BTreeSet::new();
    for shared in both(&workspace).await.iter().chain(&both(&workspace).await) {
        let shown = workspace.owner.get(&shared.sharing).await;
        let token = token(&shown.body);
        shown.assert_is(200, configuration(None, false, &token));
        let names: Vec<_> = shown.body.as_object().expect("an object").keys().collect();
        assert_eq!(names, ["created_at", "enabled", "access_token"]);
        assert_eq!(token.len(), 30);
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        assert_opens(opened(&workspace, &token).await, false, "before");
        // Disabling what was never enabled changes nothing.
        let sent = json!({ "enabled": false });
        workspace.owner.patch(&shared.sharing, sent).await.assert_is(200, shown.body);
        assert!(tokens.insert(token));
    }
    // The same objects of another data file have other tokens.
    let other = Workspace::new().await;
    for shared in both(&other).await {
        assert!(tokens.insert(shared.token(&other.owner).await));
    }
    assert_eq!(stored::<Sharing>(&workspace), 0);
    for shared in both(&workspace).await {
        let boolean = Refusal::invalid("enabled", "Must be a valid boolean.");
        let list = "Invalid data. Expected a dictionary, but got list.";
        let cases = [
            (json!({ "enabled": "" }), boolean),
            (json!({ "enabled": null }), Refusal::null("enabled")),
            (json!([true]), Refusal::of_body("invalid_input", list)),
        ];
        workspace.owner.assert_refusals(Method::PATCH, &shared.sharing, cases).await;
    }
    assert_eq!(stored::<Sharing>(&workspace), 0);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn token_of_a_disabled_page_is_shown_only_to_callers_with_edit_access() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({ "restriction_level": 37 })).await;
    let viewer = workspace.member("mia", Level::Member).await;
    let editor = workspace.member("ben", Level::Member).await;
    workspace.add_collaborator(&board.one, "ben@corp.example").await;
    let off = async |times: u32| {
        assert_eq!(viewer.get(&board.sharing).await.ok()["access_token"], Value::Null, "{times}");
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
async fn enabling_sharing_keeps_the_token_and_sets_is_shared() {
    let (workspace, clock) = Workspace::timed().await;
    let board = Board::make(&workspace, json!({ "name": "Numbers" })).await;
    let before = board.token(&workspace.owner).await;
    let mut dashboard = workspace.owner.get(&board.one).await.ok();
    assert_eq!(dashboard["is_shared"], false);
    let enabled = workspace.owner.patch(&board.sharing, json!({ "enabled": true })).await;
    let expected = configuration(Some(BEGAN), true, &before);
    enabled.assert_is(200, expected.clone());
    assert_opens(opened(&workspace, &before).await, true, "enabled");
    dashboard["is_shared"] = json!(true);
    workspace.owner.get(&board.one).await.assert_is(200, dashboard.clone());
    let list = workspace.owner.get(&workspace.dashboards("")).await.ok();
    assert_eq!(list["results"][0]["is_shared"], true);

    // Enabling an enabled page, or sending no field, changes nothing.
    clock.advance(Duration::from_mins(1));
    let entries = stored::<Entry>(&workspace);
    for sent in [json!({ "enabled": "yes" }), json!({}), json!({ "access_token": "x" })] {
        workspace.owner.patch(&board.sharing, sent).await.assert_is(200, expected.clone());
    }
    assert_eq!(stored::<Entry>(&workspace), entries);
    workspace.owner.get(&board.sharing).await.assert_is(200, expected.clone());

    // An update of the dashboard does not affect its sharing.
    let sent = json!({ "name": "More", "is_shared": false });
    assert_eq!(workspace.owner.patch(&board.one, sent).await.ok()["is_shared"], true);
    assert_opens(opened(&workspace, &before).await, true, "renamed");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn disabling_sharing_revokes_the_token_permanently() {
    let (workspace, clock) = Workspace::timed().await;
    let board = Board::make(&workspace, json!({})).await;
    let first = board.enable(&workspace.owner, true).await;
    clock.advance(Duration::from_mins(1));
    let disabled = workspace.owner.patch(&board.sharing, json!({ "enabled": false })).await;
    let second = token(&disabled.body);
    assert_ne!(second, first);
    let expected = |enabled: bool| configuration(Some(BEGAN), enabled, &second);
    disabled.assert_is(200, expected(false));
    workspace.owner.get(&board.sharing).await.assert_is(200, expected(false));
    assert_eq!(workspace.owner.get(&board.one).await.ok()["is_shared"], false);
    for token in [&first, &second] {
        assert_opens(opened(&workspace, token).await, false, "disabled");
    }
    // Disabling a disabled page changes nothing.
    for (sent, enabled) in [(json!(0), false), (json!(true), true)] {
        let answer = workspace.owner.patch(&board.sharing, json!({ "enabled": sent })).await;
        answer.assert_is(200, expected(enabled));
    }
    assert_opens(opened(&workspace, &second).await, true, "enabled again");
    assert_opens(opened(&workspace, &first).await, false, "the first token");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn replaced_sharing_token_works_for_five_more_minutes_or_until_the_next_refresh() {
    let (workspace, clock) = Workspace::timed().await;
    for shared in both(&workspace).await {
        let began = workspace.app.now().to_string();
        let first = shared.enable(&workspace.owner, true).await;
        clock.advance(Duration::from_mins(1));
        let answer = workspace.owner.post(&shared.refresh, json!({ "anything": [] })).await;
        let second = token(&answer.body);
        assert_ne!(second, first);
        let expected = configuration(Some(&began), true, &second);
        answer.assert_is(200, expected.clone());
        workspace.owner.get(&shared.sharing).await.assert_is(200, expected);
        clock.advance(Duration::from_secs(299));
        for token in [&first, &second] {
            assert_opens(opened(&workspace, token).await, true, "within five minutes");
        }
        clock.advance(Duration::from_secs(1));
        assert_opens(opened(&workspace, &first).await, false, "after five minutes");
        assert_opens(opened(&workspace, &second).await, true, "the present token");
        for token in [&second, &shared.enable(&workspace.owner, false).await] {
            assert_opens(opened(&workspace, token).await, false, "disabled");
        }
    }
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
    answer.assert_is(200, configuration(None, false, &second));
    for token in [&first, &second] {
        assert_opens(opened(&workspace, token).await, false, "not enabled");
    }
    assert_eq!(board.enable(&workspace.owner, true).await, second);
    assert_opens(opened(&workspace, &second).await, true, "enabled");
    assert_opens(opened(&workspace, &first).await, false, "the one before");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn sharing_requires_edit_access_to_the_dashboard() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let board = Board::make(&workspace, json!({})).await;
    for (level, reads) in [("none", false), ("viewer", true)] {
        workspace.set_rule(&board.one, Some(ANN), level).await;
        allows(&ann.get(&board.sharing).await, reads, VIEWER);
        for sent in [json!({ "enabled": true }), json!({}), json!({ "enabled": "maybe" })] {
            ann.patch(&board.sharing, sent).await.assert_denied(NO_EDIT);
        }
        ann.post(&board.refresh, json!({})).await.assert_denied(NO_EDIT);
    }
    workspace.set_rule(&board.one, Some(ANN), "editor").await;
    board.enable(&ann, true).await;
    board.refresh(&ann).await;
}

#[tokio::test]
async fn sharing_changes_increment_the_version_of_a_dashboard_and_not_of_an_insight() {
    let (workspace, owner) = Workspace::owned().await;
    for (shared, is_dashboard) in both(&workspace).await.iter().zip([true, false]) {
        let mut known = owner.get(&shared.one).await.version();
        for (change, moves) in [
            (Some(true), true),
            (Some(true), false),
            (None, true),
            (Some(false), true),
            (None, true),
        ] {
            match change {
                Some(enabled) => shared.enable(&owner, enabled).await,
                None => shared.refresh(&owner).await,
            };
            let now = owner.get(&shared.one).await.version();
            assert_eq!(now > known, moves && is_dashboard, "{change:?}");
            known = now;
        }
    }
}

#[tokio::test]
async fn every_sharing_change_creates_a_log_entry_without_the_token() {
    let workspace = Workspace::new().await;
    for (shared, scope) in both(&workspace).await.iter().zip(["Dashboard", "Insight"]) {
        let known = entries(&workspace).len();
        let mut tokens = vec![shared.enable(&workspace.owner, true).await];
        tokens.push(shared.refresh(&workspace.owner).await);
        tokens.push(shared.enable(&workspace.owner, false).await);
        tokens.push(shared.refresh(&workspace.owner).await);
        let told = |entry: &Entry| {
            let shown = &entry.fields;
            let changes = shown.detail.changes.iter();
            let changes: Vec<_> =
                changes.map(|change| json!([change.field, change.before, change.after])).collect();
            json!([shown.scope, shown.item_id, shown.activity, shown.detail.name, changes])
        };
        let new = entries(&workspace).split_off(known);
        assert!(new.iter().all(|entry| entry.meta.project.is_some()));
        let text = json!(new.iter().map(|entry| &entry.fields).collect::<Vec<_>>()).to_string();
        assert!(tokens.iter().all(|token| !text.contains(token)), "{text}");
        let id = shared.id.to_string();
        let replaced = json!(["access_token", null, null]);
        let refreshed = json!([scope, id, "access token refreshed", "Numbers", [replaced]]);
        let off = json!([replaced, ["is_shared", true, false]]);
        let expected = [
            json!([scope, id, "sharing enabled", "Numbers", [["is_shared", false, true]]]),
            refreshed.clone(),
            json!([scope, id, "sharing disabled", "Numbers", off]),
            refreshed,
        ];
        assert_eq!(new.iter().map(told).collect::<Vec<_>>(), expected);
    }
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
async fn deleting_what_is_shared_closes_its_page_and_restoring_reopens_it() {
    let (workspace, owner) = Workspace::owned().await;
    for shared in both(&workspace).await {
        let token = shared.enable(&owner, true).await;
        // A change is public at once.
        owner.patch(&shared.one, json!({ "name": "After" })).await.ok();
        for ending in ["", ".json"] {
            let page = workspace.anonymous().get(&format!("/shared/{token}{ending}")).await;
            assert!(String::from_utf8(page.bytes).expect("text").contains("After"));
        }
        for deleted in [true, false] {
            owner.patch(&shared.one, json!({ "deleted": deleted })).await.ok();
            assert_opens(opened(&workspace, &token).await, !deleted, "removed, then restored");
        }
        assert_eq!(shared.token(&owner).await, token);
        shared.enable(&owner, false).await;
        for deleted in [true, false] {
            owner.patch(&shared.one, json!({ "deleted": deleted })).await.ok();
        }
        assert_opens(opened(&workspace, &token).await, false, "disabled, removed and restored");
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_project_or_organization_closes_its_pages_before_its_records_are_deleted() {
    for whole in [false, true] {
        let (workspace, _clock) = Workspace::timed().await;
        let board = Board::make(&workspace, json!({})).await;
        let first = board.enable(&workspace.owner, true).await;
        let second = board.refresh(&workspace.owner).await;
        let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
        let store = workspace.app.store();
        // The background task has not yet deleted the records. Requests that follow the deletion find this state.
        let _paused = workspace.app.pause_background().await;
        let removed = store.write(move |tx| {
            if whole {
                cascade_delete::delete_organization(tx, organization)
            } else {
                cascade_delete::delete_project(tx, organization, project)
            }
        });
        removed.await.expect("removed");
        assert_eq!(stored::<Sharing>(&workspace), 1);
        for token in [&first, &second] {
            assert_opens(opened(&workspace, token).await, false, "removed");
        }
        workspace.assert_file_valid().await;
        while store.write(cascade_delete::delete_batch).await.expect("deleted") {}
        assert_eq!(stored::<Sharing>(&workspace), 0);
        assert_opens(opened(&workspace, &second).await, false, "deleted");
        workspace.assert_file_valid().await;
    }
}

#[tokio::test]
async fn after_concurrent_sharing_changes_only_current_and_previous_tokens_work() {
    let (workspace, _clock) = Workspace::timed().await;
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
