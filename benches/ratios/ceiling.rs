//! The ceiling: an axum server with constant responses. It runs as a child process of the same
//! executable.
//!
//! It serves the same paths as the service, so both receive the same requests.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use axum::serve::ListenerExt;
use bytes::Bytes;

use crate::process::{Cores, Guard};
use crate::service::{LISTENING_WITHIN, address_on};
use crate::{Context, Result};

/// The flag that runs this executable as the ceiling. Two file paths follow it.
pub const FLAG: &str = "--ceiling";

/// A running ceiling server.
pub struct Ceiling {
    guard: Guard,
    pub address: SocketAddr,
}

impl Ceiling {
    /// Starts a ceiling that responds with `one` for an object and with `list` for a list.
    pub fn start(folder: &Path, cores: Cores, one: &[u8], list: &[u8]) -> Result<Self> {
        let paths = [folder.join("ceiling-one.json"), folder.join("ceiling-list.json")];
        for (path, body) in paths.iter().zip([one, list]) {
            std::fs::write(path, body).context("the ceiling's body")?;
        }
        let this = std::env::current_exe().context("this executable")?;
        let mut guard = Guard::spawn(Command::new(this).arg(FLAG).args(&paths), cores)?;
        let address = address_on(&mut guard, LISTENING_WITHIN)?;
        Ok(Self { guard, address })
    }

    pub fn pid(&self) -> u32 {
        self.guard.pid()
    }
}

/// Serves as the ceiling until stdin closes, so that the process never outlives the benchmark.
pub fn serve(one: &Path, list: &Path) -> Result<()> {
    let one = Bytes::from(std::fs::read(one).context("the ceiling's body")?);
    let list = Bytes::from(std::fs::read(list).context("the ceiling's body")?);
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    runtime.context("the ceiling's runtime")?.block_on(listen(one, list))
}

async fn listen(one: Bytes, list: Bytes) -> Result<()> {
    let constant = |body: Bytes| {
        let media_type = if body.starts_with(b"<") { "text/html" } else { "application/json" };
        get(move || async move { ([(header::CONTENT_TYPE, media_type)], body) })
    };
    let router = Router::new()
        .route("/api/projects/{project}/{resource}/", constant(list))
        .route("/api/projects/{project}/{resource}/{id}/", constant(one));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("the ceiling's port")?;
    println!("http://{}", listener.local_addr().context("the ceiling's address")?);
    let listener = listener.tap_io(|stream| {
        // If the option cannot be set, the ceiling is only slower.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await.context("the ceiling")
}
