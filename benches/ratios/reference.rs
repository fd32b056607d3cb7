//! Servers that the service is compared with. Each is a child process of the same executable, and serves the same paths as
//! the service, so both receive the same requests.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use axum::Router;
use axum::serve::ListenerExt;

use crate::process::{Cores, Guard};
use crate::service::{LISTENING_WITHIN, address_on};
use crate::{Context, Result};

/// A running server.
pub struct Reference {
    guard: Guard,
    pub address: SocketAddr,
}

impl Reference {
    /// Runs this executable with the flag that makes it the server, and with these paths.
    pub fn start(flag: &str, paths: &[PathBuf; 2], cores: Cores) -> Result<Self> {
        let this = std::env::current_exe().context("this executable")?;
        let mut guard = Guard::spawn(Command::new(this).arg(flag).args(paths), cores)?;
        let address = address_on(&mut guard, LISTENING_WITHIN)?;
        Ok(Self { guard, address })
    }

    pub fn pid(&self) -> u32 {
        self.guard.pid()
    }
}

/// Serves until stdin closes, so that the process never outlives the benchmark.
pub fn serve(router: Router) -> Result<()> {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    runtime.context("a runtime")?.block_on(listen(router))
}

async fn listen(router: Router) -> Result<()> {
    let bound = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = bound.context("a port")?;
    println!("http://{}", listener.local_addr().context("an address")?);
    let listener = listener.tap_io(|stream| {
        // If the option cannot be set, the server is only slower.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await.context("serving")
}
