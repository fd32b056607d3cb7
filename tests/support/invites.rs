//! Invites.

use serde_json::Value;
use steward::Config;

use super::{TestClient, Workspace};

/// Returns the path of a route of invites in the first organization: `invites(&workspace, "bulk/")`.
pub fn invites(workspace: &Workspace, rest: &str) -> String {
    workspace.organization(&format!("invites/{rest}"))
}

/// Creates an invite. Returns the response body.
pub async fn invite(caller: &TestClient, workspace: &Workspace, sent: Value) -> Value {
    caller.post(&invites(workspace, ""), sent).await.ok()
}

/// Returns one field of all listed invites.
pub async fn listed(workspace: &Workspace, name: &str) -> Vec<Value> {
    let list = workspace.owner.get(&invites(workspace, "")).await.ok();
    assert_eq!(list["count"], list["results"].as_array().expect("a list").len());
    list["results"].as_array().expect("a list").iter().map(|one| one[name].clone()).collect()
}

/// Returns a configuration with a mail server that cannot be reached.
pub fn with_mail() -> Config {
    let mut config = Config::default();
    config.mail.smtp_url = Some("smtp://127.0.0.1:9".parse().expect("a URL"));
    config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
    config
}
