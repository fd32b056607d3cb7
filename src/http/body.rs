//! Reads JSON request bodies, with limits on type, size and time. See `docs/spec/requests.md`.
//!
//! The content type and the announced length are checked before the first read. A client that sends `Expect:
//! 100-continue` is therefore refused before it sends the body.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::base::json;
use crate::fair::memory_budget::{MIN_COUNTED_SIZE, RequestMemory};
use crate::input;

use super::extract::{Extract, ReceivedRequest};

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

impl BodyLimits {
    /// Returns the limits of a service.
    pub(super) fn of(app: &App) -> Self {
        Self { max_bytes: app.config().max_body, timeout: app.config().body_timeout }
    }
}

/// Extracts a JSON object. An empty body gives an empty map.
///
/// Fails as [`read_json`] does, and with 400 if the JSON is not an object.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonBody(pub Map<String, Value>);

impl Extract for JsonBody {
    const MAX_BODY: Option<usize> = Some(usize::MAX);

    fn extract(request: &mut ReceivedRequest) -> Result<Self> {
        input::require_object(request.body.take()).map(Self)
    }
}

/// Extracts any JSON value. An empty body gives an empty object.
///
/// Fails as [`read_json`] does.
#[derive(Debug, Clone, PartialEq)]
pub struct AnyJsonBody(pub Value);

impl Extract for AnyJsonBody {
    const MAX_BODY: Option<usize> = Some(usize::MAX);

    fn extract(request: &mut ReceivedRequest) -> Result<Self> {
        Ok(Self(request.body.take()))
    }
}

/// Checks the body of a route that ignores it: empty, or a JSON object of at most 16 KiB. The body's memory is
/// released before the handler runs.
///
/// Fails as [`JsonBody`] does.
pub struct IgnoredBody;

impl Extract for IgnoredBody {
    const MAX_BODY: Option<usize> = Some(MAX_IGNORED_BODY);

    fn extract(request: &mut ReceivedRequest) -> Result<Self> {
        input::require_object(request.body.take())?;
        if let Some(memory) = request.parts.extensions.get::<RequestMemory>() {
            memory.count_body(0)?;
        }
        Ok(Self)
    }
}

/// Returns the request's body as JSON, or `None` if it is empty.
///
/// # Errors
/// - as [`read_bytes`]
/// - 400 `parse_error` with the parser's message, if the body is not UTF-8 JSON or is nested deeper than 128 levels
/// - 503 if the parsed value does not fit in memory now, 413 if it never does
pub fn read_json(
    parts: &Parts,
    body: Body,
    limits: BodyLimits,
) -> impl Future<Output = Result<Option<Value>>> + Send + use<> {
    let memory: Option<RequestMemory> = parts.extensions.get().cloned();
    let bytes = read_bytes(parts, body, limits);
    async move {
        let bytes = bytes.await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if let Some(memory) = &memory
            && bytes.capacity() + largest_parsed_size(&bytes) > MIN_COUNTED_SIZE
        {
            memory.count_body(bytes.capacity() + parsed_size(&bytes))?;
        }
        json::parse(&bytes).map(Some).map_err(Error::parse)
    }
}

/// Returns the raw body, which is empty or declared as JSON.
///
/// # Errors
/// - 415 if the content type is not `application/json`, or is missing while the body is not empty
/// - 413 if the body exceeds `limits.max_bytes`, or 16 KiB without an API key
/// - 408 if the body does not arrive within `limits.timeout`
/// - 503 if there is no memory for it now, 413 if there never is
/// - 400 `parse_error` if the client disconnects or breaks the transfer framing
pub fn read_bytes(
    parts: &Parts,
    body: Body,
    limits: BodyLimits,
) -> impl Future<Output = Result<Vec<u8>>> + Send + use<> {
    // The future holds what it needs of the head, which is much smaller than the head.
    let typed = require_json_type(&parts.headers);
    let memory: Option<RequestMemory> = parts.extensions.get().cloned();
    async move {
        let typed = typed?;
        if !typed && body.size_hint().lower() > 0 {
            return Err(Error::unsupported_media_type(""));
        }
        let mut received = pin!(receive(body, limits.max_bytes, memory));
        let bytes = match poll_twice(received.as_mut()).await {
            Some(bytes) => bytes?,
            None => {
                timeout(limits.timeout, received).await.map_err(|_| Error::body_timeout())??
            }
        };
        if !typed && !bytes.is_empty() {
            return Err(Error::unsupported_media_type(""));
        }
        Ok(bytes)
    }
}

/// Polls `future` now, and again when the task runs next. A body that came with its head is complete by then, and needs no
/// timer.
pub(super) async fn poll_twice<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut is_second = false;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if is_second => Poll::Ready(None),
        Poll::Pending => {
            is_second = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
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
    mut body: Body,
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

/// The memory of a map member: hash, smallest allocation for a name, value and index slot.
const MEMBER: usize = size_of::<(usize, String, Value)>() + 2 * size_of::<usize>() + 8;

/// Returns a bound that is at least [`parsed_size`]. It does not look for strings, so it takes a fraction of the time.
fn largest_parsed_size(text: &[u8]) -> usize {
    let parts = text.iter().filter(|byte| matches!(byte, b'[' | b'{' | b','));
    text.len() + 4 * MEMBER * parts.count()
}

/// Returns an upper bound, in bytes, for the memory of a parsed JSON text. Dense JSON takes many times its own size:
/// `{"":0},` becomes a map with room for four members.
fn parsed_size(text: &[u8]) -> usize {
    /// The nesting limit of `serde_json`.
    const DEEPEST: usize = 128;
    const VALUE: usize = size_of::<Value>();
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
mod tests;
