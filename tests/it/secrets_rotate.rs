//! `secrets rotate`: all signed links and tokens become invalid, API keys stay valid, and the rotation is atomic.

use steward::testing::resources::cascade_delete::delete_project;

use crate::sharing::opened;
use crate::support::prelude::*;

async fn rotate(workspace: &Workspace) -> Value {
    workspace.run_operation(Operation::SecretsRotate).await
}

fn told(pages: u64) -> Value {
    let renewed = ["invite links", "public pages", "live events tokens", "console sessions"];
    json!({ "renewed": renewed, "public_pages": pages })
}

#[tokio::test]
async fn secret_rotation_invalidates_invite_links_and_new_ones_work() {
    let workspace = Workspace::new().await;
    let old = offer(&workspace, "ann@x.example", 1).await;
    assert_eq!(rotate(&workspace).await, told(0));
    let anyone = workspace.anonymous();
    let fields = json!({ "first_name": "Ann" });
    let unknown = old.accept(&anyone, fields.clone()).await;
    assert_eq!((unknown.status, &unknown.body["code"]), (400, &json!("invalid_input")));
    let list = workspace.owner.get(&workspace.organization("invites/")).await.ok();
    let id = serde_json::from_value(list["results"][0]["id"].clone()).expect("an id");
    let new = Offer::of(&workspace.run_operation(Operation::InviteLink { id }).await);
    assert_ne!(new.token, old.token);
    assert_eq!(new.accept(&anyone, fields).await.status, 201);
    // A new invite is signed with the new secret.
    let next = offer(&workspace, "bob@x.example", 1).await;
    assert_eq!(next.accept(&anyone, json!({ "first_name": "Bob" })).await.status, 201);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn secret_rotation_replaces_the_tokens_of_public_pages() {
    let (workspace, owner) = Workspace::owned().await;
    let [shared, refreshed, closed, untouched] = [
        Board::make(&workspace, json!({ "name": "shared" })).await,
        Board::make(&workspace, json!({ "name": "refreshed" })).await,
        Board::make(&workspace, json!({ "name": "closed" })).await,
        Board::make(&workspace, json!({ "name": "untouched" })).await,
    ];
    let (insight, _) = Board::of_insight(&workspace, json!({ "name": "insight" })).await;
    let of_insight = insight.enable(&owner, true).await;
    let mut old = vec![shared.enable(&owner, true).await, refreshed.enable(&owner, true).await];
    old.push(refreshed.refresh(&owner).await);
    old.push(closed.enable(&owner, true).await);
    old.push(closed.enable(&owner, false).await);
    old.push(untouched.token(&owner).await);
    old.push(of_insight);
    let before = owner.get(&shared.sharing).await.version();
    let known = entries(&workspace);
    assert_eq!(rotate(&workspace).await, told(3));

    for token in &old {
        assert_eq!(opened(&workspace, token).await, (404, 404), "{token}");
    }
    for board in [&shared, &refreshed] {
        let token = board.token(&owner).await;
        assert!(!old.contains(&token));
        assert_eq!(opened(&workspace, &token).await, (200, 200));
    }
    let token = insight.token(&owner).await;
    assert!(!old.contains(&token));
    assert_eq!(opened(&workspace, &token).await, (200, 200));
    for board in [&closed, &untouched] {
        let token = board.token(&owner).await;
        assert!(!old.contains(&token));
        assert_eq!(opened(&workspace, &token).await, (404, 404));
        assert_eq!(board.enable(&owner, true).await, token, "the same token as before");
        assert_eq!(opened(&workspace, &token).await, (200, 200));
    }
    // The version changes too, so that clients notice the new token.
    assert_ne!(owner.get(&shared.sharing).await.version(), before);
    let mut new = entries(&workspace);
    new.retain(|entry| !known.contains(entry));
    let new: Vec<_> = new.iter().filter(|entry| entry.meta.user.is_none()).collect();
    let mut scopes: Vec<_> = new.iter().map(|entry| entry.fields.scope.as_str()).collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["Dashboard", "Dashboard", "Insight"]);
    for entry in new {
        assert_eq!(entry.fields.activity, "access token refreshed");
        assert_eq!(entry.meta.organization, workspace.made.organization_id);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn secret_rotation_replaces_live_events_tokens_and_keeps_api_keys() {
    let (workspace, owner) = Workspace::owned().await;
    let project = workspace.project("");
    let live = async || owner.get(&project).await.ok()["live_events_token"].clone();
    let made = make_key(&owner, json!({ "label": "x", "scopes": ["user:read"] })).await;
    let rolled = owner.post(&at(&made, "roll/"), json!({ "grace_seconds": 3600 })).await.ok();
    let values = [&made, &rolled].map(|key| key["value"].as_str().expect("a value").to_owned());
    let mut seen = vec![live().await];
    for _ in 0..3 {
        rotate(&workspace).await;
        let now = live().await;
        assert!(!seen.contains(&now));
        seen.push(now);
        for value in &values {
            assert_eq!(workspace.with_key(value).get(ME).await.status, 200);
        }
    }
    // The same after a restart: with an empty key cache, and with the secret from the file.
    workspace.app.close().await;
    let app = App::new(workspace.open_store(), Config::default()).expect("served");
    for value in &values {
        assert_eq!(TestClient::of(router(app.clone()), value).get(ME).await.status, 200);
    }
    let again = TestClient::of(router(app.clone()), &workspace.made.api_key);
    assert_eq!(again.get(&project).await.ok()["live_events_token"], seen[3]);
    app.close().await;
}

/// If a dashboard is shared during a rotation, the response contains a valid token, and no other token is valid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secret_rotation_during_sharing_leaves_every_page_with_its_current_token() {
    let workspace = Workspace::new().await;
    let mut boards = Vec::new();
    for _ in 0..4 {
        boards.push(Board::make(&workspace, json!({})).await);
    }
    for round in 0..6 {
        let sharing = boards.iter().map(|board| {
            let (owner, path) = (workspace.owner.clone(), board.sharing.clone());
            async move {
                let mut statuses = Vec::new();
                for step in 0..6 {
                    let sent = json!({ "enabled": (round + step) % 2 == 0 });
                    statuses.push(owner.send(Method::PATCH, &path, Some(sent)).await.status);
                }
                statuses
            }
        });
        let rotations = async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
                rotate(&workspace).await;
            }
        };
        let (statuses, ()) = tokio::join!(futures_util::future::join_all(sharing), rotations);
        let sound = |status: &u16| matches!(status, 200 | 503);
        assert!(statuses.concat().iter().all(sound), "{statuses:?}");
        for board in &boards {
            let shown = workspace.owner.get(&board.sharing).await.ok();
            let token = shown["access_token"].as_str().expect("a token");
            let expected = if shown["enabled"] == true { (200, 200) } else { (404, 404) };
            assert_eq!(opened(&workspace, token).await, expected, "{shown}");
        }
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn pages_of_a_deleted_project_do_not_block_secret_rotation() {
    let workspace = Workspace::new().await;
    let old = Board::make(&workspace, json!({})).await.enable(&workspace.owner, true).await;
    let organization = workspace.made.organization_id;
    let project = workspace.made.project_id;
    // The state before the background task deletes the project's records.
    workspace.write(move |tx| delete_project(tx, organization, project)).await;
    assert_eq!(rotate(&workspace).await, told(0));
    assert_eq!(opened(&workspace, &old).await, (404, 404));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn rotated_secret_survives_export_backup_and_restore() {
    let workspace = Workspace::new().await;
    rotate(&workspace).await;
    let board = Board::make(&workspace, json!({ "name": "A" })).await;
    let token = board.enable(&workspace.owner, true).await;
    let store = workspace.app.store();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let bytes = crate::exports::export(store, true).await;
    crate::exports::import(&bytes, &at("imported")).expect("imported");
    store.backup(at("backup"), record_registry(), Progress::silent()).await.expect("a backup");
    let prepared = PreparedRestore::new(
        &at("restored"),
        &at("backup"),
        &record_registry(),
        &Progress::silent(),
    )
    .expect("sound");
    prepared.swap("now").expect("restored");
    for name in ["imported", "restored"] {
        let store = Store::open(&at(name), 0).expect("the file");
        let app = App::new(store, Config::default()).expect("served");
        let caller = TestClient::of(router(app.clone()), &workspace.made.api_key);
        assert_eq!(caller.get(&format!("/shared/{token}.json")).await.status, 200, "{name}");
        assert_eq!(board.token(&caller).await, token);
        app.close().await;
    }
}
