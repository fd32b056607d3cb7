//! Serves a temporary data file on a free port, creates a project and a dashboard over HTTP, and
//! lists the dashboards.
//!
//! ```sh
//! cargo run --example quickstart
//! ```

#![allow(
    clippy::indexing_slicing,
    reason = "indexing a JSON value returns null for a missing member"
)]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};
use steward::{Config, InitialRecords, create, router};
use steward::{ServerLimits, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("workspace.redb");
    let (app, made) = create(&path, Config::default(), &InitialRecords::default())?;

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("serving http://{address} from {}", path.display());

    let (stop, stopped) = oneshot::channel::<()>();
    let service = router(app.clone());
    let server = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        serve(listener, service, &ServerLimits::default(), stopped).await
    });

    tokio::task::spawn_blocking(move || -> Outcome<()> {
        let call = |method: &str, path: &str, body: Value| {
            request(address, &made.api_key, method, path, &body)
        };
        let projects = format!("/api/organizations/{}/projects/", made.organization_id);
        let project =
            call("POST", &projects, json!({ "name": "Shop", "timezone": "Europe/Berlin" }))?;
        println!("created the project {} ({})", project["name"], project["timezone"]);

        let dashboards = format!("/api/projects/{}/dashboards/", project["id"]);
        call("POST", &dashboards, json!({ "name": "Sales", "tags": ["Weekly"], "pinned": true }))?;
        let list = call("GET", &dashboards, Value::Null)?;
        println!("its dashboards: {list:#}");
        Ok(())
    })
    .await??;

    let _ = stop.send(());
    server.await??;
    app.close().await;
    Ok(())
}

/// Sends one HTTP request over a new connection.
fn request(
    address: SocketAddr,
    key: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> Outcome<Value> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len(),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("incomplete response")?;
    if !head.starts_with("HTTP/1.1 2") {
        return Err(answer.into());
    }
    Ok(serde_json::from_str(body)?)
}
