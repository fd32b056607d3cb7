//! Public pages of insights: who may share one, what its token opens, and when.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use steward::testing::resources::members::Level;

use crate::support::idempotency::post_once;
use crate::support::sharing::{Board, is_unlisted, token};
use crate::support::{JSON, OWNER, TestClient, Workspace, with_clock};

const NO_EDIT: &str = "You don't have edit permissions for this insight.";
const LIST: &str = "/api/projects/@current/insights/";

/// An insight of the first project, with its paths.
pub struct SharedInsight {
    id: Value,
    one: String,
    sharing: String,
    refresh: String,
}

impl SharedInsight {
    pub async fn make(workspace: &Workspace, sent: Value) -> (Self, Value) {
        let list = format!("/api/projects/{}/insights/", workspace.made.project_id);
        let made = workspace.owner.post(&list, sent).await.ok();
        let one = format!("{list}{}/", made["id"]);
        let sharing = format!("{one}sharing/");
        (Self { id: made["id"].clone(), refresh: format!("{sharing}refresh/"), sharing, one }, made)
    }

    /// Enables or disables the public page, and returns the token in the response.
    pub async fn enable(&self, caller: &TestClient, enabled: bool) -> String {
        token(&caller.patch(&self.sharing, json!({ "enabled": enabled })).await.ok())
    }

    pub async fn token(&self, caller: &TestClient) -> String {
        token(&caller.get(&self.sharing).await.ok())
    }
}

/// Asserts that neither the page nor the JSON of a token opens.
async fn is_closed(workspace: &Workspace, token: &str) {
    let json = workspace.anonymous().get(&format!("/shared/{token}.json")).await;
    json.assert_not_found("Not found.");
    assert_eq!(workspace.anonymous().get(&format!("/shared/{token}")).await.status, 404);
}

async fn is_open(workspace: &Workspace, token: &str) {
    for path in [format!("/shared/{token}.json"), format!("/shared/{token}")] {
        assert_eq!(workspace.anonymous().get(&path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn public_json_shows_the_insight_without_personal_data() {
    let (config, _clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let query =
        json!({"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "x": 1.0, "y": 1}});
    let sent = json!({
        "name": "Users", "derived_name": "Pageviews", "description": "Daily", "tags": ["b", "A"],
        "query": query, "favorited": true,
    });
    let (shared, made) = SharedInsight::make(&workspace, sent).await;
    let board = Board::make(&workspace, json!({"name": "Secret plan"})).await;
    workspace.owner.patch(&shared.one, json!({"dashboards": [board.id]})).await.ok();
    let token = shared.enable(&workspace.owner, true).await;
    let answer = workspace.anonymous().get(&format!("/shared/{token}.json")).await;
    let moment = "2023-11-14T22:13:20Z";
    let expected = json!({ "insight": {
        "id": shared.id, "short_id": made["short_id"], "name": "Users",
        "derived_name": "Pageviews", "description": "Daily", "filters": {}, "query": query,
        "tags": ["a", "b"], "created_at": moment, "last_modified_at": moment,
    }});
    answer.assert_is(200, expected);
    is_unlisted(&answer);
    let text = String::from_utf8(answer.bytes).expect("text");
    assert!(text.contains(r#""x":1.0,"y":1"#), "{text}");
    let page = workspace.anonymous().get(&format!("/shared/{token}")).await;
    is_unlisted(&page);
    assert_eq!(
        (page.status, &page.headers["content-type"]),
        (200, &"text/html; charset=utf-8".parse().expect("a value"))
    );
    let page = String::from_utf8(page.bytes).expect("text");
    for shown in [
        "<title>Users</title>",
        "<h1 dir=\"auto\">Users</h1>",
        "Daily",
        ">a<",
        "TrendsQuery",
        "2023-11-14",
    ] {
        assert!(page.contains(shown), "{shown} not in {page}");
    }
    let me = workspace.owner.get("/api/users/@me/").await.ok();
    let me = me["uuid"].as_str().expect("a UUID");
    for hidden in [OWNER, "Olga", me, "created_by", "Secret plan", "dashboards", "favorited"] {
        assert!(!text.contains(hidden) && !page.contains(hidden), "{hidden}");
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn page_of_an_insight_escapes_its_fields_and_names_it_by_its_derived_name() {
    let workspace = Workspace::new().await;
    let sent = json!({
        "name": "", "derived_name": "<b>&\"x\"", "description": "<script>alert(1)</script>",
        "tags": ["<i>"], "query": {"kind": "HogQLQuery", "query": "</code><script>"},
    });
    let (shared, _) = SharedInsight::make(&workspace, sent).await;
    let token = shared.enable(&workspace.owner, true).await;
    let page = workspace.anonymous().get(&format!("/shared/{token}")).await;
    let page = String::from_utf8(page.bytes).expect("text");
    for raw in ["<script>", "<b>", "<i>"] {
        assert!(!page.contains(raw), "{raw} in {page}");
    }
    assert!(page.contains("<h1 dir=\"auto\">&#60;b&#62;&#38;&#34;x&#34;</h1>"), "{page}");
    let (unnamed, _) = SharedInsight::make(&workspace, json!({})).await;
    let token = unnamed.enable(&workspace.owner, true).await;
    let page = workspace.anonymous().get(&format!("/shared/{token}")).await;
    assert!(String::from_utf8(page.bytes).expect("text").contains(">Untitled insight</h1>"));
}

#[tokio::test]
async fn insight_is_shared_refreshed_and_no_longer_shared() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config).await;
    let (shared, made) = SharedInsight::make(&workspace, json!({"name": "Users"})).await;
    let before = workspace.owner.get(&shared.sharing).await;
    let first = token(&before.body);
    let expected = json!({"created_at": null, "enabled": false, "access_token": first});
    before.assert_is(200, expected);
    assert!(before.headers.contains_key("etag"));
    is_closed(&workspace, &first).await;
    let moment = "2023-11-14T22:13:20Z";
    let body = |enabled, token: &str| json!({"created_at": moment, "enabled": enabled, "access_token": token});
    let enabled = workspace.owner.patch(&shared.sharing, json!({"enabled": true})).await;
    enabled.assert_is(200, body(true, &first));
    is_open(&workspace, &first).await;
    let fresh = workspace.owner.post(&shared.refresh, json!({})).await;
    let second = token(&fresh.body);
    fresh.assert_is(200, body(true, &second));
    is_open(&workspace, &first).await;
    is_open(&workspace, &second).await;
    clock.advance(Duration::from_mins(5));
    is_closed(&workspace, &first).await;
    let off = workspace.owner.patch(&shared.sharing, json!({"enabled": false})).await;
    let third = token(&off.body);
    off.assert_is(200, body(false, &third));
    assert!(third != second);
    is_closed(&workspace, &second).await;
    // The short id names the same insight.
    let short = format!("{LIST}{}/sharing/", made["short_id"].as_str().expect("a short id"));
    workspace.owner.get(&short).await.assert_is(200, body(false, &third));
    workspace
        .owner
        .patch(&short, json!({"enabled": true}))
        .await
        .assert_is(200, body(true, &third));
    is_open(&workspace, &third).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn sharing_a_dashboard_does_not_share_its_insights_or_the_other_way_round() {
    let workspace = Workspace::new().await;
    let (shared, _) = SharedInsight::make(&workspace, json!({"name": "Users"})).await;
    let board = Board::make(&workspace, json!({})).await;
    assert_eq!(json!(board.id), shared.id, "the same number");
    workspace.owner.patch(&shared.one, json!({"dashboards": [board.id]})).await.ok();
    let of_board = board.enable(&workspace.owner, true).await;
    let of_insight = shared.token(&workspace.owner).await;
    assert_ne!(of_board, of_insight);
    is_closed(&workspace, &of_insight).await;
    assert_eq!(workspace.owner.get(&shared.sharing).await.ok()["enabled"], false);
    board.enable(&workspace.owner, false).await;
    let of_insight = shared.enable(&workspace.owner, true).await;
    is_open(&workspace, &of_insight).await;
    assert_eq!(workspace.owner.get(&board.one).await.ok()["is_shared"], false);
    assert_eq!(workspace.owner.get(&board.sharing).await.ok()["enabled"], false);
}

#[tokio::test]
async fn changed_insight_is_public_at_once_and_a_deleted_one_is_not() {
    let workspace = Workspace::new().await;
    let (shared, _) = SharedInsight::make(&workspace, json!({"name": "Before"})).await;
    let token = shared.enable(&workspace.owner, true).await;
    let path = format!("/shared/{token}.json");
    let shown = workspace.anonymous().get(&path).await.ok();
    assert_eq!(shown["insight"]["name"], "Before");
    workspace.owner.patch(&shared.one, json!({"name": "After"})).await.ok();
    let shown = workspace.anonymous().get(&path).await.ok();
    assert_eq!(shown["insight"]["name"], "After");
    let page = workspace.anonymous().get(&format!("/shared/{token}")).await;
    assert!(String::from_utf8(page.bytes).expect("text").contains("After"));
    workspace.owner.patch(&shared.one, json!({"deleted": true})).await.ok();
    is_closed(&workspace, &token).await;
    let missing = "Insight not found.";
    workspace.owner.get(&shared.sharing).await.assert_not_found(missing);
    workspace
        .owner
        .patch(&shared.sharing, json!({"enabled": false}))
        .await
        .assert_not_found(missing);
    workspace.owner.post(&shared.refresh, json!({})).await.assert_not_found(missing);
    workspace.owner.patch(&shared.one, json!({"deleted": false})).await.ok();
    is_open(&workspace, &token).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn sharing_of_a_missing_insight_returns_404() {
    let workspace = Workspace::new().await;
    let (shared, made) = SharedInsight::make(&workspace, json!({})).await;
    let second = workspace.owner.post(&workspace.organization("projects/"), json!({})).await.ok();
    let short_id = made["short_id"].as_str().expect("a short id");
    for path in [
        format!("/api/projects/{}/insights/999999/sharing/", workspace.made.project_id),
        format!("/api/projects/{}/insights/unknown/sharing/", workspace.made.project_id),
        format!("/api/projects/{}/insights/{}/sharing/", second["id"], shared.id),
        format!("/api/projects/{}/insights/{short_id}/sharing/", second["id"]),
    ] {
        let owner = &workspace.owner;
        owner.get(&path).await.assert_not_found("Insight not found.");
        owner.patch(&path, json!({"enabled": true})).await.assert_not_found("Insight not found.");
        let refresh = format!("{path}refresh/");
        owner.post(&refresh, json!({})).await.assert_not_found("Insight not found.");
    }
}

#[tokio::test]
async fn access_rules_alone_decide_who_shares_an_insight() {
    let workspace = Workspace::new().await;
    let ann = workspace.member("ann", Level::Member).await;
    let (shared, _) = SharedInsight::make(&workspace, json!({"name": "Users"})).await;
    // An editor shares an insight even if only a restricted dashboard shows it.
    let board = Board::make(&workspace, json!({"restriction_level": 37})).await;
    workspace.owner.patch(&shared.one, json!({"dashboards": [board.id]})).await.ok();
    assert_eq!(ann.patch(&shared.one, json!({"name": "x"})).await.status, 403);
    let token = shared.enable(&ann, true).await;
    is_open(&workspace, &token).await;
    let rules = "/api/projects/@current/resource_access_controls/";
    let rule = |level: &str| json!({"resource": "insight", "access_level": level});
    workspace.owner.put(rules, rule("viewer")).await.ok();
    assert_eq!(ann.get(&shared.sharing).await.ok()["access_token"], token);
    for (path, method) in [(&shared.sharing, Method::PATCH), (&shared.refresh, Method::POST)] {
        ann.send(method, path, Some(json!({"enabled": false}))).await.assert_denied(NO_EDIT);
    }
    workspace.owner.patch(&shared.sharing, json!({"enabled": false})).await.ok();
    assert_eq!(ann.get(&shared.sharing).await.ok()["access_token"], Value::Null);
    workspace.owner.put(rules, rule("none")).await.ok();
    let denied = "You do not have viewer access to this resource.";
    ann.get(&shared.sharing).await.assert_denied(denied);
    ann.patch(&shared.sharing, json!({"enabled": true})).await.assert_denied(NO_EDIT);
    // The public page depends on no rule.
    let token = shared.enable(&workspace.owner, true).await;
    is_open(&workspace, &token).await;
}

#[tokio::test]
async fn invalid_sharing_of_an_insight_is_rejected() {
    let workspace = Workspace::new().await;
    let (shared, _) = SharedInsight::make(&workspace, json!({})).await;
    let owner = &workspace.owner;
    let null = owner.patch(&shared.sharing, json!({"enabled": null})).await;
    null.assert_invalid("enabled", "null", "This field may not be null.");
    for value in [json!("maybe"), json!([]), json!(7)] {
        let answer = owner.patch(&shared.sharing, json!({ "enabled": value })).await;
        answer.assert_invalid("enabled", "invalid_input", "Must be a valid boolean.");
    }
    let tag = owner.get(&shared.sharing).await.headers["etag"].clone();
    owner.patch(&shared.sharing, json!({"enabled": true})).await.ok();
    let headers = [("if-match", tag.to_str().expect("a tag")), JSON[0]];
    let stale =
        owner.fetch(Method::PATCH, &shared.sharing, &headers, r#"{"enabled": false}"#).await;
    assert_eq!(stale.status, 412);
    assert_eq!(owner.get(&shared.sharing).await.ok()["enabled"], true);
    for (method, path, allowed) in [
        (Method::DELETE, &shared.sharing, "GET, PATCH, HEAD, OPTIONS"),
        (Method::GET, &shared.refresh, "POST, OPTIONS"),
    ] {
        let refused = owner.send(method, path, None).await;
        assert_eq!(
            (refused.status, &refused.headers["allow"]),
            (405, &allowed.parse().expect("a value"))
        );
    }
    // A repeated refresh replaces the token once, and does not show it again.
    let path = shared.refresh.replace("projects", "environments");
    let first = post_once(owner, &shared.refresh, "one", &json!({})).await;
    let again = post_once(owner, &path, "one", &json!({})).await;
    assert_eq!((again.status, &again.body["access_token"]), (200, &Value::Null));
    assert_eq!(owner.get(&shared.sharing).await.ok(), first.body);
}

#[tokio::test]
async fn sharing_of_an_insight_is_logged_as_a_change_of_the_insight() {
    let workspace = Workspace::new().await;
    let (shared, made) = SharedInsight::make(&workspace, json!({"name": "Users"})).await;
    let version = workspace.owner.get(&shared.one).await.headers["etag"].clone();
    let mut tokens = vec![shared.enable(&workspace.owner, true).await];
    tokens.push(token(&workspace.owner.post(&shared.refresh, json!({})).await.ok()));
    tokens.push(shared.enable(&workspace.owner, false).await);
    let log = workspace.owner.get("/api/projects/@current/activity_log/?scope=Insight").await.ok();
    let mut seen = Vec::new();
    for entry in log["results"].as_array().expect("entries") {
        assert_eq!((&entry["scope"], &entry["user"]["email"]), (&json!("Insight"), &json!(OWNER)));
        let detail = &entry["detail"];
        assert_eq!(detail["short_id"], made["short_id"]);
        let changes: Vec<Value> = detail["changes"]
            .as_array()
            .expect("changes")
            .iter()
            .map(|change| {
                json!([change["type"], change["field"], change["before"], change["after"]])
            })
            .collect();
        seen.push(json!([entry["item_id"], entry["activity"], detail["name"], changes]));
    }
    let id = shared.id.to_string();
    let replaced = json!(["Insight", "access_token", null, null]);
    let shown = |before: bool| json!(["Insight", "is_shared", before, !before]);
    let expected = json!([
        [id, "sharing disabled", "Users", [replaced, shown(true)]],
        [id, "access token refreshed", "Users", [replaced]],
        [id, "sharing enabled", "Users", [shown(false)]],
        [id, "created", "Users", []],
    ]);
    assert_eq!(json!(seen), expected);
    let text = log.to_string();
    assert!(tokens.iter().all(|token| !text.contains(token)));
    // An insight does not show whether it is shared.
    assert_eq!(workspace.owner.get(&shared.one).await.headers["etag"], version);
}
