//! The error type of the crate and its JSON form.
//!
//! Every error body has the same four members: `type`, `code`, `detail` and `attr`. PostHog's clients match some
//! codes and texts, so those are PostHog's; see `docs/spec/errors.md`. This module does not depend on a web
//! framework.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::SerializeStruct;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The `type` member of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorType {
    /// A field, or the body as a whole, is invalid.
    ValidationError,
    /// The request cannot be served, for example because its target does not exist.
    InvalidRequest,
    /// The caller is not authenticated, or lacks a permission.
    AuthenticationError,
    /// The caller sent too many requests.
    ThrottledError,
    /// The service failed, or is temporarily unavailable.
    ServerError,
}

/// A failed request, as the client sees it.
///
/// An error is one pointer wide, cheap to clone and contains no secrets. Its `cause` is for the log only and is never
/// serialized.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    status: u16,
    error_type: ErrorType,
    code: &'static str,
    detail: Cow<'static, str>,
    attr: Option<String>,
    retry_after: Option<u32>,
    rate_limit: Option<u32>,
    is_overload: bool,
    cause: Option<Arc<str>>,
    position: Option<TextPosition>,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
}

impl TextPosition {
    /// Returns the position of the character at this byte, or of the end of the text.
    #[must_use]
    pub fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let in_line = before.get(start..).unwrap_or_default();
        Self { line: before.matches('\n').count() + 1, column: in_line.chars().count() + 1 }
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line={}, column={}", self.line, self.column)
    }
}

impl Error {
    fn new(
        status: u16,
        error_type: ErrorType,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(Inner {
            status,
            error_type,
            code,
            detail: detail.into(),
            attr: None,
            retry_after: None,
            rate_limit: None,
            is_overload: false,
            cause: None,
            position: None,
        }))
    }

    /// A request that is refused, whatever its fields contain.
    fn refused(status: u16, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(status, ErrorType::InvalidRequest, code, detail)
    }

    /// A request whose caller is unknown, or may not do it.
    fn unauthorized(status: u16, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(status, ErrorType::AuthenticationError, code, detail)
    }

    /// 400: the body as a whole is invalid (`attr` is null).
    pub fn invalid(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, ErrorType::ValidationError, code, detail)
    }

    /// 400: the field `attr` is invalid. The names of nested fields are joined with `__`.
    pub fn field(
        attr: impl Into<String>,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        let mut error = Self::invalid(code, detail);
        error.0.attr = Some(attr.into());
        error
    }

    /// 400: the change would exceed a limit that the operator set. `detail` names the limit.
    pub fn limit_reached(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid("limit_reached", detail)
    }

    /// 400: the request is malformed, whatever its target.
    pub fn invalid_request(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::refused(400, code, detail)
    }

    /// 400: the body is not JSON. `detail` is the parser's text.
    pub fn parse(detail: impl fmt::Display) -> Self {
        Self::refused(400, "parse_error", format!("JSON parse error - {detail}"))
    }

    /// 401: the request has no usable credentials.
    pub fn not_authenticated() -> Self {
        let detail = "Authentication credentials were not provided.";
        Self::unauthorized(401, "not_authenticated", detail)
    }

    /// 401: the API key is invalid. The text is the same for every reason, so that a caller cannot probe for keys.
    pub fn authentication_failed() -> Self {
        Self::authentication_failed_as(
            "Personal API key found in request Authorization header is invalid.",
        )
    }

    /// 401 with this `detail`, which must be the same for every reason.
    pub fn authentication_failed_as(detail: &'static str) -> Self {
        Self::unauthorized(401, "authentication_failed", detail)
    }

    /// 403 with this `detail`.
    pub fn denied(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::unauthorized(403, "permission_denied", detail)
    }

    /// 403: the key lacks `scope`.
    pub fn missing_scope(scope: &str) -> Self {
        Self::denied(format!("API key missing required scope '{scope}'"))
    }

    /// 404: the object does not exist, or the caller may not see it.
    pub fn not_found() -> Self {
        Self::not_found_as("Not found.")
    }

    /// 404 with this `detail`, for example `Organization not found.`
    pub fn not_found_as(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::refused(404, "not_found", detail)
    }

    /// 405: the path exists, but does not support `method`.
    pub fn method_not_allowed(method: &str) -> Self {
        Self::refused(405, "method_not_allowed", format!("Method \"{method}\" not allowed."))
    }

    /// 408: the client took too long to send its body.
    pub fn body_timeout() -> Self {
        let detail = "The request body did not arrive in time.";
        Self::refused(408, "request_timeout", detail)
    }

    /// 412: the record's version is none of those that `If-Match` names.
    pub fn precondition_failed() -> Self {
        let detail = "The object has changed: its version is not one that If-Match names.";
        Self::refused(412, "precondition_failed", detail)
    }

    /// 413: the body is larger than `limit` bytes.
    pub fn payload_too_large(limit: usize) -> Self {
        let detail = format!("The request body is larger than {limit} bytes.");
        Self::refused(413, "payload_too_large", detail)
    }

    /// 413: the parsed body would take more than `share` bytes of memory.
    pub fn body_needs_too_much_memory(share: usize) -> Self {
        let text = "The request body has too many values: parsed, it takes more than";
        Self::refused(413, "payload_too_large", format!("{text} {share} bytes."))
    }

    /// 415: the `Content-Type` is not JSON.
    pub fn unsupported_media_type(media_type: &str) -> Self {
        let detail = format!("Unsupported media type \"{media_type}\" in request.");
        Self::refused(415, "unsupported_media_type", detail)
    }

    /// 421: the request names a host that is not one of this service.
    pub fn misdirected() -> Self {
        let detail = "The console is not served under this host name (--public-url).";
        Self::refused(421, "misdirected_request", detail)
    }

    /// 422: the idempotency key was used before, with another body.
    pub fn idempotency_key_reused() -> Self {
        let detail = "This Idempotency-Key was used for a request with another body.";
        Self::refused(422, "idempotency_key_reused", detail)
    }

    /// 429: the caller used up a quota of `limit` requests. `wait` is the `Retry-After` in seconds.
    pub fn throttled(limit: u32, wait: u64) -> Self {
        let unit = if wait == 1 { "second" } else { "seconds" };
        let detail = format!("Request was throttled. Expected available in {wait} {unit}.");
        let mut error = Self::new(429, ErrorType::ThrottledError, "throttled", detail);
        error.0.retry_after = Some(u32::try_from(wait).unwrap_or(u32::MAX));
        error.0.rate_limit = Some(limit);
        error
    }

    /// 500: a bug or a damaged data file. `cause` goes to the log, never to the client.
    pub fn internal(cause: impl fmt::Display) -> Self {
        let error = Self::new(500, ErrorType::ServerError, "error", "A server error occurred.");
        error.caused_by(&cause)
    }

    fn caused_by(mut self, cause: &dyn fmt::Display) -> Self {
        self.0.cause = Some(cause.to_string().into());
        self
    }

    /// 503: the service is temporarily unavailable. `retry_after` is in seconds; `cause` goes to the log.
    pub fn unavailable(retry_after: u32, cause: impl fmt::Display) -> Self {
        let detail = "The service is temporarily unavailable. Try again shortly.";
        let mut error = Self::new(503, ErrorType::ServerError, "unavailable", detail);
        error.0.retry_after = Some(retry_after);
        error.caused_by(&cause)
    }

    /// 503: it is not known whether the change was made. `retry_after` is in seconds; `cause` goes to the log.
    pub fn outcome_unknown(retry_after: u32, cause: impl fmt::Display) -> Self {
        let mut error = Self::unavailable(retry_after, cause);
        error.0.detail =
            "The service is temporarily unavailable. The change may have been made.".into();
        error
    }

    /// 503: the caller's share of a resource, or the whole resource, is in use. `retry_after` is in seconds.
    ///
    /// Unlike [`unavailable`](Self::unavailable) this is not a fault of the service, so the log does not report each
    /// one.
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

    /// The name of the invalid field, if the error is about one field.
    pub fn attr(&self) -> Option<&str> {
        self.0.attr.as_deref()
    }

    /// The `Retry-After` header, in seconds.
    pub fn retry_after(&self) -> Option<u32> {
        self.0.retry_after
    }

    /// The quota that the caller used up, if the error is a 429.
    pub fn rate_limit(&self) -> Option<u32> {
        self.0.rate_limit
    }

    /// Whether [`overloaded`](Self::overloaded) created this error.
    pub fn is_overload(&self) -> bool {
        self.0.is_overload
    }

    /// The internal cause, for the log.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// The place of the fault in the value of `attr`, if that is a text with a grammar.
    pub fn position(&self) -> Option<TextPosition> {
        self.0.position
    }

    /// Sets the place of the fault in the invalid value.
    #[must_use]
    pub fn at(mut self, position: TextPosition) -> Self {
        self.0.position = Some(position);
        self
    }

    /// Prepends `prefix` to `attr`: `prefix__attr`, or `prefix` if the error has no `attr`.
    #[must_use]
    pub fn with_attr_prefix(mut self, prefix: &str) -> Self {
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
        body.serialize_field("type", &self.0.error_type)?;
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
