//! What people do: sign in with a key or by mail, find a dashboard, read it, verify a domain, sign out.

use super::recording;
use crate::prelude::*;
use crate::support::dns::Reply;

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

    go_to(&browser, &format!("main a[href$='/{}/']", board["id"]), "Growth").await;
    assert_eq!(browser.text(".tile h2").await, "Read this first");
    assert_sound(&browser, "a dashboard").await;
    browser.click(".who button").await;
    go_to(&browser, "#you form button", "Sign in").await;
    site.visit(&browser, "").await;
    assert_eq!(browser.text("h1").await, "Sign in to Steward");
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
}

/// Asserts that the palette on the page of dashboards lists pages, projects, organizations and dashboards, in this order.
async fn assert_lists_places(site: &Site, browser: &Browser) {
    site.visit(browser, "projects/1/dashboards/").await;
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
    let at = places.map(|place| listed.iter().position(|one| *one == json!(place)));
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
}

const SEND: &str = "form[action='/console/sign_in/mail/'] button";

/// Serves a workspace whose console signs in by mail.
async fn with_mail(server: &MailServer) -> Site {
    let mut config = Config::default();
    config.mail.smtp_url = Some(server.url().parse().expect("a URL"));
    config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
    config.console_mail_login = true;
    Site::with("steward.localhost", config).await
}

/// Asks for a mail in a browser. Returns the link and the code.
async fn ask(site: &Site, server: &mut MailServer, browser: &Browser) -> (String, String) {
    site.visit(browser, "sign_in/?next=%2Fconsole%2Fsessions%2F").await;
    browser.fill("#email", OWNER).await;
    go_to(browser, SEND, "Sign in by mail").await;
    let (text, _) = server.mail().await.bodies();
    let link = text.lines().find(|line| line.starts_with(&site.base)).expect("a link").to_owned();
    let code = link.split_once('#').expect("a code").1.to_owned();
    assert!(text.contains(&format!("\n\n{code}\n\n")), "{text}");
    (link, code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn link_of_a_mail_signs_in_the_browser_that_asked_and_no_other() {
    let mut server = MailServer::start();
    let site = with_mail(&server).await;
    let browser = browser().await;
    let other = recording(Browser::open().await).await;
    let (link, code) = ask(&site, &mut server, &browser).await;
    assert_sound(&browser, "the code").await;
    assert_eq!(browser.run("return document.cookie").await, "");

    other.visit(&link).await;
    let told = other.text("#code-error").await;
    assert!(told.starts_with("This browser did not ask for a mail"), "{told}");
    assert!(!other.url().await.as_str().contains(&code));
    assert_sound(&other, "another browser").await;

    browser.visit(&link).await;
    shown(&browser, "Home").await;
    assert!(!browser.url().await.as_str().contains(&code));
    assert_eq!(browser.run("return [document.cookie, localStorage.length]").await, json!(["", 0]));
    site.visit(&browser, "sessions/").await;
    assert_eq!(browser.text("td[data-label='Signed in with']").await, "A mail");
    assert_sound(&browser, "sessions").await;
}

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
    assert_eq!(browser.run("return document.querySelectorAll('[data-repeat]').length").await, 0);
    assert_sound(&browser, "a verified domain").await;
}
