//! The `RateLimit-*` headers.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::rate_limit::RateLimitStatus;

const LIMIT_HEADER: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING_HEADER: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET_HEADER: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Sets the headers that show the state of a quota.
pub(super) fn add(status: RateLimitStatus, headers: &mut HeaderMap) {
    headers.insert(LIMIT_HEADER, HeaderValue::from(status.limit));
    headers.insert(REMAINING_HEADER, HeaderValue::from(status.remaining));
    headers.insert(RESET_HEADER, HeaderValue::from(status.reset));
}
