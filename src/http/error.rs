//! Converts errors to responses.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::error::Error;
use crate::rate_limit::RateLimitStatus;

use super::rate_limit_headers;

/// The header with the place of the fault in the value of `attr`.
const ERROR_POSITION: HeaderName = HeaderName::from_static("error-position");

/// Writes the status, the error body and, if the error has them, `Retry-After` and `Error-Position`. See
/// `docs/spec/errors.md`. The error stays in the response's extensions, so that
/// [`request_layer`](super::request_layer) logs its cause once.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() =
            StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let position = self.position().map(|position| position.to_string());
        if let Some(position) = position.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(ERROR_POSITION, position);
        }
        if let (Some(limit), Some(reset)) = (self.rate_limit(), self.retry_after()) {
            let status = RateLimitStatus { limit, remaining: 0, reset: reset.into() };
            rate_limit_headers::add(status, headers);
        }
        response.extensions_mut().insert(self);
        response
    }
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
