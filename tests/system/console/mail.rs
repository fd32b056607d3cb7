//! Signing in by mail.

use serde_json::json;
use steward::Config;

use super::{Site, assert_sound, browser, go_to, recording, shown};
use crate::support::OWNER;
use crate::support::browser::Browser;
use crate::support::smtp::MailServer;

const SEND: &str = "form[action='/console/sign_in/mail/'] button";

async fn site(server: &MailServer) -> Site {
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
    let site = site(&server).await;
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
    browser.close().await;
    other.close().await;
}
