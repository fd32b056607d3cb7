//! The journal and the faults of `steward test`.

use super::test_command::{DASHBOARDS, MEMBER_KEY, ORGANIZATION, OWNER_KEY};
use super::test_control::{Run, error};
use crate::prelude::*;
use crate::support::process::{Reply, request};

/// Sends a request of the owner with these further header lines. `None` if the connection ends without a response.
fn send(run: &Run, target: (&str, &str), headers: &str, body: &str) -> Option<Reply> {
    ask(run, OWNER_KEY, target, headers, body)
}

fn ask(
    run: &Run,
    key: &str,
    (method, path): (&str, &str),
    headers: &str,
    body: &str,
) -> Option<Reply> {
    let mut connection = run.server.connect();
    connection.write(request(method, path, key, headers, body)).expect("sent");
    connection.reply().ok()
}

fn requests(run: &Run, query: &str) -> Vec<Value> {
    let (status, found) = run.call("GET", &format!("requests{query}"), None);
    assert_eq!(status, 200, "{found}");
    found["results"].as_array().cloned().expect("a list")
}

fn set_faults(run: &Run, rules: &Value) -> Value {
    let (status, set) = run.call("PUT", "faults", Some(&json!({ "results": rules })));
    assert_eq!(status, 200, "{set}");
    set["results"].clone()
}

#[test]
fn journal_shows_requests_with_their_caller_and_what_was_sent_in_vain() {
    let run = Run::with(&[]);
    let body = r#"{"name": "A", "nmae": "B"}"#;
    send(
        &run,
        ("POST", "/api/environments/1/dashboards/?limt=1&format=json"),
        "X-Run: 7\r\n",
        body,
    );
    let (_, found) = run.call("GET", "requests", None);
    let entry = &found["results"][0];
    let expected = json!({
        "number": 1, "at": "2026-03-01T00:00:00Z", "method": "POST", "path": "/api/environments/1/dashboards/",
        "query": "limt=1&format=json",
        "headers": {
            "host": "steward", "authorization": "Bearer ...c0MH", "x-run": "7", "content-type": "application/json",
            "content-length": body.len().to_string(),
        },
        "body": serde_json::from_str::<Value>(body).expect("JSON"), "operation": "dashboards_create",
        "caller": { "email": "owner@example.com", "key_label": "Test" }, "status": 201,
        "response": entry["response"], "duration_ms": entry["duration_ms"], "fault": null,
        "notes": [
            { "code": "unknown_parameter", "detail": "The operation dashboards_create has no parameter limt.", "attr": "limt" },
            { "code": "unknown_field", "detail": "The operation dashboards_create has no field nmae.", "attr": "nmae" },
            { "code": "deprecated_path", "detail": "Write /api/projects/ for /api/environments/.", "attr": null },
        ],
    });
    assert_eq!(found, json!({ "count": 1, "results": [expected] }));
    assert_eq!(entry["response"]["name"], "A");
    assert!(entry["duration_ms"].as_f64() > Some(0.0));
    send(
        &run,
        ("GET", "/api/projects/1/feature_flags/"),
        "Accept-Encoding: gzip\r\nCookie: a=secret\r\n",
        "",
    );
    let unserved = &requests(&run, "?status=404")[0];
    assert_eq!(unserved["headers"]["cookie"], "...");
    let note = json!([{
        "code": "unserved_route", "detail": "Steward does not serve /api/projects/1/feature_flags/.", "attr": null,
    }]);
    assert_eq!((&unserved["notes"], &unserved["operation"]), (&note, &Value::Null));
    for name in ["B", "C"] {
        run.create(name);
    }
    let page = run.server.get(&format!("{DASHBOARDS}?limit=2"), OWNER_KEY).ok();
    let codes = |entry: &Value| {
        let notes = entry["notes"].as_array().expect("notes");
        notes
            .iter()
            .map(|note| note["code"].as_str().expect("a code").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(codes(&requests(&run, "?operation=dashboards_list")[0]), ["next_not_followed"]);
    let next = page["next"].as_str().expect("a page").split_once("steward").expect("a path").1;
    run.server.get(next, OWNER_KEY).ok();
    assert_eq!(codes(&requests(&run, "?operation=dashboards_list")[0]), [""; 0]);
    run.server.get("/api/users/@me/", MEMBER_KEY).ok();
    for (query, count) in [
        ("", 7),
        ("?method=post", 3),
        ("?path=/api/projects/*/dashboards/", 4),
        ("?path=/api/*/dashboards/", 0),
        ("?key=Test", 7),
        ("?key=other", 0),
        ("?since=5", 2),
        ("?limit=3", 3),
        ("?status=201&operation=dashboards_create", 3),
    ] {
        assert_eq!(requests(&run, query).len(), count, "{query}");
    }
    let refused = run.call("GET", "requests?status=999", None);
    let detail = "Ensure this value is less than or equal to 599.";
    assert_eq!(refused, (400, error("max_value", detail, Some("status"))));
    run.call("PUT", "snapshots/x", None);
    run.done("POST", "snapshots/x/restore");
    assert_eq!(requests(&run, "").len(), 7, "a restore keeps the journal");
    run.done("DELETE", "requests");
    assert_eq!(requests(&run, ""), [Value::Null; 0]);
    run.server.stop();
}

#[test]
fn same_script_leaves_the_same_journal() {
    let run = || {
        let run = Run::with(&["--random", "5"]);
        set_faults(&run, &json!([{ "probability": 0.5, "effect": { "status": 503 } }]));
        for number in 0..20 {
            let body = json!({ "name": format!("{number}"), "nonsense": number }).to_string();
            let sent = send(&run, ("POST", &format!("{DASHBOARDS}?x={number}")), "", &body);
            let id = sent.expect("a response").header("x-request-id").map(str::to_owned);
            assert_eq!(id, Some(format!("00000000-0000-0000-0000-{:012x}", number + 1)));
        }
        run.call("POST", "organizations", None);
        let mut journal = requests(&run, "");
        for entry in &mut journal {
            entry.as_object_mut().expect("an object").shift_remove("duration_ms");
        }
        let text = json!(journal).to_string().replace(&run.server.address.to_string(), "HOST");
        run.server.stop();
        text
    };
    let first = run();
    assert_eq!(first.matches("\"status\":").count(), 20);
    assert!(first.contains("\"status\":503") && first.contains("\"status\":201"), "{first}");
    assert_eq!(run(), first);
}

#[test]
fn journal_keeps_the_newest_and_a_part_of_what_is_large() {
    let run = Run::with(&[]);
    let mut connection = run.server.connect();
    let no_json = request("POST", DASHBOARDS, OWNER_KEY, "", &"y".repeat(100_000));
    for _ in 0..1200 {
        connection.write(&no_json).expect("sent");
        assert_eq!(connection.reply().expect("a response").status, 400);
    }
    let (_, found) = run.call("GET", "requests?limit=1000", None);
    let kept = found["count"].as_u64().expect("a number");
    assert!((900..1024).contains(&kept), "64 MiB: {kept}");
    let last = found["results"].as_array().and_then(|all| all.last()).expect("the last");
    assert_eq!(
        (&last["number"], last["body"].as_str().map(str::len)),
        (&json!(1200), Some(64 * 1024))
    );
    run.server.stop();
}

#[test]
fn wait_returns_when_enough_requests_matched() {
    let run = Run::with(&[]);
    let wait = |count: u32, timeout: u32| {
        let body = json!({ "match": { "operation": "dashboards_create" }, "count": count, "timeout_ms": timeout });
        run.call("POST", "requests/wait", Some(&body))
    };
    run.create("A");
    assert_eq!(wait(1, 0).0, 200);
    let (status, found) = wait(2, 0);
    assert_eq!((status, &found["count"]), (408, &json!(1)));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(3, 600_000));
        run.create("B");
        run.create("C");
        let (status, found) = waiting.join().expect("an answer");
        assert_eq!((status, &found["count"]), (200, &json!(3)));
    });
    run.server.stop();
}

#[test]
fn faults_apply_to_what_they_match_and_are_counted() {
    let run = Run::with(&[]);
    let rules = json!([
        { "match": { "method": "POST", "path": "/api/projects/*/dashboards/" }, "after": 1, "times": 1,
          "effect": { "status": 429, "retry_after": 7 } },
        { "match": { "operation": "users_retrieve", "caller": "member@example.com" },
          "effect": { "status": 503, "code": "maintenance", "detail": "Later." } },
        { "match": { "caller": "Test", "path": "/api/organizations/*/members/" }, "effect": { "status": 403 } },
        { "times": 0, "effect": { "status": 500 } },
    ]);
    set_faults(&run, &rules);
    run.create("A");
    let refused = run.server.post(DASHBOARDS, OWNER_KEY, &json!({ "name": "B" }));
    let detail = "Request was throttled. Expected available in 7 seconds.";
    let body =
        json!({ "type": "throttled_error", "code": "throttled", "detail": detail, "attr": null });
    assert_eq!((refused.status, refused.json()), (429, body));
    let headers = ["retry-after", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    assert_eq!(
        headers.map(|name| refused.header(name)),
        [Some("7"), Some("1"), Some("0"), Some("7")]
    );
    run.create("C");
    let later = ask(&run, MEMBER_KEY, ("GET", "/api/users/@me/"), "", "").expect("a response");
    let body =
        json!({ "type": "server_error", "code": "maintenance", "detail": "Later.", "attr": null });
    assert_eq!((later.status, later.json()), (503, body));
    assert_eq!(run.server.get("/api/users/@me/", OWNER_KEY).status, 200);
    let members = format!("/api/organizations/{ORGANIZATION}/members/");
    let denied = run.server.get(&members, OWNER_KEY);
    denied.assert_error(403, "authentication_error", "permission_denied");
    let counts = |shown: &Value| {
        let each = shown.as_array().expect("rules").iter();
        each.map(|rule| (rule["id"].clone(), rule["seen"].clone(), rule["applied"].clone()))
            .collect::<Vec<_>>()
    };
    let shown = run.call("GET", "faults", None).1["results"].clone();
    let number = |id: u32, seen: u32, applied: u32| (json!(id), json!(seen), json!(applied));
    // The last rule sees what no rule before it answered.
    assert_eq!(
        counts(&shown),
        [number(1, 3, 1), number(2, 1, 1), number(3, 1, 1), number(4, 3, 0)]
    );
    assert_eq!(shown[1]["match"], rules[1]["match"]);
    let faults: Vec<_> = requests(&run, "").iter().map(|entry| entry["fault"].clone()).collect();
    assert_eq!(faults, [json!(null), json!(1), json!(null), json!(2), json!(null), json!(3)]);
    let sent = |at: usize| requests(&run, "")[at]["body"].clone();
    assert_eq!(
        [sent(1), sent(2)],
        [json!({ "name": "B" }), json!({ "name": "C" })],
        "the body of a refused one, too"
    );
    // What was shown can be sent again.
    let again = set_faults(&run, &shown);
    assert_eq!(counts(&again)[0], number(1, 0, 0));
    run.done("POST", "reset");
    assert_eq!(run.call("GET", "faults", None).1, json!({ "results": [] }));
    let half = json!([{ "probability": 0.5, "effect": { "status": 500 } }]);
    let draws = || {
        set_faults(&run, &half);
        (0..20).map(|_| run.server.get("/api/users/@me/", OWNER_KEY).status).collect::<Vec<_>>()
    };
    let first = draws();
    assert!(first.contains(&200) && first.contains(&500), "{first:?}");
    assert_eq!(draws(), first, "the same draws each time");
    run.server.stop();
}

#[test]
fn change_behind_a_dropped_connection_is_done_once_with_an_idempotency_key() {
    let run = Run::with(&[]);
    let drop = |when: &str| set_faults(&run, &json!([{ "times": 1, "effect": { "drop": when } }]));
    let post = |headers: &str| send(&run, ("POST", DASHBOARDS), headers, r#"{"name": "x"}"#);
    let key = "Idempotency-Key: once\r\n";
    drop("before");
    assert!(post("").is_none());
    assert_eq!(run.names(), [""; 0], "nothing was done");
    drop("after_commit");
    assert!(post(key).is_none());
    assert_eq!(run.names(), ["x"], "the change stands");
    let replayed = post(key).expect("a response");
    assert_eq!((replayed.status, replayed.header("idempotent-replayed")), (201, Some("true")));
    drop("after_commit");
    assert!(post("").is_none());
    assert_eq!(post("").expect("a response").status, 201);
    assert_eq!(run.names(), ["x", "x", "x"], "without a key it is done twice");
    let dropped = &requests(&run, "?limit=6")[0];
    let shown = (&dropped["status"], &dropped["fault"], &dropped["body"]);
    assert_eq!(shown, (&Value::Null, &json!(1), &json!({ "name": "x" })));
    run.server.stop();
}

#[test]
fn responses_come_late_in_part_or_never() {
    let run = Run::with(&["--log", "error"]);
    set_faults(&run, &json!([{ "times": 1, "effect": { "delay_ms": 50 } }]));
    assert_eq!(run.server.get("/api/users/@me/", OWNER_KEY).status, 200);
    assert!(requests(&run, "")[0]["duration_ms"].as_f64() >= Some(50.0));
    set_faults(&run, &json!([{ "effect": { "truncate": 10 } }]));
    let mut connection = run.server.connect();
    connection
        .write(request("GET", "/api/users/@me/", OWNER_KEY, "Connection: close\r\n", ""))
        .expect("sent");
    let mut sent = String::new();
    connection.read_rest(&mut sent);
    let (head, body) = sent.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("transfer-encoding: chunked"), "{sent}");
    let ten = body.strip_prefix("A\r\n").and_then(|rest| rest.strip_suffix("\r\n"));
    assert_eq!(ten.map(str::len), Some(10), "ten bytes and no end: {sent}");
    set_faults(&run, &json!([{ "effect": { "stall": true } }]));
    let mut stalled = run.server.connect();
    stalled.write(request("GET", "/api/users/@me/", OWNER_KEY, "", "")).expect("sent");
    let three = json!({ "match": {}, "count": 3, "timeout_ms": 600_000 });
    assert_eq!(run.call("POST", "requests/wait", Some(&three)).0, 200);
    run.done("POST", "reset");
    let mut sent = String::new();
    stalled.read_rest(&mut sent);
    assert!(sent.starts_with("HTTP/1.1 200 OK\r\n") && sent.ends_with("\r\n\r\n"), "{sent}");
    assert_eq!(run.server.stop(), "");
}

#[test]
fn refused_mail_is_sent_again_when_the_clock_moves() {
    let run = Run::with(&[]);
    let refuse = |smtp: u32, times: u32| {
        set_faults(
            &run,
            &json!([{ "match": { "mail": "*@example.com" }, "times": times, "effect": { "smtp": smtp } }]),
        )
    };
    refuse(451, 2);
    let invites = format!("/api/organizations/{ORGANIZATION}/invites/");
    let invite = |to: &str| {
        run.server.post(&invites, OWNER_KEY, &json!({ "target_email": to })).ok()["id"].clone()
    };
    let state = |id: &Value| {
        let path = format!("{invites}{}/mail/", id.as_str().expect("an id"));
        let state = run.server.get(&path, OWNER_KEY).ok();
        (state["state"].clone(), state["attempts"].clone(), state["last_error"].clone())
    };
    let ann = invite("ann@example.com");
    let mails = || run.call("GET", "mails", None).1["count"].clone();
    assert_eq!(mails(), 0);
    let busy = "451 4.3.0 Try again later";
    assert_eq!(state(&ann), (json!("queued"), json!(1), json!(busy)));
    let moved = run.call("POST", "clock", Some(&json!({ "advance": "12h" }))).1;
    assert_eq!((mails(), &moved["due"]["mails"]), (json!(1), &json!(1)));
    let applied = run.call("GET", "faults", None).1["results"][0].clone();
    assert_eq!(
        (&applied["seen"], &applied["applied"]),
        (&json!(3), &json!(2)),
        "each attempt at its time"
    );
    refuse(550, 1_000);
    let bob = invite("bob@example.com");
    run.call("POST", "clock", Some(&json!({ "advance": "30days" })));
    assert_eq!((mails(), state(&bob).0), (json!(1), json!("failed")), "it is given up");
    assert_eq!(state(&ann).0, "sent");
    run.server.stop();
}

#[test]
fn rules_that_mean_nothing_are_refused_at_their_place() {
    let run = Run::with(&[]);
    set_faults(&run, &json!([{ "effect": { "stall": true }, "match": { "path": "/nowhere" } }]));
    let one = "Send exactly one of status, delay_ms, drop, truncate, stall and smtp.";
    let many = json!(vec![json!({ "effect": { "stall": true } }); 101]);
    for (rules, code, attr) in [
        (json!([{ "effect": {} }]), "invalid_input", "results__0__effect"),
        (
            json!([{ "effect": { "status": 500, "stall": true } }]),
            "invalid_input",
            "results__0__effect",
        ),
        (json!([{}]), "required", "results__0__effect"),
        (json!([{ "effect": { "status": 200 } }]), "min_value", "results__0__effect__status"),
        (json!([{ "effect": { "drop": "later" } }]), "invalid_choice", "results__0__effect__drop"),
        (json!([{ "effect": { "smtp": 250 } }]), "invalid_choice", "results__0__effect__smtp"),
        (
            json!([{ "effect": { "delay_ms": 3_600_000 } }]),
            "max_value",
            "results__0__effect__delay_ms",
        ),
        (
            json!([{ "match": { "mail": "a@b.c" }, "effect": { "status": 500 } }]),
            "invalid_input",
            "results__0__effect",
        ),
        (
            json!([{ "probability": 2, "effect": { "status": 500 } }]),
            "invalid_input",
            "results__0__probability",
        ),
        (json!([{ "times": -1, "effect": { "status": 500 } }]), "min_value", "results__0__times"),
        (many, "max_length", "results"),
    ] {
        let (status, refused) = run.call("PUT", "faults", Some(&json!({ "results": rules })));
        let shown = (status, refused["code"].as_str(), refused["attr"].as_str());
        assert_eq!(shown, (400, Some(code), Some(attr)), "{refused}");
        if attr.ends_with("effect") && code == "invalid_input" && rules[0].get("match").is_none() {
            assert_eq!(refused["detail"], one);
        }
    }
    let kept = run.call("GET", "faults", None).1;
    assert_eq!(
        kept["results"].as_array().map(Vec::len),
        Some(1),
        "what is refused changes nothing"
    );
    run.server.stop();
}

#[test]
fn strict_run_refuses_what_an_operation_does_not_know() {
    let run = Run::with(&["--strict"]);
    let body = r#"{"name": "A", "nmae": "B"}"#;
    let wrong = send(&run, ("POST", DASHBOARDS), "", body).expect("a response");
    let detail = "The operation dashboards_create has no field nmae.";
    assert_eq!((wrong.status, wrong.json()), (400, error("unknown_field", detail, Some("nmae"))));
    let path = format!("{DASHBOARDS}?limt=1");
    let wrong = send(&run, ("GET", &path), "", "").expect("a response");
    let detail = "The operation dashboards_list has no parameter limt.";
    assert_eq!(
        (wrong.status, wrong.json()),
        (400, error("unknown_parameter", detail, Some("limt")))
    );
    run.create("A");
    assert_eq!(run.server.dashboards(DASHBOARDS, OWNER_KEY).len(), 1);
    assert_eq!(requests(&run, "?status=400").len(), 2);
    run.server.stop();
}
