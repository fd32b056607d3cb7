//! The inspector of `steward test`, without and with a browser.

use super::test_command::{DASHBOARDS, MEMBER_KEY, ORGANIZATION, OWNER_KEY};
use super::test_control::Run;
use crate::console::looks;
use crate::prelude::*;
use crate::support::process::Reply;

const PAGES: [&str; 6] = ["", "requests/1/", "faults/", "mails/", "state/", "people/"];

/// Fills every page.
fn filled() -> Run {
    let run = Run::with(&["--console-mail-login"]);
    let fault = json!({ "results": [
        { "match": { "method": "PATCH" }, "times": 1, "effect": { "status": 503 } },
        { "match": { "method": "DELETE" }, "effect": { "drop": "before" } },
    ] });
    run.call("PUT", "faults", Some(&fault));
    let body = json!({ "name": "<A> it's \u{202e}", "nonsense": 1 });
    run.server.post(&format!("{DASHBOARDS}?x=1"), OWNER_KEY, &body).ok();
    run.server.get("/api/nope/", OWNER_KEY);
    let asked = json!({ "email": "member@example.com", "scopes": ["*"] });
    let key = run.call("POST", "keys", Some(&asked)).1["value"].as_str().expect("a key").to_owned();
    run.server.get(DASHBOARDS, &key).ok();
    let invites = format!("/api/organizations/{ORGANIZATION}/invites/");
    run.server.post(&invites, OWNER_KEY, &json!({ "target_email": "ann@example.com" })).ok();
    run.call("PUT", "snapshots/two.made", None);
    run.call("PUT", "dns/example.com", Some(&json!({ "txt": ["a text"] })));
    run.call("PUT", "dns/example.org", Some(&json!({ "error": "timeout" })));
    run
}

/// Sends a request with these header lines.
fn ask(run: &Run, path: &str, headers: &str) -> Reply {
    let mut connection = run.server.connect();
    connection.write(format!("GET {path} HTTP/1.1\r\n{headers}\r\n")).expect("sent");
    connection.reply().expect("a response")
}

/// Opens a page without a script.
#[track_caller]
fn page(run: &Run, path: &str, status: u16) -> String {
    let host = format!("Host: {}\r\n", run.server.address);
    let found = ask(run, &format!("/_test/inspector/{path}"), &host);
    assert_eq!(found.status, status, "{path}");
    String::from_utf8(found.body).expect("UTF-8")
}

#[track_caller]
fn assert_has(html: &str, texts: &[&str]) {
    for text in texts {
        assert!(html.contains(text), "{text}: {html}");
    }
}

#[test]
fn pages_show_what_the_control_plane_returns_and_change_nothing() {
    let run = filled();
    let state = || {
        ["", "faults", "mails", "snapshots", "dns", "clock", "requests"]
            .map(|path| run.call("GET", path, None).1)
    };
    let before = state();
    let requests = page(&run, "", 200);
    assert_has(
        &requests,
        &["POST /api/projects/1/dashboards/?x=1", "unknown_field", "unserved_route"],
    );
    let found = page(&run, "?operation=dashboards_create&status=201", 200);
    assert_has(&found, &["1 to 1 of 1", "requests?status=201&#38;operation=dashboards_create"]);
    assert_has(&page(&run, "?path=/api/no*/", 200), &["1 to 1 of 1", "unserved_route"]);
    assert_has(&page(&run, "?key=other", 200), &["No request matches these filters."]);
    assert_has(&page(&run, "?status=x", 400), &["A valid integer is required.", "value=\"x\""]);
    let one = page(&run, "requests/1/", 200);
    assert_has(
        &one,
        &["&#60;A&#62; it&#39;s \\u202e", "&#34;id&#34;: 1", "unknown_parameter", "Bearer ...c0MH"],
    );
    assert_has(&page(&run, "requests/3/", 200), &["Put the key into the variable", "Bearer $KEY"]);
    assert_has(&page(&run, "requests/99/", 404), &["The journal has no such request."]);
    assert_has(&page(&run, "requests/x/", 404), &["Not found"]);
    assert_has(&page(&run, "faults/", 200), &["{&#34;method&#34;:&#34;PATCH&#34;}", "times 1"]);
    assert_has(&page(&run, "mails/?to=ann@example.com", 200), &["accept_url", "/signup/"]);
    assert_has(
        &page(&run, "mails/?to=bob@example.com", 200),
        &["No mail was sent to this address."],
    );
    assert_has(&page(&run, "state/", 200), &["It stands.", "two.made", "a text", "timeout"]);
    assert_has(&page(&run, "people/", 200), &[MEMBER_KEY, "console/?email=owner%40example.com"]);
    assert_eq!(state(), before);
    for path in PAGES {
        assert!(!page(&run, path, 200).contains("method=\"post\""), "{path}");
    }
    run.server.stop();
}

#[test]
fn browser_is_led_to_the_inspector_and_other_sites_are_not() {
    let run = Run::with(&["--console", "off"]);
    let ask = |path: &str, headers: &str| ask(&run, path, headers);
    let accept = "Host: localhost\r\nAccept: text/html,application/xml;q=0.9,*/*;q=0.8\r\n";
    for path in ["/_test/", "/_test"] {
        let led = ask(path, accept);
        assert_eq!((led.status, led.header("location")), (303, Some("/_test/inspector/")));
    }
    let page = ask("/_test/inspector/", accept);
    assert_eq!(page.status, 200);
    let html = String::from_utf8(page.body).expect("UTF-8");
    let (_, style) = html.split_once("href=\"/console/assets/").expect("a style sheet");
    let style = style.split('"').next().expect("its name");
    let file = ask(&format!("/console/assets/{style}"), "Host: localhost\r\n");
    assert_eq!((file.status, file.header("content-type")), (200, Some("text/css; charset=utf-8")));
    assert_eq!(run.call("GET", "requests", None).1["count"], 0, "files of pages are no requests");
    assert_eq!(ask("/console/", "Host: localhost\r\n").status, 404);
    for headers in ["Host: evil.example\r\n", "Host: localhost\r\nOrigin: http://evil.example\r\n"]
    {
        for path in ["/_test/inspector/", "/_test/inspector/people/"] {
            assert_eq!(ask(path, headers).status, 403, "{path} {headers}");
        }
    }
    run.server.stop();
}

#[test]
fn command_of_a_request_repeats_it() {
    let run = filled();
    let html = page(&run, "requests/1/", 200);
    let (_, command) = html.split_once("<code dir=\"ltr\">").expect("a command");
    let command = command.split("</code>").next().expect("its end");
    let command = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")]
        .iter()
        .fold(command.to_owned(), |text, (from, to)| text.replace(from, to));
    let done = CommandOutput::new(std::process::Command::new("sh").args(["-c", &command]));
    assert_eq!(done.code, Some(0), "{command} {done:?}");
    let found = run.call("GET", "requests?operation=dashboards_create", None).1;
    let [first, again] = [0, 1].map(|at| &found["results"][at]);
    for member in ["method", "path", "query", "body", "caller", "status"] {
        assert_eq!(first[member], again[member], "{member}");
    }
    run.server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_is_accessible_and_fits_every_screen() {
    let run = filled();
    let base = format!("http://localhost:{}/_test/", run.server.address.port());
    let browser = browser().await;
    let mut faults = Vec::new();
    for path in PAGES.iter().chain(&["requests/3/", "requests/99/"]) {
        let url = format!("{base}inspector/{path}");
        browser.visit(&url).await;
        browser.text("h1").await;
        faults.extend(looks::faults(&browser, &url).await);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    browser.look(1280, "light").await;
    browser.visit(&base).await;
    shown(&browser, "Requests").await;
    run.server.get("/api/users/@me/", OWNER_KEY).ok();
    browser.wait_until("a new request", "document.getElementById('request-5') !== null").await;
    browser.click("nav a[href$='people/']").await;
    shown(&browser, "People").await;
    browser.click("a[href$='member%40example.com']").await;
    browser.text("form[action='/console/enter/confirm/']").await;
    go_to(&browser, "button.go", "Home").await;
    browser.refuse_scripts().await;
    browser.visit(&format!("{base}inspector/?path=/api/nowhere/&live=on")).await;
    run.server.get("/api/nowhere/", MEMBER_KEY);
    browser.text("a[href*='inspector/requests/']").await;
    run.server.stop();
}
