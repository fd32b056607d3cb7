//! Steward: the admin API of an analytics workspace, served from one binary and one data file.
//!
//! Most people run the `steward` command. This crate is the same service as a library, for starting it
//! inside an integration test or another program:
//!
//! ```
//! use axum::body::Body;
//! use axum::http::{Request, StatusCode};
//! use steward::{Config, First, create, router};
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let (app, made) = create(&folder.path().join("workspace.redb"), Config::default(), &First::default())?;
//!
//! let list = Request::get(format!("/api/projects/{}/dashboards/", made.project_id))
//!     .header("Authorization", format!("Bearer {}", made.api_key))
//!     .body(Body::empty())?;
//! assert_eq!(router(app.clone()).oneshot(list).await?.status(), StatusCode::OK);
//!
//! app.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # The tour
//!
//! A request comes in through [`http::server`], passes [`http::around`] (request id, log line, panics,
//! time limit) and finds its line in the route table, [`http::routes`]. The line's gate,
//! [`access::gate`], says who is asking and whether they may be there, in one snapshot of the data. The
//! noun's handler, [`resources`]`::*::http`, then reads its answer from that same snapshot, or hands a
//! rule, [`resources`]`::*`, to [`state::App::change`]: the rule runs on the writer thread of the
//! [`store`], which asks the gate once more, writes the [activity](resources::activity) entry, commits,
//! and only then lets the answer go.
//!
//! A write may post a mail: the [postman](mail::postman) composes and sends it when that is on disk.
//!
//! Operators' commands ([`cli`]) are [`operator::Operation`]s: the same code whether the command opens
//! the file itself or talks to the server that has it open.
//!
//! `ARCHITECTURE.md` has the map, and what each room must not know.

pub mod access;
mod background;
pub mod bootstrap;
pub mod cli;
pub mod config;
pub mod dns;
pub mod error;
pub mod etag;
pub mod fair;
pub mod http;
pub mod idempotency;
pub mod ids;
pub mod input;
pub mod json;
pub mod mail;
pub mod meters;
pub mod operator;
pub mod patch;
pub mod resources;
pub mod router;
pub mod secret;
pub mod state;
pub mod store;
pub mod time;

pub use bootstrap::{First, Made, create};
pub use config::Config;
pub use router::router;
pub use state::App;
pub use store::Store;
