//! The test kit: a new workspace for each test, and callers of its API.

use std::sync::{Arc, mpsc};

use axum::Router;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use steward::App;
use steward::Config;
use steward::router;
use steward::testing::bootstrap::{CreatedWorkspace, InitialRecords, create_at};
use steward::testing::error::Result;
use steward::testing::ids::OrganizationId;
use steward::testing::operator::{
    KeyOptions, Operation, OrganizationOptions, UserOptions, perform,
};
pub use steward::testing::resources::members::Level;
use steward::testing::resources::sessions::VerifiedSession;
use steward::testing::store::{
    Key, Order, Place, Progress, Record, Store, Table, Tx, Window, WriteTx,
};
use steward::testing::time::{Clock, ManualClock, Timestamp};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tower::ServiceExt;

use super::contract::contract;
use super::postgres::Schema;
use super::wait::TEST_TIMEOUT;
pub use super::wait::{eventually, eventually_async};

/// The email address of the owner of every test workspace.
pub const OWNER: &str = "owner@corp.example";

pub const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// Returns a configuration with a manual clock.
pub fn with_clock() -> (Config, ManualClock) {
    with_clock_at(1_700_000_000_000_000)
}

/// Returns a configuration with a manual clock that shows this time, in microseconds.
pub fn with_clock_at(micros: i64) -> (Config, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_micros(micros));
    let mut config = Config::default();
    config.clock = Clock::Manual(clock.clone());
    (config, clock)
}

/// Replaces the default time limits by long ones, which no test reaches.
fn patient(mut config: Config) -> Config {
    let default = Config::default();
    for (limit, usual) in [
        (&mut config.request_timeout, default.request_timeout),
        (&mut config.body_timeout, default.body_timeout),
        (&mut config.dns_timeout, default.dns_timeout),
        (&mut config.mail.smtp_timeout, default.mail.smtp_timeout),
    ] {
        if *limit == usual {
            *limit = 2 * TEST_TIMEOUT;
        }
    }
    config
}

/// Where the data of a workspace lies: in a file, or, with `STEWARD_TEST_ENGINE=postgres`, in a database of which the file is
/// a copy.
struct Home {
    place: Place,
    folder: TempDir,
    schema: Option<Arc<Schema>>,
}

impl Home {
    fn new() -> Self {
        let engine = std::env::var("STEWARD_TEST_ENGINE").unwrap_or_default();
        Self::of((engine == "postgres").then(Schema::new).map(Arc::new), "test")
    }

    /// Returns a home in this database, for the node of this name, or in a file.
    fn of(schema: Option<Arc<Schema>>, node: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let path = folder.path().join("steward.redb");
        let data =
            schema.as_ref().map_or_else(|| path.clone().into(), |schema| schema.url().into());
        let data: std::ffi::OsString = data;
        let place = Place::new(&data, &path, None, Some(node)).expect("a place");
        Self { place, folder, schema }
    }

    fn open_store(&self) -> Store {
        let Config { file_system, page_cache, .. } = Config::default();
        Store::open_at(file_system, &self.place, page_cache).expect("the data")
    }
}

/// A served workspace. Its data lies in a temporary folder, or in a schema of its own.
#[derive(Clone)]
pub struct Workspace {
    pub app: App,
    pub made: CreatedWorkspace,
    pub owner: TestClient,
    router: Router,
    home: Arc<Home>,
}

impl Workspace {
    /// Creates a workspace with one organization, one project, one owner and the owner's API key.
    pub async fn new() -> Self {
        Self::with(Config::default()).await
    }

    /// Does what [`new`](Self::new) does, and returns the owner too.
    pub async fn owned() -> (Self, TestClient) {
        let workspace = Self::new().await;
        (workspace.clone(), workspace.owner)
    }

    /// Does what [`new`](Self::new) does, and adds and returns a member.
    pub async fn with_member(name: &str, level: Level) -> (Self, TestClient) {
        let workspace = Self::new().await;
        let member = workspace.member(name, level).await;
        (workspace, member)
    }

    /// Does what [`owned`](Self::owned) does, and adds and returns a member.
    pub async fn owned_with_member(name: &str, level: Level) -> (Self, TestClient, TestClient) {
        let (workspace, member) = Self::with_member(name, level).await;
        (workspace.clone(), workspace.owner, member)
    }

    /// Does what [`new`](Self::new) does, with this configuration. The default time limits of requests, bodies, name servers
    /// and the mail server become long ones, because a busy machine may exceed them.
    pub async fn with(config: Config) -> Self {
        Self::create(Home::new(), config)
    }

    /// Does what [`with`](Self::with) does, with the default configuration after this change.
    pub async fn configured(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        change(&mut config);
        Self::with(config).await
    }

    /// Creates a workspace with a manual clock.
    pub async fn timed() -> (Self, ManualClock) {
        let (config, clock) = with_clock();
        (Self::with(config).await, clock)
    }

    /// Does what [`with`](Self::with) does in a shared database of its own, which the node of this name serves.
    pub async fn on_node(node: &str, config: Config) -> Self {
        Self::create(Home::of(Some(Arc::new(Schema::new())), node), config)
    }

    /// Does what [`with`](Self::with) does, and founds the workspace with this owner, organization, cell and
    /// signing secret.
    pub async fn founded(founding: InitialRecords, config: Config) -> Self {
        Self::create_as(Home::new(), config, founding)
    }

    fn create(home: Home, config: Config) -> Self {
        let founding = InitialRecords {
            email: OWNER.to_owned(),
            organization: "Corp".to_owned(),
            ..InitialRecords::default()
        };
        Self::create_as(home, config, founding)
    }

    fn create_as(home: Home, config: Config, founding: InitialRecords) -> Self {
        let config = patient(config);
        let first =
            InitialRecords { first_name: "Olga".to_owned(), project: "Web".to_owned(), ..founding };
        let created = create_at(&home.place, config, &first, &mut |_| Ok(()));
        let (app, made) = created.expect("a new workspace");
        Self::serve(app, made, Arc::new(home))
    }

    fn serve(app: App, made: CreatedWorkspace, home: Arc<Home>) -> Self {
        let router = router(app.clone());
        let owner = TestClient::of(router.clone(), &made.api_key);
        Self { app, made, owner, router, home }
    }

    /// Serves the data of a home that has some.
    fn open(made: CreatedWorkspace, home: Arc<Home>, config: Config) -> Self {
        let app = App::new(home.open_store(), patient(config)).expect("it serves");
        Self::serve(app, made, home)
    }

    /// Serves the workspace of a shared database by another node, which has a copy of its own.
    pub async fn join(&self, node: &str, config: Config) -> Self {
        let home = Home::of(self.home.schema.clone(), node);
        Self::open(self.made.clone(), Arc::new(home), config)
    }

    /// Opens the data again, after the service was closed.
    pub fn open_store(&self) -> Store {
        self.home.open_store()
    }

    /// Closes the file, and serves it again with this configuration.
    pub async fn reopened(&self, config: Config) -> Self {
        self.app.close().await;
        Self::open(self.made.clone(), Arc::clone(&self.home), config)
    }

    /// Returns a dashboard path in the first project: `dashboards("")`, `dashboards("1/")`.
    pub fn dashboards(&self, rest: &str) -> String {
        format!("/api/projects/{}/dashboards/{rest}", self.made.project_id)
    }

    /// Returns a path in the first organization: `organization("members/")`.
    pub fn organization(&self, rest: &str) -> String {
        format!("/api/organizations/{}/{rest}", self.made.organization_id)
    }

    /// Returns the path of the first project's access controls.
    pub fn access_controls(&self) -> String {
        format!("/api/projects/{}/access_controls/", self.made.project_id)
    }

    /// Returns the id of a user's membership of the first organization.
    pub async fn membership(&self, email: &str) -> Value {
        let found = self.organization(&format!("members/?email={email}"));
        let found = self.owner.get(&found).await.ok();
        assert_eq!(found["count"], 1, "{email} is not a member");
        found["results"][0]["id"].clone()
    }

    /// Returns the UUID of a member of the first organization.
    pub async fn uuid(&self, email: &str) -> String {
        let found = self.organization(&format!("members/?email={email}"));
        let found = self.owner.get(&found).await.ok();
        found["results"][0]["user"]["uuid"].as_str().expect("a member").to_owned()
    }

    /// Returns a caller without an API key.
    pub fn anonymous(&self) -> TestClient {
        TestClient::nobody(self.router.clone())
    }

    /// Returns a caller with this API key.
    pub fn with_key(&self, key: &str) -> TestClient {
        TestClient::of(self.router.clone(), key)
    }

    /// Returns a caller in this console session.
    pub fn in_session(&self, session: VerifiedSession) -> TestClient {
        TestClient { session: Some(session), ..self.anonymous() }
    }

    /// Creates a member of the first organization, `name@corp.example`. The caller's key has every scope.
    pub async fn member(&self, name: &str, level: Level) -> TestClient {
        let email = format!("{name}@corp.example");
        let new = new_user(&email, Some(self.made.organization_id));
        let new = UserOptions { first_name: name.to_owned(), level, ..new };
        self.run_operation(Operation::UserCreate(new)).await;
        self.key(&email, &["*"]).await
    }

    /// Creates an organization whose owner is `name@other.example`. Returns the owner, whose key has every scope, and
    /// the operation's result.
    pub async fn outsider(&self, name: &str) -> (TestClient, Value) {
        let email = format!("{name}@other.example");
        let made = self.add_organization(&format!("{name}'s"), &email).await;
        (self.key(&email, &["*"]).await, made)
    }

    /// Creates a second organization of the owner. Returns its id and that of its project.
    pub async fn second_organization(&self) -> (String, Value) {
        let made = self.add_organization("Second", OWNER).await;
        (made["id"].as_str().expect("an id").to_owned(), made["project_id"].clone())
    }

    /// Creates an organization of this owner as the operator. Returns the operation's result.
    pub async fn add_organization(&self, name: &str, owner: &str) -> Value {
        let (name, owner) = (name.to_owned(), owner.to_owned());
        let new = OrganizationOptions { name, owner, existing: false };
        self.run_operation(Operation::OrganizationCreate(new)).await
    }

    /// Makes an existing user a member of the first organization again.
    pub async fn rejoin(&self, email: &str, level: Level) {
        let new = new_user(email, Some(self.made.organization_id));
        let new = UserOptions { level, existing: true, ..new };
        self.run_operation(Operation::UserCreate(new)).await;
    }

    /// Activates or deactivates a user.
    pub async fn set_active(&self, email: &str, active: bool) {
        self.run_operation(Operation::UserSetActive { email: email.to_owned(), active }).await;
    }

    /// Creates an API key of this user with these scopes.
    pub async fn key(&self, email: &str, scopes: &[&str]) -> TestClient {
        self.limited_key(email, scopes, json!({})).await
    }

    /// Creates a restricted API key of this user: `{"organizations": [...], "projects": [...], "expires_in": 5}`.
    pub async fn limited_key(&self, email: &str, scopes: &[&str], limits: Value) -> TestClient {
        let list = |name: &str| limits.get(name).cloned().unwrap_or_else(|| json!([]));
        let new = KeyOptions {
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            organizations: serde_json::from_value(list("organizations")).expect("ids"),
            projects: serde_json::from_value(list("projects")).expect("ids"),
            expires_in: limits.get("expires_in").and_then(Value::as_i64),
            ..new_key(email, "test")
        };
        let made = self.run_operation(Operation::KeyCreate(new)).await;
        self.with_key(made["value"].as_str().expect("the key's value"))
    }

    /// Performs an operator's operation and returns its result.
    pub async fn run_operation(&self, operation: Operation) -> Value {
        perform(&self.app, operation, Progress::silent()).await.expect("the operation succeeds")
    }

    /// Changes the data by a rule, without a request.
    pub async fn write<T, F>(&self, rule: F) -> T
    where
        T: Send + 'static,
        F: Fn(&mut WriteTx<'_>) -> Result<T> + Send + 'static,
    {
        self.app.store().write(rule).await.expect("written")
    }

    /// Returns all records of a type whose key begins with `prefix`.
    pub fn records<R: Record>(&self, prefix: &impl Key) -> Vec<R> {
        let tx = self.app.store().snapshot().expect("a snapshot");
        let mut found = Vec::new();
        let scanned = tx.scan::<R, _>(prefix, Window::all(Order::Ascending), |row| {
            found.push(row.into_record()?);
            Ok(())
        });
        scanned.expect("records");
        found
    }

    /// Waits until the background deletion is complete.
    pub async fn completes_deletions(&self) {
        eventually("the background deletion is complete", || {
            (self.app.store().snapshot().ok()?.len(Table::Sweeps).ok()? == 0).then_some(())
        })
        .await;
    }

    /// Asserts that `check` finds no problem in the data file.
    pub async fn assert_file_valid(&self) {
        let findings = self.run_operation(Operation::Check).await;
        assert_eq!(findings["problem_count"], 0, "{findings}");
    }

    /// Returns the path of the data file, or of the copy of the database.
    pub fn path(&self) -> std::path::PathBuf {
        self.home.folder.path().join("steward.redb")
    }
}

/// Returns the options of a new user without a name, a member of this organization or of none.
pub fn new_user(email: &str, organization: Option<OrganizationId>) -> UserOptions {
    UserOptions {
        email: email.to_owned(),
        first_name: String::new(),
        last_name: String::new(),
        organization,
        level: Level::Member,
        existing: false,
    }
}

/// Returns the options of a new API key with every scope.
pub fn new_key(email: &str, label: &str) -> KeyOptions {
    KeyOptions {
        email: email.to_owned(),
        label: label.to_owned(),
        scopes: vec!["*".to_owned()],
        organizations: Vec::new(),
        projects: Vec::new(),
        expires_in: None,
        existing: false,
    }
}

/// A closed data file: every read and write of its service fails with 503. Needs a runtime with several threads.
pub struct ClosedFile {
    end: mpsc::Sender<()>,
    closing: JoinHandle<steward::testing::error::Result<()>>,
}

impl ClosedFile {
    /// Closes the file of this workspace until [`open`](Self::open).
    pub async fn of(workspace: &Workspace) -> Self {
        let (end, ended) = mpsc::channel::<()>();
        let store = workspace.app.store().clone();
        let work = move || {
            let _ended = ended.recv();
        };
        let closing = tokio::spawn(async move { store.closed_while(work).await });
        eventually("the file is closed", || (!workspace.app.store().ready()).then_some(())).await;
        Self { end, closing }
    }

    /// Waits until the file is open again.
    pub async fn open(self) {
        drop(self.end);
        self.closing.await.expect("no panic").expect("opened again");
    }
}

/// A client of the API, with or without an API key, or in a console session.
#[derive(Clone)]
pub struct TestClient {
    router: Router,
    pub key: Option<String>,
    session: Option<VerifiedSession>,
}

impl TestClient {
    /// Returns a caller of this router with this API key.
    pub fn of(router: Router, key: &str) -> Self {
        Self { router, key: Some(key.to_owned()), session: None }
    }

    /// Returns a caller of this router without an API key.
    pub fn nobody(router: Router) -> Self {
        Self { router, key: None, session: None }
    }

    pub async fn get(&self, path: &str) -> TestResponse {
        self.send(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.send(Method::POST, path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> TestResponse {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> TestResponse {
        self.send(Method::PATCH, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> TestResponse {
        self.send(Method::DELETE, path, None).await
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> TestResponse {
        match body {
            Some(body) => self.fetch(method, path, &JSON, body.to_string()).await,
            None => self.fetch(method, path, &[], Body::empty()).await,
        }
    }

    /// Creates an object with a request to its list. Returns it and its path.
    pub async fn create(&self, list: &str, sent: Value) -> (Value, String) {
        let made = self.post(list, sent).await;
        assert_eq!(made.status, 201, "{list}: {}", made.body);
        let id = made.body["id"].as_str().map_or(made.body["id"].to_string(), str::to_owned);
        (made.body, format!("{list}{id}/"))
    }

    /// Sends a request with `If-Match`.
    pub async fn if_match(
        &self,
        method: Method,
        path: &str,
        tag: &str,
        body: Value,
    ) -> TestResponse {
        self.fetch(method, path, &[("if-match", tag), JSON[0]], body.to_string()).await
    }

    /// Sends a request with these headers and this body, and adds the API key.
    pub async fn fetch(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> TestResponse {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.raw(request.body(body.into()).expect("a request")).await
    }

    /// Sends a request as it is, and adds the API key or the session. Asserts that the response conforms to the OpenAPI document.
    pub async fn raw(&self, mut request: Request<Body>) -> TestResponse {
        if let Some(key) = &self.key {
            let value = format!("Bearer {key}").parse().expect("a header value");
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        if let Some(session) = &self.session {
            request.extensions_mut().insert(session.clone());
        }
        let uri = request.uri().path_and_query().map_or(String::new(), ToString::to_string);
        let asked = (request.method().clone(), uri);
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let (method, uri) = (&asked.0, asked.1.as_str());
        contract().check((method, uri), parts.status.as_u16(), &parts.headers, &bytes);
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        TestResponse {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            bytes: bytes.to_vec(),
        }
    }
}

/// A response.
#[derive(Debug)]
pub struct TestResponse {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body as JSON, or null if it is not JSON.
    pub body: Value,
    pub bytes: Vec<u8>,
}

impl TestResponse {
    /// Asserts a 2xx status and returns the body.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.body);
        self.body
    }

    /// Asserts the status and the whole body.
    #[track_caller]
    pub fn assert_is(&self, status: u16, body: Value) {
        assert_eq!((self.status, &self.body), (status, &body));
    }

    /// Asserts the status and an empty body.
    #[track_caller]
    pub fn assert_empty(&self, status: u16) {
        assert_eq!((self.status, self.bytes.as_slice()), (status, [].as_slice()), "{}", self.body);
        assert!(!self.headers.contains_key(CONTENT_TYPE));
    }

    /// Asserts an error response with this whole body.
    #[track_caller]
    pub fn assert_error(&self, status: u16, kind: &str, code: &str, why: &str, attr: Option<&str>) {
        let body = json!({ "type": kind, "code": code, "detail": why, "attr": attr });
        self.assert_is(status, body);
        assert_eq!(self.headers[CONTENT_TYPE], "application/json");
    }

    /// Asserts a 400 for one field.
    #[track_caller]
    pub fn assert_invalid(&self, attr: &str, code: &str, detail: &str) {
        self.assert_error(400, "validation_error", code, detail, Some(attr));
    }

    /// Asserts a 400 for the body as a whole.
    #[track_caller]
    pub fn assert_invalid_body(&self, code: &str, detail: &str) {
        self.assert_error(400, "validation_error", code, detail, None);
    }

    /// Asserts a 400 for a field whose value is not accepted.
    #[track_caller]
    pub fn assert_bad(&self, attr: &str, detail: &str) {
        self.assert_invalid(attr, "invalid_input", detail);
    }

    /// Asserts a 400 for a body that is not accepted.
    #[track_caller]
    pub fn assert_bad_body(&self, detail: &str) {
        self.assert_invalid_body("invalid_input", detail);
    }

    /// Asserts a 403.
    #[track_caller]
    pub fn assert_denied(&self, detail: &str) {
        self.assert_error(403, "authentication_error", "permission_denied", detail, None);
    }

    /// Asserts a 412.
    #[track_caller]
    pub fn assert_stale(&self) {
        let detail = "The object has changed: its version is not one that If-Match names.";
        self.assert_error(412, "invalid_request", "precondition_failed", detail, None);
    }

    /// Returns the version of the object in the entity tag.
    #[track_caller]
    pub fn version(&self) -> u64 {
        let version = self.tag().trim_matches('"').split('-').next().map(str::parse);
        version.expect("a version").expect("a number")
    }

    /// Returns the entity tag.
    #[track_caller]
    pub fn tag(&self) -> String {
        self.headers["etag"].to_str().expect("text").to_owned()
    }

    /// Asserts a 404.
    #[track_caller]
    pub fn assert_not_found(&self, detail: &str) {
        self.assert_error(404, "invalid_request", "not_found", detail, None);
    }

    #[track_caller]
    pub fn is_no_key(&self) {
        let detail = "Authentication credentials were not provided.";
        self.assert_error(401, "authentication_error", "not_authenticated", detail, None);
        assert!(!self.headers.contains_key("www-authenticate"));
    }

    #[track_caller]
    pub fn is_bad_key(&self) {
        let detail = "Personal API key found in request Authorization header is invalid.";
        self.assert_error(401, "authentication_error", "authentication_failed", detail, None);
        assert!(!self.headers.contains_key("www-authenticate"));
    }
}

/// Returns a path in the organization that an operation or a request created.
pub fn in_organization(made: &Value, rest: &str) -> String {
    format!("/api/organizations/{}/{rest}", made["id"].as_str().expect("an id"))
}

/// Returns the field `name` of each item of a page.
pub fn column(page: &Value, name: &str) -> Vec<Value> {
    page["results"].as_array().expect("results").iter().map(|item| item[name].clone()).collect()
}

/// Replaces the values that differ from run to run: ids, timestamps and tokens.
pub fn redacted(mut body: Value) -> Value {
    const NAMES: [&str; 12] = [
        "uuid",
        "distinct_id",
        "created_at",
        "updated_at",
        "joined_at",
        "date_joined",
        "api_token",
        "live_events_token",
        "slug",
        "organization",
        "organization_id",
        "id",
    ];
    match &mut body {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                let random = NAMES.contains(&name.as_str()) && value.is_string();
                *value = if random { json!(format!("[{name}]")) } else { redacted(value.take()) };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = redacted(item.take())),
        _ => {}
    }
    body
}
