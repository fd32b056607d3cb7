//! `export` and `import` of a workspace with records of every kind: identical bytes, and no secrets unless
//! requested.

mod damage;
pub mod organization;

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use steward::testing::bootstrap;
use steward::testing::mail::{Pace, PaceKey};
use steward::testing::resources::api_keys::ApiKeyUse;
use steward::testing::resources::cascade_delete::PendingDeletion;
use steward::testing::resources::invites::InviteMail;
use steward::testing::resources::roles::PendingListing;
use steward::testing::resources::shared::ImportMark;
use steward::testing::store::{
    ExportOptions, Imported, OpenError, Place, SentCopy, canonical_line, receive,
};
use tokio::sync::Semaphore;

use crate::support::exports::{lines, sealed};
use crate::support::prelude::*;
use crate::support::sessions::SESSIONS;

/// Returns export settings with the system's folder for temporary files.
pub fn how(secrets: bool) -> ExportOptions {
    ExportOptions {
        registry: record_registry(),
        secrets,
        organization: None,
        folder: std::env::temp_dir(),
        progress: Progress::silent(),
    }
}

/// Returns the bytes of the copy that a server sends to a command.
pub async fn copied(store: &Store) -> Vec<u8> {
    let mut copy = store.copy_to_unnamed(Progress::silent()).await.expect("a copy");
    let mut bytes = Vec::new();
    copy.read_to_end(&mut bytes).expect("read");
    bytes
}

/// Returns a copy as it arrives.
pub fn sent(copy: &[u8]) -> SentCopy<&[u8]> {
    SentCopy { from: copy, size: copy.len() as u64 }
}

/// Returns the export of a store.
pub async fn export(store: &Store, secrets: bool) -> Vec<u8> {
    let export = store.export(how(secrets)).await.expect("an export");
    let mut bytes = Vec::new();
    assert_eq!(export.write_to(&mut bytes).expect("written"), bytes.len() as u64);
    bytes
}

/// Creates a data file from an export.
pub fn import(bytes: &[u8], to: &Path) -> Result<Imported, OpenError> {
    bootstrap::import(&Place::File(to.to_owned()), bytes, &Progress::silent())
}

/// Checks the file at `path` and returns its export.
async fn exported(path: &Path, secrets: bool) -> Vec<u8> {
    let store = Store::open(path, 0).expect("a data file");
    let findings = store.check(record_registry(), Progress::silent()).await.expect("checked");
    assert_eq!(findings.problems, [""; 0]);
    let bytes = export(&store, secrets).await;
    store.close().await;
    bytes
}

/// A workspace with records of every kind, and the secrets in it.
pub struct Everything {
    pub workspace: Workspace,
    pub secrets: Vec<String>,
    /// The dashboard with nearly every kind of content.
    pub dashboard: Value,
    /// The token of its public page.
    pub page: String,
    /// An object of each type, in an organization of its own.
    pub objects: Option<Objects>,
}

impl Everything {
    pub async fn new() -> Self {
        Self::with(Config::default()).await
    }

    pub async fn with(mut config: Config) -> Self {
        config.mail.smtp_url =
            Some("smtp://steward:SECRET-smtp@127.0.0.1:9".parse().expect("a URL"));
        config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
        let workspace = Workspace::with(config).await;
        let secrets = vec!["SECRET".to_owned(), workspace.made.api_key.clone()];
        let (dashboard, page, objects) = (Value::Null, String::new(), None);
        let mut all = Self { workspace, secrets, dashboard, page, objects };
        all.people().await;
        all.projects().await;
        all.dashboards().await;
        all.keys().await;
        all.rest().await;
        all
    }

    /// Copies the data file. No background work changes the copy.
    async fn copy_to(&self, path: &Path) {
        let store = self.workspace.app.store();
        let copied = store.backup(path.to_owned(), record_registry(), Progress::silent());
        copied.await.expect("a backup");
    }

    fn owner(&self) -> TestClient {
        self.workspace.owner.clone()
    }

    /// Collects every secret in a response and returns the response.
    fn noted(&mut self, answer: Value) -> Value {
        const SECRETS: [&str; 5] =
            ["api_token", "access_token", "live_events_token", "accept_url", "value"];
        for name in SECRETS {
            if let Some(text) = answer[name].as_str() {
                let secret = text.split_once("?token=").map_or(text, |(_, token)| token);
                self.secrets.push(secret.to_owned());
            }
        }
        answer
    }

    async fn people(&mut self) {
        let owner = self.owner();
        self.secrets.extend(self.workspace.member("ann", Level::Member).await.key);
        owner.patch(ME, json!({ "theme_mode": "dark" })).await.ok();
        let domains = self.workspace.organization("domains/");
        owner.post(&domains, json!({ "domain": "corp.example" })).await.ok();
        let invites = self.workspace.organization("invites/");
        owner.post(&invites, json!({ "target_email": "bob@x.example" })).await.ok();
        eventually("the mail server is found to be unreachable", || {
            (!self.workspace.records::<InviteMail>(&()).is_empty()).then_some(())
        })
        .await;
        let by_hand = json!({ "target_email": "cat@x.example", "send_email": false, "message": "H\u{e9}!\n" });
        let made = owner.post(&invites, by_hand).await.ok();
        let offer = Offer::of(&made);
        self.noted(made);
        assert!(self.secrets.contains(&offer.token));
        let by_link = json!({ "target_email": "lin@x.example", "send_email": false });
        let by_link = Offer::of(&owner.post(&invites, by_link).await.ok());
        let anonymous = self.workspace.anonymous();
        let joined = by_link.accept(&anonymous, json!({ "first_name": "Lin" })).await.ok();
        self.noted(joined["personal_api_key"].clone());
    }

    async fn projects(&mut self) {
        let owner = self.owner();
        let digits = "[0.00001, 12345678901234567890123.10, -0, 1e400, 1.50]";
        let digits: Value = serde_json::from_str(digits).expect("numbers");
        let sent = json!({
            "name": "Private", "access_control": true, "slack_incoming_webhook": "https://h.example/SECRET",
            "extra_settings": { "z": 0.1, "a": [1e16, -0.0, 1.0, 123_456_789.123_456_7, digits], "": "\u{2028}" },
        });
        let made = owner.post(&self.workspace.organization("projects/"), sent).await.ok();
        let private = format!("/api/projects/{}/", self.noted(made)["id"]);
        self.workspace.set_rule(&private, Some(ANN), "member").await;
        self.workspace.set_rule_on_all("dashboard", Some(ANN), "viewer").await;
        self.workspace.set_rule_on_all("insight", None, "editor").await;
        let roles = self.workspace.organization("roles/");
        let role = owner.post(&roles, json!({ "name": "Guests" })).await.ok();
        let rule = json!({ "role": role["id"], "access_level": "member" });
        owner.put(&format!("{private}access_controls/"), rule).await.ok();
        let rule = json!({ "role": role["id"], "resource": "dashboard", "access_level": "editor" });
        owner.put(&self.workspace.project("resource_access_controls/"), rule).await.ok();
        let web = owner.get(&self.workspace.project("")).await.ok();
        self.noted(web);
        let config = json!({ "url": "https://in.example", "token": "SECRET-token" });
        let sent = json!({ "name": "N", "interval": "day", "destination": { "type": "HTTP", "config": config } });
        owner.post(&self.workspace.project("batch_exports/"), sent).await.ok();
    }

    async fn dashboards(&mut self) {
        let owner = self.owner();
        let path = self.workspace.dashboards("");
        let made = owner.post(&path, json!({ "use_template": "DEFAULT_APP" })).await.ok();
        let one = self.workspace.dashboards(&format!("{}/", made["id"]));
        let sent = json!({
            "name": "Board", "description": "What\u{1f600}", "tags": ["b", "a"], "restriction_level": 37,
            "filters": { "n": 0.300_000_000_000_000_04 }, "tiles": [{ "text": { "body": "# text" } }],
        });
        owner.patch(&one, sent).await.ok();
        self.workspace.add_collaborator(&one, ANN).await;
        for change in [json!({ "enabled": true }), json!({})] {
            self.noted(owner.patch(&format!("{one}sharing/"), change).await.ok());
        }
        let shown = owner.post(&format!("{one}sharing/refresh/"), json!({})).await.ok();
        self.noted(shown)["access_token"].as_str().expect("a token").clone_into(&mut self.page);
        for list in [&path, &self.workspace.project("insights/")] {
            let gone = owner.post(list, json!({ "name": "Gone" })).await.ok();
            owner.patch(&format!("{list}{}/", gone["id"]), json!({ "deleted": true })).await.ok();
        }
        post_once(&owner, &path, "once", &json!({ "name": "Once" })).await.ok();
        let large = owner.post(&path, json!({ "name": "Large" })).await.ok();
        let tiles = json!({ "tiles": vec![json!({ "text": { "body": "x" } }); 65] });
        owner.patch(&self.workspace.dashboards(&format!("{}/", large["id"])), tiles).await.ok();
        post_once(&owner, &path, "large", &json!({ "use_dashboard": large["id"] })).await.ok();
        self.dashboard = made["id"].clone();
    }

    async fn keys(&mut self) {
        let owner = self.owner();
        let made = make_key(&owner, json!({ "label": "x", "scopes": ["user:read"] })).await;
        let made = self.noted(made);
        self.noted(owner.post(&at(&made, "roll/"), json!({ "grace_seconds": 3600 })).await.ok());
        // The use of its own key is recorded a moment later.
        eventually("the key's use is recorded", || {
            (!self.workspace.records::<ApiKeyUse>(&()).is_empty()).then_some(())
        })
        .await;
        owner.get(&format!("{KEYS}@current/")).await.ok();
    }

    /// Creates an object of each type, and the records that exist only for a short time.
    async fn rest(&mut self) {
        self.objects = Some(Objects::make(&self.workspace, "objects").await);
        let organization = self.workspace.made.organization_id;
        let now = self.workspace.app.now();
        let key = PaceKey::Mailbox("dan@x.example".to_owned());
        let pace = Pace { key, attempts: vec![now], paused_until: None };
        let sweep = PendingDeletion::Project(organization, ProjectId(999));
        let put = self.workspace.write(move |tx| {
            tx.put(&pace)?;
            tx.put(&sweep)?;
            tx.put(&ImportMark::Account { organization, user: UserId(999) })?;
            tx.put(&PendingListing { user: UserId(1), next: organization })
        });
        put.await;
    }
}

fn header(export: &[u8]) -> Value {
    let line = export.split(|byte| *byte == b'\n').next().expect("a line");
    serde_json::from_slice(line).expect("a header")
}

/// Returns the tables in the counts of the header.
fn tables(export: &[u8]) -> BTreeSet<String> {
    header(export)["counts"].as_object().expect("counts").keys().cloned().collect()
}

fn names(tables: impl IntoIterator<Item = Table>) -> BTreeSet<String> {
    tables.into_iter().map(|table| table.plain_name().to_owned()).collect()
}

/// Returns the tables of records that exports contain, without indexes and counts.
fn of_records() -> BTreeSet<String> {
    let types = record_registry().record_types;
    names(types.iter().map(|kind| kind.tables()[0]).filter(|table| !table.is_transient()))
}

#[test]
fn every_table_belongs_to_a_record_type_or_is_a_known_exception() {
    let mut known = vec![Table::Meta, Table::Sequences, Table::Counts];
    for record_type in record_registry().record_types {
        let tables: BTreeSet<Table> = record_type.tables().into_iter().collect();
        known.extend(tables);
    }
    known.sort_unstable();
    assert_eq!(known, Table::ALL, "each table belongs to exactly one type of record");
    let names = names(Table::ALL.iter().copied());
    assert_eq!(names.len(), Table::ALL.len(), "two tables have the same name");
}

#[tokio::test]
async fn export_and_import_round_trip_of_every_record_type_is_byte_equal() {
    let all = Everything::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy.redb");
    all.copy_to(&copy).await;
    let (whole, open) = (exported(&copy, true).await, exported(&copy, false).await);
    let mut expected = of_records();
    expected.extend(["meta".to_owned(), "sequences".to_owned()]);
    assert_eq!(tables(&whole), expected, "create a record of the missing kind in the workspace");
    for (secrets, first) in [(true, &whole), (false, &open)] {
        let path = folder.path().join(format!("{secrets}.redb"));
        let imported = import(first, &path).expect("imported");
        let lines = std::str::from_utf8(first).expect("text").lines().count() as u64 - 1;
        assert_eq!((imported.lines, imported.secrets), (lines, secrets));
        assert!(exported(&path, secrets).await == *first, "secrets: {secrets}");
    }
    // The export without secrets lacks exactly the secret values.
    let whole = folder.path().join("true.redb");
    let (again, open) = (lines(&exported(&whole, false).await), lines(&open));
    let differs = again.iter().zip(&open).find(|(a, b)| a != b);
    let shown = differs.map(|(a, b)| (String::from_utf8_lossy(a), String::from_utf8_lossy(b)));
    assert!(again == open, "{shown:?}");
}

/// Returns the lines as another program would write them: with sorted members, with spaces, and with 1 for 1.0.
fn rewritten(export: &[u8]) -> Vec<u8> {
    let rewrite = |line: &Vec<u8>| {
        let line = canonical_line(&serde_json::from_slice(line).expect("JSON")).expect("a line");
        let line: Value = serde_json::from_slice(&line).expect("JSON");
        serde_json::to_string_pretty(&line).expect("JSON").replace('\n', " ") + "\n"
    };
    lines(export).iter().map(rewrite).collect::<String>().into_bytes()
}

#[tokio::test]
async fn import_accepts_any_order_of_members_and_any_spacing() {
    let all = Everything::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    for secrets in [true, false] {
        let first = export(all.workspace.app.store(), secrets).await;
        let other = rewritten(&first);
        assert!(other != first);
        let path = folder.path().join(format!("{secrets}.redb"));
        import(&other, &path).expect("imported");
        let again = exported(&path, secrets).await;
        assert_eq!(lines(&again)[0], lines(&first)[0], "secrets: {secrets}");
        assert!(again != first && rewritten(&again) == other, "secrets: {secrets}");
    }
}

#[tokio::test]
async fn export_has_json_lines_in_a_fixed_order_and_a_header_that_describes_them() {
    let all = Everything::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy.redb");
    all.copy_to(&copy).await;
    let bytes = exported(&copy, true).await;
    assert!(exported(&copy, true).await == bytes, "equal states must have equal exports");
    let text = String::from_utf8(bytes).expect("text");
    let (first, rest) = text.split_once('\n').expect("lines");
    let header: Value = serde_json::from_str(first).expect("a header");
    let members: Vec<_> = header.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["steward_export", "schema", "secrets", "counts", "blake3"]);
    let sorted = sealed(&lines(text.as_bytes()));
    assert!(sorted == text.as_bytes(), "the hash is that of the lines with sorted members");
    let mut counts = serde_json::Map::new();
    let mut order = Vec::new();
    for line in rest.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let table = line["table"].as_str().expect("a table").to_owned();
        let known = Table::ALL.iter().find(|known| known.plain_name() == table);
        let count = counts.get(&table).and_then(Value::as_u64).unwrap_or(0);
        counts.insert(table.clone(), json!(count + 1));
        order.push(*known.expect("a table"));
    }
    assert_eq!(header["counts"], Value::Object(counts));
    assert!(order.is_sorted());
    let digits = "[0.00001,12345678901234567890123.10,-0,1e+400,1.50]";
    let unchanged = format!(r#"{{"z":0.1,"a":[1e+16,-0.0,1.0,123456789.1234567,{digits}],"":"#);
    assert!(rest.contains(&unchanged), "unchanged JSON");
}

#[tokio::test]
async fn export_without_secrets_contains_no_secret() {
    let all = Everything::new().await;
    let store = all.workspace.app.store();
    let (whole, open) = (export(store, true).await, export(store, false).await);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let (whole, open) = (text(whole), text(open));
    assert!(all.secrets.len() > 9, "{}", all.secrets.len());
    for secret in &all.secrets {
        // Also search for the part after the common prefix of all keys.
        let core = &secret[secret.len() - secret.len().min(20)..];
        assert!(!open.contains(core), "{core}");
    }
    for kind in ["phx_", "phc_", "argon2", "SECRET", "webhook\":\"", "signing"] {
        assert!(!open.contains(kind), "{kind}");
    }
    for kind in ["phc_", "argon2", "SECRET-token", "example/SECRET", "\"table\":\"meta\""] {
        assert!(whole.contains(kind), "the search for {kind} would find nothing");
    }
    let left_out: BTreeSet<_> =
        tables(whole.as_bytes()).difference(&tables(open.as_bytes())).cloned().collect();
    let expected = "api_key_makers api_key_uses api_keys batch_export_secrets idempotency \
        idempotency_objects idempotency_parts meta";
    assert_eq!(left_out, expected.split(' ').map(str::to_owned).collect());
    for line in open.lines().filter(|line| line.contains("\"table\":\"sharing\"")) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert!(line["meta"]["token"].is_null() && line["meta"]["replaced"].is_null(), "{line}");
    }
}

/// Returns the responses to every GET for the first organization, its project and the dashboard.
async fn answers(caller: &TestClient, all: &Everything) -> Vec<(String, u16, Vec<u8>, String)> {
    let made = &all.workspace.made;
    let dashboard = all.dashboard.to_string();
    let mut paths: Vec<String> = routes()
        .specs()
        .iter()
        .filter(|row| row.method == Method::GET)
        .map(|row| {
            row.path
                .replace("{organization_id}", &made.organization_id.to_string())
                .replace("{project_id}", &made.project_id.to_string())
                .replace("{dashboard_id}", &dashboard)
                .replace("dashboards/{id}", &format!("dashboards/{dashboard}"))
                .replace("{token}", &format!("{}.json", all.page))
        })
        .filter(|path| !path.contains('{'))
        .collect();
    paths.push(all.workspace.dashboards("?limit=1"));
    assert!(paths.len() > 20, "{paths:?}");
    let mut answers = Vec::new();
    for path in paths {
        let answer = caller.get(&path).await;
        let tag = answer.headers.get("etag").map_or("", |tag| tag.to_str().expect("text"));
        answers.push((path, answer.status, answer.bytes, tag.to_owned()));
    }
    answers
}

#[tokio::test]
async fn api_responses_are_equal_after_a_round_trip() {
    let all = Everything::new().await;
    let before = answers(&all.workspace.owner, &all).await;
    assert!(before.iter().filter(|(_, status, ..)| *status == 200).count() > 20);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("steward.redb");
    import(&export(all.workspace.app.store(), true).await, &path).expect("imported");
    let app = App::new(Store::open(&path, 0).expect("a file"), Config::default()).expect("served");
    let caller = TestClient::of(router(app.clone()), &all.workspace.made.api_key);
    // Exports contain no sessions. The state of a mail depends on the mail server of the configuration.
    let mails = all.workspace.organization("invites/mail/");
    let is_compared = |path: &str| path != SESSIONS && path != mails;
    let compared = before.iter().filter(|(path, ..)| is_compared(path));
    let after = answers(&caller, &all).await.into_iter().filter(|(path, ..)| is_compared(path));
    for (was, is) in compared.zip(after) {
        assert_eq!((&was.0, was.1, &was.3), (&is.0, is.1, &is.3));
        assert!(was.2 == is.2, "{}", was.0);
    }
    // Ids continue where they were.
    let sent = json!({ "name": "new" });
    let here = all.workspace.owner.post(&all.workspace.dashboards(""), sent.clone()).await.ok();
    assert_eq!(here["id"], caller.post(&all.workspace.dashboards(""), sent).await.ok()["id"]);
    app.close().await;
}

#[tokio::test]
async fn after_an_import_without_secrets_old_keys_fail_and_other_data_is_present() {
    let all = Everything::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("steward.redb");
    import(&export(all.workspace.app.store(), false).await, &path).expect("imported");
    let app = App::new(Store::open(&path, 0).expect("a file"), Config::default()).expect("served");
    let routes = router(app.clone());
    for key in all.secrets.iter().filter(|secret| secret.starts_with("phx_")) {
        assert_eq!(TestClient::of(routes.clone(), key).get(ME).await.status, 401);
    }
    let wanted = Operation::KeyCreate(new_key(OWNER, "anew"));
    let made = perform(&app, wanted, Progress::silent()).await.expect("a key");
    let caller = TestClient::of(routes, made["value"].as_str().expect("a value"));
    let dashboards = all.workspace.dashboards("");
    let expected = all.workspace.owner.get(&dashboards).await.ok();
    assert_eq!(column(&caller.get(&dashboards).await.ok(), "name"), column(&expected, "name"));
    assert_eq!(caller.get(&format!("/shared/{}.json", all.page)).await.status, 404);
    let shown =
        caller.get(&all.workspace.dashboards(&format!("{}/sharing/", all.dashboard))).await.ok();
    assert_eq!(shown["enabled"], true);
    let token = shown["access_token"].as_str().expect("a token");
    let page = caller.get(&format!("/shared/{token}.json")).await.ok();
    assert_eq!(page["dashboard"]["name"], "Board");
    let project = all.workspace.project("");
    let was = all.workspace.owner.get(&project).await.ok();
    let is = caller.get(&project).await.ok();
    assert!(is["api_token"].as_str().expect("a token").starts_with("phc_"));
    assert_ne!(was["api_token"], is["api_token"]);
    // A destination without its secrets may be sent back.
    let exports = format!("{project}batch_exports/");
    let export = caller.get(&exports).await.ok()["results"][0].clone();
    let one = format!("{exports}{}/", export["id"].as_str().expect("an id"));
    caller.patch(&one, export.clone()).await.assert_is(200, export);
    app.close().await;
}

/// A backup and an export of one snapshot are equal, also while writers change the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_of_a_restored_backup_equals_the_export_at_backup_time() {
    let all = Everything::new().await;
    let store = all.workspace.app.store().clone();
    let (turns, written) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (0..3)
        .map(|_| {
            let (owner, path) = (all.workspace.owner.clone(), all.workspace.dashboards(""));
            let (turns, written) = (Arc::clone(&turns), Arc::clone(&written));
            tokio::spawn(async move {
                while let Ok(turn) = turns.acquire().await {
                    turn.forget();
                    let (_, one) = owner.create(&path, json!({ "name": "under load" })).await;
                    owner.patch(&one, json!({ "deleted": true })).await.ok();
                    written.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let mut seen = BTreeSet::new();
    for round in 0..5 {
        let at = |name: &str| folder.path().join(format!("{round}.{name}"));
        let known = written.load(Ordering::Relaxed);
        // Bounded, so that the file grows alike on a slow machine.
        turns.add_permits(30);
        // More than one for each writer: one of them writes twice.
        let is_more = || (written.load(Ordering::Relaxed) > known + 3).then_some(());
        eventually("more is written", is_more).await;
        let copy = copied(&store).await;
        let live = how(true).receive(sent(&copy)).expect("an export");
        let mut bytes = Vec::new();
        live.write_to(&mut bytes).expect("written");
        let (registry, silent) = (record_registry(), Progress::silent());
        receive(sent(&copy), &at("backup"), &registry, &silent).expect("a backup");
        let prepared = PreparedRestore::new(&at("redb"), &at("backup"), &registry, &silent);
        prepared.expect("a sound backup").swap("now").expect("restored");
        assert!(exported(&at("redb"), true).await == bytes, "round {round}");
        import(&bytes, &at("imported")).expect("imported");
        assert!(exported(&at("imported"), true).await == bytes, "round {round}");
        seen.insert(blake3::hash(&bytes).to_hex().to_string());
    }
    turns.close();
    for writer in writers {
        writer.await.expect("a writer");
    }
    assert_eq!(seen.len(), 5);
    all.workspace.assert_file_valid().await;
}
