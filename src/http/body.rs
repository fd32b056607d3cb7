//! Reads JSON request bodies, with limits on type, size and time. See `docs/spec/requests.md`.
//!
//! The content type and the announced length are checked before the first read. A client that sends `Expect:
//! 100-continue` is therefore refused before it sends the body.

use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::input;

use super::request_memory::RequestMemory;

/// The largest body, in bytes, of a request without an API key.
pub(super) const MAX_BODY_WITHOUT_KEY: usize = 16 * 1024;

/// The largest body, in bytes, on a route that ignores its body.
const MAX_IGNORED_BODY: usize = 16 * 1024;

/// The most memory, in bytes, that is allocated for an announced length before any data arrives.
const MAX_PREALLOCATED: u64 = 64 * 1024;

/// Limits on the size of a body and on the time to receive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// The largest body, in bytes (`--max-body`, default 1 MiB). A larger body is a 413.
    pub max_bytes: usize,
    /// The time limit for receiving the whole body, from the first read. A slower body is a 408.
    pub timeout: Duration,
}

/// Extracts a JSON object. An empty body gives an empty map.
///
/// The router's state provides the limits. Fails as [`read_json`] does, and with 400 if the JSON is not an object.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonBody(pub Map<String, Value>);

impl<S> FromRequest<S> for JsonBody
where
    S: Send + Sync,
    BodyLimits: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        match read_json(request, BodyLimits::from_ref(state)).await? {
            Some(value) => input::require_object(value).map(Self),
            None => Ok(Self(Map::new())),
        }
    }
}

/// Extracts any JSON value. An empty body gives an empty object.
///
/// Fails as [`read_json`] does.
#[derive(Debug, Clone, PartialEq)]
pub struct AnyJsonBody(pub Value);

impl<S> FromRequest<S> for AnyJsonBody
where
    S: Send + Sync,
    BodyLimits: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let sent = read_json(request, BodyLimits::from_ref(state)).await?;
        Ok(Self(sent.unwrap_or_else(|| Value::Object(Map::new()))))
    }
}

/// Checks the body of a route that ignores it: empty, or a JSON object of at most 16 KiB. The body's memory is
/// released before the handler runs.
///
/// Fails as [`JsonBody`] does.
pub struct IgnoredBody;

impl<S> FromRequest<S> for IgnoredBody
where
    S: Send + Sync,
    BodyLimits: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let memory: Option<RequestMemory> = request.extensions().get().cloned();
        let BodyLimits { max_bytes, timeout } = BodyLimits::from_ref(state);
        let limits = BodyLimits { max_bytes: max_bytes.min(MAX_IGNORED_BODY), timeout };
        let sent = read_json(request, limits).await?;
        sent.map_or(Ok(Map::new()), input::require_object)?;
        memory.map_or(Ok(()), |memory| memory.count_body(0))?;
        Ok(Self)
    }
}

/// Returns the request's body as JSON, or `None` if it is empty.
///
/// # Errors
/// - as [`read_bytes`]
/// - 400 `parse_error` with the parser's message, if the body is not UTF-8 JSON or is nested deeper than 128 levels
/// - 503 if the parsed value does not fit in memory now, 413 if it never does
pub async fn read_json(request: Request, limits: BodyLimits) -> Result<Option<Value>> {
    let memory: Option<RequestMemory> = request.extensions().get().cloned();
    let bytes = read_bytes(request, limits).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if let Some(memory) = &memory {
        memory.count_body(bytes.capacity() + parsed_size(&bytes))?;
    }
    serde_json::from_slice(&bytes).map(Some).map_err(Error::parse)
}

/// Returns the raw body, which is empty or declared as JSON.
///
/// # Errors
/// - 415 if the content type is not `application/json`, or is missing while the body is not empty
/// - 413 if the body exceeds `limits.max_bytes`, or 16 KiB without an API key
/// - 408 if the body does not arrive within `limits.timeout`
/// - 503 if there is no memory for it now, 413 if there never is
/// - 400 `parse_error` if the client disconnects or breaks the transfer framing
pub async fn read_bytes(request: Request, limits: BodyLimits) -> Result<Vec<u8>> {
    let typed = require_json_type(request.headers())?;
    let memory: Option<RequestMemory> = request.extensions().get().cloned();
    let body = request.into_body();
    if !typed && body.size_hint().lower() > 0 {
        return Err(Error::unsupported_media_type(""));
    }
    let bytes = tokio::time::timeout(limits.timeout, receive(body, limits.max_bytes, memory))
        .await
        .map_err(|_| Error::body_timeout())??;
    if !typed && !bytes.is_empty() {
        return Err(Error::unsupported_media_type(""));
    }
    Ok(bytes)
}

/// Returns true if the content type is JSON, false if it is missing, and 415 otherwise.
fn require_json_type(headers: &HeaderMap) -> Result<bool> {
    match headers.get(CONTENT_TYPE) {
        Some(value) if is_json(value) => Ok(true),
        Some(value) if !value.is_empty() => {
            Err(Error::unsupported_media_type(&String::from_utf8_lossy(value.as_bytes())))
        }
        _ => Ok(false),
    }
}

/// Ignores the parameters: a body is read as UTF-8 regardless of its `charset`.
fn is_json(value: &HeaderValue) -> bool {
    let name = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

pub(super) async fn receive(
    mut body: axum::body::Body,
    max_bytes: usize,
    memory: Option<RequestMemory>,
) -> Result<Vec<u8>> {
    let max_bytes = memory.as_ref().map_or(max_bytes, |memory| memory.max_body().min(max_bytes));
    let announced = body.size_hint().lower();
    if usize::try_from(announced).map_or(true, |announced| announced > max_bytes) {
        return Err(Error::payload_too_large(max_bytes));
    }
    let mut bytes =
        Vec::with_capacity(usize::try_from(announced.min(MAX_PREALLOCATED)).unwrap_or_default());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::parse("the body could not be read completely"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > max_bytes - bytes.len() {
            return Err(Error::payload_too_large(max_bytes));
        }
        bytes.extend_from_slice(&data);
        if let Some(memory) = &memory {
            memory.count_body(bytes.capacity())?;
        }
    }
    Ok(bytes)
}

/// Returns an upper bound, in bytes, for the memory of a parsed JSON text. Dense JSON takes many times its own size:
/// `{"":0},` becomes a map with room for four members.
fn parsed_size(text: &[u8]) -> usize {
    /// The nesting limit of `serde_json`.
    const DEEPEST: usize = 128;
    const VALUE: usize = size_of::<Value>();
    /// A map member: hash, smallest allocation for a name, value and index slot.
    const MEMBER: usize = size_of::<(usize, String, Value)>() + 2 * size_of::<usize>() + 8;
    let (mut size, mut depth, mut in_string, mut is_escaped) = (text.len(), 0_usize, false, false);
    for byte in text {
        // The parser fails at this depth.
        if depth > DEEPEST {
            break;
        }
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            // A container allocates room for four elements at once and doubles it as it grows.
            b'[' | b'{' => {
                size += 4 * if *byte == b'[' { VALUE } else { MEMBER };
                depth += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => size += 2 * MEMBER,
            _ => {}
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io;

    use axum::http::Method;
    use bytes::Bytes;
    use futures_util::{StreamExt, stream};

    use super::*;

    const LIMITS: BodyLimits = BodyLimits { max_bytes: 64, timeout: Duration::from_millis(50) };

    impl FromRef<()> for BodyLimits {
        fn from_ref((): &()) -> Self {
            LIMITS
        }
    }

    fn request(content_type: Option<&str>, body: impl Into<axum::body::Body>) -> Request {
        let mut request = Request::new(body.into());
        *request.method_mut() = Method::POST;
        if let Some(content_type) = content_type {
            request.headers_mut().insert(CONTENT_TYPE, content_type.parse().unwrap());
        }
        request
    }

    async fn extract(
        content_type: Option<&str>,
        body: impl Into<axum::body::Body>,
    ) -> Result<JsonBody> {
        JsonBody::from_request(request(content_type, body), &()).await
    }

    async fn refusal(
        content_type: Option<&str>,
        body: impl Into<axum::body::Body>,
    ) -> (u16, &'static str, String) {
        let error = extract(content_type, body).await.unwrap_err();
        (error.status(), error.code(), error.detail().to_owned())
    }

    /// A body without an announced length.
    fn streamed(parts: &'static [&'static str]) -> axum::body::Body {
        axum::body::Body::from_stream(
            stream::iter(parts)
                .map(|part| Ok::<_, Infallible>(Bytes::from_static(part.as_bytes()))),
        )
    }

    #[tokio::test]
    async fn json_content_type_is_accepted_with_any_charset_and_case() {
        for name in
            ["application/json", "Application/JSON ; charset=UTF-8", "application/json;charset=x"]
        {
            let JsonBody(map) = extract(Some(name), r#"{"b":1,"a":2}"#).await.unwrap();
            assert_eq!(map.keys().collect::<Vec<_>>(), ["b", "a"], "{name}");
        }
    }

    #[tokio::test]
    async fn empty_request_body_is_read_as_an_empty_object() {
        for name in [None, Some(""), Some("application/json")] {
            assert!(extract(name, "").await.unwrap().0.is_empty());
            assert!(extract(name, streamed(&[])).await.unwrap().0.is_empty());
        }
        assert_eq!(read_json(request(None, ""), LIMITS).await.unwrap(), None);
    }

    #[tokio::test]
    async fn other_content_types_are_rejected_with_415() {
        for name in ["text/plain", "application/ld+json", "application/x-www-form-urlencoded"] {
            let expected = format!("Unsupported media type \"{name}\" in request.");
            let refused = (415, "unsupported_media_type", expected);
            assert_eq!(refusal(Some(name), "{}").await, refused);
            assert_eq!(refusal(Some(name), "").await, refused);
        }
    }

    #[tokio::test]
    async fn request_body_without_content_type_is_rejected_with_415() {
        let text = "Unsupported media type \"\" in request.".to_owned();
        assert_eq!(refusal(None, "{}").await, (415, "unsupported_media_type", text.clone()));
        assert_eq!(refusal(None, streamed(&["{}"])).await, (415, "unsupported_media_type", text));
    }

    #[tokio::test]
    async fn too_large_request_body_is_rejected_with_or_without_content_length() {
        let exact = format!("{{\"a\":\"{}\"}}", "x".repeat(56));
        assert_eq!(exact.len(), 64);
        assert!(extract(Some("application/json"), exact.clone()).await.is_ok());
        let refused =
            (413, "payload_too_large", "The request body is larger than 64 bytes.".to_owned());
        assert_eq!(refusal(Some("application/json"), exact + " ").await, refused);
        let parts =
            &["{\"a\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}"];
        assert_eq!(refusal(Some("application/json"), streamed(parts)).await, refused);
    }

    #[tokio::test]
    async fn endless_request_body_times_out_with_408() {
        let endless = axum::body::Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let (status, code, _) = refusal(Some("application/json"), endless).await;
        assert_eq!((status, code), (408, "request_timeout"));
    }

    #[tokio::test]
    async fn interrupted_request_body_is_a_parse_error() {
        let parts = [Ok(Bytes::from_static(b"{\"a\":")), Err(io::Error::other("reset"))];
        let cut = axum::body::Body::from_stream(stream::iter(parts));
        let (status, code, detail) = refusal(Some("application/json"), cut).await;
        assert_eq!((status, code), (400, "parse_error"));
        assert_eq!(detail, "JSON parse error - the body could not be read completely");
    }

    #[tokio::test]
    async fn invalid_json_is_a_parse_error_with_the_parser_message() {
        for (body, text) in [
            (&b"{\"a\""[..], "EOF while parsing an object at line 1 column 4"),
            (b"{\"a\":\"\xff\"}", "invalid unicode code point at line 1 column 7"),
            (b"  ", "EOF while parsing a value at line 1 column 2"),
            (b"{} {}", "trailing characters at line 1 column 4"),
            (b"NaN", "expected value at line 1 column 1"),
        ] {
            let expected = (400, "parse_error", format!("JSON parse error - {text}"));
            assert_eq!(refusal(Some("application/json"), body).await, expected);
        }
    }

    #[tokio::test]
    async fn too_deeply_nested_json_is_a_parse_error() {
        let limits = BodyLimits { max_bytes: 1 << 20, ..LIMITS };
        let deep = request(Some("application/json"), "[".repeat(1 << 20));
        let error = read_json(deep, limits).await.unwrap_err();
        assert_eq!((error.status(), error.code()), (400, "parse_error"));
        assert!(error.detail().contains("recursion limit"), "{}", error.detail());
    }

    #[tokio::test]
    async fn request_body_that_is_not_an_object_is_rejected_with_its_type() {
        for (body, name) in
            [("[]", "list"), ("\"s\"", "str"), ("1", "int"), ("1.5", "float"), ("true", "bool")]
        {
            let text = format!("Invalid data. Expected a dictionary, but got {name}.");
            assert_eq!(refusal(Some("application/json"), body).await, (400, "invalid_input", text));
        }
        let refused = refusal(Some("application/json"), "null").await;
        assert_eq!(refused, (400, "null", "No data provided".to_owned()));
    }
}
