//! Tests that an expensive public page does not delay the pages of other tenants.

use std::sync::mpsc;

use futures_util::future::join;
use futures_util::poll;
use steward::testing::error::Result;
use steward::testing::resources::shared::Object;
use steward::testing::state::PageKey;

use super::metered;
use crate::prelude::*;
use crate::support::sharing::swell;

/// Returns the number of rendered pages.
fn rendered(workspace: &Workspace) -> u32 {
    let count = Numbers::at_once(&workspace.app).value("steward_public_pages_rendered_total", &[]);
    (0..10_000).find(|number| (f64::from(*number) - count).abs() < 0.1).expect("a count")
}

/// Returns the token of a page in another organization.
async fn page_of(caller: &TestClient, made: &Value) -> String {
    let boards = format!("/api/projects/{}/dashboards/", made["project_id"]);
    let board = caller.post(&boards, json!({ "name": "Theirs" })).await.ok();
    let sharing = format!("{boards}{}/sharing/", board["id"]);
    let shown = caller.patch(&sharing, json!({ "enabled": true })).await.ok();
    shown["access_token"].as_str().expect("a token").to_owned()
}

fn text(answer: &TestResponse) -> &str {
    std::str::from_utf8(&answer.bytes).expect("text")
}

/// Requests an expensive page hundreds of times. It must be rendered once, and other organizations must be served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expensive_page_is_rendered_once_without_blocking_others() {
    let workspace = metered().await;
    let (victim, made) = workspace.outsider("victim").await;
    let theirs = page_of(&victim, &made).await;
    let board = Board::make(&workspace, json!({})).await;
    swell(&workspace, &board).await;
    let token = board.enable(&workspace.owner, true).await;
    let anyone = workspace.anonymous();
    let path = format!("/shared/{token}");
    let flood = join_all((0..300).map(|_| anyone.get(&path)));
    let victims = async {
        let mut statuses = Vec::new();
        for number in 0..50 {
            let end = if number % 2 == 0 { "" } else { ".json" };
            statuses.push(anyone.get(&format!("/shared/{theirs}{end}")).await.status);
        }
        statuses
    };
    let (flood, victims) = join(flood, victims).await;
    assert!(victims.iter().all(|status| *status == 200), "{victims:?}");
    assert!(flood.iter().all(|page| page.status == 200 && page.bytes == flood[0].bytes));
    assert_eq!(rendered(&workspace), 3, "one page, and the other one as HTML and as JSON");

    // The links in the page contain the token of the request, even while two tokens are valid.
    let new = board.refresh(&workspace.owner).await;
    for (own, other) in [(&token, &new), (&new, &token), (&token, &new)] {
        let page = anyone.get(&format!("/shared/{own}")).await;
        assert!(text(&page).contains(&format!("/shared/{own}.json")));
        assert!(!text(&page).contains(other.as_str()), "the page contains another token");
    }
}

/// Pages of one organization wait only for each other.
#[tokio::test]
async fn pages_of_one_organization_queue_only_behind_each_other() {
    let workspace = metered().await;
    let (victim, made) = workspace.outsider("victim").await;
    let theirs = page_of(&victim, &made).await;
    let mut paths = Vec::new();
    for _ in 0..70 {
        let board = Board::make(&workspace, json!({})).await;
        paths.push(format!("/shared/{}", board.enable(&workspace.owner, true).await));
    }
    let owner = Consumer::Organization(workspace.made.organization_id.0);
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let (end, ended) = mpsc::channel::<()>();
    let pool = workspace.app.public_pages().pool();
    let mut held = Box::pin(pool.run(owner, tx, move |_| Ok(ended.recv().is_err())));
    assert!(poll!(held.as_mut()).is_pending());
    let anyone = workspace.anonymous();
    let mut asked: Vec<_> = paths.iter().map(|path| Box::pin(anyone.get(path))).collect();
    for page in &mut asked {
        let _refused_or_waiting = poll!(page.as_mut());
    }
    assert_eq!(pool.waiting(), 64);
    for end in ["", ".json"] {
        assert_eq!(anyone.get(&format!("/shared/{theirs}{end}")).await.status, 200);
    }
    drop(end);
    held.await.expect("held to the end");
}

#[tokio::test]
async fn page_is_rendered_again_only_when_its_content_changes() {
    let workspace = metered().await;
    let (owner, anyone) = (&workspace.owner, workspace.anonymous());
    let board = Board::make(&workspace, json!({ "name": "Before" })).await;
    let other = Board::make(&workspace, json!({})).await;
    let token = board.enable(owner, true).await;
    let paths = ["", ".json"].map(|end| format!("/shared/{token}{end}"));
    let sent = json!({ "tiles": [{ "text": { "body": "shared text" } }] });
    let tile = owner.patch(&board.one, sent).await.ok()["tiles"][0].take();
    let copied = json!({ "use_dashboard": board.id });
    let copy = owner.post(&workspace.dashboards(""), copied).await.ok();
    let copy_path = workspace.dashboards(&format!("{}/", copy["id"]));
    let copy_text = copy["tiles"][0]["text"]["id"].clone();
    let (one, copy_one) = (board.one.as_str(), copy_path.as_str());
    let changes = [
        (one, json!({ "name": "name that is new" }), "name that is new"),
        (one, json!({ "description": "description that is new" }), "description that is new"),
        (one, json!({ "tags": ["tag-that-is-new"] }), "tag-that-is-new"),
        (one, json!({ "filters": { "filter": "filter-that-is-new" } }), "filter-that-is-new"),
        (one, json!({ "filters": { "filter": "filter-again" } }), "filter-again"),
        (one, json!({ "variables": { "v": "variable-that-is-new" } }), "variable-that-is-new"),
        (one, json!({ "tiles": [{ "id": tile["id"], "color": "purple" }] }), "purple"),
        (one, json!({ "tiles": [{ "id": tile["id"], "layouts": { "sm": { "x": 77 } } }] }), "77"),
        (
            copy_one,
            json!({ "tiles": [{ "text": { "id": copy_text, "body": "text-from-elsewhere" } }] }),
            "",
        ),
    ];
    let mut before = anyone.get(&paths[1]).await.bytes;
    for (path, sent, shown) in changes {
        owner.patch(path, sent.clone()).await.ok();
        let expected = owner.get(one).await.ok();
        let answer = anyone.get(&paths[1]).await;
        assert!(text(&answer).contains(shown), "{sent}");
        let body = &answer.body["dashboard"]["tiles"][0]["text"]["body"];
        assert_eq!(body, &expected["tiles"][0]["text"]["body"], "{sent}");
        assert!(shown.is_empty() || answer.bytes != before, "{sent}");
        before = answer.bytes;
        let page = anyone.get(&paths[0]).await;
        let count = rendered(&workspace);
        for _ in 0..3 {
            assert_eq!(anyone.get(&paths[0]).await.bytes, page.bytes);
            assert_eq!(anyone.get(&paths[1]).await.bytes, before);
        }
        assert_eq!(rendered(&workspace), count, "{sent}: kept");
    }
    let moved = json!({ "tile": { "id": tile["id"] }, "toDashboard": other.id });
    owner.patch(&format!("{one}move_tile/"), moved).await.ok();
    assert_eq!(anyone.get(&paths[1]).await.body["dashboard"]["tiles"], json!([]));

    // The token is checked on every request.
    board.enable(owner, false).await;
    assert_eq!(anyone.get(&paths[0]).await.status, 404);
    let token = board.enable(owner, true).await;
    assert_eq!(anyone.get(&format!("/shared/{token}")).await.status, 200);
    owner.patch(one, json!({ "deleted": true })).await.ok();
    assert_eq!(anyone.get(&format!("/shared/{token}")).await.status, 404);
    assert_eq!(anyone.get(&format!("/shared/{token}.json")).await.status, 404);
}

fn key(workspace: &Workspace, version: u64) -> PageKey {
    let dashboard = Object::Dashboard(steward::testing::ids::DashboardId(1));
    PageKey { generation: 0, object: (workspace.made.project_id, dashboard), version, html: None }
}

#[tokio::test]
async fn page_cache_has_a_size_limit() {
    let workspace = Workspace::new().await;
    let pages = workspace.app.public_pages();
    let owner = Consumer::Organization(workspace.made.organization_id.0);
    for version in 0..12 {
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        // The spare capacity of a page is not stored.
        let render = |_: &BoundedRead<'_>| {
            let mut page = Vec::with_capacity(16 << 20);
            page.resize(8 << 20, 0);
            Ok(page)
        };
        let page = pages.get(&key(&workspace, version), owner, tx, render).await.expect("a page");
        assert_eq!(page.len(), 8 << 20);
        assert!(pages.bytes() <= 32 << 20, "{} bytes are kept", pages.bytes());
    }
    assert!(pages.bytes() >= 16 << 20, "some pages stay in the cache");
}

fn endless(tx: &BoundedRead<'_>) -> Result<Vec<u8>> {
    loop {
        tx.spend(1)?;
    }
}

/// When the client for which a page is rendered disconnects, the rendering continues for another waiting client.
#[tokio::test]
async fn page_rendering_continues_for_the_next_reader() {
    let workspace = Workspace::new().await;
    let (pages, tx) =
        (workspace.app.public_pages(), workspace.app.store().snapshot().expect("a snapshot"));
    let owner = Consumer::Organization(workspace.made.organization_id.0);
    let key = key(&workspace, 1);
    let mut first = Box::pin(pages.get(&key, owner, tx.clone(), endless));
    assert!(poll!(first.as_mut()).is_pending());
    let mut next =
        Box::pin(pages.get(&key, owner, tx, |_: &BoundedRead<'_>| Ok(b"rendered".to_vec())));
    assert!(poll!(next.as_mut()).is_pending());
    drop(first);
    assert_eq!(next.await.expect("a page"), b"rendered".as_slice());
    eventually("no slot is in use", || (pages.pool().used() == 0).then_some(())).await;
}
