//! Security headers that every response carries, as OWASP recommends for REST APIs, and CORS, which allows browser requests
//! from the origins that the operator configured.

use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, Entry, IF_MATCH, IF_NONE_MATCH, ORIGIN, REFERRER_POLICY, RETRY_AFTER,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// For reads with an entity tag: the client may store the response but must revalidate it. Any other response may
/// contain a secret that is shown once.
const PRIVATE_CACHE: HeaderValue = HeaderValue::from_static("private, no-cache");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

const FIXED_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
];

/// Two years, in seconds.
const HSTS_VALUE: HeaderValue = HeaderValue::from_static("max-age=63072000");

/// Adds the security headers that the response lacks. With `secure`, adds HSTS.
pub(super) fn add_security_headers(method: &Method, headers: &mut HeaderMap, secure: bool) {
    let read = matches!(*method, Method::GET | Method::HEAD);
    let kept = if read && headers.contains_key(ETAG) { PRIVATE_CACHE } else { NO_STORE };
    let secure = secure.then_some((STRICT_TRANSPORT_SECURITY, HSTS_VALUE));
    for (name, value) in FIXED_HEADERS.into_iter().chain([(CACHE_CONTROL, kept)]).chain(secure) {
        if let Entry::Vacant(vacant) = headers.entry(name) {
            vacant.insert(value);
        }
    }
}

/// How long a browser may cache a preflight response.
const MAX_AGE: Duration = Duration::from_hours(1);

/// Returns a CORS layer for `origins`, of which `*` allows any. Returns `None` if `origins` is empty.
pub fn cors_layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let named = HeaderName::from_static;
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| origin.parse().ok()))
    };
    let layer = CorsLayer::new()
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
        .max_age(MAX_AGE);
    Some(layer)
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
