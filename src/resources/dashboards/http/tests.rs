//! Dashboards whose type gained members after they were stored.
//!
//! In unit tests the records of dashboards have a field and a member of the metadata that the golden file lacks. These
//! tests serve that file.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use super::super::{Dashboard, GROWN_COLOR};
use crate::config::Config;
use crate::ids::{DashboardId, ProjectId};
use crate::operator::{Operation, perform};
use crate::resources::record_registry;
use crate::router::router;
use crate::secret::Seed;
use crate::state::App;
use crate::store::{ExportOptions, Key, Progress, Store, Table, Tx, canonical_line, import};
use crate::time::{Clock, ManualClock, Timestamp};

const LIST: &str = "/api/projects/1/dashboards/";
/// How many dashboards the golden file has, deleted ones included.
const STORED: u64 = 4;

/// A minute after the golden file was created.
const NOW: Timestamp = Timestamp::from_micros(1_763_640_060_000_000);

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// A served copy of the golden file.
struct Site {
    app: App,
    /// The API key of the owner, and the responses of the release that wrote the file.
    recorded: Value,
    folder: TempDir,
}

impl Site {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let (path, mut bytes) = (folder.path().join("steward.redb"), Vec::new());
        let compressed = File::open(golden("format-1.redb.gz")).expect("the golden file");
        GzDecoder::new(compressed).read_to_end(&mut bytes).expect("its bytes");
        fs::write(&path, bytes).expect("a copy");
        let recorded = fs::read(golden("format-1.json")).expect("the responses");
        let recorded = serde_json::from_slice(&recorded).expect("JSON");
        Self { app: app_on(&path), recorded, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the same site with another data file.
    async fn with_file(self, path: &Path) -> Self {
        self.app.close().await;
        Self { app: app_on(path), ..self }
    }

    async fn text(&self, method: Method, path: &str, body: &Value) -> String {
        let key = self.recorded["fixture_keys"][0].as_str().expect("a key");
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body.to_string())).expect("a request");
        let response = router(self.app.clone()).oneshot(request).await.expect("a response");
        let is_success = response.status().is_success();
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        let text = String::from_utf8(body.to_vec()).expect("text");
        assert!(is_success, "{path}: {text}");
        text
    }

    async fn get(&self, path: &str) -> Value {
        let text = self.text(Method::GET, path, &Value::Null).await;
        serde_json::from_str(&text).expect("JSON")
    }

    /// Returns the names on a list, in its order.
    async fn names(&self, query: &str) -> Vec<String> {
        let list = self.get(&format!("{LIST}{query}")).await;
        let items = list["results"].as_array().expect("a list").iter();
        items.map(|item| item["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Returns the recorded response of the owner.
    fn recorded(&self, path: &str) -> Value {
        let answers = self.recorded["answers"].as_array().expect("responses");
        let is_it = |answer: &&Value| answer["key"] == 0 && answer["path"] == path;
        answers.iter().find(is_it).expect("a recorded response")["body"].clone()
    }

    /// Returns the layout of each stored dashboard, and its version.
    fn layouts(&self) -> Vec<(u8, u64)> {
        let snapshot = self.app.store().snapshot().expect("an open file");
        let layout = |id| {
            let key = (ProjectId(1), DashboardId(id));
            let payload = snapshot.get_raw(Table::Dashboards, &key.encoded()).expect("read");
            // The version and the layout are one byte each as long as they are small.
            let layout = payload.expect("a dashboard")[1];
            (layout, snapshot.version::<Dashboard>(&key).expect("read"))
        };
        (1..=STORED).map(layout).collect()
    }

    async fn assert_valid(&self) {
        let report = perform(&self.app, Operation::Check, Progress::silent()).await;
        let report = report.expect("a check");
        assert_eq!(report["problem_count"], 0, "{report}");
    }

    async fn export(&self) -> String {
        let options = ExportOptions {
            registry: record_registry(),
            secrets: true,
            organization: None,
            folder: self.folder.path().to_owned(),
            progress: Progress::silent(),
        };
        let mut lines = Vec::new();
        let export = self.app.store().export(options).await.expect("an export");
        export.write_to(&mut lines).expect("written");
        String::from_utf8(lines).expect("text")
    }
}

fn app_on(path: &Path) -> App {
    let config = Config { clock: Clock::Manual(ManualClock::at(NOW)), ..Config::default() };
    App::new(Store::open(path, 1 << 22).expect("a store"), config).expect("an app")
}

/// Returns a recorded dashboard with the member that the golden file lacks.
fn grown(mut dashboard: Value) -> Value {
    dashboard["color"] = json!(GROWN_COLOR);
    dashboard
}

fn import_lines(path: &Path, lines: &str) {
    let rng = Seed::generate().rng();
    import(path, lines.as_bytes(), &record_registry(), rng, &Progress::silent()).expect("imported");
}

/// Returns an export as the release that wrote the golden file would write it.
fn of_older_release(export: &str) -> String {
    let (header, lines) = export.split_once('\n').expect("a first line");
    let lines =
        lines.replace(&format!(",\"color\":\"{GROWN_COLOR}\""), "").replace(",\"rank\":7", "");
    let mut header: Value = serde_json::from_str(header).expect("JSON");
    let layouts = header["layouts"].as_object_mut().expect("layouts");
    assert_eq!(layouts.shift_remove("dashboards"), Some(json!(2)));
    let mut hasher = blake3::Hasher::new();
    for line in lines.lines() {
        let line = serde_json::from_str(line).expect("JSON");
        hasher.update(&canonical_line(&line).expect("a line"));
    }
    header["blake3"] = json!(hasher.finalize().to_hex().as_str());
    format!("{header}\n{lines}")
}

#[tokio::test]
async fn older_dashboards_are_shown_with_the_new_members() {
    let site = Site::new();
    let mut list = site.recorded(LIST);
    for item in list["results"].as_array_mut().expect("a list") {
        *item = grown(item.clone());
    }
    assert_eq!(site.get(LIST).await, list);
    let one = format!("{LIST}1/");
    assert_eq!(site.get(&one).await, grown(site.recorded(&one)));
    let text = site.text(Method::GET, &one, &Value::Null).await;
    let order = format!(r#""restriction_level":37,"color":"{GROWN_COLOR}","created_by""#);
    assert!(text.contains(&order), "{text}");
    assert!(site.layouts().iter().all(|(layout, _)| *layout == 0));
    site.assert_valid().await;
}

#[tokio::test]
async fn lists_sort_and_filter_dashboards_of_both_layouts() {
    let site = Site::new();
    let all = ["Traffic", "", "Large"];
    let mut sorted = site.names("").await;
    sorted.sort_unstable();
    let mut expected = all.map(str::to_owned);
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    site.text(Method::PATCH, &format!("{LIST}2/"), &json!({ "name": "Alpha" })).await;
    assert_eq!(site.names("").await, ["Traffic", "Alpha", ""]);
    assert_eq!(site.names("?pinned=true").await, ["Traffic"]);
    assert_eq!(site.names("?search=alp").await, ["Alpha"]);
    assert_eq!(site.names("?tags=weekly").await, ["Traffic"]);
    assert_eq!(site.names("?creation_mode=default").await, ["Traffic", "Alpha"]);
    site.assert_valid().await;
}

#[tokio::test]
async fn changed_dashboard_is_stored_with_the_new_members() {
    let site = Site::new();
    let one = format!("{LIST}2/");
    let before = site.layouts();
    site.text(Method::PATCH, &one, &json!({ "name": "Large" })).await;
    assert_eq!(site.layouts(), before, "an equal dashboard is not stored again");
    site.text(Method::PATCH, &one, &json!({ "name": "Renamed" })).await;
    assert_eq!(site.layouts()[1], (2, before[1].1 + 1));
    assert_eq!(site.get(&one).await["color"], GROWN_COLOR);
    let log = site.get("/api/projects/1/activity_log/?limit=1").await;
    let changes = log["results"][0]["detail"]["changes"].as_array().expect("changes").clone();
    let fields: Vec<_> = changes.iter().map(|change| change["field"].clone()).collect();
    assert_eq!(fields, ["name"]);
    let write = site.app.store().write(|tx| {
        let mut dashboard: Dashboard = tx.get(&(ProjectId(1), DashboardId(2)))?;
        assert_eq!(dashboard.meta.rank, 7);
        dashboard.fields.color = "red".to_owned();
        tx.put(&dashboard)
    });
    write.await.expect("written");
    assert_eq!(site.get(&one).await["color"], "red");
    site.assert_valid().await;
}

#[tokio::test]
async fn exports_show_the_new_members_and_older_exports_are_completed() {
    let site = Site::new();
    let (list, export) = (site.get(LIST).await, site.export().await);
    let lines = export.lines().filter(|line| line.starts_with(r#"{"table":"dashboards","#));
    let color = format!(",\"color\":\"{GROWN_COLOR}\"}}}}");
    let lines: Vec<_> = lines.filter(|line| line.ends_with(&color)).collect();
    assert_eq!(lines.len() as u64, STORED);
    assert!(lines.iter().all(|line| line.contains(",\"rank\":7}")));
    let (same, older) = (site.path("same.redb"), site.path("older.redb"));
    import_lines(&same, &export);
    import_lines(&older, &of_older_release(&export));
    let mut site = site;
    for path in [same, older] {
        site = site.with_file(&path).await;
        assert_eq!(site.get(LIST).await, list);
        assert_eq!(site.export().await, export);
        assert!(site.layouts().iter().all(|(layout, _)| *layout == 2));
        site.assert_valid().await;
    }
}

#[tokio::test]
async fn backup_keeps_the_layout_and_compact_stores_the_current_one() {
    let site = Site::new();
    let (list, before, export) = (site.get(LIST).await, site.layouts(), site.export().await);
    let backup = site.path("backup.redb");
    let created = site.app.store().backup(backup.clone(), record_registry(), Progress::silent());
    created.await.expect("a backup");
    let site = site.with_file(&backup).await;
    assert_eq!((site.get(LIST).await, site.layouts()), (list.clone(), before.clone()));
    perform(&site.app, Operation::Compact, Progress::silent()).await.expect("compacted");
    let upgraded: Vec<_> = before.iter().map(|(_, version)| (2, *version)).collect();
    assert_eq!((site.get(LIST).await, site.layouts()), (list, upgraded));
    assert_eq!(site.export().await, export);
    site.assert_valid().await;
}
