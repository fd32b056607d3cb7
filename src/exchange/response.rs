//! Successful responses of handlers.

use crate::base::error::Result;
use crate::exchange::etag::Versioned;
use crate::exchange::idempotency::IdempotentResponse;

/// The result of a handler. An error becomes a response with the error body.
pub type ApiResult = Result<ApiResponse>;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_a_response_hides_its_body() {
        let secret = b"{\"value\": \"phx_secret\"}".to_vec();
        let response = ApiResponse::Created(Versioned::new(1, secret.clone()));
        let (printed, bytes) =
            (format!("{response:?} {:?}", response.to_stored()), format!("{secret:?}"));
        let inner = bytes.trim_matches(['[', ']']);
        assert!(!printed.contains("phx_") && !printed.contains(inner), "{printed}");
    }
}
