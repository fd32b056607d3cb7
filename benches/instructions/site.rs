//! The data file on which operations are measured, and requests to it.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST};
use axum::http::{Method, Request};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steward::testing::ids::{DashboardId, ProjectId};
use steward::testing::resources::dashboards::Dashboard;
use steward::testing::store::{Table, Tx, WriteTx};
use steward::{App, Config, InitialRecords, Store, create, router};
use tower::ServiceExt;

use crate::sample::{self, insight, runtime, sign_in};
use crate::{Context, Result, fail};

/// The number of dashboards in the project.
pub const DASHBOARDS: u64 = 2_500;
/// The number of insights in the project. None is on a dashboard.
pub const INSIGHTS: u64 = 500;

/// The service records the first use of a key after a delay. Seeding waits this long, so that the records are written
/// before the measurement.
const USES_RECORDED_WITHIN: Duration = Duration::from_millis(500);

/// A data file with a project of [`DASHBOARDS`] dashboards and [`INSIGHTS`] insights, and its keys.
#[derive(Serialize, Deserialize)]
pub struct Site {
    data: std::path::PathBuf,
    /// A key that may do everything.
    pub key: String,
    /// A key whose scopes allow no request of the measurement.
    pub narrow_key: String,
    /// The cookie of a session of the console.
    cookie: String,
    /// The path of the console's list of dashboards.
    console_list: String,
    /// The number of the project.
    project: u64,
    /// The path of the project's dashboards.
    pub dashboards: String,
    /// The ids of the dashboards, in order of creation.
    pub ids: Vec<u64>,
    /// The path of the project's insights.
    pub insights: String,
    /// The ids of the insights, in order of creation.
    pub insight_ids: Vec<u64>,
}

impl Site {
    /// Creates the data file in `folder`. It takes seconds, so it does not run under valgrind.
    pub fn create(folder: &Path) -> Result<()> {
        runtime()?.block_on(async {
            let data = folder.join("steward.redb");
            let (app, made) = create(&data, Config::default(), &InitialRecords::default())
                .context("the data file")?;
            let client = Client::new(&app);
            let mut site = Self {
                data,
                key: made.api_key,
                narrow_key: String::new(),
                cookie: format!("steward={}", sign_in(&app, made.user_id).await?),
                console_list: format!("/console/projects/{}/dashboards/", made.project_id),
                project: made.project_id.0,
                dashboards: format!("/api/projects/{}/dashboards/", made.project_id),
                ids: Vec::new(),
                insights: format!("/api/projects/{}/insights/", made.project_id),
                insight_ids: Vec::new(),
            };
            let narrow = json!({ "label": "narrow", "scopes": ["organization:read"] });
            let narrow = site.post("/api/personal_api_keys/", &narrow);
            let narrow = client.send_json(narrow?, 201).await?;
            site.narrow_key = narrow["value"].as_str().ok_or("a key without a value")?.to_owned();
            for number in 0..DASHBOARDS {
                let created = site.post(&site.dashboards, &dashboard(number))?;
                site.ids.push(client.create(created).await?);
            }
            for number in 0..INSIGHTS {
                let created = site.post(&site.insights, &insight(number))?;
                site.insight_ids.push(client.create(created).await?);
            }
            client.send(site.get_with(&site.narrow_key, &site.dashboards)?, 403).await?;
            tokio::time::sleep(USES_RECORDED_WITHIN).await;
            app.close().await;
            let text = serde_json::to_vec(&site).context("the site")?;
            std::fs::write(folder.join("site.json"), text).context("the site")
        })
    }

    /// Reads what [`create`](Self::create) wrote to `folder`.
    pub fn open(folder: &Path) -> Result<Self> {
        let text = std::fs::read(folder.join("site.json")).context("the site")?;
        serde_json::from_slice(&text).context("the site")
    }

    /// Opens the data file for serving.
    pub fn serve(&self) -> Result<(App, Client)> {
        let config = Config::default();
        let store = Store::open(&self.data, config.page_cache).context("the data file")?;
        let app = App::new(store, config).context("the service")?;
        let client = Client::new(&app);
        Ok((app, client))
    }

    /// Returns a GET of `path`.
    pub fn get(&self, path: &str) -> Result<Request<Body>> {
        request(Method::GET, path, &self.key, None)
    }

    /// Returns a GET of `path` with another key.
    pub fn get_with(&self, key: &str, path: &str) -> Result<Request<Body>> {
        request(Method::GET, path, key, None)
    }

    /// Returns a GET of the console's list of dashboards, 50 on a page.
    pub fn console_list(&self) -> Result<Request<Body>> {
        let request = Request::builder().uri(&self.console_list).header(COOKIE, &self.cookie);
        request.header(HOST, "localhost").body(Body::empty()).context("a request")
    }

    /// Returns a POST to `path`.
    pub fn post(&self, path: &str, body: &Value) -> Result<Request<Body>> {
        request(Method::POST, path, &self.key, Some(body))
    }

    /// Creates dashboards in one write of the operator, without their rules.
    pub async fn create_at_once(&self, app: &App, numbers: Range<u64>) -> Result<()> {
        let (project, model) = (ProjectId(self.project), self.ids.first().copied());
        let model = (project, DashboardId(model.ok_or("a site without dashboards")?));
        let write = move |tx: &mut WriteTx<'_>, _| {
            let mut dashboard = tx.get::<Dashboard>(&model)?;
            for number in numbers.clone() {
                let id = DashboardId(tx.next_number(Table::Dashboards)?);
                (dashboard.meta.id, dashboard.fields.id) = (id, id);
                dashboard.fields.name = Some(format!("{:05} at once", number * 7_919 % 100_000));
                tx.put(&dashboard)?;
            }
            Ok(())
        };
        app.operate(write).await.context("a write of the operator")
    }

    /// Returns a PATCH of `path`.
    pub fn patch(&self, path: &str, body: &Value) -> Result<Request<Body>> {
        request(Method::PATCH, path, &self.key, Some(body))
    }
}

/// Returns the body of a create. The names are in no order, as those of real dashboards are.
pub fn dashboard(number: u64) -> Value {
    // 7,919 and 100,000 have no common factor, so no two of 100,000 names are equal.
    sample::dashboard(number * 7_919 % 100_000)
}

fn request(method: Method, path: &str, key: &str, body: Option<&Value>) -> Result<Request<Body>> {
    let mut request =
        Request::builder().method(method).uri(path).header(AUTHORIZATION, format!("Bearer {key}"));
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    request.body(body).context("a request")
}

/// Sends requests to the router, without a network.
pub struct Client(Router);

impl Client {
    fn new(app: &App) -> Self {
        Self(router(app.clone()))
    }

    /// Sends a request and returns the body. Fails unless the response has the status `expected`.
    pub async fn send(&self, request: Request<Body>, expected: u16) -> Result<Bytes> {
        let Ok(response) = self.0.clone().oneshot(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.context("a body")?.to_bytes();
        if status != expected {
            let body = String::from_utf8_lossy(&body);
            return fail(format!("{status} instead of {expected}: {body}"));
        }
        Ok(body)
    }

    /// Sends a create. Returns the id of what it created.
    async fn create(&self, request: Request<Body>) -> Result<u64> {
        let created = self.send_json(request, 201).await?;
        Ok(created["id"].as_u64().ok_or("a response without an id")?)
    }

    async fn send_json(&self, request: Request<Body>, expected: u16) -> Result<Value> {
        serde_json::from_slice(&self.send(request, expected).await?).context("a body")
    }
}
