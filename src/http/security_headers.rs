//! Security headers that every response carries, as OWASP recommends for REST APIs.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, Entry, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};

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
pub(super) fn add(method: &Method, headers: &mut HeaderMap, secure: bool) {
    let read = matches!(*method, Method::GET | Method::HEAD);
    let kept = if read && headers.contains_key(ETAG) { PRIVATE_CACHE } else { NO_STORE };
    let secure = secure.then_some((STRICT_TRANSPORT_SECURITY, HSTS_VALUE));
    for (name, value) in FIXED_HEADERS.into_iter().chain([(CACHE_CONTROL, kept)]).chain(secure) {
        if let Entry::Vacant(vacant) = headers.entry(name) {
            vacant.insert(value);
        }
    }
}
