//! The start page, and the first steps of a new workspace.

use steward::testing::bootstrap::InitialRecords;

use crate::support::prelude::*;

const HOME: &str = "/console/";

fn dismiss() -> FilledForm {
    FilledForm { action: "/console/steps/dismiss/".to_owned(), fields: Vec::new() }
}

#[tokio::test]
async fn root_leads_browsers_to_the_console_and_is_unknown_to_other_clients() {
    let html = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let mut off = Config::default();
    off.console = Switch::Off;
    for (config, is_on) in [(Config::default(), true), (off, false)] {
        let nobody = Visitor::new(&Workspace::with(config).await);
        for (method, accept, leads) in [
            (Method::GET, html, is_on),
            (Method::HEAD, "TEXT/HTML", is_on),
            (Method::GET, "*/*", false),
            (Method::GET, "application/json", false),
            (Method::GET, "application/json, text/html;q=0.9, */*;q=0.1", false),
            (Method::GET, "text/html, application/json", false),
            (Method::GET, "*/*, text/html; q=0", false),
            (Method::GET, "application/json; q=0.5, Text/HTML; charset=utf-8; q=0.6", is_on),
            (Method::POST, html, false),
        ] {
            let answer = nobody.fetch(method.clone(), "/", &[("accept", accept)], "").await;
            if leads {
                assert_eq!(answer.location(), HOME);
            } else {
                assert_eq!(answer.status, 404, "{method} {accept}");
                let is_said = answer.html.contains("API endpoint not found.");
                assert!(is_said || method == Method::HEAD, "{method} {accept}: {}", answer.html);
            }
        }
        let answer = nobody.fetch(Method::GET, "/api/nothing/", &[("accept", html)], "").await;
        assert_eq!(answer.status, 404, "only the root leads to the console");
    }
}

#[tokio::test]
async fn first_steps_are_shown_until_all_are_done() {
    let workspace = Workspace::new().await;
    let name = InitialRecords::default().organization;
    workspace.owner.patch(&workspace.organization(""), json!({ "name": name })).await.ok();
    let owner = Visitor::owner(&workspace).await;
    for without_slash in [HOME, "/console"] {
        let page = owner.open(without_slash, "Home").await;
        let steps = page.between("<h2 id=\"steps\">First steps</h2>", "</section>");
        assert_eq!(steps.matches("<li><a href=").count(), 3, "{steps}");
        assert!(steps.contains("/settings/\">Name the organization</a>"));
        assert!(steps.contains("/invites/\">Invite a colleague</a>"));
        assert!(steps.contains("<a href=\"/console/keys/new/\">Create a key for a program</a>"));
    }
    workspace.owner.patch(&workspace.organization(""), json!({ "name": "Corp" })).await.ok();
    let invite = json!({ "target_email": ANN });
    workspace.owner.post(&workspace.organization("invites/"), invite).await.ok();
    let page = owner.get(HOME).await;
    assert_eq!(page.html.matches("<span class=\"tag good\">Done</span>").count(), 2);
    let key = json!({ "label": "CI", "scopes": ["dashboard:read"] });
    workspace.owner.post("/api/personal_api_keys/", key).await.ok();
    assert!(!owner.get(HOME).await.html.contains("First steps"));
}

#[tokio::test]
async fn first_steps_are_dismissed_for_one_user() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    workspace.member("ann", Level::Admin).await;
    let key = workspace.key(ANN, &["*"]).await.key.expect("a key");
    let seen = json!({ "has_seen_product_intro_for": { "other": 1 } });
    workspace.owner.patch(ME, seen).await.ok();
    assert!(owner.get(HOME).await.html.contains("First steps"));
    assert_eq!(owner.submit(&dismiss()).await.location(), HOME);
    assert!(!owner.get(HOME).await.html.contains("First steps"));
    let seen = workspace.owner.get(ME).await.ok()["has_seen_product_intro_for"].clone();
    assert_eq!(seen, json!({ "other": 1, "console_first_steps": true }));
    let admin = Visitor::with_key(&workspace, &key).await;
    let page = admin.get(HOME).await;
    // The admin has two keys, and the organization two members and a name of its own.
    assert!(!page.html.contains("First steps"), "all steps are done");
    let member = Visitor::member(&workspace, "mia", Level::Member).await;
    assert!(!member.get(HOME).await.html.contains("First steps"), "a member cannot name it");
}

#[tokio::test]
async fn start_page_shows_pinned_dashboards_changes_invites_and_keys_that_expire() {
    let (config, _) = with_clock();
    let workspace = Workspace::with(config).await;
    for (name, pinned) in [("Growth", true), ("Other", false)] {
        let sent = json!({ "name": name, "pinned": pinned, "description": "Who stays" });
        workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
    }
    let invite = json!({ "target_email": ANN });
    workspace.owner.post(&workspace.organization("invites/"), invite).await.ok();
    let day = 24 * 60 * 60;
    for (label, seconds) in [("Soon", 13 * day), ("Later", 15 * day)] {
        let end = workspace.app.now().plus_seconds(seconds).to_string();
        let key = json!({ "label": label, "scopes": ["dashboard:read"], "expires_at": end });
        workspace.owner.post("/api/personal_api_keys/", key).await.ok();
    }
    let page = Visitor::owner(&workspace).await.open(HOME, "Home").await;
    let pinned = page.between("<h2 id=\"pinned\">", "</section>");
    assert!(pinned.contains("/dashboards/1/\"><bdi>Growth</bdi></a>") && !pinned.contains("Other"));
    let latest = page.between("<h2 id=\"latest\">", "</section>");
    assert!(latest.contains("<bdi>Olga</bdi>") && latest.contains("<bdi>Growth</bdi>"), "{latest}");
    let keys = page.between("<h2 id=\"keys\">", "</section>");
    assert!(keys.contains("<bdi>Soon</bdi>") && !keys.contains("<bdi>Later</bdi>"));
    let invites = page.between("<h2 id=\"invites\">", "</section>");
    assert!(invites.contains("<bdi>ann@corp.example</bdi> expires <time"), "{invites}");

    let narrow = Visitor::with_scopes(&workspace, OWNER, &["user:read"]).await;
    let page = narrow.open(HOME, "Home").await;
    for heading in ["pinned", "latest", "keys", "invites", "steps"] {
        page.assert_lacks(&[&format!("<h2 id=\"{heading}\">")]);
    }
}

#[tokio::test]
async fn organization_without_projects_opens_its_list_of_projects() {
    let (workspace, owner) = Visitor::in_new_workspace().await;
    workspace.owner.delete("/api/projects/1/").await.assert_empty(204);
    let organization = workspace.page("");
    assert_eq!(owner.get(&organization).await.location(), format!("{organization}projects/"));
    owner.get(HOME).await.assert_shows(200, "Projects");
}
