//! What the token of a shared dashboard opens without a key, as JSON.

use std::sync::mpsc;

use steward::testing::fair_queue::Consumer;
use steward::testing::resources::dashboards::tiles;

use crate::support::prelude::*;
use crate::support::sharing::{add_insight, add_text, is_unlisted, swell};

#[tokio::test]
async fn public_json_shows_the_dashboard_without_personal_data() {
    let (workspace, _clock) = Workspace::timed().await;
    let sent = json!({
        "name": "Numbers", "description": "All of them", "tags": ["b", "A"],
        "filters": { "date_from": "-7d" }, "pinned": true, "restriction_level": 37,
    });
    let board = Board::make(&workspace, sent).await;
    workspace.owner.patch(&board.one, json!({ "variables": { "one": { "value": 1 } } })).await.ok();
    let text = add_text(&workspace, &board, "# Hello", 1).await;
    let insight = json!({
        "name": "Users", "description": "Daily", "tags": ["kpi"], "color": "green", "y": 0,
        "query": { "kind": "InsightVizNode", "source": { "kind": "TrendsQuery" } },
    });
    let insight = add_insight(&workspace, &board, insight).await;
    let token = board.enable(&workspace.owner, true).await;
    let answer = workspace.anonymous().get(&format!("/shared/{token}.json")).await;
    let moment = "2023-11-14T22:13:20Z";
    let shown = &answer.body["dashboard"]["tiles"];
    let (id, short_id) = (&shown[0]["insight"]["id"], &shown[0]["insight"]["short_id"]);
    assert_eq!(short_id.as_str().map(str::len), Some(8));
    let expected = json!({ "dashboard": {
        "id": board.id, "name": "Numbers", "description": "All of them", "tags": ["a", "b"],
        "filters": { "date_from": "-7d" }, "variables": { "one": { "value": 1 } },
        "tiles": [
            {
                "id": insight, "layouts": { "sm": { "y": 0 } }, "color": "green", "order": 0,
                "insight": {
                    "id": id, "short_id": short_id, "name": "Users", "derived_name": null,
                    "description": "Daily", "filters": {},
                    "query": { "kind": "InsightVizNode", "source": { "kind": "TrendsQuery" } },
                    "tags": ["kpi"], "created_at": moment, "last_modified_at": moment,
                },
                "text": null,
            },
            {
                "id": text, "layouts": { "sm": { "x": 0, "y": 1, "w": 6, "h": 5 } },
                "color": "blue", "order": 1, "insight": null,
                "text": {
                    "id": shown[1]["text"]["id"], "body": "# Hello", "last_modified_at": moment,
                },
            },
        ],
        "created_at": moment,
    }});
    answer.assert_is(200, expected);
    let names: Vec<_> = answer.body["dashboard"].as_object().expect("an object").keys().collect();
    let order =
        ["id", "name", "description", "tags", "filters", "variables", "tiles", "created_at"];
    assert_eq!(names, order);
    assert_eq!(answer.headers["content-type"], "application/json");
    is_unlisted(&answer);
    let text = String::from_utf8(answer.bytes).expect("text");
    let me = workspace.owner.get(ME).await.ok();
    for hidden in [OWNER, "Olga", "created_by", "user", me["uuid"].as_str().expect("a UUID")] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_tiles_and_tiles_of_deleted_insights_are_not_public() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    let removed = add_text(&workspace, &board, "removed", 0).await;
    let hidden = add_insight(&workspace, &board, json!({ "name": "hidden", "y": 1 })).await;
    let kept = add_text(&workspace, &board, "kept", 2).await;
    let token = board.enable(&workspace.owner, true).await;
    let gone = json!({ "tiles": [{ "id": removed, "deleted": true }] });
    let tiles = workspace.owner.patch(&board.one, gone).await.ok()["tiles"].clone();
    assert_eq!(tiles[0]["id"], json!(hidden));
    let insight = workspace.project(&format!("insights/{}/", tiles[0]["insight"]["id"]));
    workspace.owner.patch(&insight, json!({ "deleted": true })).await.ok();
    let shown = workspace.anonymous().get(&format!("/shared/{token}.json")).await.ok();
    let tiles = shown["dashboard"]["tiles"].as_array().expect("tiles");
    assert_eq!((tiles.len(), &tiles[0]["id"], &tiles[0]["order"]), (1, &json!(kept), &json!(0)));
    let page = workspace.anonymous().get(&format!("/shared/{token}")).await;
    let page = String::from_utf8(page.bytes).expect("text");
    assert!(page.contains("kept") && !page.contains("hidden") && !page.contains("removed"));
}

#[tokio::test]
async fn dashboard_changes_are_public_at_once_without_a_key_or_with_one() {
    let (workspace, owner) = Workspace::owned().await;
    let board = Board::make(&workspace, json!({ "name": "Before" })).await;
    let path = format!("/shared/{}.json", board.enable(&owner, true).await);
    let text = json!({ "text": { "body": "one" }, "color": "blue" });
    let sent = json!({ "name": "After", "tags": ["new"], "tiles": [text] });
    let own = owner.patch(&board.one, sent).await.ok();
    let shown = workspace.anonymous().get(&path).await.ok()["dashboard"].take();
    assert_eq!((&shown["name"], &shown["tags"]), (&json!("After"), &json!(["new"])));
    let (own, tile) = (&own["tiles"][0], &shown["tiles"][0]);
    for name in ["id", "layouts", "color", "order", "insight"] {
        assert_eq!(tile[name], own[name], "{name}");
    }
    let names: Vec<_> = tile["text"].as_object().expect("a text").keys().collect();
    assert_eq!(names, ["id", "body", "last_modified_at"]);
    assert_eq!(tile["text"]["body"], "one");
    assert!(own["text"]["created_by"].is_object(), "only members see the creator");
    owner.patch(&board.one, json!({ "tiles": [{ "id": own["id"], "deleted": true }] })).await.ok();
    assert_eq!(workspace.anonymous().get(&path).await.ok()["dashboard"]["tiles"], json!([]));
    workspace.set_private(true).await;
    let (stranger, _) = workspace.outsider("eve").await;
    let expected = workspace.anonymous().get(&path).await.ok();
    for caller in [&stranger, &owner, &workspace.with_key("phx_wrong")] {
        caller.get(&path).await.assert_is(200, expected.clone());
    }
    workspace.assert_file_valid().await;
}

/// Asserts that a 404 response does not reveal its reason.
async fn opens_nothing(workspace: &Workspace, token: &str) {
    let anyone = workspace.anonymous();
    let data = anyone.get(&format!("/shared/{token}.json")).await;
    data.assert_not_found("Not found.");
    is_unlisted(&data);
    let page = anyone.get(&format!("/shared/{token}")).await;
    let unknown = anyone.get("/shared/unknown").await;
    assert_eq!(page.status, 404, "{token}");
    assert!(page.bytes == unknown.bytes, "{token}: another page");
    let (mut headers, mut expected) = (page.headers.clone(), unknown.headers);
    headers.remove("x-request-id");
    expected.remove("x-request-id");
    assert_eq!(headers, expected);
    is_unlisted(&page);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
}

#[tokio::test]
async fn invalid_tokens_all_return_the_same_response() {
    let (workspace, clock) = Workspace::timed().await;
    let board = Board::make(&workspace, json!({})).await;
    opens_nothing(&workspace, &board.token(&workspace.owner).await).await;
    let expired = board.enable(&workspace.owner, true).await;
    let disabled = board.refresh(&workspace.owner).await;
    clock.advance(Duration::from_mins(5));
    opens_nothing(&workspace, &expired).await;
    board.enable(&workspace.owner, false).await;
    opens_nothing(&workspace, &disabled).await;
    let token = board.enable(&workspace.owner, true).await;
    for wrong in [
        &token[1..],
        &token[..29],
        &format!("{token}A"),
        &format!("{token}%20"),
        &format!("{token}%00"),
        &token.to_uppercase(),
        "%FF%FE",
        "..",
        "%2e%2e",
        "%2Ejson%2E",
        "%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        &"x".repeat(5_000),
    ] {
        opens_nothing(&workspace, wrong).await;
    }
    for place in 0..token.len() {
        let mut wrong: Vec<char> = token.chars().collect();
        wrong[place] = if wrong[place] == 'x' { 'y' } else { 'x' };
        opens_nothing(&workspace, &wrong.into_iter().collect::<String>()).await;
    }
    workspace.owner.patch(&board.one, json!({ "deleted": true })).await.ok();
    opens_nothing(&workspace, &token).await;
}

#[tokio::test]
async fn expanding_markdown_is_shown_as_text_and_a_long_page_lists_names() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    swell(&workspace, &board).await;
    let token = board.enable(&workspace.owner, true).await;
    let page = workspace.anonymous().get(&format!("/shared/{token}")).await;
    assert_eq!(page.status, 200);
    assert!(page.bytes.len() < 5 << 19, "{} bytes", page.bytes.len());
    let text = String::from_utf8(page.bytes).expect("text");
    assert!(text.contains("<p>The definition is too long to show here.</p>"));
    assert!(text.contains("<div class=\"text\"><pre dir=\"auto\">|a|a|a|"));
    assert!(!text.contains("<table>"));
    assert_eq!(text.matches("<article").count(), tiles::MAX_TILES);
    let left_out = format!("See <a href=\"/shared/{token}.json\">the JSON</a>.</p>");
    let named = text.matches(&left_out).count();
    let whole = text.matches("<pre dir=\"auto\">").count() + 1;
    assert!(named > 100 && whole > 100, "{named} named, {whole} whole");
    assert_eq!(named + whole, tiles::MAX_TILES);
    assert!(text.contains("<h2 dir=\"auto\">Text</h2>"));
    let odd = format!("<h2 dir=\"auto\">{}</h2>", "&#60;i&#62;&#34;".repeat(90));
    assert!(text.find(&odd) > text.rfind("<pre"), "the last card shows an escaped name only");
    workspace.assert_file_valid().await;
}

/// Requests for public pages do not delay requests with a key, and the number that may wait for one
/// organization is limited.
#[tokio::test(flavor = "current_thread")]
async fn keyed_requests_do_not_wait_for_public_pages() {
    let workspace = Workspace::new().await;
    let mut paths = Vec::new();
    for _ in 0..70 {
        let board = Board::make(&workspace, json!({})).await;
        paths.push(format!("/shared/{}", board.enable(&workspace.owner, true).await));
    }
    let (end, ended) = mpsc::channel::<()>();
    let owner = Consumer::Organization(workspace.made.organization_id.0);
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let pool = workspace.app.public_pages().pool();
    let held = pool.run(owner, tx, move |_| Ok(ended.recv().is_ok()));
    let anyone = workspace.anonymous();
    let asked = join_all(paths.iter().map(|path| anyone.get(path)));
    let listed = async {
        let list = workspace.owner.get(&workspace.dashboards("?limit=1000")).await;
        let missing = anyone.get("/shared/x").await.status;
        eventually("64 requests wait", || (pool.waiting() == 64).then_some(())).await;
        end.send(()).expect("the pool is blocked");
        (list, missing)
    };
    let (held, pages, (list, missing)) = tokio::join!(held, asked, listed);
    assert!(held.expect("the blocked task ends"));
    assert_eq!((list.status, missing), (200, 404));
    let count = |status| pages.iter().filter(|page| page.status == status).count();
    assert_eq!((count(200), count(503)), (64, 6));
    let refused = pages.iter().find(|page| page.status == 503).expect("a page with status 503");
    assert_eq!(
        (&refused.headers["retry-after"], &refused.body["code"]),
        (&"2".parse().expect("a header"), &json!("unavailable"))
    );
    assert_eq!(anyone.get(&paths[69]).await.status, 200, "free again");
}
