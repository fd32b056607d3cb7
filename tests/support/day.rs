//! A typical day of a workspace: a sequence of requests that covers all kinds of writes.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::idempotency::post_once;
use super::{TestClient, TestResponse, Workspace};

/// The number of requests of a day.
pub const REQUESTS: usize = 34;
/// How many requests, counted from the first, do not hash a secret.
pub const QUICK_REQUESTS: usize = 28;

/// One day of a test.
pub struct SampleWorkload<'w> {
    workspace: &'w Workspace,
    by: &'w TestClient,
    number: usize,
    /// The objects created so far, by name.
    made: HashMap<&'static str, Value>,
}

impl<'w> SampleWorkload<'w> {
    pub fn new(workspace: &'w Workspace, number: usize) -> Self {
        Self { workspace, by: &workspace.owner, number, made: HashMap::new() }
    }

    /// Returns the paths of the dashboards created so far.
    pub fn dashboards(&self) -> Vec<String> {
        ["a", "b", "c"].into_iter().filter_map(|what| self.dashboard(what, "")).collect()
    }

    /// Returns the id of an object, or `None` if it was not created.
    fn id(&self, what: &str) -> Option<String> {
        match self.made.get(what)?.get("id")? {
            Value::String(id) => Some(id.clone()),
            id => Some(id.to_string()),
        }
    }

    fn dashboard(&self, what: &str, rest: &str) -> Option<String> {
        Some(self.workspace.dashboards(&format!("{}/{rest}", self.id(what)?)))
    }

    async fn make(&mut self, what: &'static str, path: &str, body: Value) -> TestResponse {
        let answer = self.by.post(path, body).await;
        if answer.status < 300 {
            self.made.insert(what, answer.body.clone());
        }
        answer
    }

    async fn invite(&mut self, what: &'static str) -> TestResponse {
        let path = self.workspace.organization("invites/");
        let address = format!("{what}.{}@day.example", self.number);
        self.make(what, &path, json!({ "target_email": address, "level": 1 })).await
    }

    async fn post_once(&self, path: &str, body: &Value) -> TestResponse {
        post_once(self.by, path, &format!("day {}", self.number), body).await
    }

    /// Sends the request number `at`. Returns `None` if an earlier request that it depends on failed.
    #[expect(clippy::too_many_lines, reason = "a list of requests")]
    pub async fn request(&mut self, at: usize) -> Option<TestResponse> {
        let (by, day) = (self.by, self.number);
        let dashboards = self.workspace.dashboards("");
        let organization = |rest: &str| self.workspace.organization(rest);
        let text = json!({ "text": { "body": format!("# Day {day}") } });
        Some(match at {
            0 => {
                let body = json!({ "name": format!("A{day}"), "tags": ["day"], "description": "x".repeat(900) });
                self.make("a", &dashboards, body).await
            }
            1 => self.make("b", &dashboards, json!({ "name": format!("B{day}") })).await,
            2 => {
                let body =
                    json!({ "name": format!("A{day} pinned"), "pinned": true, "tags": ["x", "y"] });
                by.patch(&self.dashboard("a", "")?, body).await
            }
            3 => {
                let answer =
                    by.patch(&self.dashboard("a", "")?, json!({ "tiles": [text, text] })).await;
                if let Some(tile) = answer.body.pointer("/tiles/0") {
                    self.made.insert("tile", tile.clone());
                }
                answer
            }
            4 => {
                let to = self.made.get("b")?["id"].clone();
                let body =
                    json!({ "tile": { "id": self.made.get("tile")?["id"] }, "toDashboard": to });
                by.patch(&self.dashboard("a", "move_tile/")?, body).await
            }
            5 => {
                let copied = json!({ "name": format!("C{day}"), "use_dashboard": self.made.get("b")?["id"] });
                self.make("c", &dashboards, copied).await
            }
            6 => by.patch(&self.dashboard("c", "sharing/")?, json!({ "enabled": true })).await,
            7 => by.post(&self.dashboard("c", "sharing/refresh/")?, json!({})).await,
            8 => by.patch(&self.dashboard("c", "")?, json!({ "restriction_level": 37 })).await,
            9 => {
                let body = json!({ "access_level": "viewer" });
                by.put(&self.dashboard("b", "access_controls/")?, body).await
            }
            10 => by.patch(&self.dashboard("a", "")?, json!({ "deleted": true })).await,
            11 | 12 => self.post_once(&dashboards, &json!({ "name": format!("Once {day}") })).await,
            13 => self.invite("one").await,
            14 => {
                let to =
                    |name: &str| json!({ "target_email": format!("{name}.{day}@day.example") });
                by.post(&organization("invites/bulk/"), json!([to("x"), to("y"), to("z")])).await
            }
            15 => by.delete(&organization(&format!("invites/{}/", self.id("one")?))).await,
            16 => {
                let path = organization("projects/");
                self.make("project", &path, json!({ "name": format!("P{day}") })).await
            }
            17 => {
                let path = format!("/api/projects/{}/dashboards/", self.id("project")?);
                self.make("swept", &path, json!({ "name": "to be swept" })).await
            }
            18 => {
                let path = organization(&format!("projects/{}/", self.id("project")?));
                by.patch(&path, json!({ "access_control": true, "name": "private" })).await
            }
            19 => by.delete(&organization(&format!("projects/{}/", self.id("project")?))).await,
            20 => {
                let path = organization("domains/");
                self.make("domain", &path, json!({ "domain": format!("d{day}.example") })).await
            }
            21 => by.delete(&organization(&format!("domains/{}/", self.id("domain")?))).await,
            22 => {
                let body = json!({
                    "name": format!("E{day}"), "interval": "hour",
                    "project_id": self.workspace.made.project_id,
                    "destination": { "type": "NoOp", "config": {} },
                });
                self.make("export", &organization("batch_exports/"), body).await
            }
            23 => {
                let path = format!("batch_exports/{}/pause/", self.id("export")?);
                by.post(&organization(&path), json!({})).await
            }
            24 => by.delete(&organization(&format!("batch_exports/{}/", self.id("export")?))).await,
            25 => by.patch(&organization(""), json!({ "name": format!("Corp {day}") })).await,
            26 => {
                self.make("other", "/api/organizations/", json!({ "name": format!("O{day}") }))
                    .await
            }
            27 => by.delete(&format!("/api/organizations/{}/", self.id("other")?)).await,
            28 => self.invite("two").await,
            29 => {
                let offer = self.made.get("two")?;
                let (_, token) = offer["accept_url"].as_str()?.split_once("?token=")?;
                let path = format!("/api/signup/{}/", self.id("two")?);
                let body = json!({ "token": token, "first_name": "Two" });
                let answer = self.workspace.anonymous().post(&path, body).await;
                if answer.status == 201 {
                    let email = answer.body["email"].as_str()?.to_owned();
                    let id = self.workspace.membership(&email).await;
                    self.made.insert("member", json!({ "id": id, "uuid": answer.body["uuid"] }));
                }
                answer
            }
            30 => {
                let uuid = self.made.get("member")?["uuid"].clone();
                let body = json!({ "user_uuid": uuid, "level": 37 });
                by.post(&self.dashboard("c", "collaborators/")?, body).await
            }
            31 => {
                let uuid = self.made.get("member")?["uuid"].as_str()?.to_owned();
                by.patch(&organization(&format!("members/{uuid}/")), json!({ "level": 8 })).await
            }
            32 => {
                let body = json!({ "label": format!("K{day}"), "scopes": ["dashboard:read"] });
                self.make("key", "/api/personal_api_keys/", body).await
            }
            _ => by.delete(&format!("/api/personal_api_keys/{}/", self.id("key")?)).await,
        })
    }
}
