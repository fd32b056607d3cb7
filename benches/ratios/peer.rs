//! The peer: axum over `SQLite`, with what a create and a change need and nothing else. It has no keys, rights, limits,
//! activity log or counts, but the same promise: it answers after the commit is on disk, and one sync serves all waiting
//! writes.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path as PathParts, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{patch, post};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use crate::process::Cores;
use crate::reference::{self, Reference};
use crate::{Context, Result};

/// The flag that runs this executable as the peer. The paths of its data file and of a body follow it.
pub const FLAG: &str = "--peer";

/// The maximum number of writes in one transaction, as in the service.
const BATCH_WRITES: usize = 512;

/// Starts a peer on a new file. Its objects have the members of `body`.
pub fn start(folder: &Path, cores: Cores, body: &[u8]) -> Result<Reference> {
    crate::site::remove(folder)?;
    std::fs::create_dir_all(folder).context("the peer's folder")?;
    let paths = [folder.join("peer.sqlite"), folder.join("body.json")];
    std::fs::write(&paths[1], body).context("the peer's body")?;
    Reference::start(FLAG, &paths, cores)
}

/// A write that waits for its transaction.
struct Write {
    /// The object to change, or `None` for a new one.
    id: Option<i64>,
    sent: Map<String, Value>,
    answer: oneshot::Sender<Option<String>>,
}

/// Serves as the peer.
pub fn serve(data: &Path, body: &Path) -> Result<()> {
    let body = std::fs::read(body).context("the peer's body")?;
    let body: Map<String, Value> = serde_json::from_slice(&body).context("the peer's body")?;
    let connection = open(data).context("the peer's file")?;
    let (sender, receiver) = mpsc::channel(4096);
    std::thread::spawn(move || match write(&connection, &body, receiver) {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            eprintln!("peer: {error}");
            std::process::exit(1);
        }
    });
    let router = Router::new()
        .route("/api/projects/{project}/{resource}/", post(on_create))
        .route("/api/projects/{project}/{resource}/{id}/", patch(on_change))
        .with_state(Arc::new(sender));
    reference::serve(router)
}

fn open(data: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(data)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA cache_size = -65536;
         CREATE TABLE objects (id INTEGER PRIMARY KEY, name TEXT NOT NULL, body TEXT NOT NULL);
         CREATE INDEX by_name ON objects (name, id);",
    )?;
    Ok(connection)
}

/// Commits all waiting writes in one transaction, and answers them after it.
fn write(
    connection: &Connection,
    template: &Map<String, Value>,
    mut writes: mpsc::Receiver<Write>,
) -> rusqlite::Result<()> {
    let mut last = 0;
    while let Some(first) = writes.blocking_recv() {
        let mut done = Vec::new();
        let mut next = Some(first);
        connection.execute_batch("BEGIN IMMEDIATE")?;
        while let Some(Write { id, sent, answer }) = next {
            let body = if let Some(id) = id {
                change(connection, id, sent)?
            } else {
                last += 1;
                Some(create(connection, last, template, sent)?)
            };
            done.push((answer, body));
            next = if done.len() < BATCH_WRITES { writes.try_recv().ok() } else { None };
        }
        connection.execute_batch("COMMIT")?;
        for (answer, body) in done {
            // The client may be gone.
            let _ = answer.send(body);
        }
    }
    Ok(())
}

fn create(
    connection: &Connection,
    id: i64,
    template: &Map<String, Value>,
    sent: Map<String, Value>,
) -> rusqlite::Result<String> {
    let mut object = template.clone();
    object.extend(sent);
    object.insert("id".to_owned(), id.into());
    let name = object["name"].as_str().unwrap_or_default().to_owned();
    let body = Value::Object(object).to_string();
    let mut statement = connection.prepare_cached("INSERT INTO objects VALUES (?1, ?2, ?3)")?;
    statement.execute(params![id, name, body])?;
    Ok(body)
}

/// Changes an object. Returns `None` if there is none with this id.
fn change(
    connection: &Connection,
    id: i64,
    sent: Map<String, Value>,
) -> rusqlite::Result<Option<String>> {
    let mut read = connection.prepare_cached("SELECT body FROM objects WHERE id = ?1")?;
    let stored: Option<String> = read.query_row([id], |row| row.get(0)).optional()?;
    let Some(mut object) =
        stored.and_then(|body| serde_json::from_str::<Map<String, Value>>(&body).ok())
    else {
        return Ok(None);
    };
    object.extend(sent);
    let name = object["name"].as_str().unwrap_or_default().to_owned();
    let body = Value::Object(object).to_string();
    let mut update =
        connection.prepare_cached("UPDATE objects SET name = ?2, body = ?3 WHERE id = ?1")?;
    update.execute(params![id, name, body])?;
    Ok(Some(body))
}

async fn on_create(State(writes): State<Arc<mpsc::Sender<Write>>>, body: Bytes) -> Response {
    answer(&writes, None, &body, StatusCode::CREATED).await
}

async fn on_change(
    State(writes): State<Arc<mpsc::Sender<Write>>>,
    PathParts((_, _, id)): PathParts<(u64, String, i64)>,
    body: Bytes,
) -> Response {
    answer(&writes, Some(id), &body, StatusCode::OK).await
}

async fn answer(
    writes: &mpsc::Sender<Write>,
    id: Option<i64>,
    body: &[u8],
    status: StatusCode,
) -> Response {
    let Ok(sent) = serde_json::from_slice(body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let (answer, done) = oneshot::channel();
    if writes.send(Write { id, sent, answer }).await.is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    match done.await {
        Ok(Some(body)) => {
            (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
