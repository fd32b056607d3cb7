//! What both benchmark programs put into a workspace, and the runtime on which they do so.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};
use steward::App;
use steward::testing::ids::UserId;
use steward::testing::resources::sessions::Fields;

use crate::{Context, Result};

/// Returns the body of a create of a dashboard, of about 200 bytes.
pub fn dashboard(number: u64) -> Value {
    json!({
        "name": format!("{number:05} weekly revenue by channel"),
        "description": "Signups, activation and churn of the self-serve plan against the week before",
        "pinned": false,
        "tags": ["growth", "weekly"],
    })
}

/// Returns the body of a create of an insight, of about 200 bytes.
pub fn insight(number: u64) -> Value {
    json!({
        "name": format!("{number:05} weekly revenue by channel"),
        "query": {
            "kind": "InsightVizNode",
            "source": { "kind": "TrendsQuery", "series": [{ "kind": "EventsNode", "event": "paid" }] },
        },
        "tags": ["growth", "weekly"],
    })
}

/// Creates a session of the console, and returns its text.
pub async fn sign_in(app: &App, user: UserId) -> Result<String> {
    let link = app.create_sign_in_link(user, false).await.context("a link")?;
    let browser = Fields::new("bench", IpAddr::from(Ipv4Addr::LOCALHOST));
    let text = app.sign_in_with_link(&link.code, browser, None).await.context("a session")?;
    Ok(text.encode())
}

/// Returns a runtime that runs all tasks on the thread that calls it.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("the runtime")
}
