//! A data file of each format, in `tests/golden/`. Every later release opens it, finds no problems, and gives the
//! same responses as the release that wrote it.
//!
//! `cargo test --test it -- --ignored create_golden_file` writes the file of the current format and its responses. When
//! responses get a new member on purpose, `GOLDEN=answers cargo test --test it golden` writes the responses
//! again; review the difference. The API keys in the files are valid only for these fixtures.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use redb::{ReadableDatabase, ReadableTableMetadata, TableHandle};
use serde_json::{Value, json};
use steward::App;
use steward::Config;
use steward::Store;
use steward::testing::operator::Operation;
use steward::testing::operator::perform;
use steward::testing::resources::sessions::Fields as Browser;
use steward::testing::router::{router, routes};
use steward::testing::store::Progress;
use steward::testing::store::schema::FORMAT;
use steward::testing::time::{Clock, ManualClock, Timestamp};
use tempfile::TempDir;

use crate::batch_exports;
use crate::signup::Offer;
use crate::support::dns::{Dns, Reply};
use crate::support::idempotency::post_once;
use crate::support::roles::{add_role, add_to_role};
use crate::support::smtp::MailServer;
use crate::support::{Level, OWNER, TestClient, Workspace, eventually_async};

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
            let path = known["path"].as_str().expect("a path");
            if path.ends_with("/operations/") {
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
        assert_eq!(
            caller.get(&path).await.ok()["name"],
            "New",
            "format {format} must accept writes"
        );
        check(&app).await;
        app.close().await;
        println!("format {format}: {} unchanged responses", known.len());
    }
}

/// The values of path parameters.
struct SampleIds {
    organization: String,
    project: String,
    dashboard: String,
    domain: String,
    invite: String,
    export: String,
    key: String,
    token: String,
    role: String,
    role_membership: String,
    user: String,
}

impl SampleIds {
    /// Returns the paths of all resources that can be read as JSON.
    fn paths(&self) -> Vec<String> {
        let reads = |path: &str| path.starts_with("/api/") || path.starts_with("/shared/");
        // A look-up answers with what the DNS says at that time.
        let is_kept = |path: &str| {
            !path.starts_with("/api/schema")
                && !path.starts_with("/api/docs")
                && !path.ends_with("/lookup/")
        };
        let fill = |path: &str| {
            path.replace("/dashboards/{id}", &format!("/dashboards/{}", self.dashboard))
                .replace("/insights/{id}", "/insights/1")
                .replace("/domains/{id}", &format!("/domains/{}", self.domain))
                .replace("/batch_exports/{id}", &format!("/batch_exports/{}", self.export))
                .replace("/personal_api_keys/{id}", &format!("/personal_api_keys/{}", self.key))
                .replace("/roles/{id}", &format!("/roles/{}", self.role))
                .replace(
                    "/role_memberships/{id}",
                    &format!("/role_memberships/{}", self.role_membership),
                )
                .replace("{role_id}", &self.role)
                .replace("/signup/{id}", &format!("/signup/{}", self.invite))
                .replace("/invites/{id}", &format!("/invites/{}", self.invite))
                .replace("{user__uuid}", &self.user)
                .replace("{token}/", &format!("{}.json", self.token))
                .replace("{organization_id}", &self.organization)
                .replace("{project_id}", &self.project)
                .replace("{dashboard_id}", &self.dashboard)
        };
        let table = routes();
        let rows = table.specs().iter().filter(|row| row.method == axum::http::Method::GET);
        let paths = rows.map(|row| row.path).filter(|path| reads(path) && is_kept(path));
        paths.map(fill).inspect(|path| assert!(!path.contains('{'), "fill {path}")).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Invites an address by mail. A second invite includes the access that the first one gives.
async fn invite_by_mail(workspace: &Workspace, name: &str) {
    let sent = json!({
        "target_email": format!("{name}@corp.example"), "level": 8, "message": "Welcome!",
        "private_project_access": [{ "id": workspace.made.project_id, "level": "member" }],
        "combine_pending_invites": true,
    });
    workspace.owner.post(&workspace.organization("invites/"), sent).await.ok();
}

/// Creates members, domains, invites and access to a project. Returns the ids of a domain and an invite.
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

/// Creates roles, of which one is the default and has a member. Returns the ids of that role and the membership.
async fn fill_roles(workspace: &Workspace) -> (String, String) {
    add_role(workspace, "Billing").await;
    let (role, path) = add_role(workspace, "Analysts").await;
    let member = add_to_role(workspace, &path, "ben@corp.example").await;
    let default = json!({ "default_role_id": role["id"] });
    workspace.owner.patch(&workspace.organization(""), default).await.ok();
    let grant = json!({ "access_level": "admin", "role": role["id"] });
    workspace.owner.put(&workspace.access_controls(), grant).await.ok();
    (text(&role["id"]), text(&member["id"]))
}

/// Creates dashboards, their contents and a batch export. Returns the ids of a dashboard and the export, and
/// a sharing token. The role has access rules.
async fn fill_project(workspace: &Workspace, role: &str) -> (String, String, String) {
    let owner = &workspace.owner;
    let template = json!({ "template": {
        "template_name": "Traffic", "dashboard_description": "Who came", "dashboard_filters": {},
        "tiles": [
            { "type": "TEXT", "body": "# This week", "layouts": { "sm": { "x": 0, "y": 0 } } },
            { "type": "INSIGHT", "name": "Visitors", "query": { "kind": "TrendsQuery" } },
        ],
    }});
    let path = workspace.dashboards("create_from_template_json/");
    let made = post_once(owner, &path, "golden", &template).await.ok();
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
        let sent = json!({ "access_level": "viewer", "organization_member": whom });
        owner.put(&format!("{one}access_controls/"), sent).await.ok();
    }
    let sent = json!({ "access_level": "editor", "role": role });
    owner.put(&format!("{one}access_controls/"), sent.clone()).await.ok();
    let kinds = format!("/api/projects/{}/resource_access_controls/", workspace.made.project_id);
    for kind in ["dashboard", "feature_flag"] {
        let mut sent = sent.clone();
        sent["resource"] = json!(kind);
        owner.put(&kinds, sent).await.ok();
    }
    owner.patch(&format!("{one}sharing/"), json!({ "enabled": true })).await.ok();
    let shared = owner.post(&format!("{one}sharing/refresh/"), json!({})).await.ok();
    let large = owner.post(&workspace.dashboards(""), json!({ "name": "Large" })).await.ok();
    let tiles = json!({ "tiles": vec![json!({ "text": { "body": "x" } }); 65] });
    owner.patch(&workspace.dashboards(&format!("{}/", large["id"])), tiles).await.ok();
    let copy = json!({ "use_dashboard": large["id"] });
    post_once(owner, &workspace.dashboards(""), "large", &copy).await.ok();
    let second = owner.post(&workspace.dashboards(""), json!({ "name": "Removed" })).await.ok();
    let second = workspace.dashboards(&format!("{}/", second["id"]));
    let tiles = json!({ "tiles": [{ "text": { "body": "Gone" } }] });
    owner.patch(&second, tiles).await.ok();
    owner.patch(&second, json!({ "deleted": true })).await.ok();
    let insights = format!("/api/projects/{}/insights/", workspace.made.project_id);
    let insight = owner.post(&insights, json!({ "name": "Removed" })).await.ok();
    let insight = format!("{insights}{}/", insight["id"]);
    owner.patch(&insight, json!({ "deleted": true })).await.ok();
    let sent = json!({
        "name": "Nightly", "interval": "day",
        "destination": { "type": "HTTP", "config": { "url": "https://corp.example", "token": "golden" } },
    });
    let exports = batch_exports::list_of(workspace);
    let export = text(&owner.post(&exports, sent).await.ok()["id"]);
    owner.post(&format!("{exports}{export}/pause/"), json!({})).await.assert_empty(200);
    (board, export, text(&shared["access_token"]))
}

/// Creates a key with a key and rotates it with a grace period.
async fn fill_keys(workspace: &Workspace) -> String {
    let keys = "/api/personal_api_keys/";
    let sent = json!({ "label": "Nightly", "scopes": ["dashboard:read"] });
    let made = workspace.owner.post(keys, sent).await.ok();
    let one = format!("{keys}{}/", text(&made["id"]));
    workspace.owner.post(&format!("{one}roll/"), json!({ "grace_seconds": 86_400 })).await.ok();
    text(&made["id"])
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
    let (role, role_membership) = fill_roles(&workspace).await;
    let (dashboard, export, token) = fill_project(&workspace, &role).await;
    let key = fill_keys(&workspace).await;
    fill_sessions(&workspace).await;
    assert_eq!(mail.mail().await.to, ["new@corp.example"]);
    assert_eq!(mail.mail().await.to, ["later@corp.example"]);
    join_by_link(&workspace).await;
    assert_eq!(mail.mail().await.to, [OWNER]);
    // Too soon for another mail to the same address, so this one stays in the outbox.
    invite_by_mail(&workspace, "later").await;
    let callers = [workspace.owner.clone(), ben];
    for caller in &callers {
        used(caller).await;
    }
    let made = SampleIds {
        organization: workspace.made.organization_id.to_string(),
        project: workspace.made.project_id.to_string(),
        dashboard,
        domain,
        invite,
        export,
        key,
        token,
        role,
        role_membership,
        user: workspace.uuid("ben@corp.example").await,
    };
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
    let asked = questions(&made.paths(), keys.len());
    let answers = json!({ "note": NOTE, "fixture_keys": keys, "answers": [] });
    fs::write(answers_of(FORMAT), answers.to_string()).expect("written");
    let (_folder, app, mut answers) = open(FORMAT);
    answers["answers"] = json!(answered(&app, &keys, &asked).await);
    let text = serde_json::to_string_pretty(&answers).expect("JSON");
    fs::write(answers_of(FORMAT), text + "\n").expect("written");
    app.close().await;
}

/// A user joins by an invite link, so their address is not verified.
async fn join_by_link(workspace: &Workspace) {
    let sent = json!({ "target_email": "linked@corp.example", "send_email": false });
    let made = workspace.owner.post(&workspace.organization("invites/"), sent).await.ok();
    Offer::of(&made).join(workspace, json!({ "first_name": "Lin" })).await;
}

/// Waits until the use of the caller's key is recorded, because responses show it and must not change later.
async fn used(caller: &TestClient) {
    eventually_async("the use is recorded", async || {
        let shown = caller.get("/api/personal_api_keys/@current/").await.ok();
        (!shown["last_used_at"].is_null()).then_some(())
    })
    .await;
}
