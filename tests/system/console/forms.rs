//! Forms as people use them: with and without scripts, twice, with an error, and beside the changes of others.

use super::commands::run;
use crate::prelude::*;
use crate::support::crawler::{crawl, make_objects};

const SAVE: &str = "#form button.go";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn form_shows_its_command_its_error_and_its_notice() {
    let (site, browser) = Site::signed_in().await;
    site.visit(&browser, "profile/").await;
    browser.fill("#form-first_name", "Ada").await;
    browser.click("#form details summary").await;
    let command = browser.text("#form .command pre").await;
    assert!(command.contains(r#"'{"first_name":"Ada"}'"#), "{command}");
    assert_sound(&browser, "a command").await;
    browser.fill("#form-last_name", "Lovelace").await;
    browser.click("#form-anonymize_data").await;
    let follows = "document.querySelector('#form .command pre').textContent.includes('\"anonymize_data\":true')";
    browser.wait_until("the command follows the form", follows).await;
    let last_name = "return document.getElementById('form-last_name').value";
    assert_eq!(browser.run(last_name).await, "Lovelace");

    run(&site, &browser.text("#form .command pre").await);
    let after = site.workspace.owner.get("/api/users/@me/").await.ok();
    assert_eq!([&after["first_name"], &after["last_name"]], ["Ada", "Lovelace"]);

    site.visit(&browser, "profile/").await;
    browser.fill("#form-first_name", "Augusta").await;
    browser.fill("#form-notification_settings", "{").await;
    browser.click(SAVE).await;
    let error = browser.text("#form-notification_settings-error").await;
    assert!(error.starts_with("This is not valid JSON"), "{error}");
    assert_eq!(browser.run("return document.activeElement.id").await, "form-notification_settings");
    assert_sound_in_every_look(&browser, "an error").await;
    browser.fill("#form-notification_settings", "{}").await;
    browser.click(SAVE).await;
    assert_eq!(browser.text("[data-notice] p").await, "Profile saved.");
    browser.wait_until("the notice is out of the address", "location.search === ''").await;
    assert_sound(&browser, "a notice").await;
    let me = site.workspace.owner.get("/api/users/@me/").await.ok();
    assert_eq!(json!([me["first_name"], me["anonymize_data"]]), json!(["Augusta", true]));
}

/// Whether the browser would ask before it leaves the page.
const ASKS: &str = "!dispatchEvent(new Event('beforeunload', { cancelable: true }))";

/// Changes the first field of a form that people can change, as typing does.
const CHANGE: &str = "const form = [...document.querySelectorAll('main form.form[method=post]:not([data-question])')].at(-1); \
    const field = [...form.elements].find(one => one.name && !one.name.startsWith('_') && one.matches('input:not([type=hidden]), select, textarea')); \
    if (field.type === 'checkbox') field.checked = !field.checked; \
    else if (field.matches('select')) field.selectedIndex = (field.selectedIndex + 1) % field.options.length; \
    else field.value += '1'; \
    field.dispatchEvent(new Event('input', { bubbles: true })); return field.matches('select') && field.options.length === 1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_a_page_with_changes_asks_first() {
    let site = Site::new().await;
    make_objects(&site.workspace).await;
    let found = crawl(&Visitor::with_link(&site.workspace, true).await).await;
    let browser = browser().await;
    site.sign_in_by_link(&browser).await;
    let forms =
        "document.querySelectorAll('main form.form[method=post]:not([data-question])').length";
    let mut asked = 0;
    for page in found.pages.values().map(|pages| &pages[0]) {
        browser.visit(&format!("{}{page}", site.base)).await;
        browser.text("h1").await;
        assert_eq!(browser.run(&format!("return {ASKS}")).await, false, "{page} has no changes");
        if browser.run(&format!("return {forms}")).await == 0 {
            continue;
        }
        if browser.run(CHANGE).await == false {
            assert_eq!(browser.run(&format!("return {ASKS}")).await, true, "{page} has changes");
            asked += 1;
        }
    }
    assert!(asked > 15, "{asked} pages with forms");

    // Sending the form is no loss. A form that was refused is not sent yet.
    site.visit(&browser, "profile/").await;
    browser.fill("#form-first_name", "Ada").await;
    browser.fill("#form-notification_settings", "{").await;
    browser.click(SAVE).await;
    browser.text("#form-notification_settings-error").await;
    assert_eq!(browser.run(&format!("return {ASKS}")).await, true, "the form is not saved");
    browser.fill("#form-notification_settings", "{}").await;
    browser.click(SAVE).await;
    browser.text("[data-notice] p").await;
    assert_eq!(browser.run(&format!("return {ASKS}")).await, false, "the form is saved");

    // A level in a list is a change too. A search does not replace the list in place then, so that the browser asks.
    site.workspace.member("ann", Level::Member).await;
    let members = format!("organizations/{}/members/", site.workspace.made.organization_id);
    site.visit(&browser, &members).await;
    browser.text("td select").await;
    let search = "return document.querySelector('main form[role=search]').dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }))";
    let choose = "const select = document.querySelector('td select'); select.selectedIndex = (select.selectedIndex + 1) % select.options.length";
    browser.run(choose).await;
    assert_eq!(browser.run(&format!("return {ASKS}")).await, true, "the level is not saved");
    assert_eq!(browser.run(search).await, true, "the search loses the level");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_works_without_scripts() {
    let site = Site::new().await;
    let browser = browser().await;
    browser.refuse_scripts().await;
    site.sign_in(&browser).await;
    go_to(&browser, "nav.side a[href='/console/profile/']", "Profile").await;
    browser.fill("#form-first_name", "Ada").await;
    browser.click("#form details summary").await;
    browser.click("#form button[name=_show]").await;
    let command = browser.text("#commands pre").await;
    assert!(command.contains(r#"'{"first_name":"Ada"}'"#), "{command}");
    browser.click(SAVE).await;
    assert_eq!(browser.text("[data-notice] p").await, "Profile saved.");
    assert_eq!(site.workspace.owner.get("/api/users/@me/").await.ok()["first_name"], "Ada");
    // No page shows a button that only a script makes work.
    let organization = format!("organizations/{}/", site.workspace.made.organization_id);
    let invite = json!({ "target_email": "ann@x.example" });
    site.workspace.owner.post(&site.workspace.organization("invites/"), invite).await.ok();
    let [settings, invites] = ["settings", "invites"].map(|page| format!("{organization}{page}/"));
    for page in ["profile/", "keys/new/", &settings, &invites] {
        site.visit(&browser, page).await;
        let dead = "return [...document.querySelectorAll('[data-copy], [data-filter], [data-select-all], kbd, .scripted')]\
            .filter(one => one.checkVisibility()).map(one => one.outerHTML)";
        assert_eq!(browser.run(dead).await, json!([]), "{page}");
    }
}
