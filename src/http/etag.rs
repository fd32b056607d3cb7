//! Conditional requests: `If-Match` on writes and `If-None-Match` on reads. See `docs/spec/requests.md`.

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::Response;

use crate::etag::{self, IfMatch};

/// Returns the version that the request's `If-Match` requires.
pub(super) fn if_match(headers: &HeaderMap) -> IfMatch {
    joined_values(headers, &IF_MATCH).map_or_else(IfMatch::default, |text| IfMatch::parse(&text))
}

/// Returns the `If-None-Match` header of a GET or HEAD request.
pub(super) fn if_none_match(method: &Method, headers: &HeaderMap) -> Option<String> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if reads { joined_values(headers, &IF_NONE_MATCH) } else { None }
}

/// Turns the response into a 304 without a body if `known` contains its entity tag.
pub(super) fn not_modified_if_known(mut response: Response, known: &str) -> Response {
    let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
    if response.status() != StatusCode::OK || !tag.is_some_and(|tag| etag::matches_any(known, tag))
    {
        return response;
    }
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().remove(CONTENT_TYPE);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|_| axum::body::Body::empty())
}

/// Joins the values of a list header with commas. A value that is not text counts as empty.
fn joined_values(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    Some(values.map(|value| value.to_str().unwrap_or_default()).collect::<Vec<_>>().join(","))
}
