//! Serves a temporary data file under a mixed load: reads, lists, creates, updates, deletes, invites, valid and
//! invalid keys, and occasional backups and scrubs. Prints statistics over time, and fails at the first response with an
//! unexpected status.
//!
//! The columns of the data file: `length MB` is what `ls` shows, `disk MB` is what the file takes on disk, and `live MB` is
//! what the last backup takes, which has no unused space.
//!
//! Created objects are deleted again and the activity log is kept for part of the time only, so memory and file size
//! must level off.
//!
//! ```sh
//! cargo run --release --example soak -- --minutes 15
//! ```

#![allow(
    clippy::indexing_slicing,
    reason = "indexing a JSON value returns null for a missing member"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::Request;
use bytes::Bytes;
use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use steward::testing::resources::record_registry;
use steward::testing::store::Progress;
use steward::{App, Config, InitialRecords, create, router};
use steward::{ServerLimits, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs a mixed load against the service and prints statistics.
#[derive(Parser)]
struct Options {
    /// Duration in minutes.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Number of connections.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Number of dashboards in a project before it is deleted.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..))]
    dashboards: u16,
    /// Number of lines to print.
    #[arg(long, default_value_t = 15)]
    lines: u32,
}

/// The columns of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RequestKind {
    Read,
    List,
    Write,
    Refused,
}

/// The statistics since the last line.
#[derive(Default)]
struct Meter {
    micros: Mutex<BTreeMap<RequestKind, Vec<u64>>>,
    requests: AtomicU64,
    /// Objects that were created and not deleted yet.
    live: AtomicI64,
    /// The number of values in the last backup.
    values: AtomicU64,
    /// What the last backup takes on disk, in bytes.
    live_bytes: AtomicU64,
    over: AtomicBool,
}

/// A connection and its API key.
struct Client {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    key: String,
    meter: Arc<Meter>,
}

impl Client {
    fn new(address: SocketAddr, key: String, meter: Arc<Meter>) -> Self {
        let http = legacy::Client::builder(TokioExecutor::new()).build_http();
        Self { http, address, key, meter }
    }

    /// Sends a request. Fails unless the response has the expected status.
    async fn ask(
        &self,
        (kind, expected): (RequestKind, u16),
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Outcome<Value> {
        let key = match kind {
            RequestKind::Refused => "phx_wrong",
            _ => &self.key,
        };
        let body = body.map_or_else(String::new, |body| body.to_string());
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json")
            .body(Full::from(body))?;
        let begun = Instant::now();
        let answer = self.http.request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        let took = u64::try_from(begun.elapsed().as_micros())?;
        if status != expected {
            let text = String::from_utf8_lossy(&body);
            return Err(
                format!("{method} {path}: status {status} instead of {expected}: {text}").into()
            );
        }
        self.meter.requests.fetch_add(1, Ordering::Relaxed);
        let mut micros = self.meter.micros.lock().unwrap_or_else(PoisonError::into_inner);
        micros.entry(kind).or_default().push(took);
        Ok(serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> Outcome<Value> {
        self.ask((RequestKind::Read, 200), "GET", path, None).await
    }

    async fn list(&self, path: &str) -> Outcome<Value> {
        self.ask((RequestKind::List, 200), "GET", path, None).await
    }

    async fn create(&self, path: &str, body: Value) -> Outcome<Value> {
        let made = self.ask((RequestKind::Write, 201), "POST", path, Some(body)).await?;
        self.meter.live.fetch_add(1, Ordering::Relaxed);
        Ok(made)
    }

    async fn patch(&self, path: &str, body: Value) -> Outcome<Value> {
        self.ask((RequestKind::Write, 200), "PATCH", path, Some(body)).await
    }

    async fn remove(&self, path: &str) -> Outcome<()> {
        self.ask((RequestKind::Write, 204), "DELETE", path, None).await?;
        self.meter.live.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}

/// The load of one connection: creates and deletes projects and the objects in them.
async fn load(
    address: SocketAddr,
    key: String,
    organization: String,
    (number, dashboards): (usize, usize),
    meter: Arc<Meter>,
) -> Outcome<()> {
    let client = Client::new(address, key, Arc::clone(&meter));
    for round in 0_u64.. {
        let made =
            client.create(&format!("{organization}projects/"), json!({ "name": "Soak" })).await?;
        let project = format!("/api/projects/{}/", made["id"]);
        let boards = format!("{project}dashboards/");
        // The first project of each connection has a different size, so that not all are deleted at once.
        let size = if round == 0 { 1 + (number * 7) % dashboards } else { dashboards };
        for each in 0..size {
            if meter.over.load(Ordering::Relaxed) {
                return Ok(());
            }
            let name = format!("{number}-{round}-{each}");
            board(&client, &boards, &name).await?;
            around(&client, &organization, &project, (number, each)).await?;
        }
        // Deleting a project also deletes its dashboards.
        client.remove(&project).await?;
        meter.live.fetch_sub(i64::try_from(size)?, Ordering::Relaxed);
    }
    Ok(())
}

/// Creates, updates, reads and lists a dashboard.
async fn board(client: &Client, boards: &str, name: &str) -> Outcome<()> {
    let sent = json!({ "name": name, "description": "x".repeat(400), "tags": ["soak"] });
    let made = client.create(boards, sent).await?;
    let one = format!("{boards}{}/", made["id"]);
    let tiles = json!({ "pinned": true, "tiles": [{ "text": { "body": "A text" } }] });
    client.patch(&one, tiles).await?;
    for _ in 0..3 {
        client.get(&one).await?;
    }
    client.list(&format!("{boards}?limit=20")).await?;
    client.get("/api/users/@me/").await?;
    client.ask((RequestKind::Refused, 401), "GET", "/api/users/@me/", None).await?;
    Ok(())
}

/// Creates and deletes an invite, a domain or a batch export.
async fn around(
    client: &Client,
    organization: &str,
    project: &str,
    (number, each): (usize, usize),
) -> Outcome<()> {
    let id = |made: &Value| made["id"].as_str().unwrap_or_default().to_owned();
    match each % 3 {
        0 => {
            let invites = format!("{organization}invites/");
            let sent = json!({ "target_email": format!("soak-{number}@new.example") });
            let made = client.create(&invites, sent).await?;
            client.list(&format!("{invites}?limit=20")).await?;
            client.remove(&format!("{invites}{}/", id(&made))).await
        }
        1 => {
            let domains = format!("{organization}domains/");
            let sent = json!({ "domain": format!("soak-{number}.example") });
            let made = client.create(&domains, sent).await?;
            client.get(&format!("{domains}{}/", id(&made))).await?;
            client.remove(&format!("{domains}{}/", id(&made))).await
        }
        _ => {
            let exports = format!("{project}batch_exports/");
            let sent = json!({
                "name": "Soak", "interval": "day", "destination": { "type": "NoOp", "config": {} },
            });
            let made = client.create(&exports, sent).await?;
            let one = format!("{exports}{}/", id(&made));
            client.patch(&one, json!({ "interval": "hour" })).await?;
            client.remove(&one).await
        }
    }
}

/// Creates and deletes backups at intervals. Fails if the last scrub found a problem.
async fn back_up(app: App, folder: PathBuf, every: Duration, meter: Arc<Meter>) -> Outcome<()> {
    while !meter.over.load(Ordering::Relaxed) {
        let file = folder.join("backup.redb");
        let made = app.store().backup(file.clone(), record_registry(), Progress::silent()).await?;
        meter.values.store(made.values, Ordering::Relaxed);
        meter.live_bytes.store(disk_bytes(&file)?, Ordering::Relaxed);
        tokio::fs::remove_file(file).await?;
        if app.last_scrub().is_some_and(|scrub| scrub.problems > 0) {
            return Err("a scrub found problems; the log has them".into());
        }
        tokio::time::sleep(every).await;
    }
    Ok(())
}

/// Returns how many bytes a file takes on disk.
fn disk_bytes(file: &Path) -> std::io::Result<u64> {
    Ok(file.metadata()?.blocks() * 512)
}

const MIB: u64 = 1024 * 1024;

/// Returns the memory of the process, in MiB.
fn memory() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: u64 = line.split_whitespace().next().ok_or("no VmRSS")?.parse()?;
    Ok(kib / 1024)
}

/// Formats the percentiles `p50/p99` in milliseconds.
fn percentiles(mut micros: Vec<u64>) -> String {
    micros.sort_unstable();
    let at = |percent: usize| micros.get(micros.len() * percent / 100).copied().unwrap_or(0);
    let shown = |micros: u64| format!("{}.{}", micros / 1000, micros % 1000 / 100);
    format!("{}/{}", shown(at(50)), shown(at(99)))
}

/// Prints a line at intervals until the time is over. Returns what the file took on disk at each line, in KiB.
async fn tell(options: &Options, data: &Path, meter: &Meter) -> Outcome<Vec<u64>> {
    let (begun, all) = (Instant::now(), Duration::from_secs_f64(options.minutes * 60.0));
    let every = all / options.lines.max(1);
    let mut sizes = Vec::new();
    println!(
        "{:>7} {:>9} {:>7} {:>13} {:>13} {:>13} {:>11} {:>7} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "s",
        "requests",
        "/s",
        "read ms",
        "list ms",
        "write ms",
        "401 ms",
        "RSS MB",
        "length MB",
        "disk MB",
        "live MB",
        "objects",
        "values"
    );
    println!("{:>26} {:>12} {:>13} {:>13} {:>11}", "", "p50/p99", "p50/p99", "p50/p99", "p50/p99");
    let mut requests = 0;
    for _ in 0..options.lines {
        tokio::time::sleep(every).await;
        let mut micros = {
            let mut kept = meter.micros.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *kept)
        };
        let mut shown = |kind| percentiles(micros.remove(&kind).unwrap_or_default());
        let (before, now) = (requests, meter.requests.load(Ordering::Relaxed));
        requests = now;
        let (length, on_disk) = (data.metadata()?.len(), disk_bytes(data)?);
        sizes.push(on_disk / 1024);
        println!(
            "{:>7} {:>9} {:>7} {:>13} {:>13} {:>13} {:>11} {:>7} {:>9} {:>8} {:>8} {:>8} {:>8}",
            begun.elapsed().as_secs(),
            now,
            u128::from(now - before) * 1000 / every.as_millis().max(1),
            shown(RequestKind::Read),
            shown(RequestKind::List),
            shown(RequestKind::Write),
            shown(RequestKind::Refused),
            memory()?,
            length / MIB,
            on_disk / MIB,
            meter.live_bytes.load(Ordering::Relaxed) / MIB,
            meter.live.load(Ordering::Relaxed),
            meter.values.load(Ordering::Relaxed),
        );
    }
    Ok(sizes)
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let options = Options::parse();
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("soak.redb");
    let mut config = Config::default();
    config.activity_retention = Some(Duration::from_secs_f64(options.minutes * 60.0 / 10.0));
    config.scrub = Some(Duration::from_secs_f64(options.minutes * 60.0 / 20.0));
    let (app, made) = create(&data, config, &InitialRecords::default())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let service = router(app.clone());
    let server = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        serve(listener, service, &ServerLimits::default(), stopped).await
    });
    println!(
        "{} connections for {} minutes on {}",
        options.connections,
        options.minutes,
        data.display()
    );

    let meter = Arc::new(Meter::default());
    let mut tasks = tokio::task::JoinSet::new();
    let organization = format!("/api/organizations/{}/", made.organization_id);
    for number in 0..options.connections {
        let (key, organization) = (made.api_key.clone(), organization.clone());
        let size = (number, usize::from(options.dashboards));
        tasks.spawn(load(address, key, organization, size, Arc::clone(&meter)));
    }
    let every = Duration::from_secs_f64(options.minutes * 60.0 / 20.0);
    tasks.spawn(back_up(app.clone(), folder.path().to_owned(), every, Arc::clone(&meter)));

    let sizes = {
        let mut telling = std::pin::pin!(tell(&options, &data, &meter));
        loop {
            tokio::select! {
                sizes = &mut telling => break sizes?,
                Some(ended) = tasks.join_next() => ended??,
            }
        }
    };
    meter.over.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let scrub = loop {
        if let Some(scrub) = app.last_scrub() {
            break scrub;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    println!("last scrub: {} values, {} problems", scrub.values, scrub.problems);
    let findings = app.store().check(record_registry(), Progress::silent()).await?;
    println!("check: {} values, {} problems", findings.values, findings.problem_count);
    let _ = stop.send(());
    server.await??;
    app.close().await;
    if findings.problem_count + scrub.problems > 0 {
        return Err(format!("{:?}", findings.problems).into());
    }
    if let (Some(half), Some(end)) = (sizes.get(sizes.len() / 2), sizes.last()) {
        let live = meter.live_bytes.load(Ordering::Relaxed) / 1024;
        println!(
            "on disk: {half} KiB after half of the time, {end} KiB at the end; {live} KiB live"
        );
    }
    Ok(())
}
