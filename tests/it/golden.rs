//! Data files of earlier releases, kept in `tests/golden/`: every later release opens them, finds nothing wrong,
//! and answers what was answered then.
//!
//! A new format needs a new file, made by `cargo test --test it -- --ignored make_a_golden_file`. Where an answer
//! gets a new member on purpose, `GOLDEN=answers cargo test --test it golden` writes down the answers anew: look
//! at the difference. The API keys in the files open nothing but these fixtures.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use redb::{ReadableDatabase, ReadableTableMetadata, TableHandle};
use serde_json::{Value, json};
use steward::config::Config;
use steward::operator::Operation;
use steward::resources::members::Level;
use steward::router::{router, routes};
use steward::store::Store;
use steward::store::schema::FORMAT;
use steward::time::{Clock, ManualClock, Timestamp};
use steward::{App, operator::perform, store::Progress};
use tempfile::TempDir;

use crate::batch_exports;
use crate::signup::Offer;
use crate::support::dns::{Dns, Reply};
use crate::support::smtp::MailServer;
use crate::support::{Caller, OWNER, Workspace};

/// When the fixtures were made.
const MADE: Timestamp = Timestamp::from_micros(1_763_640_000_000_000);
/// What the file of answers says of the keys in it.
const NOTE: &str = "Fixtures: these keys open nothing but the data file beside this one.";
/// Tables that are empty but for moments: what is removed is swept at once.
const EMPTY: [&str; 1] = ["sweeps/1"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn data_of(format: u64) -> PathBuf {
    folder().join(format!("format-{format}.redb.gz"))
}

fn answers_of(format: u64) -> PathBuf {
    folder().join(format!("format-{format}.json"))
}

/// A configuration by the clock of the fixtures; what is due is sent to nobody.
fn config() -> Config {
    let mut config = Config::default();
    config.clock = Clock::Manual(ManualClock::at(MADE));
    config
}

/// What is asked again: who asks, by their place among the keys, and the path.
fn questions(paths: &[String], callers: usize) -> Vec<Value> {
    let each = |caller| paths.iter().map(move |path| json!({ "key": caller, "path": path }));
    (0..callers).flat_map(each).collect()
}

/// Asks; each question with its answer.
async fn answered(app: &App, keys: &[Value], questions: &[Value]) -> Vec<Value> {
    let mut all = Vec::new();
    for question in questions {
        let at =
            question["key"].as_u64().and_then(|at| usize::try_from(at).ok()).expect("a number");
        let caller = Caller::of(router(app.clone()), keys[at].as_str().expect("a key"));
        let answer = caller.get(question["path"].as_str().expect("a path")).await;
        let mut told = question.clone();
        told["status"] = json!(answer.status);
        told["body"] = answer.body;
        all.push(told);
    }
    all
}

/// A kept file, opened: where it lies for the while, and what serves it.
fn open(format: u64) -> (TempDir, App, Value) {
    open_with(format, config())
}

/// The same, served as `config` says.
pub fn open_with(format: u64, config: Config) -> (TempDir, App, Value) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("steward.redb");
    let mut bytes = Vec::new();
    let kept = File::open(data_of(format)).expect("a golden file");
    GzDecoder::new(kept).read_to_end(&mut bytes).expect("its bytes");
    fs::write(&path, bytes).expect("a copy");
    let store = Store::open(&path, 4 * 1024 * 1024).expect("it opens");
    let app = App::new(store, config).expect("it is served");
    let answers = fs::read(answers_of(format)).expect("its answers");
    (folder, app, serde_json::from_slice(&answers).expect("JSON"))
}

async fn check(app: &App) {
    let findings = perform(app, Operation::Check, Progress::unheard()).await.expect("a check");
    assert_eq!(findings["problem_count"], 0, "{findings}");
}

#[tokio::test]
async fn every_kept_file_opens_whole_and_answers_as_it_did() {
    let mut formats = 0;
    for format in (1..=FORMAT).filter(|format| data_of(*format).exists()) {
        formats += 1;
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
            assert_eq!(found, known, "format {format}");
        }
        let caller = Caller::of(router(app.clone()), keys[0].as_str().expect("a key"));
        let new = json!({ "name": "New" });
        let made = caller.post("/api/projects/@current/dashboards/", new).await.ok();
        app.close().await;
        let store = Store::open(&folder.path().join("steward.redb"), 4 * 1024 * 1024);
        let app = App::new(store.expect("it opens again"), config()).expect("it is served");
        let caller = Caller::of(router(app.clone()), keys[0].as_str().expect("a key"));
        let path = format!("/api/projects/@current/dashboards/{}/", made["id"]);
        assert_eq!(caller.get(&path).await.ok()["name"], "New", "format {format} takes writes");
        check(&app).await;
        app.close().await;
        println!("format {format}: {} answers as they were", known.len());
    }
    assert!(formats > 0, "there are none");
}

#[test]
fn this_format_has_a_kept_file() {
    assert!(data_of(FORMAT).exists(), "make one: see the top of this file");
    assert!(answers_of(FORMAT).exists());
}

/// What stands for the parameters of paths.
struct Made {
    organization: String,
    project: String,
    dashboard: String,
    domain: String,
    invite: String,
    export: String,
    key: String,
    token: String,
}

impl Made {
    /// The paths of all that can be read as JSON.
    fn paths(&self) -> Vec<String> {
        let reads = |path: &str| path.starts_with("/api/") || path.starts_with("/shared/");
        let is_kept =
            |path: &str| !path.starts_with("/api/schema") && !path.starts_with("/api/docs");
        let fill = |path: &str| {
            path.replace("/dashboards/{id}", &format!("/dashboards/{}", self.dashboard))
                .replace("/domains/{id}", &format!("/domains/{}", self.domain))
                .replace("/batch_exports/{id}", &format!("/batch_exports/{}", self.export))
                .replace("/personal_api_keys/{id}", &format!("/personal_api_keys/{}", self.key))
                .replace("/signup/{id}", &format!("/signup/{}", self.invite))
                .replace("{token}/", &format!("{}.json", self.token))
                .replace("{organization_id}", &self.organization)
                .replace("{project_id}", &self.project)
                .replace("{dashboard_id}", &self.dashboard)
        };
        let table = routes();
        let rows = table.rows().iter().filter(|row| row.method == axum::http::Method::GET);
        let paths = rows.map(|row| row.path).filter(|path| reads(path) && is_kept(path));
        paths.map(fill).inspect(|path| assert!(!path.contains('{'), "fill {path}")).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Invites somebody by mail; what they were given before is theirs too.
async fn invite_by_mail(workspace: &Workspace, name: &str) {
    let sent = json!({
        "target_email": format!("{name}@corp.example"), "level": 8, "message": "Welcome!",
        "private_project_access": [{ "id": workspace.made.project_id, "level": "member" }],
        "combine_pending_invites": true,
    });
    workspace.owner.post(&workspace.organization("invites/"), sent).await.ok();
}

/// People, projects, and who sees what.
async fn fill_organization(workspace: &Workspace, dns: &Dns) -> (String, String) {
    let owner = &workspace.owner;
    let profile =
        json!({ "role_at_organization": "founder", "hedgehog_config": { "color": "red" } });
    owner.patch("/api/users/@me/", profile).await.ok();
    let domains = workspace.organization("domains/");
    let domain = owner.post(&domains, json!({ "domain": "corp.example" })).await.ok();
    let challenge = text(&domain["verification_challenge"]);
    dns.set("_posthog-challenge.corp.example.", Reply::texts(&[&[&challenge]]));
    let one = format!("{domains}{}/", text(&domain["id"]));
    let verify = owner.post(&format!("{one}verify/"), json!({})).await;
    assert_eq!(verify.status, 200);
    owner.patch(&one, json!({ "jit_provisioning_enabled": true })).await.ok();
    owner.post(&domains, json!({ "domain": "zoo.example", "saml_entity_id": "zoo" })).await.ok();
    for name in ["new", "later"] {
        invite_by_mail(workspace, name).await;
    }
    let last = json!({ "target_email": "shown@corp.example", "send_email": false });
    let shown = owner.post(&workspace.organization("invites/"), last).await.ok();
    let settings = json!({
        "timezone": "Europe/Berlin", "access_control": true, "app_urls": ["https://corp.example"],
        "session_replay_config": { "record_canvas": true }, "session_recording_sample_rate": "0.5",
    });
    owner.patch(&format!("/api/projects/{}/", workspace.made.project_id), settings).await.ok();
    let member = workspace.membership("ben@corp.example").await;
    let grant = json!({ "access_level": "member", "organization_member": member });
    owner.put(&workspace.access_controls(), grant).await.ok();
    (text(&domain["id"]), text(&shown["id"]))
}

/// Dashboards with all that stands on them, and an export.
async fn fill_project(workspace: &Workspace) -> (String, String, String) {
    let owner = &workspace.owner;
    let template = json!({ "template": {
        "template_name": "Traffic", "dashboard_description": "Who came", "dashboard_filters": {},
        "tiles": [
            { "type": "TEXT", "body": "# This week", "layouts": { "sm": { "x": 0, "y": 0 } } },
            { "type": "INSIGHT", "name": "Visitors", "query": { "kind": "TrendsQuery" } },
        ],
    }});
    let path = workspace.dashboards("create_from_template_json/");
    let headers = [("idempotency-key", "golden"), ("content-type", "application/json")];
    let method = axum::http::Method::POST;
    let made = owner.fetch(method, &path, &headers, template.to_string()).await.ok();
    let board = text(&made["id"]);
    let one = workspace.dashboards(&format!("{board}/"));
    let sent = json!({
        "restriction_level": 37, "tags": ["weekly"], "pinned": true,
        "filters": { "date_from": "-7d" }, "variables": { "a": 1 },
    });
    owner.patch(&one, sent).await.ok();
    let ben = workspace.uuid("ben@corp.example").await;
    let collaborator = json!({ "user_uuid": ben, "level": 37 });
    owner.post(&format!("{one}collaborators/"), collaborator).await.ok();
    let member = workspace.membership("ben@corp.example").await;
    for whom in [Value::Null, member] {
        let rule = json!({ "access_level": "viewer", "organization_member": whom });
        owner.put(&format!("{one}access_controls/"), rule).await.ok();
    }
    owner.patch(&format!("{one}sharing/"), json!({ "enabled": true })).await.ok();
    let shared = owner.post(&format!("{one}sharing/refresh/"), json!({})).await.ok();
    let large = owner.post(&workspace.dashboards(""), json!({ "name": "Large" })).await.ok();
    let tiles = json!({ "tiles": vec![json!({ "text": { "body": "x" } }); 65] });
    owner.patch(&workspace.dashboards(&format!("{}/", large["id"])), tiles).await.ok();
    let copy = json!({ "use_dashboard": large["id"] }).to_string();
    let (method, headers) = (axum::http::Method::POST, [("idempotency-key", "large"), headers[1]]);
    owner.fetch(method, &workspace.dashboards(""), &headers, copy).await.ok();
    let second = owner.post(&workspace.dashboards(""), json!({ "name": "Removed" })).await.ok();
    let second = workspace.dashboards(&format!("{}/", second["id"]));
    let tiles = json!({ "tiles": [{ "text": { "body": "Gone" } }] });
    owner.patch(&second, tiles).await.ok();
    owner.patch(&second, json!({ "deleted": true })).await.ok();
    let sent = json!({
        "name": "Nightly", "interval": "day",
        "destination": { "type": "HTTP", "config": { "url": "https://corp.example", "token": "golden" } },
    });
    let exports = batch_exports::list_of(workspace);
    let export = text(&owner.post(&exports, sent).await.ok()["id"]);
    owner.post(&format!("{exports}{export}/pause/"), json!({})).await.is_empty(200);
    (board, export, text(&shared["access_token"]))
}

/// A key that a key made, and that was rolled and may be used for a while.
async fn fill_keys(workspace: &Workspace) -> String {
    let keys = "/api/personal_api_keys/";
    let sent = json!({ "label": "Nightly", "scopes": ["dashboard:read"] });
    let made = workspace.owner.post(keys, sent).await.ok();
    let one = format!("{keys}{}/", text(&made["id"]));
    workspace.owner.post(&format!("{one}roll/"), json!({ "grace_seconds": 86_400 })).await.ok();
    text(&made["id"])
}

/// The tables of a closed file that hold nothing.
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
#[ignore = "makes the golden file of a new format"]
async fn make_a_golden_file() {
    let (dns, mut mail) = (Dns::start().await, MailServer::start());
    let clock = config().clock;
    let mut config = dns.config();
    config.clock = clock;
    config.mail.smtp_url = Some(mail.url().parse().expect("a URL"));
    config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
    let workspace = Workspace::with(config).await;
    let ben = workspace.member("ben", Level::Member).await;
    workspace.outsider("eve").await;
    let (domain, invite) = fill_organization(&workspace, &dns).await;
    let (dashboard, export, token) = fill_project(&workspace).await;
    let key = fill_keys(&workspace).await;
    assert_eq!(mail.mail().await.to, ["new@corp.example"]);
    assert_eq!(mail.mail().await.to, ["later@corp.example"]);
    join_by_link(&workspace).await;
    assert_eq!(mail.mail().await.to, [OWNER]);
    // Too soon for another mail to the same address: this one waits in the file.
    invite_by_mail(&workspace, "later").await;
    let callers = [workspace.owner.clone(), ben];
    for caller in &callers {
        used(caller).await;
    }
    let made = Made {
        organization: workspace.made.organization_id.to_string(),
        project: workspace.made.project_id.to_string(),
        dashboard,
        domain,
        invite,
        export,
        key,
        token,
    };
    workspace.check().await;
    workspace.app.close().await;
    let empty = empty_tables(&workspace.path());
    assert!(empty.iter().all(|name| EMPTY.contains(&name.as_str())), "nothing is in {empty:?}");
    fs::create_dir_all(folder()).expect("a folder");
    let mut kept =
        GzEncoder::new(File::create(data_of(FORMAT)).expect("a file"), Compression::best());
    kept.write_all(&fs::read(workspace.path()).expect("the file")).expect("written");
    kept.finish().expect("written");
    let keys: Vec<_> = callers.iter().map(|caller| json!(caller.key)).collect();
    let asked = questions(&made.paths(), keys.len());
    let answers = json!({ "note": NOTE, "fixture_keys": keys, "answers": [] });
    fs::write(answers_of(FORMAT), answers.to_string()).expect("written");
    let (_folder, app, mut answers) = open(FORMAT);
    answers["answers"] = json!(answered(&app, &keys, &asked).await);
    let text = serde_json::to_string_pretty(&answers).expect("JSON");
    fs::write(answers_of(FORMAT), text + "\n").expect("written");
    app.close().await;
}

/// Somebody joins by a link, so nobody has proven their address.
async fn join_by_link(workspace: &Workspace) {
    let sent = json!({ "target_email": "linked@corp.example", "send_email": false });
    let made = workspace.owner.post(&workspace.organization("invites/"), sent).await.ok();
    let offer = Offer::of(&made);
    offer.accept(&workspace.anonymous(), json!({ "first_name": "Lin" })).await.ok();
}

/// Waits until it is recorded that the caller's key was used: that shows, and must not change later.
async fn used(caller: &Caller) {
    let path = "/api/personal_api_keys/@current/";
    let mut shown = caller.get(path).await.ok();
    while shown["last_used_at"].is_null() {
        tokio::task::yield_now().await;
        shown = caller.get(path).await.ok();
    }
}
