//! Steward: the admin API of an analytics workspace, served from one binary and one data file.
//!
//! Most people run the `steward` command. This crate is the same service as a library, to start it inside an
//! integration test or another program. For a test, there is nothing to prepare and nothing to clean up:
//!
//! ```
//! use axum::body::Body;
//! use axum::http::{Request, StatusCode};
//! use steward::{Config, TestServer};
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = TestServer::without_port(Config::default()).await?;
//!
//! let list = Request::get(format!("/api/projects/{}/dashboards/", server.project_id()))
//!     .header("Authorization", format!("Bearer {}", server.owner_key()))
//!     .body(Body::empty())?;
//! assert_eq!(server.router().oneshot(list).await?.status(), StatusCode::OK);
//! # Ok(())
//! # }
//! ```
//!
//! # Public items
//!
//! - [`TestServer`] is a server for one test, with a workspace in memory.
//! - [`create`] creates a data file with its first records ([`InitialRecords`]) and opens it. It returns the running
//!   service, an [`App`], and the ids and the API key of the new records, a [`CreatedWorkspace`].
//! - [`Store::open`] and [`App::new`] open a data file that exists. Both fail with an [`OpenError`].
//! - [`Config`] has the settings of the service. Each is also a flag of `steward serve`; `docs/configuration.md`
//!   describes them.
//! - [`router()`] returns the service as an axum router. [`serve`] serves it on a TCP listener, within [`ServerLimits`].
//! - [`App::close`] waits for what is being written, and closes the file.
//!
//! The repository's `ARCHITECTURE.md` describes the modules.

mod app;
mod auth;
mod base;
mod cli;
mod config;
mod console;
mod exchange;
mod fair;
mod http;
mod ids;
mod input;
mod leases;
mod mail;
mod metrics;
mod net;
mod operator;
mod resources;
mod router;
mod store;
mod test_server;
#[cfg(test)]
#[path = "../tests/support/wait.rs"]
mod wait;

#[doc(hidden)]
pub mod testing;

pub use app::App;
#[doc(hidden)]
pub use cli::main as run_cli;
pub use config::Config;
pub use http::server::{ServerLimits, serve};
pub(crate) use input::input;
pub use operator::bootstrap::{CreatedWorkspace, InitialRecords, create};
pub use router::router;
pub use store::{OpenError, Store};
pub use test_server::TestServer;
