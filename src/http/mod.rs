//! The HTTP layer that all resources share.

pub mod assets;
pub mod body;
pub mod client;
pub mod compression;
pub mod delivery;
pub mod form;
pub mod html;
pub mod in_process;
pub mod logging;
pub mod metrics;
pub mod openapi;
pub mod paging;
pub mod path;
pub mod prelude;
pub mod query;
mod request_headers;
pub mod request_layer;
mod request_log;
mod response;
mod route_guard;
mod route_spec;
pub mod routes;
pub mod security_headers;
pub mod server;
pub mod swappable_router;
pub mod tls;

use axum::extract::FromRef;

use crate::app::App;

use body::BodyLimits;

impl FromRef<App> for BodyLimits {
    fn from_ref(app: &App) -> Self {
        Self { max_bytes: app.config().max_body, timeout: app.config().body_timeout }
    }
}
