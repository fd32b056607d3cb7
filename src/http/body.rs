//! Reading a request's JSON body: its type, its size, its time, its parse (decisions §1).
//!
//! Nothing is read before the type and the announced size are accepted, so a client that sends
//! `Expect: 100-continue` is refused before it sends a byte.

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

/// The largest body of a caller without a key, in bytes.
pub(super) const KEYLESS_MAX_BYTES: usize = 16 * 1024;

/// The largest body of a request whose body says nothing to its route, in bytes.
const IGNORED_MAX_BYTES: usize = 16 * 1024;

/// What a body's announced length may reserve before its bytes have come.
const RESERVED: u64 = 64 * 1024;

/// How much of a body is read, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// The largest body, in bytes (`--max-body`, 1 MiB unless set). A larger one is a 413.
    pub max_bytes: usize,
    /// The time in which the whole body must have arrived, counted from the first attempt to read
    /// it. A slower one is a 408.
    pub timeout: Duration,
}

/// The members of a request's JSON object; none for an empty body.
///
/// The limits come from the router's state. Refuses as [`read_json`] does, and with 400 where the
/// body is JSON but no object.
#[derive(Debug, Clone, PartialEq)]
pub struct Body(pub Map<String, Value>);

impl<S> FromRequest<S> for Body
where
    S: Send + Sync,
    BodyLimits: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        match read_json(request, BodyLimits::from_ref(state)).await? {
            Some(value) => input::object(value).map(Self),
            None => Ok(Self(Map::new())),
        }
    }
}

/// A request's body as JSON, whatever its shape; an empty object for an empty body.
///
/// Refuses as [`read_json`] does.
#[derive(Debug, Clone, PartialEq)]
pub struct AnyBody(pub Value);

impl<S> FromRequest<S> for AnyBody
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

/// A body that says nothing to its route: a JSON object of at most 16 KiB, or nothing. It is read, and takes no memory
/// while the request goes on.
///
/// Refuses as [`Body`] does.
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
        let limits = BodyLimits { max_bytes: max_bytes.min(IGNORED_MAX_BYTES), timeout };
        let sent = read_json(request, limits).await?;
        sent.map_or(Ok(Map::new()), input::object)?;
        memory.map_or(Ok(()), |memory| memory.count_body(0))?;
        Ok(Self)
    }
}

/// The request's body as JSON, whatever its shape; `None` where it is empty.
///
/// # Errors
/// As [`read_bytes`]; 413 or 503 when there is no memory for what it says; 400 `parse_error` with the parser's text
/// for what is no JSON, no UTF-8, or nested deeper than `serde_json` follows (128 levels).
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

/// The request's body as it was sent, where it claims to be JSON or is empty.
///
/// # Errors
/// - 415 for another type than `application/json`, or for a body that names none
/// - 413 for more than `limits.max_bytes`, or 16 KiB without a key: at once where the length is announced, else as soon as
///   it is passed
/// - 408 when the body has not arrived within `limits.timeout`
/// - 503 when there is no memory for it now, 413 when there never is
/// - 400 `parse_error` when the client went away, or broke the transfer's framing, before the end
pub async fn read_bytes(request: Request, limits: BodyLimits) -> Result<Vec<u8>> {
    let typed = names_json(request.headers())?;
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

/// True where the content type is JSON, false where there is none, 415 where it is another.
fn names_json(headers: &HeaderMap) -> Result<bool> {
    match headers.get(CONTENT_TYPE) {
        Some(value) if is_json(value) => Ok(true),
        Some(value) if !value.is_empty() => {
            Err(Error::unsupported_media_type(&String::from_utf8_lossy(value.as_bytes())))
        }
        _ => Ok(false),
    }
}

/// Parameters are not looked at: a body is UTF-8 whatever charset it names.
fn is_json(value: &HeaderValue) -> bool {
    let name = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

async fn receive(
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
        Vec::with_capacity(usize::try_from(announced.min(RESERVED)).unwrap_or_default());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::parse("the body could not be read to its end"))?;
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

/// What JSON text takes once it is parsed, in bytes, at most. That is many times its own size where it is dense: `{"":0},`
/// becomes a map with room for four members.
fn parsed_size(text: &[u8]) -> usize {
    /// How many levels `serde_json` follows.
    const DEEPEST: usize = 128;
    const VALUE: usize = size_of::<Value>();
    /// A member of a map: its hash, its name with the least that is allocated for one, its value and its slot.
    const MEMBER: usize = size_of::<(usize, String, Value)>() + 2 * size_of::<usize>() + 8;
    let (mut size, mut depth, mut in_string, mut is_escaped) = (text.len(), 0_usize, false, false);
    for byte in text {
        // The parser gives up here.
        if depth > DEEPEST {
            break;
        }
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            // The first four take their room at once; later ones double what there is.
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
    ) -> Result<Body> {
        Body::from_request(request(content_type, body), &()).await
    }

    async fn refusal(
        content_type: Option<&str>,
        body: impl Into<axum::body::Body>,
    ) -> (u16, &'static str, String) {
        let error = extract(content_type, body).await.unwrap_err();
        (error.status(), error.code(), error.detail().to_owned())
    }

    /// A body whose length is not announced.
    fn streamed(parts: &'static [&'static str]) -> axum::body::Body {
        axum::body::Body::from_stream(
            stream::iter(parts)
                .map(|part| Ok::<_, Infallible>(Bytes::from_static(part.as_bytes()))),
        )
    }

    #[tokio::test]
    async fn json_is_accepted_under_any_charset_and_case() {
        for name in
            ["application/json", "Application/JSON ; charset=UTF-8", "application/json;charset=x"]
        {
            let Body(map) = extract(Some(name), r#"{"b":1,"a":2}"#).await.unwrap();
            assert_eq!(map.keys().collect::<Vec<_>>(), ["b", "a"], "{name}");
        }
    }

    #[tokio::test]
    async fn an_empty_body_counts_as_an_empty_object() {
        for name in [None, Some(""), Some("application/json")] {
            assert!(extract(name, "").await.unwrap().0.is_empty());
            assert!(extract(name, streamed(&[])).await.unwrap().0.is_empty());
        }
        assert_eq!(read_json(request(None, ""), LIMITS).await.unwrap(), None);
    }

    #[tokio::test]
    async fn other_types_are_refused_by_their_name() {
        for name in ["text/plain", "application/ld+json", "application/x-www-form-urlencoded"] {
            let expected = format!("Unsupported media type \"{name}\" in request.");
            let refused = (415, "unsupported_media_type", expected);
            assert_eq!(refusal(Some(name), "{}").await, refused);
            assert_eq!(refusal(Some(name), "").await, refused);
        }
    }

    #[tokio::test]
    async fn a_body_without_a_type_is_refused() {
        let text = "Unsupported media type \"\" in request.".to_owned();
        assert_eq!(refusal(None, "{}").await, (415, "unsupported_media_type", text.clone()));
        assert_eq!(refusal(None, streamed(&["{}"])).await, (415, "unsupported_media_type", text));
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused_announced_or_not() {
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
    async fn a_body_that_never_ends_is_timed_out() {
        let endless = axum::body::Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let (status, code, _) = refusal(Some("application/json"), endless).await;
        assert_eq!((status, code), (408, "request_timeout"));
    }

    #[tokio::test]
    async fn a_client_that_goes_away_is_a_parse_error() {
        let parts = [Ok(Bytes::from_static(b"{\"a\":")), Err(io::Error::other("reset"))];
        let cut = axum::body::Body::from_stream(stream::iter(parts));
        let (status, code, detail) = refusal(Some("application/json"), cut).await;
        assert_eq!((status, code), (400, "parse_error"));
        assert_eq!(detail, "JSON parse error - the body could not be read to its end");
    }

    #[tokio::test]
    async fn what_is_no_json_is_a_parse_error_with_the_parsers_text() {
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
    async fn nesting_beyond_the_parsers_depth_is_a_parse_error() {
        let limits = BodyLimits { max_bytes: 1 << 20, ..LIMITS };
        let deep = request(Some("application/json"), "[".repeat(1 << 20));
        let error = read_json(deep, limits).await.unwrap_err();
        assert_eq!((error.status(), error.code()), (400, "parse_error"));
        assert!(error.detail().contains("recursion limit"), "{}", error.detail());
    }

    #[tokio::test]
    async fn a_body_that_is_no_object_is_refused_by_its_type() {
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
