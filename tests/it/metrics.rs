//! Metrics: valid Prometheus text, a bounded number of labels for any requests, and one registry for each service.

use crate::support::ClosedFile;
use crate::support::prelude::*;

async fn metered() -> Workspace {
    Workspace::configured(|config| config.metrics = Metrics::enabled()).await
}

/// Metrics of every service, without the prefix.
const NAMES: &str = "\
    backup_failures_total backup_last_success_timestamp_seconds build_info commit_duration_seconds \
    commit_writes data_file_bytes http_request_duration_seconds http_requests_in_flight \
    http_requests_refused_total http_requests_total key_cache_hits_total key_cache_misses_total \
    largest_organization_bytes organizations_near_quota outbox_messages ready stored_values \
    sweeps_waiting transfer_memory_bytes write_queue_length writes_refused_total";

#[tokio::test]
async fn every_metric_is_valid_and_has_a_help_text() {
    let workspace = metered().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "A" })).await.ok();
    let numbers = Numbers::of(&workspace).await;
    let kinds: BTreeSet<&str> = numbers.kinds.keys().map(String::as_str).collect();
    for name in NAMES.split(' ') {
        assert!(kinds.contains(format!("steward_{name}").as_str()), "{name}: {kinds:?}");
    }
    for name in ["cpu_seconds_total", "resident_memory_bytes", "open_fds"] {
        assert!(numbers.value(&format!("process_{name}"), &[]) >= 0.0);
        assert!(kinds.contains(format!("process_{name}").as_str()), "{name}: {kinds:?}");
    }
    // The use of the key is recorded a moment later, and the file may grow.
    eventually_async("the size of the file", async || {
        let size = workspace.path().metadata().expect("a file").len();
        let size = u32::try_from(size).expect("a small file");
        is(Numbers::of(&workspace).await.value("steward_data_file_bytes", &[]), size).then_some(())
    })
    .await;
    assert!(is(numbers.value("steward_ready", &[]), 1));
    assert!(is(numbers.value("steward_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1));
    assert!(numbers.value("steward_stored_values", &[]) > 20.0);
    let counted = numbers.value("steward_page_cache_hits_total", &[]) > 0.0;
    assert_eq!(counted, cfg!(feature = "cache-metrics"));
    assert!(is(numbers.value("steward_key_cache_misses_total", &[]), 1), "one key, one cache miss");
    // A commit may be counted after its responses were sent.
    let counted = || {
        let numbers = Numbers::at_once(&workspace.app);
        (numbers.value("steward_commit_writes_count", &[]) > 0.5).then_some(())
    };
    eventually("the commit is counted", counted).await;
}

#[tokio::test]
async fn data_file_has_no_metrics_of_a_shared_database() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("steward.redb");
    let mut config = Config::default();
    config.metrics = Metrics::enabled();
    let created = steward::create(&path, config, &steward::InitialRecords::default());
    let (app, _) = created.expect("a file");
    let numbers = Numbers::read(&app.metrics().await.expect("numbers"));
    let found: Vec<_> =
        numbers.kinds.keys().filter(|name| name.starts_with("steward_origin")).collect();
    assert!(found.is_empty(), "{found:?}");
    app.close().await;
}

#[tokio::test]
async fn every_request_is_counted_once_under_its_matched_route() {
    let workspace = metered().await;
    let (owner, nobody) = (&workspace.owner, workspace.anonymous());
    let list = workspace.dashboards("");
    owner.post(&list, json!({ "name": "A" })).await.ok();
    owner.get(&list).await.ok();
    owner.get(list.trim_end_matches('/')).await.ok();
    owner.send(Method::HEAD, &list, None).await;
    nobody.get(&list).await;
    owner.delete(&list).await;
    owner.get(ME).await.ok();
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
        ("GET", ME, "2xx", 2),
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
async fn clients_cannot_add_metric_labels() {
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
        table.specs().iter().map(|row| row.path).chain(["unmatched"]).collect();
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
async fn metrics_of_two_services_in_one_process_are_separate() {
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
    // The use of the key may be recorded in a later commit.
    assert!(of_one.value("steward_commit_writes_count", &[]) > 0.5);
    assert!(is(of_other.value("steward_commit_writes_count", &[]), 0));
    assert_eq!(&*uncounted.app.metrics().await.expect("none"), "", "metrics are disabled");
}

#[tokio::test]
async fn mails_and_backups_are_counted_in_metrics() {
    let backups = tempfile::TempDir::new().expect("a folder");
    let mut config = with_mail();
    config.metrics = Metrics::enabled();
    config.backups.backup_dir = Some(backups.path().to_owned());
    let workspace = Workspace::with(config).await;
    let sent = json!({ "target_email": "ann@x.example" });
    workspace.owner.post(&workspace.organization("invites/"), sent).await.ok();
    let counted = |numbers: &Numbers| {
        numbers.value("steward_mails_failed_total", &[]) > 0.0
            && numbers.value("steward_backup_last_success_timestamp_seconds", &[]) > 1.7e9
    };
    let numbers = eventually_async("a mail and a backup are counted", async || {
        Some(Numbers::of(&workspace).await).filter(counted)
    })
    .await;
    assert!(is(numbers.value("steward_outbox_messages", &[]), 1));
    assert!(is(numbers.value("steward_mails_sent_total", &[]), 0));
    assert!(is(numbers.value("steward_backup_failures_total", &[]), 0));
    eventually("the backup exists", || backups.path().read_dir().ok()?.next()).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_writes_are_counted_in_metrics() {
    let workspace = metered().await;
    let closed = ClosedFile::of(&workspace).await;
    for _ in 0..3 {
        let refused =
            workspace.app.store().write(|_| Ok(())).await.expect_err("the file is closed");
        assert_eq!(refused.status(), 503);
    }
    let numbers = Numbers::of(&workspace).await;
    assert!(is(numbers.value("steward_writes_refused_total", &[]), 3), "{numbers:?}");
    assert!(is(numbers.value("steward_ready", &[]), 0));
    closed.open().await;
}
