//! Shared dashboards and what is on them.

use serde_json::{Map, Value, json};
use steward::testing::auth::InProject;
use steward::testing::ids::{DashboardId, TileId};
use steward::testing::resources::dashboards::insights;
use steward::testing::resources::dashboards::tiles::{self, Fields};
use steward::testing::resources::members::Membership;
use steward::testing::resources::projects::Project;
use steward::testing::resources::users;
use steward::testing::secret::Seed;
use steward::testing::store::{Tx, WriteTx};

use super::{OWNER, TestClient, TestResponse, Workspace};

/// A dashboard or an insight of the first project, with its paths.
pub struct Board {
    pub id: u64,
    /// Path of the dashboard or insight itself.
    pub one: String,
    pub sharing: String,
    pub refresh: String,
}

impl Board {
    pub async fn make(workspace: &Workspace, sent: Value) -> Self {
        Self::create(workspace, &workspace.dashboards(""), sent).await.0
    }

    /// Creates an insight. Returns its body too.
    pub async fn of_insight(workspace: &Workspace, sent: Value) -> (Self, Value) {
        let list = format!("/api/projects/{}/insights/", workspace.made.project_id);
        Self::create(workspace, &list, sent).await
    }

    async fn create(workspace: &Workspace, list: &str, sent: Value) -> (Self, Value) {
        let made = workspace.owner.post(list, sent).await.ok();
        let id = made["id"].as_u64().expect("an id");
        let one = format!("{list}{id}/");
        let (sharing, refresh) = (format!("{one}sharing/"), format!("{one}sharing/refresh/"));
        (Self { id, one, sharing, refresh }, made)
    }

    /// Enables or disables the public page, and returns the token in the response.
    pub async fn enable(&self, caller: &TestClient, enabled: bool) -> String {
        token(&caller.patch(&self.sharing, json!({ "enabled": enabled })).await.ok())
    }

    pub async fn refresh(&self, caller: &TestClient) -> String {
        token(&caller.send(axum::http::Method::POST, &self.refresh, None).await.ok())
    }

    pub async fn token(&self, caller: &TestClient) -> String {
        token(&caller.get(&self.sharing).await.ok())
    }
}

pub fn token(shown: &Value) -> String {
    shown["access_token"].as_str().expect("a token").to_owned()
}

/// The first project, as the owner.
pub fn place(tx: &WriteTx<'_>, workspace: &Ids) -> InProject {
    let (organization, project) = *workspace;
    let user = users::find_by_email(tx, OWNER).expect("read").expect("the owner").meta.id;
    let member: Membership = tx.get(&(organization, user)).expect("a membership");
    let project: Project = tx.get(&(organization, project)).expect("a project");
    InProject { member, project: project.meta }
}

pub type Ids = (steward::testing::ids::OrganizationId, steward::testing::ids::ProjectId);

pub fn object(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

pub fn look(layouts: &Value, color: Option<&str>) -> Fields {
    Fields { layouts: object(layouts), color: color.map(str::to_owned), ..Fields::default() }
}

/// Adds a text to a dashboard.
pub async fn add_text(workspace: &Workspace, board: &Board, body: &str, y: u32) -> TileId {
    let ids = (workspace.made.organization_id, workspace.made.project_id);
    let (dashboard, body) = (DashboardId(board.id), Some(body.to_owned()));
    let layouts = json!({ "sm": { "x": 0, "y": y, "w": 6, "h": 5 } });
    let added = workspace.app.operate(move |tx, now| {
        let place = place(tx, &ids);
        tiles::add_text(tx, &place, dashboard, body.clone(), look(&layouts, Some("blue")), now)
    });
    added.await.expect("a tile")
}

/// Adds an insight to a dashboard: `{"name", "description", "filters", "query", "tags", "color", "y"}`.
pub async fn add_insight(workspace: &Workspace, board: &Board, sent: Value) -> TileId {
    let ids = (workspace.made.organization_id, workspace.made.project_id);
    let (dashboard, seed) = (DashboardId(board.id), Seed::generate());
    let added = workspace.app.operate(move |tx, now| {
        let text = |name: &str| sent[name].as_str().map(str::to_owned);
        let new = insights::Fields {
            name: text("name"),
            description: text("description"),
            filters: sent["filters"].as_object().cloned().unwrap_or_default(),
            query: sent["query"].as_object().cloned(),
            tags: serde_json::from_value(sent["tags"].clone()).unwrap_or_default(),
            saved: true,
            ..insights::Fields::default()
        };
        let look = look(&json!({ "sm": { "y": sent["y"] } }), sent["color"].as_str());
        let place = place(tx, &ids);
        tiles::add_insight(tx, &place, dashboard, new, look, &mut seed.rng(), now)
    });
    added.await.expect("a tile")
}

/// Asserts the headers of responses whose URL is a secret.
#[track_caller]
pub fn is_unlisted(answer: &TestResponse) {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-robots-tag", "noindex"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(answer.headers[name], value);
    }
}

/// A Markdown table whose short rows the parser pads: a few thousand characters become two megabytes of
/// HTML.
pub fn swelling() -> String {
    let (header, delimiter) = ("a|".repeat(498), "-|".repeat(498));
    format!("|{header}\n|{delimiter}\n{}", "|a\n".repeat(669))
}

/// Fills a dashboard with such texts, between two insights.
pub async fn swell(workspace: &Workspace, board: &Board) {
    let (query, odd) = (json!({ "query": "\"".repeat(12_000) }), "<i>\"".repeat(90));
    for name in ["Long", odd.as_str()] {
        let y = if name == "Long" { 0 } else { 2 };
        add_insight(workspace, board, json!({ "name": name, "query": query, "y": y })).await;
    }
    let ids = (workspace.made.organization_id, workspace.made.project_id);
    let dashboard = DashboardId(board.id);
    let filled = workspace.app.operate(move |tx, now| {
        let place = place(tx, &ids);
        for _ in 2..tiles::MAX_TILES {
            let look = look(&json!({ "sm": { "y": 1 } }), None);
            tiles::add_text(tx, &place, dashboard, Some(swelling()), look, now)?;
        }
        Ok(())
    });
    filled.await.expect("tiles");
}
