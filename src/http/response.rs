//! Successful responses of handlers.

use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::error::Result;
use crate::etag::Versioned;
use crate::idempotency::IdempotentResponse;

/// A successful response: status, body and entity tag.
#[derive(Debug, Clone)]
pub enum ApiResponse {
    /// 200 with one object and its entity tag.
    Object(Versioned),
    /// 200 with JSON that has no version, such as a list or a computed result.
    Json(Vec<u8>),
    /// 200 with an empty body.
    Empty,
    /// 201 with one object and its entity tag.
    Created(Versioned),
    /// 204.
    NoContent,
    /// The stored response to an earlier request with the same idempotency key.
    Replayed(IdempotentResponse),
}

impl ApiResponse {
    /// Returns the form of this response that is stored under an idempotency key.
    pub fn to_stored(&self) -> IdempotentResponse {
        let (status, version, body) = match self {
            Self::Object(one) => (200, Some(one.version), one.json.as_slice()),
            Self::Created(one) => (201, Some(one.version), one.json.as_slice()),
            Self::Json(body) => (200, None, body.as_slice()),
            Self::Empty => (200, None, [].as_slice()),
            Self::NoContent => (204, None, [].as_slice()),
            Self::Replayed(reply) => return reply.clone(),
        };
        IdempotentResponse { status, version, body: body.to_vec(), object: None }
    }
}

/// Set to `true` on a response that is replayed for a repeated idempotency key.
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The result of a handler. An error becomes a response with the error body.
pub type ApiResult = Result<ApiResponse>;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_print_of_an_answer_shows_the_secret_in_it() {
        let secret = b"{\"value\": \"phx_secret\"}".to_vec();
        let response = ApiResponse::Created(Versioned::new(1, secret.clone()));
        let (printed, bytes) =
            (format!("{response:?} {:?}", response.to_stored()), format!("{secret:?}"));
        let inner = bytes.trim_matches(['[', ']']);
        assert!(!printed.contains("phx_") && !printed.contains(inner), "{printed}");
    }
}
