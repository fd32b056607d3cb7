//! The test kit: a fresh workspace a test, and callers that are objects.

pub mod browser;
pub mod contract;
pub mod day;
pub mod dns;
pub mod log;
pub mod manager;
pub mod process;
pub mod sim;
pub mod smtp;
pub mod terminal;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use steward::bootstrap::{First, Made};
use steward::config::Config;
use steward::operator::{Operation, perform};
use steward::resources::members::Level;
use steward::router::router;
use steward::state::App;
use steward::store::Progress;
use tempfile::TempDir;
use tower::ServiceExt;

use contract::contract;

/// The address of the owner of every test workspace.
pub const OWNER: &str = "owner@corp.example";

/// Asks again and again until `ready` gives something, while other tasks go on.
pub async fn eventually<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(begun.elapsed() < process::LONG, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A served data file in a folder of its own, gone with the test.
#[derive(Clone)]
pub struct Workspace {
    pub app: App,
    pub made: Made,
    pub owner: Caller,
    router: Router,
    folder: Arc<TempDir>,
}

impl Workspace {
    /// A workspace with one organization, one project, one owner and the owner's key.
    pub async fn new() -> Self {
        Self::with(Config::default()).await
    }

    /// The same, served as `config` says.
    pub async fn with(config: Config) -> Self {
        let folder = Arc::new(TempDir::new().expect("a temporary folder"));
        let first = First {
            email: OWNER.to_owned(),
            first_name: "Olga".to_owned(),
            organization: "Corp".to_owned(),
            project: "Web".to_owned(),
        };
        let path = folder.path().join("steward.redb");
        let (app, made) = steward::create(&path, config, &first).expect("a new data file");
        let router = router(app.clone());
        let owner = Caller { router: router.clone(), key: Some(made.api_key.clone()) };
        Self { app, made, owner, router, folder }
    }

    /// The path of a dashboard route in the first project: `dashboards("")`, `dashboards("1/")`.
    pub fn dashboards(&self, rest: &str) -> String {
        format!("/api/projects/{}/dashboards/{rest}", self.made.project_id)
    }

    /// The path of a route in the first organization: `organization("members/")`.
    pub fn organization(&self, rest: &str) -> String {
        format!("/api/organizations/{}/{rest}", self.made.organization_id)
    }

    /// The path of the first project's access controls.
    pub fn access_controls(&self) -> String {
        format!("/api/projects/{}/access_controls/", self.made.project_id)
    }

    /// The id of the membership that the user with this address has in the first organization.
    pub async fn membership(&self, email: &str) -> Value {
        let found = self.organization(&format!("members/?email={email}"));
        let found = self.owner.get(&found).await.ok();
        assert_eq!(found["count"], 1, "{email} is no member");
        found["results"][0]["id"].clone()
    }

    /// The UUID of the member of the first organization with this address.
    pub async fn uuid(&self, email: &str) -> String {
        let found = self.organization(&format!("members/?email={email}"));
        let found = self.owner.get(&found).await.ok();
        found["results"][0]["user"]["uuid"].as_str().expect("a member").to_owned()
    }

    /// Someone without a key.
    pub fn anonymous(&self) -> Caller {
        Caller { router: self.router.clone(), key: None }
    }

    /// Someone with this text as a key.
    pub fn with_key(&self, key: &str) -> Caller {
        Caller { router: self.router.clone(), key: Some(key.to_owned()) }
    }

    /// A new member of the first organization, `name@corp.example`, with a key for everything.
    pub async fn member(&self, name: &str, level: Level) -> Caller {
        let email = format!("{name}@corp.example");
        self.operate(Operation::UserCreate {
            email: email.clone(),
            first_name: name.to_owned(),
            last_name: String::new(),
            organization: Some(self.made.organization_id),
            level,
            existing: false,
        })
        .await;
        self.key(&email, &["*"]).await
    }

    /// A new owner of a new organization, `name@corp.example`, with a key for everything; and what
    /// `organization create` answered.
    pub async fn outsider(&self, name: &str) -> (Caller, Value) {
        let email = format!("{name}@other.example");
        let made = self
            .operate(Operation::OrganizationCreate {
                name: format!("{name}'s"),
                owner: email.clone(),
                existing: false,
            })
            .await;
        (self.key(&email, &["*"]).await, made)
    }

    /// A new key of this user with these scopes.
    pub async fn key(&self, email: &str, scopes: &[&str]) -> Caller {
        self.limited_key(email, scopes, json!({})).await
    }

    /// A new key of this user, limited: `{"organizations": [...], "projects": [...], "expires_in": 5}`.
    pub async fn limited_key(&self, email: &str, scopes: &[&str], limits: Value) -> Caller {
        let list = |name: &str| limits.get(name).cloned().unwrap_or_else(|| json!([]));
        let made = self
            .operate(Operation::KeyCreate {
                email: email.to_owned(),
                label: "test".to_owned(),
                scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
                organizations: serde_json::from_value(list("organizations")).expect("ids"),
                projects: serde_json::from_value(list("projects")).expect("ids"),
                expires_in: limits.get("expires_in").and_then(Value::as_i64),
                existing: false,
            })
            .await;
        self.with_key(made["value"].as_str().expect("the key's value"))
    }

    /// What the operator's command answers.
    pub async fn operate(&self, operation: Operation) -> Value {
        perform(&self.app, operation, Progress::unheard())
            .await
            .expect("the operator is not refused")
    }

    /// Asserts that `check` finds nothing wrong with the data file.
    pub async fn check(&self) {
        let findings = self.operate(Operation::Check).await;
        assert_eq!(findings["problem_count"], 0, "{findings}");
    }

    /// Where the data file lies.
    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("steward.redb")
    }
}

/// Somebody who calls the API.
#[derive(Clone)]
pub struct Caller {
    router: Router,
    pub key: Option<String>,
}

impl Caller {
    /// Someone with this key who calls this router.
    pub fn of(router: Router, key: &str) -> Self {
        Self { router, key: Some(key.to_owned()) }
    }

    /// Someone without a key who calls this router.
    pub fn nobody(router: Router) -> Self {
        Self { router, key: None }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, None).await
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.raw(request.body(body).expect("a request")).await
    }

    /// Sends a request with these headers and this body, and the key added.
    pub async fn fetch(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.raw(request.body(body.into()).expect("a request")).await
    }

    /// Sends a request as it is, with the key added. The answer has to be one that the document promises.
    pub async fn raw(&self, mut request: Request<Body>) -> Answer {
        if let Some(key) = &self.key {
            let value = format!("Bearer {key}").parse().expect("a header value");
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let asked = (
            request.method().clone(),
            request.uri().path_and_query().map_or(String::new(), ToString::to_string),
        );
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let (method, uri) = (&asked.0, asked.1.as_str());
        contract().check((method, uri), parts.status.as_u16(), &parts.headers, &bytes);
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            bytes: bytes.to_vec(),
        }
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body as JSON; null where it is none.
    pub body: Value,
    pub bytes: Vec<u8>,
}

impl Answer {
    /// The body of a 2xx answer.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.body);
        self.body
    }

    /// Asserts the status and the whole body.
    #[track_caller]
    pub fn is(&self, status: u16, body: Value) {
        assert_eq!((self.status, &self.body), (status, &body));
    }

    /// Asserts an empty answer with this status.
    #[track_caller]
    pub fn is_empty(&self, status: u16) {
        assert_eq!((self.status, self.bytes.as_slice()), (status, [].as_slice()), "{}", self.body);
        assert!(!self.headers.contains_key(CONTENT_TYPE));
    }

    /// Asserts an error envelope, whole.
    #[track_caller]
    pub fn refuses(&self, status: u16, kind: &str, code: &str, detail: &str, attr: Option<&str>) {
        let body = json!({ "type": kind, "code": code, "detail": detail, "attr": attr });
        self.is(status, body);
        assert_eq!(self.headers[CONTENT_TYPE], "application/json");
    }

    /// Asserts a 400 for a field.
    #[track_caller]
    pub fn refuses_field(&self, attr: &str, code: &str, detail: &str) {
        self.refuses(400, "validation_error", code, detail, Some(attr));
    }

    /// Asserts a 400 for the body as a whole.
    #[track_caller]
    pub fn refuses_body(&self, code: &str, detail: &str) {
        self.refuses(400, "validation_error", code, detail, None);
    }

    /// Asserts a 403.
    #[track_caller]
    pub fn denies(&self, detail: &str) {
        self.refuses(403, "authentication_error", "permission_denied", detail, None);
    }

    /// Asserts a 404.
    #[track_caller]
    pub fn misses(&self, detail: &str) {
        self.refuses(404, "invalid_request", "not_found", detail, None);
    }
}

/// `body` with what differs from run to run replaced: ids, moments and tokens.
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
