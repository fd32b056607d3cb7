//! What admins do with people: verify a domain.

use serde_json::json;

use super::{Site, assert_sound, go_to};
use crate::support::dns::{Dns, Reply};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn domain_is_verified_as_soon_as_its_record_is_seen() {
    let dns = Dns::start().await;
    let site = Site::with("steward.localhost", dns.config()).await;
    let browser = site.browser().await;
    go_to(&browser, "nav.side a[href$='/domains/']", "Domains").await;
    browser.fill("#form-domain", "corp.example").await;
    go_to(&browser, "#form .bar button", "corp.example").await;
    assert!(browser.text("#answer").await.starts_with("There is no such record yet."));
    assert_sound(&browser, "an unknown record").await;
    let challenge = browser.text("#value").await;
    browser.run("window.same = true").await;
    // The button changes its icon only for a moment.
    let note = "const icon = document.querySelector('[data-copy=value] use'); new MutationObserver(() => { \
                window.checked ||= icon.getAttribute('href').endsWith('#check') }).observe(icon, { attributes: true })";
    browser.run(note).await;
    browser.click("[data-copy=value]").await;
    let copied = "window.checked && document.getElementById('say').textContent === 'Copied'";
    browser.wait_until("the value is copied", copied).await;
    dns.set("_posthog-challenge.corp.example.", Reply::texts(&[&["another"]]));
    browser.click("form[data-repeat] button").await;
    let other = "document.querySelector('#answer').textContent.includes('with another value')";
    browser.wait_until("the other record is shown", other).await;
    dns.set("_posthog-challenge.corp.example.", Reply::texts(&[&[&challenge]]));
    browser.fill("#form-saml_entity_id", "typed").await;
    // The page may have asked by now: it then has no such form any more.
    browser
        .run("document.querySelectorAll('[data-repeat]').forEach(form => { form.dataset.repeat = 0 })")
        .await;
    let seen = "document.querySelector(\"form[action$='/verify/']\")";
    browser.wait_until("the page has asked by itself", &format!("{seen} !== null")).await;
    assert_eq!(browser.run("return window.same").await, true, "the page was replaced");
    assert_eq!(browser.run("return history.length < 6").await, true, "one entry a page");
    let typed = "return document.getElementById('form-saml_entity_id').value";
    assert_eq!(browser.run(typed).await, "typed", "what was typed is lost");
    assert_sound(&browser, "the record is there").await;
    browser.click("form[action$='/verify/'] button").await;
    let done = "document.querySelector('[data-notice]')?.textContent.trim() === 'Domain verified.'";
    browser.wait_until("it is verified", done).await;
    assert_eq!(browser.text(".head .tag").await, "Verified");
    assert_eq!(
        browser.run("return document.querySelectorAll('[data-repeat]').length").await,
        json!(0)
    );
    assert_sound(&browser, "a verified domain").await;
    browser.close().await;
}
