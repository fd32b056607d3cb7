//! What a handler answers.

use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::error::Result;
use crate::etag::Versioned;
use crate::idempotency::Reply;

/// A 2xx answer.
#[derive(Debug, Clone)]
pub enum Answer {
    /// 200 with one object and its entity tag.
    Shown(Versioned),
    /// 200 with JSON text that has no version: several objects, or what is worked out.
    Plain(Vec<u8>),
    /// 200 without a body.
    Empty,
    /// 201 with one object and its entity tag.
    Created(Versioned),
    /// 204.
    NoContent,
    /// What the same request was answered before.
    Replayed(Reply),
}

impl Answer {
    /// The answer, to be kept for the same request.
    pub fn reply(&self) -> Reply {
        let (status, version, body) = match self {
            Self::Shown(one) => (200, Some(one.version), one.json.as_slice()),
            Self::Created(one) => (201, Some(one.version), one.json.as_slice()),
            Self::Plain(body) => (200, None, body.as_slice()),
            Self::Empty => (200, None, [].as_slice()),
            Self::NoContent => (204, None, [].as_slice()),
            Self::Replayed(reply) => return reply.clone(),
        };
        Reply { status, version, body: body.to_vec(), object: None }
    }
}

/// Marks the answer to a request that was answered before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What a handler answers: the success, or the refusal in the error envelope.
pub type Answered = Result<Answer>;

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        const JSON: (HeaderName, HeaderValue) =
            (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Self::Shown(one) => ([JSON, tag(&one)], one.json).into_response(),
            Self::Plain(body) => ([JSON], body).into_response(),
            Self::Empty => StatusCode::OK.into_response(),
            Self::Created(one) => {
                (StatusCode::CREATED, [JSON, tag(&one)], one.json).into_response()
            }
            Self::NoContent => StatusCode::NO_CONTENT.into_response(),
            Self::Replayed(Reply { status, version, body, object: _ }) => {
                let json = !body.is_empty();
                let (tag, body) = match version {
                    Some(version) => {
                        let one = Versioned::new(version, body);
                        (Some(tag(&one)), one.json)
                    }
                    None => (None, body),
                };
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
                let mut response = (status, body).into_response();
                let headers = response.headers_mut();
                headers.remove(CONTENT_TYPE);
                headers.extend(json.then_some(JSON).into_iter().chain(tag));
                headers.insert(REPLAYED, HeaderValue::from_static("true"));
                response
            }
        }
    }
}

fn tag(one: &Versioned) -> (HeaderName, HeaderValue) {
    (ETAG, HeaderValue::try_from(one.tag()).unwrap_or(HeaderValue::from_static("")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_print_of_an_answer_shows_the_secret_in_it() {
        let secret = b"{\"value\": \"phx_secret\"}".to_vec();
        let answer = Answer::Created(Versioned::new(1, secret.clone()));
        let (printed, bytes) = (format!("{answer:?} {:?}", answer.reply()), format!("{secret:?}"));
        let inner = bytes.trim_matches(['[', ']']);
        assert!(!printed.contains("phx_") && !printed.contains(inner), "{printed}");
    }
}
