//! The HTTP layer that all resources share.

pub mod assets;
pub mod body;
pub mod client;
pub mod compression;
pub mod cors;
pub mod delivery;
mod dry_run;
mod error;
mod etag;
pub mod form;
pub mod html;
mod idempotency;
pub mod in_process;
mod log_context;
pub mod logging;
pub mod metrics;
pub mod openapi;
mod overload;
pub mod paging;
pub mod path;
pub mod query;
mod rate_limit_headers;
pub mod request_layer;
pub mod request_metrics;
mod response;
mod route_guard;
mod route_spec;
pub mod routes;
mod security_headers;
pub mod server;
pub mod startup;
mod static_response;
pub mod swappable_router;
pub mod tls;

use axum::extract::FromRef;

use crate::state::App;

use body::BodyLimits;

impl FromRef<App> for BodyLimits {
    fn from_ref(app: &App) -> Self {
        Self { max_bytes: app.config().max_body, timeout: app.config().body_timeout }
    }
}
