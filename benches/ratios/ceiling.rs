//! The ceiling: an axum server with constant responses.

use std::path::Path;

use axum::Router;
use axum::http::header;
use axum::routing::{MethodRouter, get};
use bytes::Bytes;

use crate::process::Cores;
use crate::reference::{self, Reference};
use crate::{Context, Result};

/// The flag that runs this executable as the ceiling. Two file paths follow it.
pub const FLAG: &str = "--ceiling";

/// Starts a ceiling that responds with `one` for an object and with `list` for a list.
pub fn start(folder: &Path, cores: Cores, one: &[u8], list: &[u8]) -> Result<Reference> {
    let paths = [folder.join("ceiling-one.json"), folder.join("ceiling-list.json")];
    for (path, body) in paths.iter().zip([one, list]) {
        std::fs::write(path, body).context("the ceiling's body")?;
    }
    Reference::start(FLAG, &paths, cores)
}

/// Serves as the ceiling.
pub fn serve(one: &Path, list: &Path) -> Result<()> {
    let constant = |body: &Path| -> Result<MethodRouter> {
        let body = Bytes::from(std::fs::read(body).context("the ceiling's body")?);
        let media_type = if body.starts_with(b"<") { "text/html" } else { "application/json" };
        Ok(get(([(header::CONTENT_TYPE, media_type)], body)))
    };
    let router = Router::new()
        .route("/api/projects/{project}/{resource}/", constant(list)?)
        .route("/api/projects/{project}/{resource}/{id}/", constant(one)?);
    reference::serve(router)
}
