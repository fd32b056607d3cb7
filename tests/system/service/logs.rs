//! The log: one line for each request, with the key and the organization. The filter can be changed without a restart. Also the
//! listener of metrics.

use std::fs::OpenOptions;
use std::io::BufRead;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use steward::testing::ids::ApiKeyId;

use crate::prelude::*;
use crate::support::metrics::{Numbers, is};
use crate::support::process::Reply;

/// Returns the log lines of requests to one route.
fn lines(log: &str, route: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"));
    lines.filter(|line| line["route"] == route).collect()
}

const ME: &str = "/api/users/@me/";

#[test]
fn log_line_has_the_caller_the_request_and_the_outcome() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    let id = &site.json(&["key", "list"])["results"][0]["id"];
    let server = site.serve(&["--log", "info,request=debug"]);
    let members =
        format!("/api/organizations/{}/members/", made["organization_id"].as_str().unwrap());
    server.get(&format!("{members}?email=hidden@x.example"), key).ok();
    server.get("/api/projects/999/dashboards/", key);
    server.get(ME, "").assert_error(401, "authentication_error", "not_authenticated");
    let log = server.stop();
    let line = &lines(&log, "/api/organizations/{organization_id}/members/")[0];
    let names: Vec<&str> = line.as_object().expect("members").keys().map(String::as_str).collect();
    assert_eq!(
        names.join(" "),
        "timestamp level message request_id method route status duration_ms client key organization target"
    );
    assert_eq!((&line["key"], &line["organization"]), (id, &made["organization_id"]));
    assert_eq!((&line["method"], &line["status"]), (&"GET".into(), &200.into()));
    assert_eq!((&line["target"], &line["level"]), (&"request".into(), &"DEBUG".into()));
    assert!(line["key"].as_str().is_some_and(|id| id.parse::<ApiKeyId>().is_ok()));
    let refused = &lines(&log, "/api/projects/{project_id}/dashboards/")[0];
    assert_eq!((&refused["key"], &refused["status"]), (id, &404.into()));
    assert_eq!(refused.get("organization"), None);
    let anonymous = &lines(&log, ME)[0];
    assert_eq!((anonymous.get("key"), &anonymous["status"]), (None, &401.into()));
    assert!(!log.contains("hidden"), "{log}");
}

/// Changes the log filter, sends a request, stops the server, and returns the log lines of the request.
fn after(site: &DataFolder, server: Server, key: &str, changes: &[&str]) -> Vec<Value> {
    for change in changes {
        assert_eq!(site.json(&["log", change])["log"], *change);
    }
    server.get(ME, key).ok();
    lines(&server.stop(), ME)
}

#[test]
fn log_filter_can_be_changed_at_run_time() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    assert!(after(&site, site.serve(&[]), key, &[]).is_empty(), "by default no request is logged");
    for (changes, expected) in [
        (&["info,request=debug"][..], 1),
        (&["debug"], 1),
        (&["info,request=debug", "warn"], 0),
        (&["off"], 0),
    ] {
        assert_eq!(after(&site, site.serve(&[]), key, changes).len(), expected, "{changes:?}");
    }
}

#[test]
fn rejected_log_filter_leaves_the_old_one_with_a_reason() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    site.run(&["log", "debug"]).assert_failed("no server is serving steward.redb");
    let server = site.serve(&["--log", "info,request=debug"]);
    for bad in ["loud", "", "debug,,info"] {
        site.run(&["log", bad]).assert_failed("is not valid");
    }
    until("the server responds", || (server.get(ME, key).status == 200).then_some(()));
    let log = server.stop();
    assert!(!lines(&log, ME).is_empty(), "{log}");
    assert!(!log.contains("changed the log filter"), "{log}");
    site.run(&["serve", "--log", "loud"]).assert_usage_error("\"loud\" is not a level");
}

/// Starts a server by a script, in which `$0` is the program.
fn start(site: &DataFolder, script: &str) -> Server {
    let mut command = cleared("sh");
    Server::start(command.args(["-c", script, STEWARD]).current_dir(site.folder()))
        .expect("a server")
}

/// Returns how many lines of the log were dropped, by the metrics at an address.
fn dropped_lines(numbers: SocketAddr) -> f64 {
    let text = String::from_utf8(ask(numbers, "/metrics").body).expect("text");
    Numbers::read(&text).value("steward_log_lines_dropped_total", &[])
}

/// Starts a server whose log nobody reads, and sends requests until lines were dropped. Returns the server, its log and the
/// address of its metrics.
fn with_a_full_log() -> (DataFolder, Server, File, SocketAddr) {
    let (site, _) = DataFolder::with_workspace();
    mknodat(CWD, site.path("log"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let log = OpenOptions::new().read(true).write(true).open(site.path("log")).expect("a pipe");
    let numbers = own_address();
    let flags = format!("--json --log debug --log-format json --metrics-listen {numbers}");
    let server = start(&site, &format!("exec \"$0\" serve --listen 127.0.0.1:0 {flags} 2>log"));
    let mut connection = server.connect();
    until("lines are dropped", || {
        for _ in 0..500 {
            assert_eq!(connection.send("GET", "/_livez", "", None).expect("an answer").status, 200);
        }
        (dropped_lines(numbers) > 0.0).then_some(())
    });
    (site, server, log, numbers)
}

#[test]
fn log_that_nobody_reads_loses_lines_and_says_how_many_when_it_is_read() {
    let (_site, server, log, numbers) = with_a_full_log();
    let line = BufReader::new(log).lines().map(|line| line.expect("a line"));
    let line = line.map(|line| serde_json::from_str::<Value>(&line).expect("a JSON line"));
    let is_report = |line: &Value| {
        line["message"].as_str().is_some_and(|text| text.starts_with("log lines were dropped"))
    };
    let report = line.into_iter().find(is_report).expect("a line that says so");
    assert_eq!(report["level"], "WARN");
    let count = report["count"].as_f64().expect("a number");
    // The thread that dropped the last line may not have counted it yet.
    until("the metric has the lines of the report", || {
        (dropped_lines(numbers) >= count).then_some(())
    });
    assert_eq!(Some(dropped_lines(numbers)), Some(count));
    server.stop();
}

#[test]
fn server_whose_log_nobody_reads_stops() {
    let (_site, server, _log, _) = with_a_full_log();
    server.stop();
}

#[test]
fn advice_for_few_open_files_can_be_followed() {
    for (files, advice) in [(64, "raise the limit to at least "), (1000, "use --connections ")] {
        let (site, _) = DataFolder::with_workspace();
        let script = format!("ulimit -n {files}; exec \"$0\" serve --listen 127.0.0.1:0 --json");
        let log = start(&site, &script).stop();
        assert!(log.contains(advice) && !log.contains("--connections 0"), "{log}");
    }
}

/// Returns the response of a listener to `GET path`.
fn ask(address: SocketAddr, path: &str) -> Reply {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

/// Returns the response of a listener. A server with a short time limit may close a connection before a busy machine has sent
/// the request, so this tries again.
fn send(address: SocketAddr, request: &str) -> Reply {
    until("the listener responds", || {
        let mut connection = Connection::open(address).expect("a connection");
        connection.write(request).and_then(|()| connection.reply()).ok()
    })
}

#[test]
fn metrics_have_their_own_listener() {
    let address = own_address();
    let flags = ["--metrics-listen", &address.to_string()];
    let Served { site, server, key, .. } = Served::with(&flags);
    let mut open = server.connect();
    open.send("GET", "/api/users/@me/", &key, None).expect("an answer").ok();
    let reply = ask(address, "/metrics");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = String::from_utf8(reply.body).expect("text");
    let numbers = Numbers::read(&text);
    assert!(is(numbers.requests("GET", "/api/users/@me/", "2xx"), 1), "{text}");
    assert!(is(numbers.value("steward_http_connections", &[]), 1), "{text}");
    drop(open);
    until("the connection is no longer counted", || {
        let text = String::from_utf8(ask(address, "/metrics").body).expect("text");
        is(Numbers::read(&text).value("steward_http_connections", &[]), 0).then_some(())
    });
    assert!(!text.contains("phx_") && !text.contains(&key));
    for path in ["/", "/api/users/@me/", "/_livez", "/metrics/x"] {
        ask(address, path).assert_error(404, "invalid_request", "not_found");
    }
    ask(server.address, "/metrics").assert_error(404, "invalid_request", "not_found");
    server.stop();
    let taken = own_address().to_string();
    let twice = ["serve", "--listen", &taken, "--metrics-listen", &taken];
    site.run(&twice).assert_failed(&format!("cannot listen on {taken}"));
    assert_eq!(site.names(), ["steward.redb", "steward.redb.lock"]);
}

#[test]
fn metrics_listener_has_the_limits_of_the_api() {
    let (site, _) = DataFolder::with_workspace();
    let address = own_address();
    let flags = ["--header-timeout", "500ms", "--metrics-listen", &address.to_string()];
    let server = site.serve(&flags);
    let mut slow = [(); 2].map(|()| Connection::open(address).expect("a connection"));
    for connection in &mut slow {
        connection.write("GET /metrics HT").expect("sent");
    }
    assert_eq!(ask(address, "/metrics").status, 200);
    for connection in &mut slow {
        assert!(connection.is_closed(), "a connection with incomplete headers must be closed");
    }
    let reply = send(address, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    reply.assert_error(405, "invalid_request", "method_not_allowed");
    assert_eq!(reply.header("allow"), Some("GET,HEAD"));
    assert_eq!(send(address, "\0\0\r\n\r\n").status, 400);
    assert_eq!(ask(server.address, "/_livez").status, 200);
    server.stop();
}
