//! The pages of sessions and of the service's health, and all pages while the disk is nearly full.

use crate::support::prelude::*;

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one() {
    let (workspace, mut first) = Visitor::in_new_workspace().await;
    let second = Visitor::with_link(&workspace, false).await;
    let page = first.open("/console/sessions/", "Sessions").await;
    assert_eq!(page.html.matches("This session").count(), 1);
    page.assert_has(&["<bdi>First key</bdi>", "A link"]);
    // The newest session comes first.
    let end = page.between("<form method=\"post\" action=\"/console/sessions/", "\"").to_owned();
    let path = format!("/console/sessions/{end}");
    assert_eq!(first.post(&path, &[]).await.location(), "/console/sessions/");
    assert!(second.get("/console/sessions/").await.location().starts_with("/console/sign_in/"));
    first.get("/console/sessions/").await.assert_lacks(&["A link"]);
    first.post(&path, &[]).await.assert_shows(404, "Not found");
    first.post("/console/sessions/x/end/", &[]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn health_page_shows_the_state_of_the_service() {
    let workspace = Workspace::new().await;
    let operator = Visitor::with_link(&workspace, true).await;
    // The use of the session is recorded meanwhile.
    let page = eventually_async("no write waits", async || {
        let page = operator.get("/console/health/").await;
        page.html.contains("<th scope=\"row\">Writes waiting</th><td>0</td>").then_some(page)
    })
    .await;
    page.assert_shows(200, "Health of the service").assert_has(&["Accepts writes"]);
    page.assert_has(&[concat!(
        "<th scope=\"row\">Version</th><td>",
        env!("CARGO_PKG_VERSION"),
        "</td>"
    )]);
    page.assert_has(&["No mail server is configured (<code>--smtp-url</code>)"]);
    page.assert_has(&["No backups are scheduled (<code>--backup-dir</code>)"]);
    page.assert_has(&["No checks are scheduled (<code>--scrub</code>)"]);
    page.assert_has(&["steward backup copy.redb --data &#39;/", "aria-current=\"page\""]);
    assert!(page.between("Data file</th><td>", "</td>").contains(" unused"));
    assert!(page.between("Memory</th><td>", "</td>").contains("iB"));
}

#[tokio::test]
async fn health_page_shows_the_last_backup_and_check() {
    let (mut config, _clock) = with_clock();
    let folder = tempfile::tempdir().expect("a folder");
    config.backups.backup_dir = Some(folder.path().to_owned());
    config.scrub = Some(Duration::from_hours(24));
    let workspace = Workspace::with(config).await;
    let app = workspace.app.clone();
    eventually("a check", || app.last_scrub()).await;
    eventually("a backup", || std::fs::read_dir(folder.path()).ok()?.next()?.ok()).await;
    let operator = Visitor::with_link(&workspace, true).await;
    let now = Timestamp::from_micros(1_700_000_000_000_000);
    let page = eventually_async("both are shown", async || {
        Some(operator.get("/console/health/").await).filter(|page| !page.html.contains("None yet"))
    })
    .await;
    let shown = format!("<time datetime=\"{now}\" data-ago>2023-11-14 22:13 UTC</time>");
    assert_eq!(page.html.matches(&shown).count(), 3, "{}", page.html);
    page.assert_has(&[", no damage"]);
}

const INSIGHTS: &str = "/console/projects/1/insights/";

#[tokio::test]
async fn pages_are_read_while_the_disk_is_nearly_full_and_name_the_reason() {
    let workspace = Workspace::new().await;
    let made = workspace.owner.post("/api/projects/1/insights/", json!({ "name": "Visitors" }));
    let insight = format!("{INSIGHTS}{}/", made.await.ok()["id"]);
    let board = json!({ "name": "Growth", "restriction_level": 37 });
    workspace.owner.post(&workspace.dashboards(""), board).await.ok();
    let key = workspace.owner.get("/api/personal_api_keys/@current/").await.ok()["id"].clone();
    let owner = Visitor::owner(&workspace).await;

    let mut config = Config::default();
    // A reserve larger than any disk.
    config.caps.disk_reserve = Some(usize::MAX);
    let workspace = workspace.reopened(config).await;
    let mut owner = owner.at(&workspace);
    let refused = workspace.owner.post(&workspace.dashboards(""), json!({ "name": "x" })).await;
    assert_eq!(refused.status, 503);
    let list = owner.open(INSIGHTS, "Insights").await;
    assert!(list.html.contains("New insight"), "the level decides, not the disk: {}", list.html);
    let sharing = owner.open(&format!("{insight}sharing/"), "Sharing").await;
    let reason = "The service is temporarily unavailable. Try again shortly.";
    sharing.assert_has(&[reason]).assert_lacks(&["id=\"sharing\""]);
    let organization = workspace.page("");
    let invites = owner.open(&format!("{organization}invites/"), "Invites").await;
    assert!(invites.html.contains("id=\"form\""), "levels can be given: {}", invites.html);
    owner.open(&format!("{organization}projects/new/"), "New project").await.assert_has(&[reason]);
    for path in [
        "/console/profile/",
        "/console/projects/1/settings/",
        "/console/projects/1/dashboards/1/access/",
        &format!("{organization}members/"),
        &format!("{organization}settings/"),
        &format!("/console/keys/{}/", key.as_str().expect("an id")),
        &format!("{INSIGHTS}new/"),
        &format!("{insight}edit/"),
    ] {
        assert_eq!(owner.get(path).await.status, 200, "{path}");
    }
    // What is typed is kept.
    let form = owner.get(&format!("{INSIGHTS}new/")).await.form("form").with("name", "Kept");
    let page = owner.submit(&form).await.showing(503, "New insight");
    assert_eq!(page.form("form").value("name"), "Kept");
}
