//! Conditional requests: `If-Match` of what is to be changed, `If-None-Match` of what is read (decisions §1).

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::Response;

use crate::etag::{self, Expected};

/// What the request expects of what it is to change.
pub(super) fn expected(headers: &HeaderMap) -> Expected {
    text(headers, &IF_MATCH).map_or_else(Expected::default, |text| Expected::of(&text))
}

/// The answers that a reader has, if it names any.
pub(super) fn known(method: &Method, headers: &HeaderMap) -> Option<String> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if reads { text(headers, &IF_NONE_MATCH) } else { None }
}

/// 304 without a body in the place of an answer that the reader has.
pub(super) fn unless_known(mut response: Response, known: &str) -> Response {
    let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
    if response.status() != StatusCode::OK || !tag.is_some_and(|tag| etag::names(known, tag)) {
        return response;
    }
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().remove(CONTENT_TYPE);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|_| axum::body::Body::empty())
}

/// The values of a list header, one behind the other. What is no text is no tag either.
fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    Some(values.map(|value| value.to_str().unwrap_or_default()).collect::<Vec<_>>().join(","))
}
