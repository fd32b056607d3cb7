//! The responses of a server whose data file is not open yet.

use axum::Router;
use axum::routing::{any, get};

use crate::error::Error;

/// The `Retry-After` of such a response, in seconds.
const RETRY_AFTER: u32 = 1;

/// Returns a router that serves `/_livez` and answers everything else with 503.
pub fn router() -> Router {
    Router::new()
        .route("/_livez", get(livez))
        .route("/_livez/", get(livez))
        .route("/_readyz", any(not_ready))
        .route("/_readyz/", any(not_ready))
        .method_not_allowed_fallback(not_ready)
        .fallback(not_ready)
}

async fn not_ready() -> Error {
    Error::unavailable(RETRY_AFTER, "the data file is not open yet")
}

/// The liveness probe. It always succeeds while the process runs.
pub async fn livez() -> &'static str {
    "ok\n"
}
