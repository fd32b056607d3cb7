//! The activity log in a browser: new entries appear by themselves, and a change is reverted.

use fantoccini::key::Key;
use serde_json::json;

use super::{Site, assert_sound, browser, shown};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_entries_are_announced_and_a_change_is_reverted() {
    let site = Site::new().await;
    let board = site.board("Growth").await;
    let path = site.workspace.dashboards(&format!("{}/", board["id"]));
    let project = site.workspace.made.project_id;
    let browser = browser().await;
    site.sign_in(&browser).await;
    browser.click(&format!("nav.side a[href='/console/projects/{project}/activity/']")).await;
    shown(&browser, "Activity").await;
    browser.run("window.same = true").await;
    let count = "document.querySelectorAll('.feed > li').length";
    let before = browser.run(&format!("return {count}")).await.as_u64().expect("a number");
    let is_hidden = "document.querySelector('form[data-news]').hidden";
    assert_eq!(browser.run(&format!("return {is_hidden}")).await, true);

    site.workspace.owner.patch(&path, json!({ "name": "Sales" })).await.ok();
    // A page asks at once when its tab is shown again.
    let ask = "document.dispatchEvent(new Event('visibilitychange'))";
    browser.run(ask).await;
    browser.wait_until("the news", &format!("!{is_hidden}")).await;
    assert_eq!(browser.text("form[data-news] button").await, "1 new entry");
    let said = browser.run("return document.getElementById('say').textContent").await;
    assert_eq!(said, "1 new entry");
    assert_sound(&browser, "the news").await;
    browser.click("form[data-news] button").await;
    browser.wait_until("the new entry", &format!("{count} === {}", before + 1)).await;
    assert_eq!(browser.run("return window.same").await, true, "the page was replaced");
    assert_eq!(browser.run(&format!("return {is_hidden}")).await, true);
    assert_sound(&browser, "the log").await;

    browser.run("document.querySelector('.feed a[href*=revert]').focus()").await;
    browser.press(Key::Enter).await;
    shown(&browser, "Revert this change?").await;
    assert_sound(&browser, "the question").await;
    browser.click("#form button.go").await;
    shown(&browser, "Activity").await;
    assert_eq!(browser.text("[data-notice] p").await, "Change reverted.");
    assert_eq!(site.workspace.owner.get(&path).await.ok()["name"], "Growth");
    assert_sound(&browser, "the notice").await;
    browser.close().await;
}
