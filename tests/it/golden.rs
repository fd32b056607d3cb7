//! A data file of each format, in `tests/golden/`. Every later release opens it, finds no problems, and gives the
//! same responses as the release that wrote it.
//!
//! `cargo test --test it -- --ignored create_golden_file` writes the file of the current format and its responses. When
//! responses get a new member on purpose, `GOLDEN=answers cargo test --test it golden` writes the responses
//! again; review the difference. The API keys in the files are valid only for these fixtures.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use redb::{ReadableDatabase, ReadableTableMetadata, TableHandle};
use steward::testing::resources::sessions::Fields as Browser;
use steward::testing::store::FORMAT;

use crate::exports::Everything;
use crate::support::prelude::*;

/// The time at which the fixtures were created.
const MADE: Timestamp = Timestamp::from_micros(1_763_640_000_000_000);
/// The note about the keys in each file of responses.
const NOTE: &str = "Fixtures: these keys open nothing but the data file beside this one.";
/// Tables that are almost always empty: what a request leaves to the background is done at once, an import and requests
/// for a mail to sign in live for minutes, and only a shared database has leases.
const EMPTY: [&str; 6] = [
    "imports/1",
    "leases/1",
    "pending_listings/1",
    "sign_in_requests/1",
    "sign_in_requests_by_user/1",
    "sweeps/1",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn data_of(format: u64) -> PathBuf {
    folder().join(format!("format-{format}.redb.gz"))
}

fn answers_of(format: u64) -> PathBuf {
    folder().join(format!("format-{format}.json"))
}

/// Returns a configuration with the clock of the fixtures and without mail delivery.
fn config() -> Config {
    let mut config = Config::default();
    config.clock = Clock::Manual(ManualClock::at(MADE));
    config
}

/// Returns the requests to repeat: the index of the caller's key, and the path.
fn questions(paths: &[String], callers: usize) -> Vec<Value> {
    let each = |caller| paths.iter().map(move |path| json!({ "key": caller, "path": path }));
    (0..callers).flat_map(each).collect()
}

/// Makes the requests and returns each with its response.
async fn answered(app: &App, keys: &[Value], questions: &[Value]) -> Vec<Value> {
    let mut all = Vec::new();
    for question in questions {
        let at =
            question["key"].as_u64().and_then(|at| usize::try_from(at).ok()).expect("a number");
        let caller = TestClient::of(router(app.clone()), keys[at].as_str().expect("a key"));
        let answer = caller.get(question["path"].as_str().expect("a path")).await;
        let mut told = question.clone();
        told["status"] = json!(answer.status);
        told["body"] = answer.body;
        all.push(told);
    }
    all
}

/// Opens a copy of a golden file. Returns its folder, the app and the recorded responses.
fn open(format: u64) -> (TempDir, App, Value) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("steward.redb");
    let mut bytes = Vec::new();
    let kept = File::open(data_of(format)).expect("the top of this file says how to create it");
    GzDecoder::new(kept).read_to_end(&mut bytes).expect("the bytes");
    fs::write(&path, bytes).expect("a copy");
    let store = Store::open(&path, 4 * 1024 * 1024).expect("a store");
    let app = App::new(store, config()).expect("an app");
    let answers = fs::read(answers_of(format)).expect("the responses");
    (folder, app, serde_json::from_slice(&answers).expect("JSON"))
}

async fn check(app: &App) {
    let findings = perform(app, Operation::Check, Progress::silent()).await.expect("a check");
    assert_eq!(findings["problem_count"], 0, "{findings}");
}

#[tokio::test]
async fn every_golden_file_opens_and_gives_the_stored_responses() {
    for format in 1..=FORMAT {
        let (folder, app, mut kept) = open(format);
        check(&app).await;
        let (keys, known) = (kept["fixture_keys"].clone(), kept["answers"].clone());
        let (keys, known) = (keys.as_array().expect("keys"), known.as_array().expect("answers"));
        let found = answered(&app, keys, known).await;
        if std::env::var("GOLDEN").is_ok_and(|what| what == "answers") {
            kept["answers"] = json!(found);
            let text = serde_json::to_string_pretty(&kept).expect("JSON");
            fs::write(answers_of(format), text + "\n").expect("written");
            continue;
        }
        for (found, known) in found.iter().zip(known) {
            // What a key can do depends on the operations of the release: a later one has more.
            if known["path"].as_str().expect("a path").ends_with("/operations/") {
                assert_eq!(found["status"], known["status"], "format {format}");
                continue;
            }
            assert_eq!(found, known, "format {format}");
        }
        let caller = TestClient::of(router(app.clone()), keys[0].as_str().expect("a key"));
        let new = json!({ "name": "New" });
        let made = caller.post("/api/projects/@current/dashboards/", new).await.ok();
        app.close().await;
        let store = Store::open(&folder.path().join("steward.redb"), 4 * 1024 * 1024);
        let app = App::new(store.expect("a store"), config()).expect("an app");
        let caller = TestClient::of(router(app.clone()), keys[0].as_str().expect("a key"));
        let path = format!("/api/projects/@current/dashboards/{}/", made["id"]);
        assert_eq!(caller.get(&path).await.ok()["name"], "New", "format {format} accepts writes");
        check(&app).await;
        app.close().await;
        println!("format {format}: {} unchanged responses", known.len());
    }
}

/// Returns the paths of all resources that can be read as JSON.
fn paths(objects: &Objects) -> Vec<String> {
    let reads = |path: &str| path.starts_with("/api/") || path.starts_with("/shared/");
    // A look-up answers with what the DNS says at that time.
    let is_kept = |path: &str| {
        !path.starts_with("/api/schema")
            && !path.starts_with("/api/docs")
            && !path.ends_with("/lookup/")
    };
    let table = routes();
    let rows = table.specs().iter().filter(|row| row.method == Method::GET);
    let paths = rows.map(|row| row.path).filter(|path| reads(path) && is_kept(path));
    paths.map(|path| objects.fill(&path.replace("{token}/", "{token}.json"))).collect()
}

/// Creates a session of the console, and a link to sign in that is not used.
async fn fill_sessions(workspace: &Workspace) {
    let (app, user) = (&workspace.app, workspace.made.user_id);
    let used = app.create_sign_in_link(user, false).await.expect("a link");
    let browser = Browser::new("Golden", IpAddr::from(Ipv4Addr::LOCALHOST));
    app.sign_in_with_link(&used.code, browser, None).await.expect("a session");
    app.create_sign_in_link(user, false).await.expect("a link");
}

/// Returns the empty tables of a closed file.
fn empty_tables(path: &Path) -> Vec<String> {
    let database = redb::ReadOnlyDatabase::open(path).expect("a closed file");
    let tx = database.begin_read().expect("a transaction");
    let tables = tx.list_tables().expect("tables");
    let is_empty = |name: &redb::UntypedTableHandle| {
        tx.open_untyped_table(name.clone()).expect("a table").is_empty().expect("a length")
    };
    tables.filter(is_empty).map(|name| name.name().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes the golden file of the current format"]
async fn create_golden_file() {
    let all = Everything::with(config()).await;
    let (workspace, objects) = (&all.workspace, all.objects.as_ref().expect("objects"));
    fill_sessions(workspace).await;
    let callers = [workspace.owner.clone(), workspace.key("objects@corp.example", &["*"]).await];
    for caller in &callers {
        used(caller).await;
    }
    workspace.assert_file_valid().await;
    workspace.app.close().await;
    let empty = empty_tables(&workspace.path());
    assert!(empty.iter().all(|name| EMPTY.contains(&name.as_str())), "empty tables: {empty:?}");
    fs::create_dir_all(folder()).expect("a folder");
    let mut kept =
        GzEncoder::new(File::create(data_of(FORMAT)).expect("a file"), Compression::best());
    kept.write_all(&fs::read(workspace.path()).expect("the file")).expect("written");
    kept.finish().expect("written");
    let keys: Vec<_> = callers.iter().map(|caller| json!(caller.key)).collect();
    let asked = questions(&paths(objects), keys.len());
    let answers = json!({ "note": NOTE, "fixture_keys": keys, "answers": [] });
    fs::write(answers_of(FORMAT), answers.to_string()).expect("written");
    let (_folder, app, mut answers) = open(FORMAT);
    answers["answers"] = json!(answered(&app, &keys, &asked).await);
    let text = serde_json::to_string_pretty(&answers).expect("JSON");
    fs::write(answers_of(FORMAT), text + "\n").expect("written");
    app.close().await;
}

/// Waits until the use of the caller's key is recorded, because responses show it and must not change later.
async fn used(caller: &TestClient) {
    eventually_async("the use is recorded", async || {
        let shown = caller.get("/api/personal_api_keys/@current/").await.ok();
        (!shown["last_used_at"].is_null()).then_some(())
    })
    .await;
}
