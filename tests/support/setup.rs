//! What tests do to a workspace before the point of the test.

use serde_json::{Value, json};

use super::{TestClient, Workspace, column};

impl Workspace {
    /// Returns a path below the first project, or its own: `project("")`, `project("insights/")`.
    pub fn project(&self, rest: &str) -> String {
        format!("/api/projects/{}/{rest}", self.made.project_id)
    }

    /// Creates a project of the first organization. Returns its ID.
    pub async fn add_project(&self, fields: Value) -> Value {
        self.owner.post(&self.organization("projects/"), fields).await.ok()["id"].clone()
    }

    /// Removes the member with this address from the first organization.
    pub async fn remove_member(&self, email: &str) {
        let member = self.organization(&format!("members/{}/", self.uuid(email).await));
        self.owner.delete(&member).await.assert_empty(204);
    }

    /// Makes the first project private, or open to all members.
    pub async fn set_private(&self, private: bool) {
        self.owner.patch(&self.project(""), json!({ "access_control": private })).await.ok();
    }

    /// Sets an access rule on the object at this path, for the member with this address, or for everyone. A null level
    /// deletes the rule. The path of the project sets a rule on the project.
    pub async fn set_rule(&self, object: &str, email: Option<&str>, level: impl Into<Value>) {
        let sent = self.rule_for(email, level).await;
        self.owner.put(&format!("{object}access_controls/"), sent).await.ok();
    }

    /// Sets an access rule on all objects of a kind in the first project. A null level deletes the rule.
    pub async fn set_rule_on_all(&self, kind: &str, email: Option<&str>, level: impl Into<Value>) {
        let mut sent = self.rule_for(email, level).await;
        sent["resource"] = json!(kind);
        self.owner.put(&self.project("resource_access_controls/"), sent).await.ok();
    }

    /// Returns the request body that sets this level for the member with this address, or for everyone.
    pub async fn rule_for(&self, email: Option<&str>, level: impl Into<Value>) -> Value {
        let member = match email {
            Some(email) => self.membership(email).await,
            None => Value::Null,
        };
        json!({ "organization_member": member, "access_level": level.into() })
    }

    /// Adds a collaborator to the dashboard at this path.
    pub async fn add_collaborator(&self, dashboard: &str, email: &str) {
        let sent = json!({ "user_uuid": self.uuid(email).await, "level": 37 });
        self.owner.post(&format!("{dashboard}collaborators/"), sent).await.ok();
    }
}

/// Returns the values of one field in the items on all pages from this path on. Asserts that each page has the right
/// count.
pub async fn walked(caller: &TestClient, path: &str, name: &str) -> Vec<Value> {
    let (mut seen, mut counts, mut next) = (Vec::new(), Vec::new(), json!(path));
    while let Some(path) = next.as_str() {
        let page = caller.get(path.trim_start_matches("http://localhost")).await.ok();
        seen.extend(column(&page, name));
        counts.push(page["count"].clone());
        next = page["next"].clone();
    }
    assert!(counts.iter().all(|count| *count == seen.len()), "{path}: {counts:?}");
    seen
}
