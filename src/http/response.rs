//! Converts successful responses to HTTP.

use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::etag::Versioned;
use crate::idempotency::IdempotentResponse;
use crate::response::ApiResponse;

/// Set to `true` on a response that is replayed for a repeated idempotency key.
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

impl IntoResponse for ApiResponse {
    fn into_response(self) -> Response {
        const JSON: (HeaderName, HeaderValue) =
            (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Self::Object(one) => ([JSON, etag_header(&one)], one.json).into_response(),
            Self::Json(body) => ([JSON], body).into_response(),
            Self::Empty => StatusCode::OK.into_response(),
            Self::Created(one) => {
                (StatusCode::CREATED, [JSON, etag_header(&one)], one.json).into_response()
            }
            Self::NoContent => StatusCode::NO_CONTENT.into_response(),
            Self::Replayed(IdempotentResponse { status, version, body, object: _ }) => {
                let json = !body.is_empty();
                let (tag, body) = match version {
                    Some(version) => {
                        let one = Versioned::new(version, body);
                        (Some(etag_header(&one)), one.json)
                    }
                    None => (None, body),
                };
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
                let mut response = (status, body).into_response();
                let headers = response.headers_mut();
                headers.remove(CONTENT_TYPE);
                headers.extend(json.then_some(JSON).into_iter().chain(tag));
                headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
                response
            }
        }
    }
}

fn etag_header(one: &Versioned) -> (HeaderName, HeaderValue) {
    (ETAG, HeaderValue::try_from(one.etag()).unwrap_or(HeaderValue::from_static("")))
}
