//! Measures what one installation carries: the room of a dashboard, the time of a cold start, and how many writes nodes of
//! a shared database commit together. Starts a PostgreSQL server of its own, and leaves nothing.
//!
//! All nodes, the database and the load share this machine, so the rates are those of one machine. Compare them with each
//! other. `docs/scale.md` has the figures of one run.
//!
//! ```sh
//! cargo run --release --example scale -- --dashboards 100000 --nodes 3
//! ```

#![allow(
    clippy::indexing_slicing,
    reason = "indexing a JSON value returns null for a missing member"
)]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{Request, StatusCode};
use clap::Parser;
use serde_json::json;
use steward::testing::resources::record_registry;
use steward::testing::store::{Place, PreparedRestore, Progress};
use steward::{App, Config, CreatedWorkspace, InitialRecords, Store, create, router};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tower::ServiceExt;

#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    reason = "the tests use the rest, and say by panicking that they cannot go on"
)]
#[path = "../tests/support/postgres.rs"]
mod postgres;

use postgres::{ROLE, Schema, Server};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Measures what one installation carries.
#[derive(Parser)]
struct Options {
    /// Number of dashboards.
    #[arg(long, default_value_t = 100_000)]
    dashboards: u64,
    /// The highest number of nodes.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Duration of each measurement of writes, in seconds.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Number of writers of each node.
    #[arg(long, default_value_t = 32)]
    writers: usize,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let options = Options::parse();
    let folder = TempDir::new()?;
    let (made, backup) = fill(&options, folder.path()).await?;
    let server = Server::start(&["fsync = on", "synchronous_commit = on"], "");
    let schema = Schema::on(&server.url(ROLE));
    upload(&schema, folder.path(), &backup).await?;
    let [rows, bytes] = room(&schema)?;
    report("rows in PostgreSQL", rows, &options);
    report("bytes in PostgreSQL", bytes, &options);
    for copy in ["without a copy", "with a copy"] {
        let begun = Instant::now();
        let app = node(&schema, folder.path(), 0)?;
        println!("cold start {copy}: {:.2} s", begun.elapsed().as_secs_f64());
        app.close().await;
    }
    report("bytes of a copy", std::fs::metadata(copy(folder.path(), 0))?.len(), &options);
    for nodes in 1..=options.nodes {
        measure_writes(&options, &schema, folder.path(), nodes, &made).await?;
    }
    Ok(())
}

/// Returns the configuration of a service that takes as many dashboards as are created.
fn config() -> Config {
    let mut config = Config::default();
    config.caps.max_dashboards = u64::MAX;
    config
}

/// Prints a total, and what of it belongs to one dashboard.
fn report(what: &str, total: u64, options: &Options) {
    #[expect(clippy::cast_precision_loss, reason = "the figures are rounded")]
    let each = total as f64 / options.dashboards.max(1) as f64;
    println!("{what}: {total}, {each:.1} for each dashboard");
}

/// Creates a data file with the dashboards, and a backup of it.
async fn fill(options: &Options, folder: &Path) -> Outcome<(CreatedWorkspace, std::path::PathBuf)> {
    let file = folder.join("file.redb");
    let (app, made) = create(&file, config(), &InitialRecords::default())?;
    let begun = Instant::now();
    let each = options.dashboards.div_ceil(options.writers as u64);
    let work = (0..options.writers).map(|_| write(&app, &made, Some(each), Duration::MAX));
    let written =
        work.collect::<JoinSet<_>>().join_all().await.into_iter().sum::<Outcome<u64>>()?;
    println!(
        "a data file: {written} dashboards in {:.1} s, with {} writers",
        begun.elapsed().as_secs_f64(),
        options.writers
    );
    let backup = folder.join("backup.redb");
    app.store().backup(backup.clone(), record_registry(), Progress::silent()).await?;
    app.close().await;
    report("bytes of a backup", std::fs::metadata(&backup)?.len(), options);
    Ok((made, backup))
}

/// Makes the backup the content of the database.
async fn upload(schema: &Schema, folder: &Path, backup: &Path) -> Outcome<()> {
    let (place, backup) = (place(schema, folder, 0)?, backup.to_owned());
    let begun = Instant::now();
    let work = move || {
        let silent = Progress::silent();
        let from = PreparedRestore::new(place.file(), &backup, &record_registry(), &silent)?;
        from.upload(&place, "now", &silent).map(drop)
    };
    tokio::task::spawn_blocking(work).await??;
    println!("restored into PostgreSQL in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Returns how many rows the database has, and their bytes with the indexes.
fn room(schema: &Schema) -> Outcome<[u64; 2]> {
    let sql = "SELECT count(*), pg_total_relation_size('steward_rows') FROM steward_rows";
    let found = schema.execute(sql);
    let row = found.first().ok_or("no answer of PostgreSQL")?;
    Ok([row.first().ok_or("no count")?.parse()?, row.get(1).ok_or("no size")?.parse()?])
}

fn commits(schema: &Schema) -> Outcome<u64> {
    let found = schema.execute("SELECT count(*) FROM steward_commits");
    Ok(found.first().and_then(|row| row.first()).ok_or("no answer of PostgreSQL")?.parse()?)
}

fn copy(folder: &Path, node: usize) -> std::path::PathBuf {
    folder.join(format!("copy-{node}.redb"))
}

fn place(schema: &Schema, folder: &Path, node: usize) -> Outcome<Place> {
    let name = format!("node {node}");
    Ok(Place::new(schema.url().as_ref(), &copy(folder, node), None, Some(&name))?)
}

/// Starts a node, which copies what it lacks first.
fn node(schema: &Schema, folder: &Path, number: usize) -> Outcome<App> {
    let place = place(schema, folder, number)?;
    let config = config();
    let (disk, cache) = (config.file_system.clone(), config.page_cache);
    let opened = Store::open_at(disk, &place, cache)?;
    Ok(App::new(opened, config)?)
}

/// Prints how many writes and commits so many nodes make in a second.
async fn measure_writes(
    options: &Options,
    schema: &Schema,
    folder: &Path,
    nodes: usize,
    made: &CreatedWorkspace,
) -> Outcome<()> {
    let mut apps = Vec::new();
    for number in 0..nodes {
        apps.push(node(schema, folder, number)?);
    }
    let (time, before) = (Duration::from_secs_f64(options.seconds), commits(schema)?);
    let begun = Instant::now();
    let writers = apps.iter().flat_map(|app| (0..options.writers).map(move |_| app));
    let work = writers.map(|app| write(app, made, None, time));
    let written =
        work.collect::<JoinSet<_>>().join_all().await.into_iter().sum::<Outcome<u64>>()?;
    let (seconds, after) = (begun.elapsed().as_secs_f64(), commits(schema)?);
    #[expect(clippy::cast_precision_loss, reason = "the figures are rounded")]
    let [writes, commits] = [written, after - before].map(|count| count as f64 / seconds);
    println!("{nodes} nodes: {writes:.0} writes/s in {commits:.0} commits/s");
    for app in apps {
        app.close().await;
    }
    Ok(())
}

/// Creates dashboards, so many or for so long, and returns how many.
fn write(
    app: &App,
    made: &CreatedWorkspace,
    number: Option<u64>,
    time: Duration,
) -> impl Future<Output = Outcome<u64>> + Send + 'static {
    let router = router(app.clone());
    let path = format!("/api/projects/{}/dashboards/", made.project_id);
    let key = format!("Bearer {}", made.api_key);
    async move {
        let (begun, mut written) = (Instant::now(), 0);
        while begun.elapsed() < time && number.is_none_or(|number| written < number) {
            let body = json!({ "name": format!("Dashboard {written}"), "description": "Revenue by month", "tags": ["a"] });
            let request = Request::post(&path)
                .header(AUTHORIZATION, &key)
                .header(CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_string()))?;
            let answer = router.clone().oneshot(request).await?;
            if answer.status() != StatusCode::CREATED {
                return Err(format!("a write was answered with {}", answer.status()).into());
            }
            written += 1;
        }
        Ok(written)
    }
}
