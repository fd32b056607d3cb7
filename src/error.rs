//! The one error type: what a rule refuses, and how the wire says it.
//!
//! Every failure a client can see has the same four members, `type`, `code`, `detail` and `attr`
//! (decisions §1). Texts and codes come from the facts pages; nothing here names a web framework.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::SerializeStruct;

/// What every fallible function of this crate answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The `type` member of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A field, or the body as a whole, breaks a rule.
    ValidationError,
    /// The request cannot be served as it was put.
    InvalidRequest,
    /// Who is asking is unknown, or may not.
    AuthenticationError,
    /// Too many requests.
    ThrottledError,
    /// The service failed, or is not available for the moment.
    ServerError,
}

/// A refusal, as the client reads it.
///
/// Small to move (one pointer), cheap to clone, and free of secrets: `cause` is for the log only and
/// never serialized.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    status: u16,
    kind: Kind,
    code: &'static str,
    detail: Cow<'static, str>,
    attr: Option<String>,
    retry_after: Option<u32>,
    rate_limit: Option<u32>,
    is_overload: bool,
    cause: Option<Arc<str>>,
}

impl Error {
    fn new(
        status: u16,
        kind: Kind,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(Inner {
            status,
            kind,
            code,
            detail: detail.into(),
            attr: None,
            retry_after: None,
            rate_limit: None,
            is_overload: false,
            cause: None,
        }))
    }

    /// 400: the body as a whole breaks a rule (`attr` null).
    pub fn invalid(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, Kind::ValidationError, code, detail)
    }

    /// 400: the field `attr` breaks a rule. Nested fields are joined with `__`.
    pub fn field(
        attr: impl Into<String>,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        let mut error = Self::invalid(code, detail);
        error.0.attr = Some(attr.into());
        error
    }

    /// 400: the change would exceed a cap that the operator set. `detail` names the cap.
    pub fn limit_reached(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid("limit_reached", detail)
    }

    /// 400: the request is not valid HTTP, whatever it asks for.
    pub fn invalid_request(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, Kind::InvalidRequest, code, detail)
    }

    /// 400: the body is no JSON. `detail` is the parser's text.
    pub fn parse(detail: impl fmt::Display) -> Self {
        Self::new(400, Kind::InvalidRequest, "parse_error", format!("JSON parse error - {detail}"))
    }

    /// 401: no usable credentials were sent.
    pub fn not_authenticated() -> Self {
        Self::new(
            401,
            Kind::AuthenticationError,
            "not_authenticated",
            "Authentication credentials were not provided.",
        )
    }

    /// 401: a key was sent that opens nothing. One text for every reason, so that none can be told apart.
    pub fn authentication_failed() -> Self {
        Self::new(
            401,
            Kind::AuthenticationError,
            "authentication_failed",
            "Personal API key found in request Authorization header is invalid.",
        )
    }

    /// 403 with the given text.
    pub fn denied(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(403, Kind::AuthenticationError, "permission_denied", detail)
    }

    /// 403: the key lacks `scope`.
    pub fn missing_scope(scope: &str) -> Self {
        Self::denied(format!("API key missing required scope '{scope}'"))
    }

    /// 404: the object does not exist, or is not shown to the caller.
    pub fn not_found() -> Self {
        Self::not_found_as("Not found.")
    }

    /// 404 with a text of its own (`Organization not found.` and the like).
    pub fn not_found_as(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(404, Kind::InvalidRequest, "not_found", detail)
    }

    /// 405: the path exists, but not for `method`.
    pub fn method_not_allowed(method: &str) -> Self {
        Self::new(
            405,
            Kind::InvalidRequest,
            "method_not_allowed",
            format!("Method \"{method}\" not allowed."),
        )
    }

    /// 408: the client took too long to send its body.
    pub fn body_timeout() -> Self {
        Self::new(
            408,
            Kind::InvalidRequest,
            "request_timeout",
            "The request body did not arrive in time.",
        )
    }

    /// 412: the record no longer stands at the version that `If-Match` names.
    pub fn precondition_failed() -> Self {
        Self::new(
            412,
            Kind::InvalidRequest,
            "precondition_failed",
            "The object has changed: its version is not one that If-Match names.",
        )
    }

    /// 413: the body is larger than `limit` bytes.
    pub fn payload_too_large(limit: usize) -> Self {
        Self::new(
            413,
            Kind::InvalidRequest,
            "payload_too_large",
            format!("The request body is larger than {limit} bytes."),
        )
    }

    /// 413: parsed, the body would take more than `share` bytes of memory.
    pub fn body_takes_too_much(share: usize) -> Self {
        Self::new(
            413,
            Kind::InvalidRequest,
            "payload_too_large",
            format!(
                "The request body has too many values: parsed, it takes more than {share} bytes."
            ),
        )
    }

    /// 415: the body is not JSON by its own word.
    pub fn unsupported_media_type(media_type: &str) -> Self {
        Self::new(
            415,
            Kind::InvalidRequest,
            "unsupported_media_type",
            format!("Unsupported media type \"{media_type}\" in request."),
        )
    }

    /// 422: the `Idempotency-Key` was sent before, with another body.
    pub fn idempotency_key_reused() -> Self {
        Self::new(
            422,
            Kind::InvalidRequest,
            "idempotency_key_reused",
            "This Idempotency-Key was used for a request with another body.",
        )
    }

    /// 429: one request too many for a quota of `limit`; the next one may come after `wait` seconds.
    pub fn throttled(limit: u32, wait: u64) -> Self {
        let unit = if wait == 1 { "second" } else { "seconds" };
        let detail = format!("Request was throttled. Expected available in {wait} {unit}.");
        let mut error = Self::new(429, Kind::ThrottledError, "throttled", detail);
        error.0.retry_after = Some(u32::try_from(wait).unwrap_or(u32::MAX));
        error.0.rate_limit = Some(limit);
        error
    }

    /// 500: a defect or a damaged file. `cause` goes to the log, never to the client.
    pub fn internal(cause: impl fmt::Display) -> Self {
        let mut error = Self::new(500, Kind::ServerError, "error", "A server error occurred.");
        error.0.cause = Some(cause.to_string().into());
        error
    }

    /// 503: not now; the client may try again after `retry_after` seconds.
    pub fn unavailable(retry_after: u32, cause: impl fmt::Display) -> Self {
        let mut error = Self::new(
            503,
            Kind::ServerError,
            "unavailable",
            "The service is not available for the moment. Try again shortly.",
        );
        error.0.retry_after = Some(retry_after);
        error.0.cause = Some(cause.to_string().into());
        error
    }

    /// 503: the caller's share of a resource, or the whole of it, is in use. The client may try again after
    /// `retry_after` seconds. Unlike [`unavailable`](Self::unavailable) it is no fault of the service, so the
    /// log does not report each one.
    pub fn overloaded(retry_after: u32, cause: impl fmt::Display) -> Self {
        let mut error = Self::unavailable(retry_after, cause);
        error.0.is_overload = true;
        error
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// The `code` member.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// The `detail` member.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The field at fault, if one is.
    pub fn attr(&self) -> Option<&str> {
        self.0.attr.as_deref()
    }

    /// Seconds after which a retry makes sense.
    pub fn retry_after(&self) -> Option<u32> {
        self.0.retry_after
    }

    /// The quota that is used up, where that is why.
    pub fn rate_limit(&self) -> Option<u32> {
        self.0.rate_limit
    }

    /// Whether it refuses what is beyond a share, as [`overloaded`](Self::overloaded) does.
    pub fn is_overload(&self) -> bool {
        self.0.is_overload
    }

    /// What went wrong inside, for the log.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// The same refusal, reported at `prefix__attr` (or at `prefix` where it had no field).
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        self.0.attr = Some(match self.0.attr.take() {
            Some(attr) => format!("{prefix}__{attr}"),
            None => prefix.to_owned(),
        });
        self
    }
}

impl Serialize for Error {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("Error", 4)?;
        body.serialize_field("type", &self.0.kind)?;
        body.serialize_field("code", self.0.code)?;
        body.serialize_field("detail", &self.0.detail)?;
        body.serialize_field("attr", &self.0.attr)?;
        body.end()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.cause, &self.0.attr) {
            (Some(cause), _) => f.write_str(cause),
            (None, Some(attr)) => write!(f, "{attr}: {}", self.0.detail),
            (None, None) => f.write_str(&self.0.detail),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {self}", self.0.status, self.0.code)
    }
}

impl std::error::Error for Error {}
