//! What every answer tells browsers, so that none takes it for more than it is (OWASP REST security).

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, Entry, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};

/// Answers are for who asked, and asked for each time; one with a tag that was only read, its reader may keep. What
/// a change answers may tell a secret, this once.
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

/// Adds what an answer to this method does not say itself; where clients come by HTTPS, that they should never come
/// otherwise.
pub(super) fn add(method: &Method, headers: &mut HeaderMap, secure: bool) {
    let read = matches!(*method, Method::GET | Method::HEAD);
    let kept = if read && headers.contains_key(ETAG) { KEPT_BY_READER } else { NOT_KEPT };
    let secure = secure.then_some((STRICT_TRANSPORT_SECURITY, BY_HTTPS_ONLY));
    for (name, value) in ALWAYS.into_iter().chain([(CACHE_CONTROL, kept)]).chain(secure) {
        if let Entry::Vacant(vacant) = headers.entry(name) {
            vacant.insert(value);
        }
    }
}
