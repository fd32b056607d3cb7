//! One object of each type, created by the examples of the routes.

use std::collections::BTreeMap;

use axum::http::Method;
use serde_json::{Value, json};
use steward::testing::http::RouteSpec;
use steward::testing::operator::{Operation, UserOptions};
use steward::testing::resources::members::Level;
use steward::testing::router::routes;

use super::sessions::sign_in;
use super::{OWNER, Workspace, new_user};

/// One object of each type: an id or a token for each parameter of a path, such as `{project_id}` or `/domains/{id}`.
#[derive(Clone)]
pub struct Objects(BTreeMap<String, String>);

impl Objects {
    /// Creates an organization of the owner with this name and one object of each type. Its member is a collaborator
    /// on the dashboard.
    pub async fn make(workspace: &Workspace, name: &str) -> Self {
        let made = workspace.add_organization(name, OWNER).await;
        let organization = made["id"].as_str().expect("an id").to_owned();
        let email = format!("{name}@corp.example");
        let user = join(workspace, &organization, &email, Level::Member).await;
        let mut objects = Self(BTreeMap::new());
        objects.set("{organization_id}", organization);
        objects.set("{project_id}", made["project_id"].to_string());
        objects.set("{user__uuid}", user);
        objects.set("{asset}", "swagger-ui.css".to_owned());
        objects.make_examples(workspace).await;
        objects.set("/signup/{id}", objects.0["/invites/{id}"].clone());
        objects.set("{dashboard_id}", objects.0["/dashboards/{id}"].clone());
        objects.share_dashboard(workspace).await;
        objects.set_session(workspace).await;
        let default = json!({ "default_role_id": objects.0["{role_id}"] });
        let organization = objects.fill("/api/organizations/{organization_id}/");
        workspace.owner.patch(&organization, default).await.ok();
        objects
    }

    /// Creates an object by the example of each route that creates one and has a route below it for its id.
    async fn make_examples(&mut self, workspace: &Workspace) {
        let routes = routes();
        for row in routes.specs().iter().filter(|row| row.method == Method::POST) {
            let one = format!("{}{{id}}/", row.path);
            if routes.specs().iter().any(|row| row.path == one) {
                let sent = self.example(row);
                let made = workspace.owner.post(&self.fill(row.path), sent).await.ok();
                let id = made["id"].as_str().map_or(made["id"].to_string(), str::to_owned);
                let name = row.path.trim_end_matches('/').rsplit('/').next().expect("a segment");
                if name == "roles" {
                    self.set("{role_id}", id.clone());
                }
                self.set(&format!("/{name}/{{id}}"), id);
            }
        }
    }

    /// Returns the example of a route, or an empty object, with a domain that no other organization has, with the project, and
    /// with few permissions.
    pub fn example(&self, row: &RouteSpec) -> Value {
        let project = &self.0["{project_id}"];
        let text = if row.example.is_empty() { "{}" } else { row.example };
        let text = text.replace("corp.example", &format!("d{project}.example"));
        let mut sent: Value = serde_json::from_str(&text).expect("an example");
        if let Some(of) = sent.get_mut("project_id") {
            *of = project.parse::<u64>().expect("a number").into();
        }
        // Each caller with the scope of the keys' routes may change this key.
        if let Some(scopes) = sent.get_mut("scopes") {
            *scopes = json!(["personal_api_key:read"]);
        }
        if let Some(user) = sent.get_mut("user_uuid") {
            *user = self.0["{user__uuid}"].clone().into();
        }
        sent
    }

    /// Restricts the dashboard, adds the member as a collaborator, and creates a public page.
    async fn share_dashboard(&mut self, workspace: &Workspace) {
        let dashboard = self.fill("/api/projects/{project_id}/dashboards/{id}/");
        workspace.owner.patch(&dashboard, json!({ "restriction_level": 37 })).await.ok();
        let sent = json!({ "user_uuid": self.0["{user__uuid}"], "level": 37 });
        workspace.owner.post(&format!("{dashboard}collaborators/"), sent).await.ok();
        let sharing = format!("{dashboard}sharing/");
        let shared = workspace.owner.patch(&sharing, json!({ "enabled": true })).await.ok();
        self.set("{token}", shared["access_token"].as_str().expect("a token").to_owned());
    }

    /// Creates a console session of the owner.
    pub async fn set_session(&mut self, workspace: &Workspace) {
        self.set("/sessions/{id}", sign_in(workspace, &workspace.made.api_key).await.id());
    }

    pub fn set(&mut self, parameter: &str, id: String) {
        self.0.insert(parameter.to_owned(), id);
    }

    pub fn organization(&self) -> &str {
        &self.0["{organization_id}"]
    }

    pub fn project(&self) -> &str {
        &self.0["{project_id}"]
    }

    /// Returns `path` with the ids of these objects as parameters.
    pub fn fill(&self, path: &str) -> String {
        let mut filled = path.to_owned();
        for (parameter, id) in &self.0 {
            let before = parameter.strip_suffix("{id}").unwrap_or("");
            filled = filled.replace(parameter, &format!("{before}{id}"));
        }
        assert!(!filled.contains('{'), "no object for a parameter of {path}");
        filled
    }
}

/// Creates a user as a member of the organization, and returns the user's UUID.
pub async fn join(workspace: &Workspace, organization: &str, email: &str, level: Level) -> String {
    let new = new_user(email, Some(organization.parse().expect("an id")));
    let new = Operation::UserCreate(UserOptions { level, ..new });
    workspace.run_operation(new).await["uuid"].as_str().expect("a UUID").to_owned()
}
