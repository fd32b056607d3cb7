//! What admins do with people: invite one by mail, and verify a domain.

use serde_json::json;
use steward::Config;

use super::{Site, assert_sound, browser, shown};
use crate::support::dns::{Dns, Reply};
use crate::support::smtp::MailServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn person_is_invited_by_mail() {
    let mut server = MailServer::start();
    let mut config = Config::default();
    config.mail.smtp_url = Some(server.url().parse().expect("a URL"));
    config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
    let site = Site::with("steward.localhost", config).await;
    let browser = browser().await;
    site.sign_in(&browser).await;
    browser.click("nav.side a[href$='/members/']").await;
    shown(&browser, "Members").await;
    assert_sound(&browser, "members").await;
    browser.click("main .actions a").await;
    shown(&browser, "Invites").await;
    browser.fill("#form-target_email", "ann@x.example Ann").await;
    browser.click("#form-level option[value='8']").await;
    browser.click("#form .bar button").await;
    browser.wait_until("it is done", "document.querySelector('[data-notice]') !== null").await;
    assert_eq!(browser.text("[data-notice]").await, "Invite created.");
    let mail = server.mail().await;
    assert_eq!(mail.to, ["ann@x.example"]);
    let (text, _) = mail.bodies();
    let link = format!("{}/signup/", site.base);
    assert!(text.lines().any(|line| line.starts_with(&link)), "{text}");
    let is_sent =
        "fetch(location.href).then(page => page.text()).then(html => html.includes('>Sent<'))";
    browser.wait_until("the mail is sent", is_sent).await;
    browser.click("nav.side a[href$='/invites/']").await;
    browser
        .wait_until("the state is shown", "document.querySelector('td .tag.good') !== null")
        .await;
    assert_eq!(browser.text("td .tag.good").await, "Sent");
    assert_sound(&browser, "invites").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn domain_is_verified_as_soon_as_its_record_is_seen() {
    let dns = Dns::start().await;
    let site = Site::with("steward.localhost", dns.config()).await;
    let browser = browser().await;
    site.sign_in(&browser).await;
    browser.click("nav.side a[href$='/domains/']").await;
    shown(&browser, "Domains").await;
    browser.fill("#form-domain", "corp.example").await;
    browser.click("#form .bar button").await;
    shown(&browser, "corp.example").await;
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
