//! Converts successful responses to HTTP.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::etag::Versioned;
use crate::idempotency::IdempotentResponse;
use crate::response::ApiResponse;

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

fn object(status: StatusCode, one: Versioned) -> Response {
    with_headers(status, [JSON, etag_header(&one)], one.json)
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

fn etag_header(one: &Versioned) -> (HeaderName, HeaderValue) {
    (ETAG, HeaderValue::try_from(one.etag()).unwrap_or(HeaderValue::from_static("")))
}
