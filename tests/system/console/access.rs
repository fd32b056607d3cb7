//! Who may do what with a dashboard, set in one browser and seen in another.

use serde_json::json;
use steward::testing::resources::members::Level;

use super::{Site, assert_sound, browser, shown};
use crate::support::browser::Browser;

/// Presses a button and waits for the notice on the next page.
async fn press(browser: &Browser, button: &str, notice: &str) {
    browser.run("document.querySelector('[data-notice]')?.remove()").await;
    browser.click(button).await;
    let shown = "document.querySelector('[data-notice] p')?.textContent";
    browser.wait_until(notice, &format!("{shown} === '{notice}'")).await;
}

/// What the second browser finds on the page of the dashboard: its title, and whether it offers to edit.
async fn seen(browser: &Browser, site: &Site, path: &str) -> (String, bool) {
    site.visit(browser, path).await;
    let title = browser.text("h1").await;
    let edits =
        browser.run("return document.querySelector('a[href$=\"/tiles/new/\"]') !== null").await;
    (title, edits == json!(true))
}

/// Chooses an option by its text.
async fn choose(browser: &Browser, select: &str, text: &str) {
    let script = format!(
        "const one = document.querySelector('{select}'); \
         one.value = [...one.options].find(option => option.textContent.includes('{text}')).value"
    );
    browser.run(&script).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_restriction_and_collaborators_change_what_a_second_browser_sees() {
    let site = Site::new().await;
    let board = site.board("Growth").await;
    let ben = site.workspace.member("ben", Level::Member).await.key.expect("a key");
    let path = format!("projects/{}/dashboards/{}/", site.workspace.made.project_id, board["id"]);
    let access = format!("{path}access/");
    let (owner, other) = (browser().await, browser().await);
    site.sign_in(&owner).await;
    site.visit(&other, "sign_in/").await;
    other.fill("#key", &ben).await;
    other.click("button.go").await;
    shown(&other, "Home").await;
    assert_eq!(seen(&other, &site, &path).await, ("Growth".to_owned(), true));

    // A rule for one member.
    site.visit(&owner, &access).await;
    shown(&owner, "Who can see Growth").await;
    choose(&owner, "#rule-organization_member", "ben").await;
    choose(&owner, "#rule-access_level", "Viewer").await;
    press(&owner, "#rule .bar button.go", "Access saved.").await;
    assert_sound(&owner, "a rule").await;
    assert_eq!(seen(&other, &site, &path).await, ("Growth".to_owned(), false));
    assert_sound(&other, "a dashboard to view").await;
    choose(&owner, "#rule-organization_member", "ben").await;
    choose(&owner, "#rule-access_level", "None").await;
    press(&owner, "#rule .bar button.go", "Access saved.").await;
    assert_eq!(seen(&other, &site, &path).await.0, "You do not have access");
    site.visit(&other, path.split_inclusive('/').take(3).collect::<String>().as_str()).await;
    shown(&other, "Dashboards").await;
    assert!(!other.text("main").await.contains("Growth"));
    press(&owner, "[aria-label='Remove the rule for ben']", "Rule removed.").await;
    assert_eq!(seen(&other, &site, &path).await, ("Growth".to_owned(), true));

    // The restriction, and a collaborator who is exempt from it.
    choose(&owner, "#restriction-restriction_level", "Only collaborators").await;
    press(&owner, "#restriction .bar button.go", "Access saved.").await;
    assert_eq!(seen(&other, &site, &path).await, ("Growth".to_owned(), false));
    assert!(other.text("main").await.contains("Only its collaborators edit it."));
    choose(&owner, "#collaborator-user_uuid", "ben").await;
    press(&owner, "#collaborator .bar button.go", "Access saved.").await;
    assert_sound(&owner, "a collaborator").await;
    assert_eq!(seen(&other, &site, &path).await, ("Growth".to_owned(), true));
    press(&owner, "[aria-label='Remove ben']", "Collaborator removed.").await;
    assert_eq!(seen(&other, &site, &path).await, ("Growth".to_owned(), false));
    owner.close().await;
    other.close().await;
}
