//! What a server answers before its data file is open.

use axum::Router;
use axum::routing::{any, get};

use crate::error::Error;

/// What a client is told to wait, in seconds.
const RETRY_AFTER: u32 = 1;

/// `/_livez`, and 503 for all else.
pub fn router() -> Router {
    Router::new()
        .route("/_livez", get(livez))
        .route("/_livez/", get(livez))
        .route("/_readyz", any(not_yet))
        .route("/_readyz/", any(not_yet))
        .method_not_allowed_fallback(not_yet)
        .fallback(not_yet)
}

async fn not_yet() -> Error {
    Error::unavailable(RETRY_AFTER, "the data file is not open yet")
}

/// The process runs: that is all that this tells.
pub async fn livez() -> &'static str {
    "ok\n"
}
