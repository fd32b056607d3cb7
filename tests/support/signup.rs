//! Accepting invites.

use serde_json::{Value, json};

use super::{TestClient, TestResponse, Workspace};

/// The path of an invite below `/api/signup/`, and its token.
pub struct Offer {
    pub path: String,
    pub token: String,
}

impl Offer {
    /// Returns the invite that the link in the response to its creation opens.
    pub fn of(made: &Value) -> Self {
        let (_, token) =
            made["accept_url"].as_str().expect("a link").split_once("?token=").expect("a token");
        Self { path: path(made), token: token.to_owned() }
    }

    /// Accepts the invite as a new user. Returns the response body and the user's key.
    pub async fn join(&self, workspace: &Workspace, fields: Value) -> (Value, TestClient) {
        let body = self.accept(&workspace.anonymous(), fields).await.ok();
        let client = workspace.with_key(body["personal_api_key"]["value"].as_str().expect("a key"));
        (body, client)
    }

    /// Requests what the invite offers, with its token.
    pub async fn open(&self, caller: &TestClient) -> TestResponse {
        caller.get(&format!("{}?token={}", self.path, self.token)).await
    }

    /// Accepts the invite with its token and these fields.
    pub async fn accept(&self, caller: &TestClient, fields: Value) -> TestResponse {
        let mut sent = json!({ "token": self.token });
        let fields = fields.as_object().expect("fields").clone();
        sent.as_object_mut().expect("an object").extend(fields);
        caller.post(&self.path, sent).await
    }
}

pub fn path(made: &Value) -> String {
    format!("/api/signup/{}/", made["id"].as_str().expect("an id"))
}
