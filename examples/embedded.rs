//! Runs the service inside an integration test: a temporary data file, and the router called
//! in-process without a port.
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
use steward::{Config, InitialRecords, create, router};
use tower::ServiceExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("workspace.redb");
    let (app, made) = create(&path, Config::default(), &InitialRecords::default())?;
    let service = router(app.clone());

    let create = Request::post(format!("/api/projects/{}/dashboards/", made.project_id))
        .header("Authorization", format!("Bearer {}", made.api_key))
        .header("Content-Type", "application/json")
        .body(Body::from(json!({ "name": "From a test" }).to_string()))?;
    let response = service.oneshot(create).await?;
    assert_eq!(response.status(), StatusCode::CREATED);
    let dashboard: Value =
        serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
    assert_eq!(dashboard["name"], "From a test");
    println!("created dashboard {} without opening a port", dashboard["id"]);

    app.close().await;
    Ok(())
}
