//! The ceiling: axum answering constant bodies, in a child process that is this same executable.
//!
//! It serves the very paths that the service is asked for, so both are sent the same bytes.

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

/// The flag that turns this executable into the ceiling; two paths follow it.
pub const FLAG: &str = "--ceiling";

/// A running ceiling.
pub struct Ceiling {
    guard: Guard,
    pub address: SocketAddr,
}

impl Ceiling {
    /// Starts a ceiling that answers a single dashboard with `one` and the list with `list`.
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

/// Serves as the ceiling until the parent's end of stdin closes, so that it never outlives the bench.
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
        get(move || async move { ([(header::CONTENT_TYPE, "application/json")], body) })
    };
    let router = Router::new()
        .route("/api/projects/{project}/dashboards/", constant(list))
        .route("/api/projects/{project}/dashboards/{id}/", constant(one));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("the ceiling's port")?;
    println!("http://{}", listener.local_addr().context("the ceiling's address")?);
    let listener = listener.tap_io(|stream| {
        // Where it cannot be set the ceiling is only slower.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await.context("the ceiling")
}
