//! Rights that end. Authorizations are cached, so each test uses the key before and after the change.

use crate::support::prelude::*;

/// A plain member of the workspace, who reads and creates dashboards.
struct Ann {
    workspace: Workspace,
    client: TestClient,
}

impl Ann {
    async fn new() -> Self {
        let (workspace, client) = Workspace::with_member("ann", Level::Member).await;
        let ann = Self { workspace, client };
        ann.works().await;
        ann
    }

    /// Reads and creates with the key.
    async fn requests(&self) -> [TestResponse; 2] {
        let path = self.workspace.dashboards("");
        [self.client.get(&path).await, self.client.post(&path, json!({ "name": "Sales" })).await]
    }

    /// Asserts that the key works, more than once.
    async fn works(&self) {
        for _ in 0..2 {
            let [read, created] = self.requests().await;
            assert_eq!((read.status, created.status), (200, 201));
        }
    }

    async fn is_denied(&self, detail: &str) {
        for answer in self.requests().await {
            answer.assert_denied(detail);
        }
    }

    async fn is_refused(&self) {
        for answer in self.requests().await {
            answer.is_bad_key();
        }
    }

    async fn owner_patches(&self, path: &str, sent: Value) {
        self.workspace.owner.patch(path, sent).await.ok();
    }
}

#[tokio::test]
async fn each_right_that_ends_is_refused_with_the_next_request() {
    let ann = Ann::new().await;
    ann.workspace.set_private(true).await;
    ann.is_denied(NO_ACCESS).await;
    let project = ann.workspace.project("");
    for (level, opens) in [(Some("member"), true), (None, false), (Some("member"), true)] {
        ann.workspace.set_rule(&project, Some(ANN), level).await;
        if opens { ann.works().await } else { ann.is_denied(NO_ACCESS).await }
    }
    // From now on, only the membership gives access.
    ann.workspace.set_rule(&project, Some(ANN), Value::Null).await;
    ann.workspace.set_private(false).await;
    ann.works().await;
    let allow = |allowed: bool| json!({ "members_can_use_personal_api_keys": allowed });
    ann.owner_patches(&ann.workspace.organization(""), allow(false)).await;
    ann.is_denied("Organization 'Corp' does not allow using personal API keys. Contact an admin to enable personal API keys for this organization.").await;
    ann.owner_patches(&ann.workspace.organization(""), allow(true)).await;
    ann.works().await;
    ann.workspace.set_active(ANN, false).await;
    ann.is_refused().await;
    ann.workspace.set_active(ANN, true).await;
    ann.works().await;
    ann.workspace.remove_member(ANN).await;
    ann.is_denied(NO_ACCESS).await;
}

#[tokio::test]
async fn narrowed_and_revoked_key_is_refused_with_the_next_request() {
    let workspace = Workspace::new().await;
    let sent = json!({ "label": "narrow", "scopes": ["dashboard:write"] });
    let key = workspace.owner.post("/api/personal_api_keys/", sent).await.ok();
    let client = workspace.with_key(key["value"].as_str().expect("a value"));
    let ann = Ann { workspace, client };
    ann.works().await;
    let path = format!("/api/personal_api_keys/{}/", key["id"].as_str().expect("an id"));
    ann.owner_patches(&path, json!({ "scopes": ["dashboard:read"] })).await;
    let [read, created] = ann.requests().await;
    read.ok();
    created.assert_denied("API key missing required scope 'dashboard:write'");
    ann.workspace.owner.delete(&path).await.assert_empty(204);
    ann.is_refused().await;
}

#[tokio::test]
async fn expired_key_is_refused_although_nothing_changed() {
    let (workspace, clock) = Workspace::timed().await;
    let client = workspace.limited_key(OWNER, &["*"], json!({ "expires_in": 60 })).await;
    let ann = Ann { workspace, client };
    ann.works().await;
    clock.advance(Duration::from_secs(61));
    ann.is_refused().await;
}
