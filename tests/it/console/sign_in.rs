//! Signing in with a key and with a link, and signing out.

use crate::support::prelude::*;

const SIGN_IN: &str = "/console/sign_in/";
const INVALID_KEY: &str =
    "This key signs nobody in. It may be mistyped, revoked, replaced or expired.";
const INVALID_CODE: &str = "This link signs nobody in. It works once, within five minutes. Run the command steward console again.";

#[tokio::test]
async fn key_opens_a_session_in_a_strict_cookie() {
    let workspace = Workspace::new().await;
    let mut visitor = Visitor::new(&workspace);
    let host = [("host", "steward.localhost:8000"), FORM[0], FORM[1]];
    let form = format!("key={}&next=/console/sessions/", workspace.made.api_key);
    let page = visitor.fetch(Method::POST, SIGN_IN, &host, &form).await;
    assert_eq!(page.location(), "/console/sessions/");
    let cookie = page.headers["set-cookie"].to_str().expect("text").to_owned();
    let (pair, attributes) = cookie.split_once("; ").expect("attributes");
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/console/");
    assert!(pair.starts_with("steward-8000=") && !cookie.contains(&workspace.made.api_key));
    visitor.cookie = Some(pair.to_owned());
    let page = visitor.fetch(Method::GET, "/console/sessions/", &host[..1], "").await;
    page.assert_shows(200, "Sessions");
    // The cookie belongs to this port.
    let other = [("host", "steward.localhost:8001")];
    let page = visitor.fetch(Method::GET, "/console/sessions/", &other, "").await;
    assert!(page.location().starts_with(SIGN_IN));
}

#[tokio::test]
async fn sign_in_ends_the_session_that_the_browser_has() {
    let workspace = Workspace::new().await;
    let (mut visitor, other) = (Visitor::owner(&workspace).await, Visitor::owner(&workspace).await);
    let first = visitor.clone();
    visitor.post(SIGN_IN, &[("key", &workspace.made.api_key)]).await;
    let second = visitor.clone();
    assert_ne!(second.cookie, first.cookie);
    let user = workspace.made.user_id;
    let link = workspace.app.create_sign_in_link(user, false).await.expect("a link");
    visitor.post("/console/enter/confirm/", &[("code", &link.code)]).await;
    assert_eq!(visitor.post(SIGN_IN, &[("key", "phx_wrong")]).await.status, 401);
    for ended in [first, second] {
        assert!(ended.get("/console/sessions/").await.location().starts_with(SIGN_IN));
    }
    for live in [&visitor, &other] {
        let page = live.get("/console/sessions/").await;
        let buttons = "class=\"b small\" aria-label=\"End the session";
        assert_eq!((page.status, page.html.matches(buttons).count()), (200, 2));
    }
}

#[tokio::test]
async fn every_invalid_key_has_the_same_response() {
    let workspace = Workspace::new().await;
    let key = workspace.made.api_key.clone();
    let revoked = workspace.limited_key(OWNER, &["*"], json!({"expires_in": 0})).await;
    let mut pages = Vec::new();
    for key in
        ["", "x", "phx_unknown", &key[..key.len() - 1], revoked.key.as_deref().expect("a key")]
    {
        let mut visitor = Visitor::new(&workspace);
        let page = visitor.post(SIGN_IN, &[("key", key)]).await.showing(401, "Sign in to Steward");
        assert!(page.html.contains(INVALID_KEY) && visitor.cookie.is_none());
        assert!(key.len() < 2 || !page.html.contains(key));
        pages.push(page.html);
    }
    assert!(pages.iter().all(|page| *page == pages[0]));
}

#[tokio::test]
async fn failed_sign_ins_are_limited_by_address() {
    let (mut config, clock) = with_clock();
    config.rate_limits = vec!["3/h".parse().expect("a rate")];
    let workspace = Workspace::with(config).await;
    let mut visitor = Visitor::new(&workspace);
    for _ in 0..2 {
        assert_eq!(visitor.post(SIGN_IN, &[("key", "phx_wrong")]).await.status, 401);
    }
    assert_eq!(visitor.post("/console/enter/", &[("code", "wrong")]).await.status, 401);
    let page = visitor.post(SIGN_IN, &[("key", "phx_wrong")]).await;
    page.assert_shows(429, "Too many requests");
    assert_eq!(page.headers["retry-after"], "1200");
    page.assert_has(&["Try again in 1200 seconds."]);
    clock.advance(Duration::from_mins(20));
    assert_eq!(visitor.post(SIGN_IN, &[("key", "phx_wrong")]).await.status, 401);
}

#[tokio::test]
async fn sign_ins_count_as_requests_of_their_key() {
    let (mut config, _) = with_clock();
    config.rate_limits = vec!["3/h".parse().expect("a rate")];
    let workspace = Workspace::with(config).await;
    let key = [("key", workspace.made.api_key.as_str())];
    for _ in 0..3 {
        assert_eq!(Visitor::new(&workspace).post(SIGN_IN, &key).await.location(), "/console/");
    }
    let mut visitor = Visitor::new(&workspace);
    let page = visitor.post(SIGN_IN, &key).await.showing(429, "Too many requests");
    assert!(page.headers["retry-after"] == "1200" && visitor.cookie.is_none());
}

#[tokio::test]
async fn sign_in_leads_only_to_pages_of_the_console() {
    let workspace = Workspace::new().await;
    for (next, expected) in [
        ("/console/sessions/?a=b", "/console/sessions/?a=b"),
        ("//evil.example/console/", "/console/"),
        ("/console/../api/schema/", "/console/"),
    ] {
        let mut visitor = Visitor::new(&workspace);
        let form = [("key", workspace.made.api_key.as_str()), ("next", next)];
        assert_eq!(visitor.post(SIGN_IN, &form).await.location(), expected);
        // A browser that is signed in goes on at once.
        let query: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
        assert_eq!(visitor.get(&format!("{SIGN_IN}?next={query}")).await.location(), expected);
    }
}

#[tokio::test]
async fn link_names_its_user_before_it_signs_in_once() {
    let workspace = Workspace::new().await;
    let user = workspace.made.user_id;
    let link = workspace.app.create_sign_in_link(user, false).await.expect("a link");
    let mut visitor = Visitor::new(&workspace);
    visitor.get("/console/enter/").await.assert_shows(200, "Sign in by link");
    for _ in 0..2 {
        let page = visitor.post("/console/enter/", &[("code", &link.code)]).await;
        page.assert_shows(200, "Sign in as <bdi>Olga</bdi>?");
        assert!(page.html.contains(OWNER) && visitor.cookie.is_none(), "the link is not used up");
    }
    let page = visitor.post("/console/enter/confirm/", &[("code", &link.code)]).await;
    assert_eq!(page.location(), "/console/");
    visitor.get("/console/sessions/").await.assert_shows(200, "Sessions");
    for path in ["/console/enter/", "/console/enter/confirm/"] {
        for code in [link.code.as_str(), "", "wrong"] {
            let mut other = Visitor::new(&workspace);
            let page = other.post(path, &[("code", code)]).await.showing(401, "Sign in by link");
            assert!(page.html.contains(INVALID_CODE) && other.cookie.is_none());
        }
    }
}

#[tokio::test]
async fn sign_out_ends_the_session_and_removes_the_cookie() {
    let workspace = Workspace::new().await;
    let mut visitor = Visitor::with_scopes(&workspace, OWNER, &["dashboard:read"]).await;
    let before = visitor.clone();
    let page = visitor.post("/console/sign_out/", &[]).await;
    assert_eq!((page.location(), &visitor.cookie), (SIGN_IN, &None));
    let removed = page.headers["set-cookie"].to_str().expect("text");
    assert_eq!(removed, "steward=; HttpOnly; SameSite=Strict; Path=/console/; Max-Age=0");
    assert!(before.get("/console/sessions/").await.location().starts_with(SIGN_IN));
    // Signing out twice is no error.
    assert_eq!(visitor.post("/console/sign_out/", &[]).await.location(), SIGN_IN);
}

#[tokio::test]
async fn page_opened_by_another_site_opens_itself_again_with_the_cookie() {
    let workspace = Workspace::new().await;
    let visitor = Visitor::new(&workspace);
    // Another host of the domain has set a cookie that is sent all the same.
    let mut beside = visitor.clone();
    beside.cookie = Some("steward=x".to_owned());
    for site in ["cross-site", "same-site"] {
        for path in ["/console/sessions/", "/console/sign_in/?next=%2Fconsole%2Fsessions%2F"] {
            for browser in [&visitor, &beside] {
                let page = browser.fetch(Method::GET, path, &[("sec-fetch-site", site)], "").await;
                page.assert_shows(200, "Opening the page …");
                page.assert_has(&["<meta http-equiv=\"refresh\" content=\"0\">"]);
            }
        }
    }
    let page = visitor.fetch(Method::GET, "/console/sessions/", &FORM[..1], "").await;
    assert_eq!(page.location(), "/console/sign_in/?next=%2Fconsole%2Fsessions%2F");
}
