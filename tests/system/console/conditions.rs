//! What goes wrong between a browser and the server: a form is sent twice, a session ends, the server is slow or gone.
//! Nothing that was typed is lost.

use crate::prelude::*;
use crate::support::line::{Flow, Line};

const SAVE: &str = "#form button.go";

/// Returns the given name of the user.
async fn first_name(site: &Site) -> Value {
    site.workspace.owner.get("/api/users/@me/").await.ok()["first_name"].clone()
}

/// Saves the form, and asserts that the profile then has this first name.
async fn save_profile(site: &Site, browser: &Browser, name: &str) {
    browser.click(SAVE).await;
    assert_eq!(browser.text("[data-notice] p").await, "Profile saved.");
    assert_eq!(first_name(site).await, name);
}

async fn assert_typed(browser: &Browser, id: &str, text: &str) {
    let value = browser.run(&format!("return document.getElementById('{id}').value")).await;
    assert_eq!(value, text, "what was typed is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn form_that_is_sent_twice_creates_one_dashboard() {
    let (site, browser) = Site::signed_in().await;
    let count = async || {
        site.workspace.owner.get(&site.workspace.dashboards("")).await.ok()["count"].clone()
    };
    site.visit(&browser, "projects/1/dashboards/new/").await;
    browser.fill("#form-name", "Growth").await;
    // Two presses before the browser leaves the page.
    browser.run("const button = document.querySelector('#form button.go'); button.click(); button.click()").await;
    shown(&browser, "Growth").await;
    assert_eq!(count().await, 1);
    // Back to the form that was sent, and once more.
    browser.back().await;
    shown(&browser, "New dashboard").await;
    assert_typed(&browser, "form-name", "Growth").await;
    go_to(&browser, SAVE, "Growth").await;
    assert_eq!(count().await, 1, "the form was done twice");
    assert_sound(&browser, "the dashboard").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn form_survives_the_end_of_the_key_and_the_log_says_that_the_session_ended() {
    let site = Site::new().await;
    let key = site.workspace.key(OWNER, &["*"]).await.key.expect("a key");
    let id = site.workspace.with_key(&key).get("/api/personal_api_keys/@current/").await.ok()["id"]
        .clone();
    let browser = browser().await;
    site.visit(&browser, "sign_in/").await;
    browser.fill("#key", &key).await;
    go_to(&browser, "button.go", "Home").await;
    let first = browser.tab().await;
    let log = browser.open_tab().await;
    site.visit(&browser, "projects/1/activity/").await;
    browser.switch_to(&first).await;
    site.visit(&browser, "profile/").await;
    browser.fill("#form-first_name", "Ada <&>").await;
    let path = format!("/api/personal_api_keys/{}/", id.as_str().expect("an id"));
    site.workspace.owner.delete(&path).await.assert_empty(204);
    go_to(&browser, SAVE, "Your session has ended").await;
    assert_sound_in_every_look(&browser, "the kept form").await;
    assert_eq!(first_name(&site).await, "Olga");

    browser.switch_to(&log).await;
    browser.run("document.dispatchEvent(new Event('visibilitychange'))").await;
    assert_told(&browser, "Your session has ended. Sign in again to see new entries.").await;
    assert_sound(&browser, "the log").await;
    site.sign_in(&browser).await;
    browser.switch_to(&first).await;
    save_profile(&site, &browser, "Ada <&>").await;
}

/// Waits until the page says this where everybody can see it.
async fn assert_told(browser: &Browser, text: &str) {
    let told = format!(
        "(() => {{ const say = document.getElementById('say'), box = say.getBoundingClientRect(); \
           return say.textContent === '{text}' && box.width > 100 && box.bottom <= innerHeight && box.top >= 0 }})()"
    );
    browser.wait_until(text, &told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_says_that_the_server_is_gone_and_recovers() {
    let mut site = Site::new().await;
    let line = Line::before(([127, 0, 0, 1], site.port).into());
    (site.port, site.base) = (line.port(), format!("http://steward.localhost:{}", line.port()));
    let open = || line.set(Flow::Passes, Flow::Passes);
    let slow = || line.set(Flow::Waits, Flow::Passes);
    let shut = || {
        line.set(Flow::Ends, Flow::Ends);
        line.reset();
    };
    site.board("Growth").await;
    let browser = site.browser().await;

    // A slow server: the page waits, and its buttons send nothing twice.
    site.visit(&browser, "projects/1/dashboards/new/").await;
    browser.fill("#form-name", "Slow").await;
    slow();
    browser.run("const button = document.querySelector('#form button.go'); button.click(); button.click()").await;
    open();
    shown(&browser, "Slow").await;
    site.visit(&browser, "projects/1/dashboards/").await;
    slow();
    browser.fill("main input[type=search]", "growth").await;
    browser.run("document.querySelector('main form[role=search]').requestSubmit()").await;
    let busy = "document.querySelector('main form[role=search]').matches('[aria-busy]')";
    browser.wait_until("the list is busy", busy).await;
    open();
    let one = "document.querySelectorAll('main tbody tr').length === 1";
    browser.wait_until("the list is filtered", one).await;

    // A server that is gone: the page stays as it is, with what was typed.
    shut();
    browser.fill("main input[type=search]", "slow").await;
    browser.run("document.querySelector('main form[role=search] button').click()").await;
    assert_told(&browser, "The service cannot be reached. Try again.").await;
    assert_sound(&browser, "no server").await;
    open();
    site.visit(&browser, "profile/").await;
    browser.fill("#form-first_name", "Ada").await;
    shut();
    browser.click(SAVE).await;
    let told = "The service cannot be reached. What you typed is still here. Try again.";
    assert_told(&browser, told).await;
    assert_typed(&browser, "form-first_name", "Ada").await;
    open();
    save_profile(&site, &browser, "Ada").await;

    // The log misses what happens meanwhile, and asks again.
    site.visit(&browser, "projects/1/activity/").await;
    shown(&browser, "Activity").await;
    shut();
    site.board("Meanwhile").await;
    let ask = "document.dispatchEvent(new Event('visibilitychange'))";
    browser.run(ask).await;
    open();
    let news = format!(
        "(() => {{ const form = document.querySelector('form[data-news]'); if (form.hidden) {ask}; return !form.hidden }})()"
    );
    browser.wait_until("the news", &news).await;
}
