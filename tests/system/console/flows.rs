//! What people do: sign in, find a dashboard, read it, sign out.

use fantoccini::key::Key;
use serde_json::json;

use super::{Site, assert_sound, browser, go_to, recording, shown};
use crate::support::browser::Browser;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_signs_in_with_a_key_finds_a_dashboard_and_signs_out() {
    let site = Site::new().await;
    let board = site.board("Growth").await;
    site.board("Sales").await;
    let browser = browser().await;
    site.visit(&browser, "sessions/").await;
    assert_eq!(browser.text("h1").await, "Sign in to Steward");
    assert_sound(&browser, "sign in").await;
    browser.fill("#key", "phx_wrong").await;
    browser.click("button.go").await;
    assert!(browser.text("#key-error").await.starts_with("This key signs nobody in."));
    assert_sound(&browser, "a wrong key").await;
    browser.fill("#key", &site.workspace.made.api_key).await;
    go_to(&browser, "button.go", "Sessions").await;
    assert_eq!(browser.run("return [document.cookie, localStorage.length]").await, json!(["", 0]));
    assert_sound(&browser, "sessions").await;

    browser.click("nav.side ul a").await;
    assert_eq!(browser.text("main h1").await, "Dashboards");
    browser.run("window.same = true").await;
    browser.fill("main input[type=search]", "grow").await;
    browser.press(Key::Enter).await;
    let one = "document.querySelectorAll('main tbody tr').length === 1";
    browser.wait_until("the list is filtered", one).await;
    assert_eq!(browser.run("return window.same").await, true, "the page was replaced");
    assert!(browser.url().await.query().expect("a query").contains("search=grow"));
    assert_sound(&browser, "a filtered list").await;
    browser.back().await;
    let two = "document.querySelectorAll('main tbody tr').length === 2";
    browser.wait_until("the list is whole again", two).await;

    let link = format!("main a[href$='/{}/']", board["id"]);
    go_to(&browser, &link, "Growth").await;
    assert_eq!(browser.text(".tile h2").await, "Read this first");
    assert_sound(&browser, "a dashboard").await;
    browser.click(".who button").await;
    go_to(&browser, "#you form button", "Sign in").await;
    site.visit(&browser, "").await;
    assert_eq!(browser.text("h1").await, "Sign in to Steward");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn link_moves_its_code_out_of_the_address_and_asks_first() {
    let site = Site::new().await;
    let user = site.workspace.made.user_id;
    let link = site.workspace.app.create_sign_in_link(user, true).await.expect("a link");
    let browser = browser().await;
    site.visit(&browser, &format!("enter#{}", link.code)).await;
    browser.text("form[action='/console/enter/confirm/']").await;
    assert_eq!(browser.text("h1").await, "Sign in as Olga?");
    assert!(!browser.url().await.as_str().contains(&link.code));
    assert_sound(&browser, "the question").await;
    go_to(&browser, "button.go", "Home").await;
    go_to(&browser, "nav.side a[href='/console/health/']", "Health of the service").await;
    assert_sound(&browser, "health").await;
    browser.close().await;
}

/// Asserts that the palette on the page of dashboards lists pages, projects, organizations and dashboards, in this order.
async fn assert_lists_places(site: &Site, browser: &Browser) {
    site.visit(browser, &format!("projects/{}/dashboards/", site.workspace.made.project_id)).await;
    shown(browser, "Dashboards").await;
    browser.press_with_control('k').await;
    browser.wait_until("the palette is open", "document.getElementById('palette').open").await;
    let listed = "return [...document.querySelectorAll('#palette li')].map(one => [one.dataset.href, \
                  one.querySelector('bdi').textContent, one.querySelector('.kind').textContent, \
                  one.querySelector('use').getAttribute('href').split('#')[1]])";
    let listed = browser.run(listed).await;
    let listed = listed.as_array().expect("a list");
    let organization = format!("/console/organizations/{}/", site.workspace.made.organization_id);
    let places = [
        ["/console/projects/1/dashboards/", "Dashboards", "page", "layout-dashboard"],
        ["/console/sessions/", "Sessions", "page", "monitor"],
        ["/console/projects/1/dashboards/", "Web", "project", "folder"],
        [&organization, "Corp", "organization", "building-2"],
        ["/console/projects/1/dashboards/1/", "Growth", "dashboard", "layout-dashboard"],
    ];
    let at = places.map(|place| listed.iter().position(|one| *one == serde_json::json!(place)));
    assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{at:?}: {listed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn palette_opens_pages_and_searches_by_keyboard() {
    let site = Site::new().await;
    site.board("Growth").await;
    let browser = site.browser().await;
    browser.press_with_control('k').await;
    browser.wait_until("the palette is open", "document.getElementById('palette').open").await;
    assert_sound(&browser, "the palette").await;
    assert_lists_places(&site, &browser).await;
    browser.type_text("sess").await;
    browser.press(Key::Enter).await;
    shown(&browser, "Sessions").await;
    browser.press_with_control('k').await;
    browser.type_text("grow").await;
    browser.press(Key::Enter).await;
    shown(&browser, "Dashboards").await;
    assert!(browser.url().await.as_str().ends_with("?search=grow"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_warns_of_its_end_and_is_ended_in_place() {
    let site = Site::new().await;
    let browser = browser().await;
    let other = recording(Browser::open().await).await;
    site.sign_in(&other).await;
    site.sign_in(&browser).await;
    site.visit(&browser, "sessions/").await;
    browser.text("main h1").await;
    browser.run("window.same = true").await;
    // A session that is about to end says so.
    let is_hidden = "document.getElementById('ending').hidden";
    assert_eq!(browser.run(&format!("return {is_hidden}")).await, true);
    let soon = "document.querySelector('.shell').dataset.ends = new Date(Date.now() + 4 * 60_000).toISOString(); \
                document.dispatchEvent(new Event('visibilitychange'))";
    browser.run(soon).await;
    browser.wait_until("the warning is shown", &format!("!{is_hidden}")).await;
    assert_sound(&browser, "a session about to end").await;
    browser.click("tbody tr:last-child button").await;
    let one = "document.querySelectorAll('main tbody tr').length === 1";
    browser.wait_until("the session is gone", one).await;
    assert_eq!(browser.run("return window.same").await, true, "the page was replaced");
    assert_sound(&browser, "sessions").await;
    site.visit(&other, "sessions/").await;
    assert_eq!(other.text("h1").await, "Sign in to Steward");
    browser.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn console_works_over_plain_http_under_a_name() {
    let site = Site::at("console.test").await;
    let rule = "--host-resolver-rules=MAP console.test 127.0.0.1";
    let browser = recording(Browser::open_with(&[rule]).await).await;
    site.sign_in(&browser).await;
    assert_eq!(browser.run("return isSecureContext").await, false);
    browser.click(".who button").await;
    go_to(&browser, "#you form button", "Sign in").await;
    browser.close().await;
}
