//! The control plane of `steward test`: states, organizations and keys.

use super::test_command::{DASHBOARDS, MEMBER_KEY, ORGANIZATION, OWNER_KEY, serve};
use crate::prelude::*;
use crate::support::process::{Reply, request};

/// A server that starts at a fixed time.
pub struct Run {
    pub server: Server,
    _site: DataFolder,
}

impl Run {
    pub fn with(args: &[&str]) -> Self {
        let site = DataFolder::empty();
        let args = [&["--now", "2026-03-01T00:00:00Z"], args].concat();
        Self { server: serve(&site, &args), _site: site }
    }

    /// Calls the control plane.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map_or_else(String::new, Value::to_string);
        self.call_with("", (method, path), &body)
    }

    /// Calls the control plane with these further header lines.
    fn call_with(&self, headers: &str, (method, path): (&str, &str), body: &str) -> (u16, Value) {
        let length = body.len();
        let head = format!(
            "{method} /_test/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        );
        let mut connection = self.server.connect();
        connection.write(head).expect("sent");
        let reply = connection.reply().expect("a response");
        (reply.status, reply.json())
    }

    #[track_caller]
    pub fn done(&self, method: &str, path: &str) {
        assert_eq!(self.call(method, path, None), (204, Value::Null), "{method} {path}");
    }

    /// Creates a dashboard, and returns the text of the response.
    pub fn create(&self, name: &str) -> String {
        self.server.post(DASHBOARDS, OWNER_KEY, &json!({ "name": name })).ok().to_string()
    }

    pub fn names(&self) -> Vec<String> {
        let found = self.server.dashboards(DASHBOARDS, OWNER_KEY);
        let mut names: Vec<_> = found.into_iter().map(|(_, name)| name).collect();
        names.sort();
        names
    }
}

pub fn error(code: &str, detail: &str, attr: Option<&str>) -> Value {
    let kind = if code == "not_found" { "invalid_request" } else { "validation_error" };
    json!({ "type": kind, "code": code, "detail": detail, "attr": attr })
}

#[test]
fn reset_and_restore_repeat_the_same_bytes() {
    let run = Run::with(&[]);
    let keys = |run: &Run| run.server.get("/api/personal_api_keys/", OWNER_KEY).body;
    let first = (run.create("one"), run.create("two"), keys(&run));
    let saved = json!({ "name": "two.made", "created_at": "2026-03-01T00:00:00Z" });
    let shown = |(status, mut body): (u16, Value)| {
        let bytes = body.as_object_mut().and_then(|body| body.shift_remove("bytes"));
        assert!(bytes.and_then(|bytes| bytes.as_u64()) > Some(4096));
        (status, body)
    };
    assert_eq!(shown(run.call("PUT", "snapshots/two.made", None)), (201, saved.clone()));
    let third = run.create("three");
    run.done("POST", "reset");
    assert_eq!(run.names(), [""; 0]);
    assert_eq!((run.create("one"), run.create("two"), keys(&run)), first);
    run.done("DELETE", "snapshots/two.made");
    assert_eq!(run.call("GET", "snapshots", None), (200, json!({ "results": [] })));
    assert_eq!(shown(run.call("PUT", "snapshots/two.made", None)), (201, saved.clone()));
    for name in ["other", "another"] {
        run.create(name);
        run.done("POST", "snapshots/two.made/restore");
        assert_eq!(run.names(), ["one", "two"]);
        assert_eq!(run.create("three"), third);
    }
    assert_eq!(shown(run.call("PUT", "snapshots/two.made", None)), (200, saved.clone()));
    assert_eq!(shown(run.call("GET", "snapshots/two.made", None)), (200, saved));
    run.create("four");
    run.done("POST", "snapshots/two.made/restore/");
    assert_eq!(run.names(), ["one", "three", "two"]);
    run.done("POST", "reset/");
    let names = run.call("GET", "snapshots/", None).1;
    assert_eq!(names["results"][0]["name"], "two.made", "a reset keeps the snapshots");
    run.server.stop();
}

#[test]
fn limits_and_caches_belong_to_the_state() {
    let run = Run::with(&["--rate-limit", "3/h"]);
    let read = || run.server.get("/api/users/@me/", MEMBER_KEY).status;
    assert_eq!([read(), read(), read(), read()], [200, 200, 200, 429]);
    run.call("PUT", "snapshots/used", None);
    assert_eq!(read(), 429, "a snapshot disturbs nothing");
    run.done("POST", "reset");
    assert_eq!([read(), read(), read(), read()], [200, 200, 200, 429]);
    run.done("POST", "reset");
    let me = json!({ "email": "member@example.com", "scopes": ["*"] });
    let key = run.call("POST", "keys", Some(&me)).1["value"].as_str().expect("a key").to_owned();
    assert_eq!(run.server.get("/api/users/@me/", &key).status, 200);
    run.done("POST", "reset");
    assert_eq!(run.server.get("/api/users/@me/", &key).status, 401, "it was never issued");
    run.server.stop();
}

#[test]
fn names_of_snapshots_are_refused_or_unknown() {
    let run = Run::with(&[]);
    let invalid = "Use at most 64 letters, digits, points, hyphens and underscores, and no point at the start.";
    let long = "x".repeat(65);
    for name in ["%2e%2e%2fx", ".x", "a%20b", "a%2Fb", "%00", "%C3%A4", &long] {
        for (method, rest) in [("PUT", ""), ("GET", ""), ("DELETE", ""), ("POST", "/restore")] {
            let refused = (400, error("invalid_input", invalid, Some("name")));
            assert_eq!(
                run.call(method, &format!("snapshots/{name}{rest}"), None),
                refused,
                "{name}"
            );
        }
    }
    for (method, rest) in [("GET", ""), ("DELETE", ""), ("POST", "/restore")] {
        let unknown = (404, error("not_found", "Snapshot not found.", None));
        assert_eq!(run.call(method, &format!("snapshots/absent{rest}"), None), unknown);
    }
    for number in 0..1000 {
        assert_eq!(run.call("PUT", &format!("snapshots/{number}"), None).0, 201);
    }
    let dry = run.call_with("Dry-Run: true\r\n", ("PUT", "snapshots/dry"), "");
    let none = "The control plane has no dry runs.";
    assert_eq!(dry, (400, error("invalid_input", none, Some("Dry-Run"))));
    let full = "There are 1000 snapshots. Delete one first.";
    let full = (400, error("limit_reached", full, None));
    assert_eq!(run.call("PUT", "snapshots/more", None), full);
    assert_eq!(run.call("PUT", "snapshots/999", None).0, 200);
    run.done("DELETE", "snapshots/0");
    assert_eq!(run.call("PUT", "snapshots/more", None).0, 201);
    let peak = run.server.memory("VmHWM:");
    assert!(peak < 256 << 20, "snapshots share what they have in common: {peak}");
    run.server.stop();
}

#[test]
fn state_is_replaced_between_requests_and_stalled_ones_end() {
    let run = Run::with(&["--log", "error"]);
    run.create("kept");
    run.call("PUT", "snapshots/kept", None);
    let end = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        // Few enough that even on a busy machine each request ends within the second that it has before the state is replaced.
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (run, end) = (&run, &end);
                scope.spawn(move || {
                    let mut connection = run.server.connect();
                    let new = json!({ "name": format!("of {writer}") });
                    while !end.load(std::sync::atomic::Ordering::Relaxed) {
                        let made = connection.send("POST", DASHBOARDS, OWNER_KEY, Some(&new));
                        assert_eq!(made.expect("a response").status, 201);
                    }
                })
            })
            .collect();
        for _ in 0..20 {
            run.done("POST", "snapshots/kept/restore");
        }
        end.store(true, std::sync::atomic::Ordering::Relaxed);
        for writer in writers {
            writer.join().expect("only 201");
        }
    });
    let mut stalled = run.server.connect();
    stalled.begin(DASHBOARDS, OWNER_KEY, 100);
    run.done("POST", "snapshots/kept/restore");
    stalled.reply().expect("a response").assert_error(503, "server_error", "unavailable");
    assert_eq!(run.names(), ["kept"]);
    let log = run.server.stop();
    assert_eq!(log, "", "no part of the service notices that another one was replaced");
}

#[test]
fn organization_of_a_test_has_people_with_keys_that_open_nothing_else() {
    let run = Run::with(&[]);
    let (status, made) = run.call("POST", "organizations", None);
    assert_eq!(status, 201, "{made}");
    let (project, owner) = (&made["projects"][0], &made["owner"]);
    let expected = json!({
        "organization_id": made["organization_id"], "name": "Test organization",
        "projects": [{ "id": 2, "name": "Default project", "api_token": project["api_token"] }],
        "owner": { "email": owner["email"], "uuid": owner["uuid"], "api_key": owner["api_key"] },
        "members": [],
    });
    assert_eq!(made, expected);
    let asked = json!({
        "name": "Acme", "projects": ["A", "B"],
        "members": [
            { "level": 8 }, { "email": "Ann@Example.com", "scopes": ["dashboard:read"] },
            { "email": "member@example.com" },
        ],
    });
    let (status, acme) = run.call("POST", "organizations", Some(&asked));
    assert_eq!(status, 201, "{acme}");
    assert_eq!((&acme["name"], &acme["projects"][1]["name"]), (&json!("Acme"), &json!("B")));
    let key = |person: &Value| person["api_key"].as_str().expect("a key").to_owned();
    let (owner, other) = (key(&acme["owner"]), key(&made["owner"]));
    let [admin, ann, member] = [0, 1, 2].map(|at| &acme["members"][at]);
    assert_eq!((&admin["level"], &ann["level"]), (&json!(8), &json!(1)));
    assert_eq!(
        (&ann["email"], &member["email"]),
        (&json!("Ann@example.com"), &json!("member@example.com"))
    );
    let id = acme["organization_id"].as_str().expect("an id");
    let members = format!("/api/organizations/{id}/members/");
    for (key, status) in [(&owner, 200), (&key(admin), 200), (&key(member), 200), (&other, 403)] {
        assert_eq!(run.server.get(&members, key).status, status);
    }
    assert_eq!(run.server.get(&members, &owner).ok()["count"], 4);
    assert_eq!(run.server.get(&members, MEMBER_KEY).status, 200, "the user is a member here, too");
    let dashboards =
        |project: usize| format!("/api/projects/{}/dashboards/", acme["projects"][project]["id"]);
    assert_eq!(run.server.post(&dashboards(1), &owner, &json!({ "name": "x" })).status, 201);
    assert_eq!(run.server.dashboards(&dashboards(1), &key(ann)), [(1, "x".to_owned())]);
    let refused = run.server.post(&dashboards(1), &key(ann), &json!({ "name": "x" }));
    refused.assert_error(403, "authentication_error", "permission_denied");
    assert_eq!(run.server.get(&dashboards(0), &other).status, 403);
    let token = json!({ "api_token": acme["projects"][0]["api_token"] });
    assert_eq!(
        run.server.get(&format!("/api/projects/{}/", acme["projects"][0]["id"]), &owner).ok()["api_token"],
        token["api_token"]
    );

    let many = json!({ "projects": 3, "members": 2 });
    let (_, many) = run.call("POST", "organizations", Some(&many));
    let lengths = ["projects", "members"].map(|name| many[name].as_array().map(Vec::len));
    assert_eq!(lengths, [Some(3), Some(2)]);
    let twice = json!({ "members": [{ "email": "a@example.com" }, { "email": "a@example.com" }] });
    for (body, code, attr) in [
        (json!({ "projects": 0 }), "min_value", Some("projects")),
        (json!({ "projects": [] }), "min_value", Some("projects")),
        (json!({ "projects": 101 }), "max_value", Some("projects")),
        (json!({ "projects": ["a", ""] }), "blank", Some("projects__1")),
        (json!({ "members": -1 }), "min_value", Some("members")),
        (json!({ "members": [{ "level": 9 }] }), "invalid_choice", Some("members__0__level")),
        (json!({ "members": [{ "scopes": ["x"] }] }), "invalid_input", Some("members__0__scopes")),
        (twice, "invalid_input", None),
        (json!({ "name": "" }), "blank", Some("name")),
    ] {
        let (status, refused) = run.call("POST", "organizations", Some(&body));
        let shown = (status, refused["code"].as_str(), refused["attr"].as_str());
        assert_eq!(shown, (400, Some(code), attr), "{body} {refused}");
    }
    let before = run.server.get("/api/organizations/", MEMBER_KEY).ok()["count"].clone();
    assert_eq!(before, 2, "what is refused leaves nothing");
    run.server.stop();
}

#[test]
fn key_of_anybody_has_what_it_was_given() {
    let run = Run::with(&[]);
    let asked = json!({ "email": "member@example.com", "scopes": ["dashboard:read", "user:read"] });
    let (status, made) = run.call("POST", "keys", Some(&asked));
    let shown = json!({
        "id": made["id"], "label": "Test", "value": made["value"], "scopes": ["dashboard:read", "user:read"],
    });
    assert_eq!((status, &made), (201, &shown));
    let key = made["value"].as_str().expect("a key");
    assert_eq!(run.server.get(DASHBOARDS, key).status, 200);
    assert_eq!(run.server.post(DASHBOARDS, key, &json!({ "name": "x" })).status, 403);
    let with = |member: Value| {
        let mut body = json!({ "email": "owner@example.com", "scopes": ["*"] });
        body.as_object_mut().expect("an object").extend(member.as_object().cloned().expect("one"));
        run.call("POST", "keys", Some(&body))
    };
    let (_, ended) = with(json!({ "expires_at": "2026-02-01" }));
    assert_eq!(run.server.get(DASHBOARDS, ended["value"].as_str().expect("a key")).status, 401);
    let (_, limited) = with(json!({ "scoped_organizations": [ORGANIZATION] }));
    assert_eq!(run.server.get(DASHBOARDS, limited["value"].as_str().expect("a key")).status, 200);
    for (member, code, attr) in [
        (json!({ "email": "nobody@example.com" }), "does_not_exist", "email"),
        (json!({ "scopes": [] }), "empty", "scopes"),
        (json!({ "scopes": null }), "null", "scopes"),
        (json!({ "scoped_teams": [99] }), "invalid_input", "scoped_teams"),
        (json!({ "expires_at": "soon" }), "invalid_input", "expires_at"),
    ] {
        let (status, refused) = with(member);
        let shown = (status, refused["code"].as_str(), refused["attr"].as_str());
        assert_eq!(shown, (400, Some(code), Some(attr)), "{refused}");
    }
    run.server.stop();
}

#[test]
fn clock_moves_forward_and_what_becomes_due_is_done() {
    let run = Run::with(&["--rate-limit", "9/h"]);
    let at = |now: &str, frozen: bool| json!({ "now": now, "frozen": frozen });
    let set = |body: Value| run.call("POST", "clock", Some(&body));
    let due = |mails: u32, invites: u32, keys: u32, deletions: u32| json!({ "mails": mails, "invites": invites, "keys": keys, "deletions": deletions });
    assert_eq!(run.call("GET", "clock", None), (200, at("2026-03-01T00:00:00Z", true)));
    let invites = format!("/api/organizations/{ORGANIZATION}/invites/");
    let invited = json!({ "target_email": "ann@example.com" });
    run.server.post(&invites, OWNER_KEY, &invited).ok();
    let asked =
        json!({ "email": "owner@example.com", "scopes": ["*"], "expires_at": "2026-03-02" });
    let key = run.call("POST", "keys", Some(&asked)).1["value"].as_str().expect("a key").to_owned();
    let mut once = run.server.connect();
    let headers = "Idempotency-Key: once\r\n";
    once.write(request("POST", DASHBOARDS, OWNER_KEY, headers, "{\"name\": \"once\"}"))
        .expect("sent");
    once.reply().expect("a response").ok();
    let read = || run.server.get("/api/users/@me/", MEMBER_KEY).status;
    assert_eq!((0..10).map(|_| read()).filter(|status| *status == 200).count(), 9);
    let (status, moved) = set(json!({ "advance": "1h" }));
    let shown = json!({ "now": "2026-03-01T01:00:00Z", "frozen": true, "due": moved["due"] });
    assert_eq!((status, &moved), (200, &shown));
    assert_eq!(read(), 200, "the limit follows the clock");
    assert_eq!(run.server.get("/api/users/@me/", &key).status, 200);
    assert_eq!(
        set(json!({ "now": "2026-03-02" })).1["due"],
        due(0, 0, 1, 1),
        "a key, and a stored response"
    );
    assert_eq!(run.server.get("/api/users/@me/", &key).status, 401);
    assert_eq!(set(json!({ "advance": "3days" })).1["due"], due(0, 1, 0, 0));
    let list = run.server.get(&invites, OWNER_KEY).ok();
    assert_eq!(list["results"][0]["is_expired"], true);
    let far = set(json!({ "advance": "365000days" }));
    assert_eq!((far.0, &far.1["frozen"]), (200, &json!(true)));
    let back = "The clock only moves forward. To go back, restore a snapshot or reset.";
    let end = "The clock ends with the year 9999.";
    for (body, detail, attr) in [
        (json!({ "now": "2026-03-01" }), back, "now"),
        (json!({ "advance": "-1h" }), "Write a time such as 72h or 15m.", "advance"),
        (json!({ "advance": 5 }), "Write a time such as 72h or 15m.", "advance"),
        (json!({ "advance": "9000years" }), end, "advance"),
        (json!({ "now": "9999-01-01", "advance": "1h" }), "Send either now or advance.", "advance"),
        (json!({}), "Send now, advance or frozen.", "now"),
        (json!({ "frozen": "often" }), "Must be a valid boolean.", "frozen"),
    ] {
        assert_eq!(set(body), (400, error("invalid_input", detail, Some(attr))));
    }
    run.done("POST", "reset");
    assert_eq!(run.call("GET", "clock", None), (200, at("2026-03-01T00:00:00Z", true)));
    let running = set(json!({ "frozen": false })).1;
    assert_eq!(running["frozen"], false);
    let later = until("the clock runs", || {
        let shown = run.call("GET", "clock", None).1;
        (shown["now"] != running["now"]).then_some(shown)
    });
    assert!(later["now"].as_str().expect("a time").starts_with("2026-03-01T00:0"), "{later}");
    assert_eq!(
        set(json!({ "frozen": true, "now": "2026-04-01" })).1["now"],
        "2026-04-01T00:00:00Z"
    );
    run.server.stop();
}

#[test]
fn mails_are_kept_with_their_links_and_belong_to_the_state() {
    let run = Run::with(&["--console-mail-login"]);
    let mails = |query: &str| run.call("GET", &format!("mails{query}"), None).1;
    let invites = format!("/api/organizations/{ORGANIZATION}/invites/");
    let invite =
        run.server.post(&invites, OWNER_KEY, &json!({ "target_email": "ann@example.com" })).ok();
    let found = mails("");
    let mail = &found["results"][0];
    let url = mail["links"]["accept_url"].as_str().expect("a link");
    let (page, token) = url.split_once("?token=").expect("a token");
    let id = invite["id"].as_str().expect("an id");
    assert_eq!(page, format!("http://{}/signup/{id}", run.server.address));
    let expected = json!({
        "number": 1, "at": "2026-03-01T00:00:00Z", "to": "ann@example.com", "from": "Steward <steward@example.com>",
        "subject": "owner@example.com invites you to My organization", "text": mail["text"], "kind": "invite",
        "links": { "accept_url": url, "token": token },
    });
    assert_eq!(found, json!({ "count": 1, "results": [expected] }));
    assert!(mail["text"].as_str().expect("a text").contains(url));
    run.call("PUT", "snapshots/invited", None);
    let accepted = json!({ "token": token, "first_name": "Ann" });
    let joined = run.server.post(&format!("/api/signup/{id}/"), "", &accepted);
    assert_eq!(joined.status, 201, "{}", joined.json());
    let owner = mails("?to=Owner%40example.com");
    let kinds = [&owner["count"], &owner["results"][0]["kind"], &owner["results"][0]["number"]];
    assert_eq!(kinds, [&json!(1), &json!("joined"), &json!(2)]);
    run.done("DELETE", "mails?to=owner%40example.com");
    assert_eq!(mails("")["count"], 1);
    run.done("DELETE", "mails");
    assert_eq!(mails(""), json!({ "count": 0, "results": [] }));
    run.done("POST", "snapshots/invited/restore");
    assert_eq!(mails("")["results"][0], expected, "a snapshot has its mails");
    run.done("POST", "reset");
    assert_eq!(mails("")["count"], 0);
    let refused = run.call("GET", "mails?to=x", None);
    assert_eq!(refused, (400, error("invalid_input", "Enter a valid email address.", Some("to"))));
    run.server.stop();
}

#[test]
fn dns_finds_what_was_set_and_asks_nobody() {
    let run = Run::with(&[]);
    let domains = format!("/api/organizations/{ORGANIZATION}/domains/");
    let made = run.server.post(&domains, OWNER_KEY, &json!({ "domain": "acme.com" })).ok();
    let challenge = made["verification_challenge"].as_str().expect("a challenge");
    let verify = format!("{domains}{}/verify/", made["id"].as_str().expect("an id"));
    let domain = format!("{domains}{}/", made["id"].as_str().expect("an id"));
    let is_verified = || run.server.get(&domain, OWNER_KEY).ok()["is_verified"] == true;
    let set = |name: &str, body: &Value| run.call("PUT", &format!("dns/{name}"), Some(body));
    assert_eq!(run.server.post(&verify, OWNER_KEY, &json!({})).status, 200);
    assert!(!is_verified(), "no record");
    for failure in ["servfail", "timeout"] {
        assert_eq!(set("_posthog-challenge.acme.com", &json!({ "error": failure })).0, 204);
        let failed = run.server.post(&verify, OWNER_KEY, &json!({}));
        failed.assert_error(503, "server_error", "unavailable");
    }
    let long = "x".repeat(600);
    let records = json!({ "txt": ["other", long, challenge] });
    assert_eq!(set("_posthog-challenge.ACME.com.", &records).0, 204);
    run.call("PUT", "snapshots/set", None);
    let known = json!({ "name": "_posthog-challenge.acme.com", "txt": ["other", long, challenge], "error": null });
    let list = || run.call("GET", "dns", None);
    assert_eq!(list(), (200, json!({ "results": [known] })));
    run.done("DELETE", "dns/_posthog-challenge.acme.com");
    let unknown = (404, error("not_found", "DNS name not found.", None));
    assert_eq!(run.call("DELETE", "dns/_posthog-challenge.acme.com", None), unknown);
    run.done("POST", "snapshots/set/restore");
    assert_eq!(run.server.post(&verify, OWNER_KEY, &json!({})).status, 200);
    assert!(is_verified());
    run.done("DELETE", "dns");
    assert_eq!(list().1, json!({ "results": [] }));
    for (name, body, detail, attr) in [
        ("a.example", json!({}), "Send either txt or error.", "txt"),
        ("a.example", json!({ "txt": [], "error": "timeout" }), "Send either txt or error.", "txt"),
        (
            "a.example",
            json!({ "error": "nxdomain" }),
            "\"nxdomain\" is not a valid choice.",
            "error",
        ),
        ("a..example", json!({ "txt": [] }), "This is not the name of a DNS record.", "name"),
    ] {
        let (status, refused) = set(name, &body);
        let shown = (status, &refused["detail"], &refused["attr"]);
        assert_eq!(shown, (400, &json!(detail), &json!(attr)));
    }
    run.server.stop();
}

#[test]
fn console_opens_as_any_user() {
    let run = Run::with(&[]);
    let lead = |query: &str| {
        let mut connection = run.server.connect();
        let head = format!("GET /_test/console?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        connection.write(head).expect("sent");
        let reply = connection.reply().expect("a response");
        (reply.status, reply.header("location").unwrap_or_default().to_owned())
    };
    let (status, page) = lead("email=member%40example.com");
    let start = format!("http://steward.localhost:{}/console/enter/#", run.server.address.port());
    assert!(status == 303 && page.starts_with(&start) && page.len() > start.len() + 20, "{page}");
    assert_eq!(lead("email=nobody%40example.com").0, 404);
    assert_eq!(lead("email=x").0, 400);
    run.server.stop();
}

/// Sends a form of the console, or opens a page without one.
fn page(run: &Run, path: &str, cookie: &str, form: Option<&str>) -> Reply {
    let host = run.server.address;
    let (method, body) = form.map_or(("GET", ""), |form| ("POST", form));
    let head = format!(
        "{method} /console/{path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connection = run.server.connect();
    connection.write(head).expect("sent");
    connection.reply().expect("a response")
}

#[test]
fn time_sends_mails_again_ends_sessions_and_deletes_what_is_old() {
    let run = Run::with(&["--console-mail-login", "--activity-retention", "60d"]);
    let advance =
        |by: &str| run.call("POST", "clock", Some(&json!({ "advance": by }))).1["due"].clone();
    let log = format!("/api/organizations/{ORGANIZATION}/activity_log/");
    let entries = || run.server.get(&log, OWNER_KEY).ok()["count"].clone();
    let before = entries().as_u64().expect("a number");
    run.create("one");
    let fault = json!({ "results": [{ "match": { "mail": "*@example.com" }, "times": 1, "effect": { "smtp": 451 } }] });
    run.call("PUT", "faults", Some(&fault));
    let asked = page(&run, "sign_in/mail/", "", Some("email=owner%40example.com"));
    assert_eq!(asked.status, 303);
    let cookie = |reply: &Reply| {
        let set = reply.header("set-cookie").expect("a cookie");
        set.split(';').next().expect("its value").to_owned()
    };
    let browser = cookie(&asked);
    assert_eq!(run.call("GET", "mails", None).1["count"], 0, "it was refused");
    assert_eq!(advance("5m")["mails"], 1);
    let mails = run.call("GET", "mails", None).1;
    let mail = &mails["results"][0];
    assert_eq!((&mail["kind"], &mail["to"]), (&json!("sign_in"), &json!("owner@example.com")));
    let code = mail["links"]["code"].as_str().expect("a code");
    let entered = page(&run, "sign_in/code/", &browser, Some(&format!("code={code}")));
    assert_eq!(entered.status, 303, "{}", String::from_utf8_lossy(&entered.body));
    let session = cookie(&entered);
    assert_eq!(page(&run, "sessions/", &session, None).status, 200);
    advance("1h");
    assert_eq!(page(&run, "sessions/", &session, None).status, 200);
    let due = advance("30days");
    assert!(due["deletions"].as_u64() > Some(0), "{due}");
    let led = page(&run, "sessions/", &session, None);
    assert_eq!(led.header("location"), Some("/console/sign_in/?next=%2Fconsole%2Fsessions%2F"));
    assert!(entries().as_u64() > Some(before), "the retention is longer");
    advance("60days");
    assert_eq!(entries(), 0);
    run.server.stop();
}

#[test]
fn parallel_tests_on_one_server_see_their_own_organization_alone() {
    let run = Run::with(&[]);
    let test = &|number: usize| {
        let (status, made) = run.call("POST", "organizations", Some(&json!({ "members": 1 })));
        assert_eq!(status, 201, "{made}");
        let dashboards = format!("/api/projects/{}/dashboards/", made["projects"][0]["id"]);
        let keys = [&made["owner"], &made["members"][0]]
            .map(|who| who["api_key"].as_str().expect("a key"));
        let name = format!("of {number}");
        run.server.post(&dashboards, keys[0], &json!({ "name": name })).ok();
        for key in keys {
            let organizations = run.server.get("/api/organizations/", key).ok();
            assert_eq!(organizations["count"], 1);
            assert_eq!(organizations["results"][0]["id"], made["organization_id"]);
            let found = run.server.dashboards(&dashboards, key);
            assert_eq!(
                found.into_iter().map(|(_, name)| name).collect::<Vec<_>>(),
                [name.as_str()]
            );
        }
        dashboards
    };
    let paths: BTreeSet<String> = thread::scope(|scope| {
        let tests: Vec<_> = (0..200).map(|number| scope.spawn(move || test(number))).collect();
        tests.into_iter().map(|test| test.join().expect("it passes")).collect()
    });
    assert_eq!(paths.len(), 200, "each has a project of its own");
    run.server.stop();
}
