//! Calls from pages of other origins, let through where the operator named them.

use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH,
    ORIGIN, RETRY_AFTER,
};
use axum::http::{HeaderName, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may remember what it may do.
const REMEMBERED: Duration = Duration::from_hours(1);

/// What lets pages of `origins` call; `*` is any. None where there are none.
pub fn layer(origins: &[String]) -> Option<CorsLayer> {
    (!origins.is_empty()).then(|| cors(origins))
}

fn cors(origins: &[String]) -> CorsLayer {
    let named = HeaderName::from_static;
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| origin.parse().ok()))
    };
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            AUTHORIZATION,
            CONTENT_TYPE,
            IF_MATCH,
            IF_NONE_MATCH,
            named("idempotency-key"),
            named("x-request-id"),
        ])
        .expose_headers([
            ETAG,
            RETRY_AFTER,
            named("idempotent-replayed"),
            named("ratelimit-limit"),
            named("ratelimit-remaining"),
            named("ratelimit-reset"),
            named("x-request-id"),
        ])
        .max_age(REMEMBERED)
}

/// Whether a browser asks for a page of some origin. An OPTIONS without the method that is to follow is nobody's
/// preflight, but asks for what the path allows.
pub(super) fn crosses(request: &Request) -> bool {
    request.headers().contains_key(ORIGIN)
        && (request.method() != Method::OPTIONS
            || request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD))
}
