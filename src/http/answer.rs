//! What a handler answers.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::error::Result;

/// A 2xx answer.
#[derive(Debug, Clone)]
pub enum Answer {
    /// 200 with JSON text.
    Shown(Vec<u8>),
    /// 200 without a body.
    Empty,
    /// 201 with JSON text.
    Created(Vec<u8>),
    /// 204.
    NoContent,
}

/// What a handler answers: the success, or the refusal in the error envelope.
pub type Answered = Result<Answer>;

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        const JSON: (axum::http::HeaderName, HeaderValue) =
            (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Self::Shown(body) => ([JSON], body).into_response(),
            Self::Empty => StatusCode::OK.into_response(),
            Self::Created(body) => (StatusCode::CREATED, [JSON], body).into_response(),
            Self::NoContent => StatusCode::NO_CONTENT.into_response(),
        }
    }
}
