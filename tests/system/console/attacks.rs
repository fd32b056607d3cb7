//! Pages of other sites that try to use the session of the browser.

use axum::Router;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::Html;

use super::recording;
use crate::prelude::*;

/// Serves this page with this policy to every request, on a port of its own.
async fn serve_page(policy: Option<&'static str>, html: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let answer = (policy.map(|policy| [(CONTENT_SECURITY_POLICY, policy)]), Html(html));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_of_other_sites_and_ports_do_not_use_the_session() {
    let site = Site::new().await;
    let eve = site.workspace.key(OWNER, &["user:read"]).await.key.expect("a key");
    let browser = site.browser().await;
    let sessions = async || {
        let list = site.workspace.owner.get("/api/users/@me/sessions/").await.ok();
        list.as_array().expect("sessions").len()
    };
    let submit = "<script>document.forms[0].submit()</script>";
    for (path, fields) in [
        ("sign_out/", String::new()),
        // Signs the victim in as somebody else.
        ("sign_in/", format!("<input name=key value={eve}>")),
        ("profile/", "<input name=first_name value=Eve>".to_owned()),
    ] {
        let action = format!("{}/console/{path}", site.base);
        let form = format!("<form method=post action=\"{action}\">{fields}</form>{submit}");
        let port = serve_page(None, form.clone()).await;
        for host in ["steward.localhost", "127.0.0.1"] {
            browser.visit(&format!("http://{host}:{port}/")).await;
            let refused = format!("location.pathname === '/console/{path}'");
            browser.wait_until("the refusal", &refused).await;
            assert_eq!(browser.text("h1").await, "You do not have access", "{host} {path}");
        }
        // The origin of a page in a sandbox is null.
        let port = serve_page(Some("sandbox allow-scripts allow-forms"), form).await;
        browser.visit(&format!("http://steward.localhost:{port}/")).await;
        let refused = format!("location.pathname === '/console/{path}'");
        browser.wait_until("the refusal", &refused).await;
        assert_eq!(browser.text("h1").await, "You do not have access", "null {path}");
        assert_sound_in_every_look(&browser, "a refused form").await;
        site.visit(&browser, "profile/").await;
        assert_eq!(browser.text("main h1").await, "Profile", "{path}");
        assert_eq!(sessions().await, 1, "{path}");
    }
    assert_eq!(site.workspace.owner.get("/api/users/@me/").await.ok()["first_name"], "Olga");
    assert_sound(&browser, "the profile").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn name_that_is_rebound_to_the_service_opens_no_page() {
    let site = Site::new().await;
    let rule = "--host-resolver-rules=MAP rebound.test 127.0.0.1";
    let browser = recording(Browser::open_with(&[rule]).await).await;
    browser.visit(&format!("http://rebound.test:{}/console/sign_in/", site.port)).await;
    assert_eq!(browser.text("h1").await, "Unknown host name");
    assert_sound_in_every_look(&browser, "another name").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn link_of_another_site_opens_a_page_in_the_session() {
    let site = Site::new().await;
    let link = format!("<a href=\"{}/console/sessions/\">open</a>", site.base);
    let port = serve_page(None, link).await;
    let browser = site.browser().await;
    browser.visit(&format!("http://127.0.0.1:{port}/")).await;
    go_to(&browser, "a", "Sessions").await;
    assert_sound(&browser, "sessions").await;
    // Without a session the same link ends at the sign-in page.
    browser.click(".who button").await;
    go_to(&browser, "#you form button", "Sign in").await;
    browser.visit(&format!("http://127.0.0.1:{port}/")).await;
    go_to(&browser, "a", "Sign in").await;
    assert_eq!(browser.url().await.query(), Some("next=%2Fconsole%2Fsessions%2F"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_the_console_are_not_shown_in_frames() {
    let site = Site::new().await;
    let frame = format!("<iframe src=\"{}/console/sign_in/\"></iframe>", site.base);
    let port = serve_page(None, frame).await;
    let browser = browser().await;
    browser.visit(&format!("http://steward.localhost:{port}/")).await;
    let blocked = "(() => { try { return !frames[0].document.querySelector('#key') } catch { return true } })()";
    browser.wait_until("the frame is blocked", blocked).await;
    assert_ne!(port, site.port);
}
