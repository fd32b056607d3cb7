//! What every answer tells browsers, so that none takes it for more than it is (OWASP REST security).

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, Entry, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Answers are for who asked, and asked for each time; with a tag, a reader may keep its own.
const KEPT_BY_READER: HeaderValue = HeaderValue::from_static("private, no-cache");
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-store");

const ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
];

/// Two years.
const BY_HTTPS_ONLY: HeaderValue = HeaderValue::from_static("max-age=63072000");

/// Adds what an answer does not say itself; where clients come by HTTPS, that they should never come otherwise.
pub(super) fn add(headers: &mut HeaderMap, secure: bool) {
    let kept = if headers.contains_key(ETAG) { KEPT_BY_READER } else { NOT_KEPT };
    let secure = secure.then_some((STRICT_TRANSPORT_SECURITY, BY_HTTPS_ONLY));
    for (name, value) in ALWAYS.into_iter().chain([(CACHE_CONTROL, kept)]).chain(secure) {
        if let Entry::Vacant(vacant) = headers.entry(name) {
            vacant.insert(value);
        }
    }
}
