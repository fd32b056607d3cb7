//! Tests of where sessions are stored: in the data file, but not in backups, exports and restored files.

use steward::testing::resources::cascade_delete::delete_account_data;
use steward::testing::resources::sessions::SignInRequest;
use steward::testing::store::receive;

use crate::exports::{copied, export, how, sent};
use crate::support::prelude::*;

const TABLES: [Table; 6] = [
    Table::Sessions,
    Table::SessionsByUser,
    Table::SignInLinks,
    Table::SignInLinksByUser,
    Table::SignInRequests,
    Table::SignInRequestsByUser,
];

/// Returns the number of values in each table of sessions, links and requests for mails.
fn sizes(store: &Store) -> [u64; 6] {
    let tx = store.snapshot().expect("a snapshot");
    TABLES.map(|table| tx.len(table).expect("a table"))
}

/// Stores a request for a sign-in mail to a user.
async fn add_request(workspace: &Workspace, user: UserId) {
    let request = json!({
        "browser": vec![user.0; 32], "code": vec![2; 32], "user": user,
        "created_at": workspace.app.now(), "wrong_codes": 0,
    });
    let request: SignInRequest = serde_json::from_value(request).expect("a request");
    workspace.app.operate(move |tx, _| tx.put(&request)).await.expect("stored");
}

/// Creates a workspace with two sessions, a link and a request for a mail.
async fn signed_in() -> (Workspace, [SignedIn; 2]) {
    let workspace = Workspace::new().await;
    let sessions =
        [sign_in(&workspace, &workspace.made.api_key).await, sign_in_by_link(&workspace).await];
    workspace.app.create_sign_in_link(workspace.made.user_id, true).await.expect("a link");
    add_request(&workspace, workspace.made.user_id).await;
    assert_eq!(sizes(workspace.app.store()), [2, 2, 1, 1, 1, 1]);
    (workspace, sessions)
}

#[tokio::test]
async fn backup_copy_and_export_contain_no_session_and_no_sign_in_link() {
    let (workspace, _) = signed_in().await;
    let store = workspace.app.store();
    let [backup, received] =
        ["backup.redb", "received.redb"].map(|name| workspace.path().with_file_name(name));
    store.backup(backup.clone(), record_registry(), Progress::silent()).await.expect("a backup");
    let copy = copied(store).await;
    receive(sent(&copy), &received, &record_registry(), &Progress::silent()).expect("a backup");
    for path in [&backup, &received] {
        let opened = Store::open(path, 0).expect("the backup");
        assert_eq!(sizes(&opened), [0; 6]);
        opened.close().await;
    }
    assert_eq!(sizes(store), [2, 2, 1, 1, 1, 1]);
    assert!(how(true).receive(sent(&copy)).is_ok());
    for secrets in [true, false] {
        let text = String::from_utf8(export(workspace.app.store(), secrets).await).expect("text");
        for table in TABLES {
            assert!(!text.contains(&format!(r#"{{"table":"{}""#, table.plain_name())), "{text}");
        }
    }
}

#[tokio::test]
async fn restored_copy_of_a_data_file_has_no_session() {
    let (workspace, sessions) = signed_in().await;
    let copy = workspace.path().with_file_name("copy.redb");
    workspace.app.close().await;
    std::fs::copy(workspace.path(), &copy).expect("a copy");
    let prepared =
        PreparedRestore::new(&workspace.path(), &copy, &record_registry(), &Progress::silent());
    prepared.expect("a valid copy").swap("1").expect("restored");
    let store = Store::open(&workspace.path(), 0).expect("the restored file");
    assert_eq!(sizes(&store), [0; 6]);
    let app = App::new(store, Config::default()).expect("a service");
    for session in sessions {
        assert!(app.verify_session(&session.text).is_err());
    }
    app.close().await;
}

#[tokio::test]
async fn restore_by_a_running_server_ends_all_sessions() {
    let (workspace, [session, _]) = signed_in().await;
    let backup = workspace.path().with_file_name("backup.redb");
    let (registry, silent) = (record_registry(), Progress::silent());
    let store = workspace.app.store();
    store.backup(backup.clone(), record_registry(), silent.clone()).await.expect("a backup");
    let _prepared = PreparedRestore::new(&workspace.path(), &backup, &registry, &silent);
    workspace.run_operation(Operation::Restore).await;
    assert_ended(&session.client.get(ME).await);
    assert_eq!(workspace.owner.get(ME).await.status, 200);
    assert_eq!(sizes(store), [0; 6]);
}

#[tokio::test]
async fn sessions_survive_a_restart() {
    let (workspace, sessions) = signed_in().await;
    workspace.app.close().await;
    let app = App::new(workspace.open_store(), Config::default()).expect("a service");
    for session in sessions {
        assert!(app.verify_session(&session.text).is_ok());
    }
    app.close().await;
}

#[tokio::test]
async fn maintenance_deletes_sessions_that_ended_and_links_and_requests_that_expired() {
    let (workspace, clock) = Workspace::timed().await;
    let app = &workspace.app;
    let key = make_key(&workspace.owner, json!({ "label": "x", "scopes": ["*"] })).await;
    sign_in(&workspace, key["value"].as_str().expect("a value")).await;
    app.create_sign_in_link(workspace.made.user_id, false).await.expect("a link");
    add_request(&workspace, workspace.made.user_id).await;
    workspace.owner.delete(&at(&key, "")).await.assert_empty(204);
    let kept = sign_in(&workspace, &workspace.made.api_key).await;
    // The sign-in above deleted the session of the revoked key.
    assert_eq!(sizes(app.store()), [1, 1, 1, 1, 1, 1]);
    clock.advance(Duration::from_hours(1));
    let only_session = || (sizes(app.store()) == [1, 1, 0, 0, 0, 0]).then_some(());
    eventually("the link and the request are deleted", only_session).await;
    assert!(app.verify_session(&kept.text).is_ok());
    clock.advance(Duration::from_hours(11));
    eventually("the session is deleted", || (sizes(app.store()) == [0; 6]).then_some(())).await;
    let key = make_key(&workspace.owner, json!({ "label": "x", "scopes": ["*"] })).await;
    sign_in(&workspace, key["value"].as_str().expect("a value")).await;
    workspace.owner.delete(&at(&key, "")).await.assert_empty(204);
    workspace.assert_file_valid().await;
    assert_eq!(sizes(app.store()), [1, 1, 0, 0, 0, 0]);
    clock.advance(Duration::from_hours(1));
    eventually("the session is deleted", || (sizes(app.store()) == [0; 6]).then_some(())).await;
}

#[tokio::test]
async fn takeover_of_an_account_ends_its_sessions() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let session = sign_in(&workspace, ann.key.as_deref().expect("a key")).await;
    let id = serde_json::from_value(ann.get(ME).await.ok()["id"].clone()).expect("an id");
    workspace.app.create_sign_in_link(id, false).await.expect("a link");
    add_request(&workspace, id).await;
    sign_in(&workspace, &workspace.made.api_key).await;
    let organization = workspace.made.organization_id;
    let deleted = workspace.app.operate(move |tx, _| delete_account_data(tx, organization, id));
    assert!(!deleted.await.expect("deleted"));
    assert_ended(&session.client.get(ME).await);
    assert_eq!(sizes(workspace.app.store()), [1, 1, 0, 0, 0, 0]);
    workspace.assert_file_valid().await;
}
