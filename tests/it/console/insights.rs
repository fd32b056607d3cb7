//! Insights: the list with its filters, the forms, delete and restore, and the public page.

use serde_json::{Value, json};
use steward::testing::resources::members::Level;

use crate::support::console::{FilledForm, Page, Visitor};
use crate::support::{OWNER, Workspace};

const LIST: &str = "/console/projects/1/insights/";
const API: &str = "/api/projects/1/insights/";

/// Returns the names in the list, in order.
fn names(html: &str) -> Vec<&str> {
    let rows = html.split("<tr>\n<td><a href=").skip(1);
    rows.map(|row| row.split("<bdi>").nth(1).unwrap().split("</bdi>").next().unwrap()).collect()
}

/// Creates an insight and returns its page.
async fn insight(workspace: &Workspace, sent: Value) -> String {
    let made = workspace.owner.post(API, sent).await.ok();
    format!("{LIST}{}/", made["id"])
}

#[tokio::test]
async fn insights_are_found_by_every_filter() {
    let workspace = Workspace::new().await;
    let anna = workspace.member("anna", Level::Member).await;
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
    let page = owner.get(LIST).await;
    page.assert_shows(200, "Insights");
    assert_eq!(names(&page.html), ["Visitors", "Signups", "Draft", "Anna&#39;s"]);
    assert!(page.html.contains("<span class=\"tag\">Not saved</span>"));
    let creator = format!("created_by={}", hers["created_by"]["id"]);
    let on_board = format!("dashboards={}", board["id"]);
    let short_id = format!("short_id={}", hers["short_id"].as_str().expect("a text"));
    for (query, expected) in [
        ("search=CAME", vec!["Visitors"]),
        ("tags=weekly", vec!["Visitors"]),
        ("favorited=true", vec!["Signups"]),
        ("saved=false", vec!["Draft"]),
        ("insight=TRENDS", vec!["Visitors"]),
        (&creator, vec!["Anna&#39;s"]),
        ("created_by=@me&saved=true", vec!["Visitors", "Signups"]),
        (&on_board, vec!["Signups"]),
        (&short_id, vec!["Anna&#39;s"]),
        ("order=-created_at", vec!["Anna&#39;s", "Draft", "Signups", "Visitors"]),
        ("date_to=2001-01-01", vec![]),
        ("created_date_from=-1d&search=anna", vec!["Anna&#39;s"]),
    ] {
        let page = owner.get(&format!("{LIST}?{query}")).await;
        page.assert_shows(200, "Insights");
        assert_eq!(names(&page.html), expected, "{query}");
        assert_eq!(page.html.contains("No insight matches"), expected.is_empty(), "{query}");
        assert!(page.html.contains(&format!("href=\"{LIST}\">Clear</a>")), "{query}");
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
    let page = owner.get(&format!("{LIST}new/")).await;
    page.assert_shows(200, "New insight");
    let form = page.form("form");
    assert_eq!(form.value("saved"), "true");
    let query = json!({ "kind": "TrendsQuery", "series": [{ "event": "$pageview" }] });
    let form = form
        .with("name", "Visitors")
        .with("description", "Who\r\ncame")
        .with("tags", "weekly\r\nweb")
        .with("dashboards", &boards[0].to_string());
    let wrong = owner.submit(&form.clone().with("query", "{")).await;
    wrong.assert_shows(400, "New insight");
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

    let page = owner.get(&path).await;
    page.assert_shows(200, "Visitors");
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

/// Returns the form beside the notice of a deletion.
fn undo(page: &Page) -> FilledForm {
    let mut forms = page.forms().into_iter();
    forms.find(|form| form.action.ends_with("/restore/")).expect("an undo")
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
    let page = owner.get(&path).await;
    assert!(page.html.contains("Remove from favorites"));
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
    let restored = owner.submit(&undo(&list)).await;
    assert_eq!(restored.location(), format!("{path}?done=insight-restored"));
    let stored = workspace.owner.get(&api).await.ok();
    assert_eq!([&stored["deleted"], &stored["saved"]], [&json!(false), &json!(false)]);
    workspace.owner.patch(&api, json!({ "saved": true })).await.ok();
    let question = owner.get(&format!("{path}delete/")).await;
    let done = owner.submit(&question.form("form")).await.location().to_owned();
    assert_eq!(done, format!("{LIST}?done=insight-deleted&undo={id}"));
    owner.submit(&undo(&owner.get(&done).await)).await.location();
    assert_eq!(workspace.owner.get(&api).await.ok()["saved"], true);
    owner.post(&format!("{LIST}999/restore/"), &[]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn public_page_of_an_insight_is_enabled_rotated_and_disabled() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let path = format!("{}sharing/", insight(&workspace, json!({ "name": "Visitors" })).await);
    let api = path.replace("/console/", "/api/");
    let token = async || workspace.owner.get(&api).await.ok()["access_token"].clone();
    let page = owner.get(&path).await;
    page.assert_shows(200, "Sharing");
    let form = page.form("sharing");
    let done = owner.submit(&form.clone().with("action", "enable")).await;
    assert_eq!(done.location(), format!("{path}?done=page-enabled"));
    let first = token().await;
    let page = owner.get(&path).await;
    let link = page.between("<output id=\"public-link\">", "</output>");
    assert_eq!(link, format!("http://localhost/shared/{}/", first.as_str().expect("a token")));
    let rotate = page.form("sharing").with("action", "rotate");
    assert_eq!(owner.submit(&rotate).await.location(), format!("{path}?done=link-replaced"));
    assert_ne!(token().await, first);
    let disable = page.form("sharing").with("action", "disable");
    assert_eq!(owner.submit(&disable).await.location(), format!("{path}?done=page-disabled"));
    assert!(!owner.get(&path).await.html.contains("public-link"));
    assert_eq!(owner.submit(&form.with("action", "x")).await.status, 404);
}

#[tokio::test]
async fn session_that_may_only_view_insights_sees_no_controls() {
    let workspace = Workspace::new().await;
    let path = insight(&workspace, json!({ "name": "Visitors" })).await;
    let mut reader =
        Visitor::with_scopes(&workspace, OWNER, &["insight:read", "project:read"]).await;
    let rules = json!({ "resource": "insight", "access_level": "viewer" });
    let anna = Visitor::member(&workspace, "anna", Level::Member).await;
    let on_all = "/api/projects/1/resource_access_controls/";
    workspace.owner.put(on_all, rules).await.ok();
    for visitor in [&reader, &anna] {
        let list = visitor.get(LIST).await;
        list.assert_shows(200, "Insights");
        assert!(!list.html.contains("New insight"), "{}", list.html);
        let page = visitor.get(&path).await;
        page.assert_shows(200, "Visitors");
        for gone in ["Edit</a>", "Delete</button>", "favorites"] {
            assert!(!page.html.contains(gone), "{gone}: {}", page.html);
        }
        visitor.get(&format!("{LIST}new/")).await.assert_shows(403, "You do not have access");
    }
    for (visitor, reason) in [
        (&reader, "This session may not change insights."),
        (&anna, "You may view this insight. Access rules do not let you edit it."),
    ] {
        let page = visitor.get(&format!("{path}edit/")).await;
        page.assert_shows(200, "Edit the insight");
        assert!(page.html.contains(reason), "{}", page.html);
        assert!(!page.html.contains("id=\"form\""), "{}", page.html);
        assert!(page.html.contains("<dt>Name</dt><dd dir=\"auto\">Visitors</dd>"));
    }
    assert!(!reader.get(&path).await.html.contains("Sharing"));
    let sharing = anna.get(&format!("{path}sharing/")).await;
    assert!(sharing.html.contains("You don&#39;t have edit permissions for this insight."));
    assert!(!sharing.html.contains("id=\"sharing\""));
    let refused = reader.post(&format!("{path}delete/"), &[]).await;
    refused.assert_shows(403, "<bdi>Delete the insight Visitors?</bdi>");
    let reason = "This session may not change insights.";
    assert!(refused.html.contains(reason), "{}", refused.html);
}

/// Returns the names of the deleted insights on the page.
fn deleted(html: &str) -> Vec<&str> {
    let rows = html.split("<tr>\n<td>").skip(1);
    rows.map(|row| row.split("<bdi>").nth(1).unwrap().split("</bdi>").next().unwrap()).collect()
}

#[tokio::test]
async fn trash_names_who_deleted_insights_and_restores_one_or_many() {
    let workspace = Workspace::new().await;
    let mut paths = Vec::new();
    for sent in [
        json!({ "name": "A" }),
        json!({ "derived_name": "B", "saved": false }),
        json!({ "name": "C" }),
        json!({ "name": "D" }),
    ] {
        let (made, path) = workspace.owner.create(API, sent).await;
        let gone = json!({ "deleted": true, "saved": made["saved"] });
        workspace.owner.patch(&path, gone).await.ok();
        paths.push((made["id"].to_string(), path));
    }
    let mut owner = Visitor::owner(&workspace).await;
    assert!(owner.get(LIST).await.links().contains(&format!("{LIST}trash/")));
    let trash = format!("{LIST}trash/");
    let page = owner.get(&trash).await;
    page.assert_shows(200, "Trash");
    assert_eq!(deleted(&page.html), ["D", "C", "B", "A"]);
    assert_eq!(page.html.matches("<td data-label=\"Deleted by\"><bdi>Olga</bdi>").count(), 4);
    let form = page.form("change").with("only", &paths[3].0);
    assert!(owner.submit(&form).await.location().starts_with(&trash));
    assert_eq!(workspace.owner.get(&paths[3].1).await.ok()["name"], "D");
    let nothing = owner.get(&trash).await.form("change");
    let page = owner.submit(&nothing).await;
    assert_eq!(page.status, 400);
    assert!(page.html.contains("Select the insights first."), "{}", page.html);
    // One of two was restored meanwhile: the other is still done.
    let form = owner.get(&trash).await.form("change").and("id", &paths[1].0).and("id", "999");
    let page = owner.submit(&form).await;
    page.assert_shows(200, "Trash");
    assert!(page.html.contains("1 done, 1 refused:"), "{}", page.html);
    assert_eq!(deleted(&page.html), ["C", "A"]);
    assert_eq!(workspace.owner.get(&paths[1].1).await.ok()["saved"], false);
    let form = page.form("change").with("id", &paths[0].0).and("id", &paths[2].0);
    let page = owner.submit(&form.clone().with("_show", "command")).await;
    let ends = [2, 0].map(|at: usize| format!("'http://localhost{}'", paths[at].1));
    for end in &ends {
        assert!(page.commands().iter().any(|command| command.ends_with(end)), "{}", page.html);
    }
    assert_eq!(page.commands().len(), ends.len());
    owner.submit(&form).await.location();
    let page = owner.get(&trash).await;
    assert!(page.html.contains("The trash is empty."));
    assert_eq!(workspace.owner.get(&paths[0].1).await.ok()["saved"], true);
}

#[tokio::test]
async fn trash_offers_only_what_the_session_may_restore() {
    let workspace = Workspace::new().await;
    let anna = Visitor::member(&workspace, "anna", Level::Member).await;
    for (name, level) in [("Hidden", "none"), ("Viewed", "viewer"), ("Edited", "editor")] {
        let (_, path) = workspace.owner.create(API, json!({ "name": name })).await;
        let rule = json!({ "access_level": level });
        workspace.owner.put(&format!("{path}access_controls/"), rule).await.ok();
        workspace.owner.patch(&path, json!({ "deleted": true })).await.ok();
    }
    let page = anna.get(&format!("{LIST}trash/")).await;
    assert_eq!(deleted(&page.html), ["Edited", "Viewed"]);
    assert!(page.html.contains("Restore Edited") && !page.html.contains("Restore Viewed"));
    let reader = Visitor::with_scopes(&workspace, OWNER, &["insight:read"]).await;
    let page = reader.get(&format!("{LIST}trash/")).await;
    assert_eq!(deleted(&page.html).len(), 3);
    assert!(!page.html.contains("id=\"change\"") && !page.html.contains("class=\"pick\""));
}

#[tokio::test]
async fn access_page_of_an_insight_explains_and_sets_rules() {
    let workspace = Workspace::new().await;
    let anna = Visitor::member(&workspace, "anna", Level::Member).await;
    let path = insight(&workspace, json!({ "name": "Visitors" })).await;
    let mut owner = Visitor::owner(&workspace).await;
    let access = format!("{path}access/");
    assert!(owner.get(&path).await.links().contains(&access));
    let page = owner.get(&access).await;
    page.assert_shows(200, "Who can see <bdi>Visitors</bdi>");
    assert!(page.html.contains("Without an access rule, everyone is an editor."));
    let member = workspace.membership("anna@corp.example").await;
    let form = page.form("rule");
    let form = form.with("organization_member", member.as_str().expect("an id"));
    let form = form.with("access_level", "none");
    assert!(owner.submit(&form).await.location().starts_with(&access));
    let page = owner.get(&format!("{access}?access_level=none")).await;
    assert!(page.html.contains("A rule on this insight gives the member the level none."));
    let uuid = workspace.uuid("anna@corp.example").await;
    let page = owner.get(&format!("{access}?member={uuid}")).await;
    let why = page.between("<ol class=\"why\">", "</ol>");
    assert_eq!(why.matches("<li").count(), 15, "{why}");
    assert!(why.contains("No restricted dashboard shows the insight."), "{why}");
    assert_eq!(anna.get(&access).await.status, 403);
    // The button beside the rule removes it.
    let button = page.forms().into_iter().find(|form| form.action == access).expect("a form");
    let button = button.with("rule", &format!("member {}", member.as_str().expect("an id")));
    owner.submit(&button).await.location();
    let page = anna.get(&access).await;
    page.assert_shows(200, "Who can see <bdi>Visitors</bdi>");
    assert!(page.html.contains("Managers of the insight set its rules."));
    assert!(!page.html.contains("id=\"rule\""));
}
