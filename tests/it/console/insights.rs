//! Insights: the list with its filters, the forms, delete and restore.

use crate::support::prelude::*;

use super::dashboards::names as deleted;

const LIST: &str = "/console/projects/1/insights/";
const API: &str = "/api/projects/1/insights/";

/// Returns the names in the list, in order.
fn names(html: &str) -> Vec<&str> {
    let rows = html.split("<tr>\n<td><a href=").skip(1);
    rows.map(|row| row.split("<bdi>").nth(1).unwrap().split("</bdi>").next().unwrap()).collect()
}

/// Creates an insight and returns its page.
async fn insight(workspace: &Workspace, sent: Value) -> String {
    format!("{LIST}{}/", workspace.owner.post(API, sent).await.ok()["id"])
}

#[tokio::test]
async fn insights_are_found_by_every_filter() {
    let (workspace, anna) = Workspace::with_member("anna", Level::Member).await;
    let board = workspace.owner.post(&workspace.dashboards(""), json!({ "name": "B" })).await.ok();
    let trends = json!({ "kind": "InsightVizNode", "source": { "kind": "TrendsQuery" } });
    for sent in [
        json!({ "name": "Visitors", "description": "Who came", "tags": ["weekly"], "query": trends }),
        json!({ "derived_name": "Signups", "favorited": true, "dashboards": [board["id"]] }),
        json!({ "name": "Draft", "saved": false, "query": { "kind": "HogQLQuery" } }),
    ] {
        workspace.owner.post(API, sent).await.ok();
    }
    let hers = anna.post(API, json!({ "name": "Anna's" })).await.ok();
    let owner = Visitor::owner(&workspace).await;
    let page = owner.open(LIST, "Insights").await;
    assert_eq!(names(&page.html), ["Visitors", "Signups", "Draft", "Anna&#39;s"]);
    page.assert_has(&["<span class=\"tag\">Not saved</span>"]);
    let creator = format!("created_by={}", hers["created_by"]["id"]);
    let on_board = format!("dashboards={}", board["id"]);
    for (query, expected) in [
        ("search=CAME", vec!["Visitors"]),
        ("tags=weekly", vec!["Visitors"]),
        ("favorited=true", vec!["Signups"]),
        ("saved=false", vec!["Draft"]),
        ("insight=TRENDS", vec!["Visitors"]),
        (&creator, vec!["Anna&#39;s"]),
        ("created_by=@me&saved=true", vec!["Visitors", "Signups"]),
        (&on_board, vec!["Signups"]),
        (&format!("short_id={}", hers["short_id"].as_str().expect("a text")), vec!["Anna&#39;s"]),
        ("order=-created_at", vec!["Anna&#39;s", "Draft", "Signups", "Visitors"]),
        ("date_to=2001-01-01", vec![]),
        ("created_date_from=-1d&search=anna", vec!["Anna&#39;s"]),
    ] {
        let page = owner.open(&format!("{LIST}?{query}"), "Insights").await;
        assert_eq!(names(&page.html), expected, "{query}");
        assert_eq!(page.html.contains("No insight matches"), expected.is_empty(), "{query}");
        page.assert_has(&[&format!("href=\"{LIST}\">Clear</a>")]);
    }
    let page = owner.get(&format!("{LIST}?created_by=evil&order=x&dashboards=[1]")).await;
    assert!(!page.html.contains("Clear</a>"), "an unknown choice filters nothing");
    assert_eq!(names(&page.html).len(), 4);
}

#[tokio::test]
async fn insight_is_created_on_dashboards_and_edited() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let mut boards = Vec::new();
    for name in ["One", "Two"] {
        let made = workspace.owner.post(&workspace.dashboards(""), json!({ "name": name })).await;
        boards.push(made.ok()["id"].as_u64().expect("an id"));
    }
    let page = owner.open(&format!("{LIST}new/"), "New insight").await;
    let form = page.form("form");
    assert_eq!(form.value("saved"), "true");
    let query = json!({ "kind": "TrendsQuery", "series": [{ "event": "$pageview" }] });
    let form = form
        .with("name", "Visitors")
        .with("description", "Who\r\ncame")
        .with("tags", "weekly\r\nweb")
        .with("dashboards", &boards[0].to_string());
    let wrong = owner.submit(&form.clone().with("query", "{")).await.showing(400, "New insight");
    wrong.assert_field_error("query", "This is not valid JSON");
    assert_eq!(wrong.form("form").value("dashboards"), boards[0].to_string());
    let wrong = owner.submit(&form.clone().with("query", "[]")).await;
    wrong.assert_field_error("query", "Query must be a valid JSON object");
    let made = owner.submit(&form.with("query", &query.to_string())).await;
    let path = made.location().strip_suffix("?done=insight-created").expect("a notice").to_owned();
    let api = path.replace("/console/", "/api/");
    let stored = workspace.owner.get(&api).await.ok();
    assert_eq!([&stored["name"], &stored["description"]], ["Visitors", "Who\ncame"]);
    assert_eq!(stored["tags"], json!(["web", "weekly"]));
    assert_eq!(stored["dashboards"], json!([boards[0]]));
    assert_eq!([&stored["saved"], &stored["favorited"]], [&json!(true), &json!(false)]);
    assert_eq!(stored["query"], query);

    let page = owner.open(&path, "Visitors").await;
    let series = "<dt>Series</dt><dd dir=\"auto\">$pageview</dd>";
    page.assert_has(&[series, &format!("/console/projects/1/dashboards/{}/", boards[0])]);
    let form = owner.get(&format!("{path}edit/")).await.form("form");
    assert_eq!(form.value("tags"), "web\nweekly");
    let form = form.without("saved").with("name", "").with("derived_name", "By day");
    let form = form.with("dashboards", &boards[1].to_string());
    assert_eq!(owner.submit(&form).await.location(), format!("{path}?done=insight-saved"));
    let stored = workspace.owner.get(&api).await.ok();
    assert_eq!([&stored["dashboards"], &stored["saved"]], [&json!([boards[1]]), &json!(false)]);
    assert_eq!([&stored["query"], &stored["derived_name"]], [&query, &json!("By day")]);
    owner.get(&path).await.assert_shows(200, "By day");

    let form = owner.get(&format!("{path}edit/")).await.form("form");
    let form = form.without("dashboards").with("order", "7");
    assert_eq!(owner.submit(&form).await.location(), format!("{path}?done=insight-saved"));
    let stored = workspace.owner.get(&api).await.ok();
    assert_eq!([&stored["dashboards"], &stored["saved"]], [&json!([]), &json!(false)]);
    assert_eq!(stored["order"], 7);
}

#[tokio::test]
async fn insight_becomes_a_favorite_is_deleted_and_restored() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let path = insight(&workspace, json!({ "name": "Visitors", "saved": false })).await;
    let api = path.replace("/console/", "/api/");
    let page = owner.get(&path).await;
    let done = owner.submit(&page.form("favorite")).await;
    assert_eq!(done.location(), format!("{path}?done=insight-saved"));
    let stored = workspace.owner.get(&api).await.ok();
    assert_eq!([&stored["favorited"], &stored["saved"]], [&json!(true), &json!(false)]);
    owner.get(&path).await.assert_has(&["Remove from favorites"]);
    let question = owner.get(&format!("{path}delete/")).await;
    question.assert_shows(200, "<bdi>Delete the insight Visitors?</bdi>");
    assert_eq!(workspace.owner.get(&api).await.status, 200, "a question deletes nothing");
    let done = owner.submit(&question.form("form")).await;
    let id = path.trim_end_matches('/').rsplit('/').next().expect("an id");
    assert_eq!(done.location(), format!("{LIST}?done=insight-deleted&undo={id}&unsaved=true"));
    owner.get(&path).await.assert_shows(404, "Not found");
    let again = owner.submit(&question.form("form")).await;
    assert_eq!(again.location(), format!("{LIST}?done=insight-deleted&undo={id}"), "sent twice");
    let list = owner.get(done.location()).await;
    let restored = owner.submit(&list.form_to("/restore/")).await;
    restored.assert_leads_to(&format!("{path}?done=insight-restored"));
    let stored = workspace.owner.get(&api).await.ok();
    assert_eq!([&stored["deleted"], &stored["saved"]], [&json!(false), &json!(false)]);
    workspace.owner.patch(&api, json!({ "saved": true })).await.ok();
    let question = owner.get(&format!("{path}delete/")).await;
    let done = owner.submit(&question.form("form")).await.location().to_owned();
    assert_eq!(done, format!("{LIST}?done=insight-deleted&undo={id}"));
    let restore = owner.get(&done).await.form_to("/restore/");
    owner.submit(&restore).await.location();
    assert_eq!(workspace.owner.get(&api).await.ok()["saved"], true);
    owner.post(&format!("{LIST}999/restore/"), &[]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn public_page_of_an_insight_is_enabled_rotated_and_disabled() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let path = format!("{}sharing/", insight(&workspace, json!({ "name": "Visitors" })).await);
    let api = path.replace("/console/", "/api/");
    for (action, done) in
        [("enable", "page-enabled"), ("rotate", "link-replaced"), ("disable", "page-disabled")]
    {
        let form = owner.open(&path, "Sharing").await.form("sharing").with("action", action);
        owner.submit(&form).await.assert_leads_to(&format!("{path}?done={done}"));
        let token = workspace.owner.get(&api).await.ok()["access_token"].clone();
        let link = format!("http://localhost/shared/{}/", token.as_str().unwrap_or_default());
        let shown = format!("<output id=\"public-link\">{link}</output>");
        let page = owner.get(&path).await;
        assert_eq!(page.html.contains(&shown), action != "disable", "{action}: {}", page.html);
    }
    owner.get(&path).await.assert_lacks(&["public-link"]);
}

#[tokio::test]
async fn access_page_of_an_insight_explains_its_rules() {
    let workspace = Workspace::new().await;
    let anna = Visitor::member(&workspace, "anna", Level::Member).await;
    let access = format!("{}access/", insight(&workspace, json!({ "name": "Visitors" })).await);
    let mut owner = Visitor::owner(&workspace).await;
    let page = owner.open(&access, "Who can see <bdi>Visitors</bdi>").await;
    page.assert_has(&["Without an access rule, everyone is an editor."]);
    let seen = anna.open(&access, "Who can see <bdi>Visitors</bdi>").await;
    seen.assert_has(&["Managers of the insight set its rules."]);
    let member = workspace.membership("anna@corp.example").await;
    let form = page.form("rule").with("organization_member", member.as_str().expect("an id"));
    assert!(owner.submit(&form.with("access_level", "none")).await.location().starts_with(&access));
    let page = owner.get(&format!("{access}?access_level=none")).await;
    page.assert_has(&["A rule on this insight gives the member the level none."]);
    let uuid = workspace.uuid("anna@corp.example").await;
    let why = owner.get(&format!("{access}?member={uuid}")).await;
    let why = why.part("<ol class=\"why\">", "</ol>");
    why.assert_has(&["No restricted dashboard shows the insight."]);
    assert_eq!(anna.get(&access).await.status, 403);
}

#[tokio::test]
async fn form_says_why_an_insight_cannot_be_edited() {
    let workspace = Workspace::new().await;
    let path = insight(&workspace, json!({ "name": "Visitors" })).await;
    let reader = Visitor::with_scopes(&workspace, OWNER, &["insight:read", "project:read"]).await;
    let anna = Visitor::member(&workspace, "anna", Level::Member).await;
    let rules = json!({ "resource": "insight", "access_level": "viewer" });
    workspace.owner.put("/api/projects/1/resource_access_controls/", rules).await.ok();
    for (visitor, reason) in [
        (&reader, "This session may not change insights."),
        (&anna, "You may view this insight. Access rules do not let you edit it."),
    ] {
        let page = visitor.open(&format!("{path}edit/"), "Edit the insight").await;
        page.assert_has(&[reason, "<dt>Name</dt><dd dir=\"auto\">Visitors</dd>"]);
        page.assert_lacks(&["id=\"form\""]);
    }
    let sharing = anna.get(&format!("{path}sharing/")).await;
    sharing.assert_has(&["You don&#39;t have edit permissions for this insight."]);
    sharing.assert_lacks(&["id=\"sharing\""]);
}

#[tokio::test]
async fn insights_that_were_not_saved_stay_so_when_they_leave_the_trash() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let mut paths = Vec::new();
    for (name, saved) in [("A", true), ("B", false)] {
        let (made, path) =
            workspace.owner.create(API, json!({ "name": name, "saved": saved })).await;
        workspace.owner.patch(&path, json!({ "deleted": true, "saved": saved })).await.ok();
        paths.push((made["id"].to_string(), path));
    }
    let trash = format!("{LIST}trash/");
    assert!(owner.get(LIST).await.links().contains(&trash));
    let page = owner.open(&trash, "Trash").await;
    assert_eq!(deleted(&page.html), ["B", "A"]);
    let none = owner.submit(&page.form("change")).await;
    assert_eq!(none.status, 400);
    none.assert_has(&["Select the insights first."]);
    let restore = page.form("change").with("id", &paths[0].0).and("id", &paths[1].0);
    owner.submit(&restore).await.location();
    for ((_, path), saved) in paths.iter().zip([true, false]) {
        assert_eq!(workspace.owner.get(path).await.ok()["saved"], saved);
    }
}

#[tokio::test]
async fn trash_offers_only_what_the_session_may_restore() {
    let (workspace, owner) = Workspace::owned().await;
    let anna = Visitor::member(&workspace, "anna", Level::Member).await;
    for (name, level) in [("Hidden", "none"), ("Viewed", "viewer"), ("Edited", "editor")] {
        let (_, path) = owner.create(API, json!({ "name": name })).await;
        owner.put(&format!("{path}access_controls/"), json!({ "access_level": level })).await.ok();
        owner.patch(&path, json!({ "deleted": true })).await.ok();
    }
    let page = anna.get(&format!("{LIST}trash/")).await;
    assert_eq!(deleted(&page.html), ["Edited", "Viewed"]);
    page.assert_has(&["Restore Edited"]).assert_lacks(&["Restore Viewed"]);
    let reader = Visitor::with_scopes(&workspace, OWNER, &["insight:read"]).await;
    let page = reader.get(&format!("{LIST}trash/")).await;
    assert_eq!(deleted(&page.html).len(), 3);
    page.assert_lacks(&["id=\"change\"", "class=\"pick\""]);
}
