//! Moving a workspace between a data file and a shared database, by backup, restore, export and import.

use std::io::Cursor;

use steward::testing::bootstrap::{self, CreatedWorkspace, InitialRecords};
use steward::testing::store::{Cell, OpenError, Place};

use crate::exports::organization::export_one;
use crate::exports::{export, import};
use crate::support::exports::lines;
use crate::support::postgres::Schema;
use crate::support::prelude::*;

/// An empty schema, and a folder for the copies of its nodes and for data files.
struct Scene {
    schema: Schema,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { schema: Schema::new(), folder: TempDir::new().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The schema as the place of the data, for the node with a copy of this name.
    fn place(&self, copy: &str) -> Place {
        Place::new(self.schema.url().as_ref(), &self.path(copy), None, Some(copy)).expect("a place")
    }

    fn serve(&self, copy: &str) -> App {
        let Config { file_system, page_cache, .. } = Config::default();
        let opened = Store::open_at(file_system, &self.place(copy), page_cache);
        App::new(opened.expect("a workspace"), Config::default()).expect("a service")
    }

    /// Restores the backup at `from`. Returns the data file with what it replaced.
    fn restore(&self, from: &Path) -> Result<Option<PathBuf>, OpenError> {
        let (place, silent) = (self.place("restoring"), Progress::silent());
        let prepared = PreparedRestore::new(place.file(), from, &record_registry(), &silent)?;
        Ok(prepared.upload(&place, "now", &silent)?.replaced.map(|kept| kept.0))
    }
}

async fn back_up(app: &App, to: &Path) {
    let backup = app.store().backup(to.to_owned(), record_registry(), Progress::silent());
    backup.await.expect("a backup");
}

async fn problems(app: &App) -> Vec<String> {
    app.store().check(record_registry(), Progress::silent()).await.expect("a report").problems
}

/// Returns the export of the data file at `path`.
async fn exported(path: &Path) -> Vec<u8> {
    let store = Store::open(path, 0).expect("a data file");
    let bytes = export(&store, true).await;
    store.close().await;
    bytes
}

fn client(app: &App, made: &CreatedWorkspace) -> TestClient {
    TestClient::of(router(app.clone()), &made.api_key)
}

async fn names(client: &TestClient, made: &CreatedWorkspace) -> Vec<String> {
    let list = client.get(&format!("/api/projects/{}/dashboards/", made.project_id)).await.ok();
    let results = list["results"].as_array().expect("a list").clone();
    results.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
}

async fn create(client: &TestClient, made: &CreatedWorkspace, name: &str) {
    let path = format!("/api/projects/{}/dashboards/", made.project_id);
    client.post(&path, json!({ "name": name })).await.ok();
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn workspace_moves_from_a_file_to_a_database_and_back_unchanged() {
    let (scene, workspace) = (Scene::new(), Workspace::new().await);
    create(&workspace.owner, &workspace.made, "Revenue").await;
    let backup = scene.path("backup.redb");
    back_up(&workspace.app, &backup).await;
    assert_eq!(scene.restore(&backup).expect("restored"), None);
    let app = scene.serve("node");
    assert_eq!(problems(&app).await, [""; 0]);
    // A request would record the use of its key.
    let before = exported(&backup).await;
    assert!(export(app.store(), true).await == before, "the database differs from the backup");
    let back = scene.path("back.redb");
    back_up(&app, &back).await;
    assert!(exported(&back).await == before, "the new backup differs");
    assert_eq!(names(&client(&app, &workspace.made), &workspace.made).await, ["Revenue"]);
    app.close().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn restore_replaces_the_workspace_on_every_node_and_keeps_what_it_replaced() {
    let (scene, workspace) = (Scene::new(), Workspace::new().await);
    let backup = scene.path("backup.redb");
    back_up(&workspace.app, &backup).await;
    scene.restore(&backup).expect("restored");
    let [a, b] = ["a", "b"].map(|name| scene.serve(name));
    let made = &workspace.made;
    create(&client(&a, made), made, "Later").await;
    assert_eq!(names(&client(&b, made), made).await, ["Later"]);
    let kept = scene.restore(&backup).expect("restored").expect("a kept file");
    let store = Store::open(&kept, 0).expect("a data file");
    let of_kept = App::new(store, Config::default()).expect("a service");
    assert_eq!(names(&client(&of_kept, made), made).await, ["Later"]);
    of_kept.close().await;
    for app in [&a, &b] {
        // The copy of the node is made anew, and requests get 503 meanwhile.
        eventually_async("the copy is made anew", async || {
            (app.store().fresh().await.is_ok() && app.store().ready()).then_some(())
        })
        .await;
        assert_eq!(names(&client(app, made), made).await, [""; 0]);
        assert_eq!(problems(app).await, [""; 0]);
    }
    create(&client(&b, made), made, "After").await;
    assert_eq!(names(&client(&a, made), made).await, ["After"]);
    a.close().await;
    b.close().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn backup_of_another_workspace_replaces_nothing() {
    let (scene, first, other) = (Scene::new(), Workspace::new().await, Workspace::new().await);
    let [backup, foreign] = ["backup.redb", "foreign.redb"].map(|name| scene.path(name));
    back_up(&first.app, &backup).await;
    back_up(&other.app, &foreign).await;
    scene.restore(&backup).expect("restored");
    let refused = scene.restore(&foreign).expect_err("a refusal").to_string();
    assert_eq!(refused, "the backup is of another workspace; restore it into an empty database");
    assert!(!scene.path("restoring.replaced-now").exists());
    let app = scene.serve("node");
    assert_eq!(client(&app, &first.made).get(ME).await.status, 200);
    app.close().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn export_is_imported_into_an_empty_database_only() {
    let (scene, workspace) = (Scene::new(), Workspace::new().await);
    create(&workspace.owner, &workspace.made, "Revenue").await;
    let bytes = export(workspace.app.store(), true).await;
    let place = scene.place("node");
    let imported = bootstrap::import(&place, &*bytes, &Progress::silent()).expect("imported");
    assert_eq!(serde_json::to_value(imported).expect("an object")["database"], scene.schema.url());
    let app = scene.serve("node");
    assert!(export(app.store(), true).await == bytes, "the database differs from the export");
    app.close().await;
    let again = bootstrap::import(&place, &*bytes, &Progress::silent()).expect_err("a refusal");
    assert!(matches!(again, OpenError::HasWorkspace(_)), "{again}");
    let file = scene.path("file.redb");
    import(&bytes, &file).expect("imported");
    assert!(exported(&file).await == bytes, "the file differs from the export");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn organization_moves_from_a_file_to_a_database_in_use() {
    let (scene, workspace) = (Scene::new(), Workspace::new().await);
    create(&workspace.owner, &workspace.made, "Revenue").await;
    let [email, organization] = ["there@other.example", "Elsewhere"].map(str::to_owned);
    let secret = Some(workspace.app.store().signing_secret().expect("a secret"));
    let cell = Cell::new(1).expect("a cell");
    let first = InitialRecords { email, organization, secret, cell, ..InitialRecords::default() };
    let founded =
        bootstrap::create_at(&scene.place("a"), Config::default(), &first, &mut |_| Ok(()));
    let (a, made) = founded.expect("a workspace");
    create(&client(&a, &made), &made, "Own").await;
    let b = scene.serve("b");
    let id = workspace.made.organization_id;
    let bytes = export_one(workspace.app.store(), id, true).await;
    let import = |app: &App| {
        let app = app.clone();
        let from = Cursor::new(bytes.clone());
        async move { app.import_organization(from, false, Progress::silent()).await }
    };
    import(&b).await.expect("imported");
    let refused = import(&a).await.expect_err("a refusal").to_string();
    assert_eq!(refused, format!("the organization {id} exists here already"));
    for app in [&a, &b] {
        app.store().refresh().await.expect("the newest state");
        assert_eq!(problems(app).await, [""; 0]);
        // The key is that of the file: both have the same secret.
        assert_eq!(names(&client(app, &workspace.made), &workspace.made).await, ["Revenue"]);
        assert_eq!(names(&client(app, &made), &made).await, ["Own"]);
    }
    let back = lines(&export_one(a.store(), id, true).await);
    let is_use = |line: &&Vec<u8>| line.starts_with(b"{\"table\":\"api_key_uses\"");
    let records = |lines: &[Vec<u8>]| -> Vec<Vec<u8>> {
        lines[1..].iter().filter(|line| !is_use(line)).cloned().collect()
    };
    assert!(records(&back) == records(&lines(&bytes)), "the export of the database differs");
    a.close().await;
    b.close().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn second_founder_is_refused() {
    let scene = Scene::new();
    let first = InitialRecords::default();
    let create =
        |copy| bootstrap::create_at(&scene.place(copy), Config::default(), &first, &mut |_| Ok(()));
    let (app, _) = create("a").expect("a new workspace");
    assert!(matches!(create("b").map(drop), Err(OpenError::HasWorkspace(_))));
    app.close().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn check_names_what_was_changed_behind_the_back_of_the_nodes() {
    let (scene, workspace) = (Scene::new(), Workspace::new().await);
    create(&workspace.owner, &workspace.made, "Revenue").await;
    let backup = scene.path("backup.redb");
    back_up(&workspace.app, &backup).await;
    scene.restore(&backup).expect("restored");
    let app = scene.serve("node");
    assert_eq!(problems(&app).await, [""; 0]);
    scene.schema.execute("DELETE FROM steward_rows WHERE tab LIKE 'dashboards/%'");
    let found = problems(&app).await;
    let [problem] = &found[..] else { panic!("not one problem: {found:?}") };
    assert!(problem.starts_with("dashboards"), "{problem}");
    assert!(problem.ends_with("is only in the copy"), "{problem}");
    app.close().await;
}
