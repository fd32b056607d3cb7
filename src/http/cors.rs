//! CORS: allows browser requests from the origins that the operator configured.

use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH,
    ORIGIN, RETRY_AFTER,
};
use axum::http::{HeaderName, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may cache a preflight response.
const MAX_AGE: Duration = Duration::from_hours(1);

/// Returns a CORS layer for `origins`, of which `*` allows any. Returns `None` if `origins` is empty.
pub fn layer(origins: &[String]) -> Option<CorsLayer> {
    (!origins.is_empty()).then(|| build_layer(origins))
}

fn build_layer(origins: &[String]) -> CorsLayer {
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
            named("dry-run"),
            named("idempotency-key"),
            named("x-request-id"),
        ])
        .expose_headers([
            ETAG,
            RETRY_AFTER,
            named("dry-run"),
            named("idempotent-replayed"),
            named("ratelimit-limit"),
            named("ratelimit-remaining"),
            named("ratelimit-reset"),
            named("x-request-id"),
        ])
        .max_age(MAX_AGE)
}

/// The root of the console's paths, which no other origin may read.
const CONSOLE: &str = "/console";

fn is_of_console(path: &str) -> bool {
    path.strip_prefix(CONSOLE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the request is a cross-origin request to the API or a preflight. An OPTIONS without
/// `Access-Control-Request-Method` is neither: its response lists the methods of the path.
pub(super) fn is_cross_origin(request: &Request) -> bool {
    request.headers().contains_key(ORIGIN)
        && !is_of_console(request.uri().path())
        && (request.method() != Method::OPTIONS
            || request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD))
}
