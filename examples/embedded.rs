//! Runs the service inside an integration test: a workspace in memory, and the router called in-process without a port.
//!
//! ```sh
//! cargo run --example embedded
//! ```

#![allow(
    clippy::indexing_slicing,
    reason = "indexing a JSON value returns null for a missing member"
)]

use std::error::Error;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use steward::{Config, TestServer};
use tower::ServiceExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = TestServer::without_port(Config::default()).await?;
    let path = format!("/api/projects/{}/dashboards/", server.project_id());
    let authorization = format!("Bearer {}", server.owner_key());

    let create = Request::post(&path)
        .header("Authorization", &authorization)
        .header("Content-Type", "application/json")
        .body(Body::from(json!({ "name": "From a test" }).to_string()))?;
    let response = server.router().oneshot(create).await?;
    assert_eq!(response.status(), StatusCode::CREATED);
    let dashboard: Value =
        serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
    assert_eq!(dashboard["name"], "From a test");
    println!("created dashboard {} without opening a port", dashboard["id"]);

    server.reset().await?;
    let list = Request::get(&path).header("Authorization", authorization).body(Body::empty())?;
    let response = server.router().oneshot(list).await?;
    let page: Value = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
    assert_eq!(page["count"], 0, "the next test begins with the same workspace");
    Ok(())
}
