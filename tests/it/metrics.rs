//! What Prometheus reads: whole by its own grammar, bounded whatever clients send, and one service's own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use axum::http::Method;
use regex::Regex;
use serde_json::json;
use steward::config::Config;
use steward::meters::Meters;
use steward::operator::{Operation, perform};
use steward::router::routes;
use steward::state::App;
use steward::store::Progress;

use crate::support::process::{Connection, Reply, Site, until};
use crate::support::{Workspace, eventually};

/// A sample: its name, its labels, its value.
type Sample = (String, BTreeMap<String, String>, f64);

/// An exposition that was read.
#[derive(Debug)]
pub struct Numbers {
    /// The kind of each family.
    kinds: HashMap<String, String>,
    samples: Vec<Sample>,
}

impl Numbers {
    pub async fn of(workspace: &Workspace) -> Self {
        Self::read(&workspace.app.numbers().await.expect("numbers"))
    }

    /// What is counted as it happens, as of this moment: the others are gathered when `of` asks, once a second.
    pub fn at_once(app: &App) -> Self {
        Self::read(&app.config().meters.render())
    }

    /// Reads by the grammar of the text format (0.0.4), which leaves nothing open here: each family is told by HELP,
    /// then TYPE, then its samples, together and once.
    #[track_caller]
    pub fn read(text: &str) -> Self {
        let name = r"[a-zA-Z_:][a-zA-Z0-9_:]*";
        let help = Regex::new(&format!("^# HELP ({name}) (.*[^ ])$")).unwrap();
        let kind = Regex::new(&format!("^# TYPE ({name}) (counter|gauge|histogram)$")).unwrap();
        let number = r"[+-]?(?:[0-9.]+(?:e[+-]?[0-9]+)?|Inf)|NaN";
        let sample = Regex::new(&format!(r"^({name})(?:\{{(.*)\}})? ({number})$")).unwrap();
        let label =
            Regex::new(r#"^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)"#).unwrap();
        assert!(text.ends_with('\n'), "the last line ends");
        let (mut told, mut kinds, mut samples) = (BTreeSet::new(), HashMap::new(), Vec::new());
        let mut family = String::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(found) = help.captures(line) {
                assert!(told.insert(found[1].to_owned()), "told twice: {line}");
                found[1].clone_into(&mut family);
            } else if let Some(found) = kind.captures(line) {
                assert_eq!(&found[1], family, "it has HELP: {line}");
                assert_eq!(kinds.insert(found[1].to_owned(), found[2].to_owned()), None);
            } else {
                let found = sample.captures(line).unwrap_or_else(|| panic!("no sample: {line}"));
                let mut rest = found.get(2).map_or("", |labels| labels.as_str());
                let mut labels = BTreeMap::new();
                while !rest.is_empty() {
                    let one = label.captures(rest).unwrap_or_else(|| panic!("no label: {line}"));
                    assert_eq!(labels.insert(one[1].to_owned(), one[2].to_owned()), None, "{line}");
                    rest = &rest[one[0].len()..];
                }
                let of_histogram = kinds[&family] == "histogram";
                let own = ["_bucket", "_sum", "_count"].map(|end| format!("{family}{end}"));
                let belongs = if of_histogram {
                    own.contains(&found[1].to_owned())
                } else {
                    found[1] == *family
                };
                assert!(belongs, "{line} stands below {family}");
                samples.push((found[1].to_owned(), labels, found[3].parse().expect("a number")));
            }
        }
        let read = Self { kinds, samples };
        read.holds();
        read
    }

    /// What holds of any exposition, beyond its grammar.
    #[track_caller]
    fn holds(&self) {
        let mut seen = BTreeSet::new();
        for (name, labels, value) in &self.samples {
            assert!(seen.insert((name, labels)), "twice: {name} {labels:?}");
            if self.kinds.get(name).is_some_and(|kind| kind == "counter") {
                assert!(name.ends_with("_total") && *value >= 0.0, "{name} {value}");
            }
            assert!(name.starts_with("steward_") || name.starts_with("process_"), "{name}");
        }
        for (family, _) in self.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            let mut by_labels: HashMap<BTreeMap<String, String>, Vec<(f64, f64)>> = HashMap::new();
            for (_, labels, value) in self.family(&format!("{family}_bucket")) {
                let mut labels = labels.clone();
                let end = labels.remove("le").expect("a bucket's end").replace("+Inf", "inf");
                by_labels.entry(labels).or_default().push((end.parse().expect("a number"), *value));
            }
            for (labels, buckets) in by_labels {
                assert!(buckets.is_sorted(), "{family}: buckets rise");
                let (end, last) = *buckets.last().expect("a bucket");
                assert!(end.is_infinite());
                let labels: Vec<_> = labels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
                let count = self.value(&format!("{family}_count"), &labels);
                assert!(
                    (last - count).abs() < 0.1
                        && self.value(&format!("{family}_sum"), &labels) >= 0.0
                );
            }
        }
    }

    fn family(&self, name: &str) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |(found, ..)| found == name)
    }

    /// The value of a sample; 0 where there is none.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        self.family(name).find(|(_, found, _)| *found == labels).map_or(0.0, |(.., value)| *value)
    }

    fn requests(&self, method: &str, route: &str, status: &str) -> f64 {
        let labels = [("method", method), ("route", route), ("status", status)];
        self.value("steward_http_requests_total", &labels)
    }
}

async fn metered() -> Workspace {
    let mut config = Config::default();
    config.meters = Meters::on();
    Workspace::with(config).await
}

/// Whether two counts are the same.
fn is(found: f64, expected: u32) -> bool {
    (found - f64::from(expected)).abs() < 0.1
}

#[tokio::test]
async fn every_number_is_told_by_the_grammar_and_with_what_it_means() {
    let workspace = metered().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "A" })).await.ok();
    let numbers = Numbers::of(&workspace).await;
    let kinds: BTreeSet<&str> = numbers.kinds.keys().map(String::as_str).collect();
    for name in [
        "argon2_duration_seconds",
        "argon2_queue_length",
        "backup_failures_total",
        "backup_last_success_timestamp_seconds",
        "build_info",
        "commit_duration_seconds",
        "commit_writes",
        "data_file_bytes",
        "http_request_duration_seconds",
        "http_requests_in_flight",
        "http_requests_refused_total",
        "http_requests_total",
        "key_cache_hits_total",
        "key_cache_misses_total",
        "largest_organization_bytes",
        "organizations_near_quota",
        "outbox_letters",
        "ready",
        "stored_values",
        "sweeps_waiting",
        "transfer_memory_bytes",
        "write_queue_length",
        "writes_refused_total",
    ] {
        assert!(kinds.contains(format!("steward_{name}").as_str()), "{name}: {kinds:?}");
    }
    for name in ["cpu_seconds_total", "resident_memory_bytes", "open_fds"] {
        assert!(numbers.value(&format!("process_{name}"), &[]) >= 0.0);
        assert!(kinds.contains(format!("process_{name}").as_str()), "{name}: {kinds:?}");
    }
    let size = workspace.path().metadata().expect("a file").len();
    let size = u32::try_from(size).expect("a small file");
    assert!(is(numbers.value("steward_data_file_bytes", &[]), size));
    assert!(is(numbers.value("steward_ready", &[]), 1));
    assert!(is(numbers.value("steward_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1));
    assert!(numbers.value("steward_stored_values", &[]) > 20.0);
    let counted = numbers.value("steward_page_cache_hits_total", &[]) > 0.0;
    assert_eq!(counted, cfg!(feature = "cache-metrics"));
    assert!(is(numbers.value("steward_key_cache_misses_total", &[]), 1), "one key, unknown once");
    assert!(
        is(numbers.value("steward_argon2_duration_seconds_count", &[]), 0),
        "it is known by its digest"
    );
    // A commit is counted behind the answers that it lets out.
    let counted = || {
        let numbers = Numbers::at_once(&workspace.app);
        (numbers.value("steward_commit_writes_bucket", &[("le", "1")]) > 0.5).then_some(())
    };
    eventually("the commit is counted", counted).await;
}

#[tokio::test]
async fn every_request_is_counted_once_under_the_route_that_it_matched() {
    let workspace = metered().await;
    let (owner, nobody) = (&workspace.owner, workspace.anonymous());
    let list = workspace.dashboards("");
    owner.post(&list, json!({ "name": "A" })).await.ok();
    owner.get(&list).await.ok();
    owner.get(list.trim_end_matches('/')).await.ok();
    owner.send(Method::HEAD, &list, None).await;
    nobody.get(&list).await;
    owner.delete(&list).await;
    owner.get("/api/users/@me/").await.ok();
    owner.get("/api/users/%40me/").await.ok();
    nobody.get("/nowhere/").await;
    let numbers = Numbers::of(&workspace).await;
    let dashboards = "/api/projects/{project_id}/dashboards/";
    for (method, route, status, expected) in [
        ("POST", dashboards, "2xx", 1),
        ("GET", dashboards, "2xx", 3),
        ("GET", dashboards, "4xx", 1),
        ("GET", dashboards, "5xx", 0),
        ("other", dashboards, "4xx", 1),
        ("GET", "/api/users/@me/", "2xx", 2),
        ("other", "unmatched", "4xx", 1),
    ] {
        let found = numbers.requests(method, route, status);
        assert!(is(found, expected), "{method} {route} {status}: {found}");
    }
    let timed = [("method", "GET"), ("route", dashboards)];
    assert!(is(numbers.value("steward_http_request_duration_seconds_count", &timed), 4));
    assert!(is(numbers.value("steward_http_requests_in_flight", &[]), 0));
    assert!(is(numbers.value("steward_key_cache_hits_total", &[]), 6), "{numbers:?}");
}

#[tokio::test]
async fn no_client_can_add_a_label() {
    let workspace = metered().await;
    let (owner, nobody) = (&workspace.owner, workspace.anonymous());
    for number in 0..100 {
        let method = Method::from_bytes(format!("M{number}").as_bytes()).expect("a method");
        for path in [
            format!("/nowhere-{number}/"),
            workspace.dashboards(&format!("{number}/")),
            format!("/shared/{number}"),
            format!("/api/organizations/o{number}/members/?x={number}"),
            format!("/%22%5C%0A{number}"),
        ] {
            owner.get(&path).await;
            nobody.fetch(method.clone(), &path, &[("x-request-id", "a")], "").await;
        }
    }
    let numbers = Numbers::of(&workspace).await;
    let table = routes();
    let known: BTreeSet<&str> =
        table.rows().iter().map(|row| row.path).chain(["unmatched"]).collect();
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "other"];
    let counted: Vec<_> = numbers.family("steward_http_requests_total").collect();
    for (_, labels, _) in &counted {
        assert_eq!(labels.len(), 3);
        assert!(known.contains(labels["route"].as_str()), "{labels:?}");
        assert!(methods.contains(&labels["method"].as_str()), "{labels:?}");
        assert!(["2xx", "3xx", "4xx", "5xx"].contains(&labels["status"].as_str()), "{labels:?}");
    }
    assert!(counted.len() < 60, "{}", counted.len());
    let all: f64 = counted.iter().map(|(.., value)| value).sum();
    assert!(is(all, 1_000), "{all}");
}

#[tokio::test]
async fn two_services_in_one_process_do_not_mix() {
    let (one, other, uncounted) = (metered().await, metered().await, Workspace::new().await);
    for workspace in [&one, &uncounted] {
        workspace.owner.post(&workspace.dashboards(""), json!({ "name": "A" })).await.ok();
    }
    other.anonymous().get("/_livez").await;
    let of_one = Numbers::of(&one).await;
    let of_other = Numbers::of(&other).await;
    let dashboards = "/api/projects/{project_id}/dashboards/";
    assert!(is(of_one.requests("POST", dashboards, "2xx"), 1));
    assert!(is(of_one.requests("GET", "/_livez", "2xx"), 0));
    assert!(is(of_other.requests("POST", dashboards, "2xx"), 0));
    assert!(is(of_other.requests("GET", "/_livez", "2xx"), 1));
    // That a key was used is written a little later.
    assert!(of_one.value("steward_commit_writes_count", &[]) > 0.5);
    assert!(is(of_other.value("steward_commit_writes_count", &[]), 0));
    assert_eq!(&*uncounted.app.numbers().await.expect("none"), "", "nobody asked for them");
}

#[tokio::test]
async fn mails_and_backups_are_counted() {
    let backups = tempfile::TempDir::new().expect("a folder");
    let mut config = Config::default();
    config.meters = Meters::on();
    config.mail.smtp_url = Some("smtp://127.0.0.1:9".parse().expect("a URL"));
    config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
    config.backups.backup_dir = Some(backups.path().to_owned());
    let workspace = Workspace::with(config).await;
    let sent = json!({ "target_email": "ann@x.example" });
    workspace.owner.post(&workspace.organization("invites/"), sent).await.ok();
    let mut numbers = Numbers::of(&workspace).await;
    let counted = |numbers: &Numbers| {
        numbers.value("steward_mails_failed_total", &[]) > 0.0
            && numbers.value("steward_backup_last_success_timestamp_seconds", &[]) > 1.7e9
    };
    while !counted(&numbers) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        numbers = Numbers::of(&workspace).await;
    }
    assert!(is(numbers.value("steward_outbox_letters", &[]), 1));
    assert!(is(numbers.value("steward_mails_sent_total", &[]), 0));
    assert!(is(numbers.value("steward_backup_failures_total", &[]), 0));
    eventually("the backup lies there", || backups.path().read_dir().ok()?.next()).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_writes_are_counted_while_they_are_refused() {
    let workspace = metered().await;
    let app = workspace.app.clone();
    let reading = app.store().snapshot().expect("a snapshot");
    // It waits for whoever reads, with the file taken out of service.
    let compacting =
        tokio::spawn(async move { perform(&app, Operation::Compact, Progress::unheard()).await });
    eventually("the file is away", || (!workspace.app.store().ready()).then_some(())).await;
    for _ in 0..3 {
        let refused = workspace.app.store().write(|_| Ok(())).await.expect_err("the file is away");
        assert_eq!(refused.status(), 503);
    }
    let numbers = Numbers::of(&workspace).await;
    assert!(is(numbers.value("steward_writes_refused_total", &[]), 3), "{numbers:?}");
    assert!(is(numbers.value("steward_ready", &[]), 0));
    drop(reading);
    compacting.await.expect("no panic").expect("compacted");
}

/// What a listener answers to `GET path`.
fn ask(address: &str, path: &str) -> Reply {
    let address = address.strip_prefix("http://").unwrap_or(address).parse().expect("an address");
    let mut connection = Connection::open(address).expect("it takes connections");
    connection.write(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).expect("sent");
    connection.reply().expect("an answer")
}

#[test]
fn numbers_have_a_listener_of_their_own() {
    let (site, made) = Site::made();
    let key = made["api_key"].as_str().expect("a key");
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|on| on.local_addr());
    let address = address.expect("a free port").to_string();
    let server = site.serve(&["--metrics-listen", &address]);
    let mut open = server.connect();
    open.send("GET", "/api/users/@me/", key, None).expect("an answer").ok();
    let reply = ask(&address, "/metrics");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = String::from_utf8(reply.body).expect("text");
    let numbers = Numbers::read(&text);
    assert!(is(numbers.requests("GET", "/api/users/@me/", "2xx"), 1), "{text}");
    assert!(is(numbers.value("steward_http_connections", &[]), 1), "{text}");
    drop(open);
    until("the connection is gone", || {
        let text = String::from_utf8(ask(&address, "/metrics").body).expect("text");
        is(Numbers::read(&text).value("steward_http_connections", &[]), 0).then_some(())
    });
    assert!(!text.contains("phx_") && !text.contains(key));
    for path in ["/", "/api/users/@me/", "/_livez", "/metrics/x"] {
        ask(&address, path).refuses(404, "invalid_request", "not_found");
    }
    ask(&server.address.to_string(), "/metrics").refuses(404, "invalid_request", "not_found");
    let taken = server.address.to_string();
    server.stop();
    let twice = ["serve", "--listen", &taken, "--metrics-listen", &taken];
    site.run(&twice).fails(&format!("cannot listen on {taken}"));
    assert_eq!(site.names(), ["steward.redb", "steward.redb.lock"]);
}

#[test]
fn the_listener_of_the_numbers_has_the_limits_of_the_api() {
    let (site, _) = Site::made();
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|on| on.local_addr());
    let address = address.expect("a free port");
    let flags = ["--header-timeout", "200ms", "--connections", "2"];
    let server = site.serve(&[&["--metrics-listen", &address.to_string()], &flags[..]].concat());
    let mut slow = [(); 2].map(|()| Connection::open(address).expect("it takes connections"));
    for connection in &mut slow {
        connection.write("GET /metrics HT").expect("sent");
    }
    // It waits until one of those two is given up.
    assert_eq!(ask(&address.to_string(), "/metrics").status, 200);
    for connection in &mut slow {
        assert!(connection.is_over(), "who never ends a request's head is given up");
    }
    let mut connection = Connection::open(address).expect("it takes connections");
    connection
        .write("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        .expect("sent");
    let reply = connection.reply().expect("an answer");
    reply.refuses(405, "invalid_request", "method_not_allowed");
    assert_eq!(reply.header("allow"), Some("GET,HEAD"));
    connection = Connection::open(address).expect("it takes connections");
    connection.write("\0\0\r\n\r\n").expect("sent");
    assert_eq!(connection.reply().expect("an answer").status, 400);
    assert_eq!(server.get("/_livez", "").status, 200);
    server.stop();
}
