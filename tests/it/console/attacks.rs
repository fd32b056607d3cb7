//! Attacks on sessions and forms that need no browser.

use axum::body::Bytes;

use crate::support::prelude::*;

const PROFILE: &str = "/console/profile/";

/// Returns a visitor with a key of this user, and the id of the key.
async fn with_own_key(workspace: &Workspace, email: &str) -> (Visitor, String) {
    let key = workspace.limited_key(email, &["*"], json!({ "expires_in": 6 * 3600 })).await;
    let shown = key.get("/api/personal_api_keys/@current/").await.ok();
    let visitor = Visitor::with_key(workspace, key.key.as_deref().expect("a key")).await;
    (visitor, shown["id"].as_str().expect("an id").to_owned())
}

async fn assert_ended(visitor: &mut Visitor, why: &str) {
    let page = visitor.get(PROFILE).await;
    assert_eq!(page.location(), "/console/sign_in/?next=%2Fconsole%2Fprofile%2F", "{why}");
    let page = visitor.post(PROFILE, &[("first_name", "Eve")]).await;
    page.assert_shows(401, "Your session has ended");
}

#[tokio::test]
async fn cookie_that_somebody_planted_becomes_no_session() {
    let workspace = Workspace::new().await;
    let victim = workspace.made.api_key.as_str();
    workspace.member("eve", Level::Member).await;
    let (eve, _) = with_own_key(&workspace, "eve@corp.example").await;
    for planted in [eve.cookie.clone(), Some("steward=AAAA.BBBB".to_owned())] {
        let mut browser = Visitor::new(&workspace);
        browser.cookie.clone_from(&planted);
        browser.post("/console/sign_in/", &[("key", victim)]).await.location();
        assert_ne!(browser.cookie, planted);
        assert!(browser.get(PROFILE).await.html.contains(OWNER), "the victim's own session");
        let link = workspace.app.create_sign_in_link(workspace.made.user_id, false).await;
        let mut browser = Visitor::new(&workspace);
        browser.cookie.clone_from(&planted);
        let sent = [("code", link.expect("a link").code)];
        let sent: Vec<_> = sent.iter().map(|(name, code)| (*name, code.as_str())).collect();
        browser.post("/console/enter/confirm/", &sent).await.location();
        assert_ne!(browser.cookie, planted);
        // Whoever knows the planted cookie has gained nothing.
        let mut attacker = Visitor::new(&workspace);
        attacker.cookie = planted;
        assert_ended(&mut attacker, "the planted session").await;
    }
    // A second cookie, which another port of the host has set, does not decide whose session it is.
    let (eve, _) = with_own_key(&workspace, "eve@corp.example").await;
    let mut both = Visitor::owner(&workspace).await;
    let own = both.cookie.take().expect("a cookie");
    both.cookie = Some(format!("{}; {own}", eve.cookie.expect("a cookie")));
    assert_ended(&mut both, "two cookies").await;
    let page = both.get("/console/sign_in/").await;
    page.assert_has(&["several cookies with the name <code>steward</code>"]);
}

#[tokio::test]
async fn cookie_of_another_host_does_not_end_the_session() {
    let workspace = Workspace::new().await;
    let own = Visitor::owner(&workspace).await.cookie.expect("a cookie");
    for planted in ["steward=AAAA.BBBB", "steward=", "steward=\"", "steward=a; steward=b"] {
        for both in [format!("{planted}; {own}"), format!("{own}; {planted}")] {
            let mut browser = Visitor::new(&workspace);
            browser.cookie = Some(both.clone());
            assert!(browser.get(PROFILE).await.html.contains(OWNER), "{both}");
            // A new sign-in replaces the session of the browser, and works beside the other cookie.
            assert_eq!(browser.post("/console/sign_in/", &[]).await.status, 401);
            assert!(browser.get(PROFILE).await.html.contains(OWNER), "{both}");
        }
        let mut browser = Visitor::new(&workspace);
        browser.cookie = Some(planted.to_owned());
        let page = browser.get("/console/sign_in/").await;
        assert_eq!(page.html.contains("several cookies"), planted.contains(';'), "{planted}");
    }
}

#[tokio::test]
async fn session_that_ends_while_a_form_arrives_changes_nothing() {
    let workspace = Workspace::new().await;
    let (visitor, id) = with_own_key(&workspace, OWNER).await;
    let (asked, is_asked) = oneshot::channel::<()>();
    let (go, may_go) = oneshot::channel::<()>();
    let body = stream::once(async move {
        asked.send(()).expect("a test that waits");
        may_go.await.expect("a test that goes on");
        Ok::<_, Infallible>(Bytes::from("first_name=Eve"))
    });
    let mut request = Request::builder().method(Method::POST).uri(PROFILE);
    for (name, value) in FORM {
        request = request.header(name, value);
    }
    let request = request.header("cookie", visitor.cookie.as_deref().expect("a cookie"));
    let request = request.body(Body::from_stream(body)).expect("a request");
    let client = workspace.anonymous();
    let sent = tokio::spawn(async move { client.raw(request).await });
    is_asked.await.expect("the page reads the form");
    workspace.owner.delete(&format!("/api/personal_api_keys/{id}/")).await.assert_empty(204);
    go.send(()).expect("a form that waits");
    let page = sent.await.expect("no panic");
    let html = String::from_utf8(page.bytes).expect("UTF-8");
    assert_eq!(page.status, 401, "{html}");
    assert!(html.contains("Your session has ended") && html.contains("Eve"), "the form is kept");
    assert_eq!(workspace.owner.get(ME).await.ok()["first_name"], "Olga");
}

#[tokio::test]
async fn huge_and_strange_forms_change_nothing() {
    let (workspace, owner) = Visitor::in_new_workspace().await;
    let me = async || -> Value { workspace.owner.get(ME).await.ok() };
    let before = me().await;
    let deep = format!("first_name{}=x", ".a".repeat(5_000));
    for (media, body, status) in [
        (FORM[1].1, "first_name=Eve&".repeat(10_000), 400),
        (FORM[1].1, format!("first_name={}", "x".repeat(2 * 1024 * 1024)), 413),
        (FORM[1].1, "first_name=%ff%fe".to_owned(), 400),
        ("application/x-www-form-urlencoded; charset=utf-16", "first_name=Eve".to_owned(), 415),
        ("multipart/form-data; boundary=x", "--x\r\n\r\nfirst_name\r\n--x--".to_owned(), 415),
        ("text/plain", "first_name=Eve".to_owned(), 415),
        ("application/json", r#"{"first_name": "Eve"}"#.to_owned(), 415),
        ("", "first_name=Eve".to_owned(), 415),
    ] {
        let headers = [FORM[0], ("content-type", media)];
        let headers = if media.is_empty() { &headers[..1] } else { &headers[..] };
        let page = owner.fetch(Method::POST, PROFILE, headers, &body).await;
        assert_eq!(page.status, status, "{media}: {}", page.html);
    }
    // Members that no field of the form has are not sent.
    for strange in [deep.as_str(), "__proto__.x=1&constructor=2&=3&email.a=4"] {
        owner.fetch(Method::POST, PROFILE, &FORM, strange).await.location();
    }
    assert_eq!(me().await, before);
}
