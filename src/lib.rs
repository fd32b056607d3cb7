//! Steward: the admin API of an analytics workspace, served from one binary and one data file.
//!
//! Most people run the `steward` command. This crate is the same service as a library, to start it inside an
//! integration test or another program:
//!
//! ```
//! use axum::body::Body;
//! use axum::http::{Request, StatusCode};
//! use steward::{Config, InitialRecords, create, router};
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("workspace.redb");
//! let (app, workspace) = create(&file, Config::default(), &InitialRecords::default())?;
//!
//! let list = Request::get(format!("/api/projects/{}/dashboards/", workspace.project_id))
//!     .header("Authorization", format!("Bearer {}", workspace.api_key))
//!     .body(Body::empty())?;
//! assert_eq!(router(app.clone()).oneshot(list).await?.status(), StatusCode::OK);
//!
//! app.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! [`http::server`] accepts a request, and [`http::request_layer`] adds the request id, the log line, the time limit
//! and the handling of panics. [`http::routes`] finds the route. The route's guard, [`auth::authorize`], authenticates
//! the caller and checks its permissions, in one snapshot of the data.
//!
//! The resource's handler, [`resources`]`::*::http`, then reads its response from that same snapshot, or passes a
//! rule of [`resources`]`::*` to [`state::App::change`]. The rule runs on the writer thread of the [`store`]. There
//! the caller is authorized again, the rule's [activity](resources::activity) entry is written and the transaction
//! commits; only then is the response sent.
//!
//! A write may add a mail to the outbox. The [mail worker](mail::worker) sends it after the commit.
//!
//! The operator's commands ([`cli`]) are [`operator::Operation`]s. They run the same code whether the command opens
//! the data file itself or asks the running server.
//!
//! `ARCHITECTURE.md` lists the modules and their allowed dependencies.

pub mod auth;
pub mod blocking_pool;
pub mod bootstrap;
pub mod cli;
pub mod config;
pub mod dns;
pub mod error;
pub mod etag;
pub mod fair_queue;
pub mod http;
pub mod idempotency;
pub mod ids;
pub mod input;
pub mod json;
mod low_priority;
pub mod mail;
pub mod memory_budget;
pub mod metrics;
pub mod operator;
pub mod patch;
pub mod rate_limit;
pub mod resources;
pub mod response;
pub mod router;
pub mod secret;
pub mod state;
pub mod store;
pub mod time;
pub mod trusted_proxies;

pub use bootstrap::{CreatedWorkspace, InitialRecords, create};
pub use config::Config;
pub use router::router;
pub use state::App;
pub use store::Store;
