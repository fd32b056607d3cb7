//! Converts responses and errors to HTTP.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::app::rate_limit::RateLimitStatus;
use crate::base::error::Error;
use crate::exchange::etag::Versioned;
use crate::exchange::idempotency::IdempotentResponse;
use crate::exchange::response::ApiResponse;

/// Set to `true` on a response that is replayed for a repeated idempotency key.
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

const JSON: (HeaderName, HeaderValue) =
    (CONTENT_TYPE, HeaderValue::from_static("application/json"));

/// The number of headers of most responses, so that their map need not grow.
const USUAL_HEADERS: usize = 8;

impl IntoResponse for ApiResponse {
    fn into_response(self) -> Response {
        match self {
            Self::Object(one) => object(StatusCode::OK, one),
            Self::Json(body) => with_headers(StatusCode::OK, [JSON], body),
            Self::Empty => StatusCode::OK.into_response(),
            Self::Created(one) => object(StatusCode::CREATED, one),
            Self::NoContent => StatusCode::NO_CONTENT.into_response(),
            Self::Replayed(IdempotentResponse { status, version, body, object: _ }) => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
                let mut response = match version {
                    Some(version) => object(status, Versioned::new(version, body)),
                    None if body.is_empty() => status.into_response(),
                    None => with_headers(status, [JSON], body),
                };
                let headers = response.headers_mut();
                headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
                response
            }
        }
    }
}

fn object(status: StatusCode, one: Versioned) -> Response {
    let tag = HeaderValue::try_from(one.etag()).unwrap_or(HeaderValue::from_static(""));
    with_headers(status, [JSON, (ETAG, tag)], one.json)
}

fn with_headers<const N: usize>(
    status: StatusCode,
    headers: [(HeaderName, HeaderValue); N],
    body: Vec<u8>,
) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().reserve(USUAL_HEADERS);
    response.headers_mut().extend(headers);
    response
}

/// The header with the place of the fault in the value of `attr`.
const ERROR_POSITION: HeaderName = HeaderName::from_static("error-position");

/// Writes the status, the error body and, if the error has them, `Retry-After` and `Error-Position`. See
/// `docs/spec/errors.md`. The error stays in the response's extensions, so that
/// [`request_layer`](super::request_layer) logs its cause once.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let status = StatusCode::from_u16(self.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = with_headers(status, [JSON], body);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let position = self.position().map(|position| position.to_string());
        if let Some(position) = position.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(ERROR_POSITION, position);
        }
        if let (Some(limit), Some(reset)) = (self.rate_limit(), self.retry_after()) {
            let status = RateLimitStatus { limit, remaining: 0, reset: reset.into() };
            add_rate_limit_headers(status, headers);
        }
        response.extensions_mut().insert(self);
        response
    }
}

const LIMIT_HEADER: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING_HEADER: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET_HEADER: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Sets the headers that show the state of a quota.
pub(super) fn add_rate_limit_headers(status: RateLimitStatus, headers: &mut HeaderMap) {
    headers.insert(LIMIT_HEADER, HeaderValue::from(status.limit));
    headers.insert(REMAINING_HEADER, HeaderValue::from(status.remaining));
    headers.insert(RESET_HEADER, HeaderValue::from(status.reset));
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn text(response: Response) -> String {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn field_error_has_four_members_in_order() {
        let response =
            Error::field("name", "blank", "This field may not be blank.").into_response();
        assert_eq!(response.status(), 400);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        assert!(!response.headers().contains_key(RETRY_AFTER));
        assert_eq!(
            text(response).await,
            r#"{"type":"validation_error","code":"blank","detail":"This field may not be blank.","attr":"name"}"#
        );
    }

    #[tokio::test]
    async fn unavailable_error_has_retry_after_and_shows_its_cause_only_in_the_log() {
        let response = Error::unavailable(7, "the disk is full").into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[RETRY_AFTER], "7");
        let cause = response.extensions().get::<Error>().and_then(|error| error.cause());
        assert_eq!(cause, Some("the disk is full"));
        let body = text(response).await;
        assert!(body.contains(r#""code":"unavailable""#) && !body.contains("disk"), "{body}");
    }
}
