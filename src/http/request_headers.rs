//! The headers `Dry-Run`, `Idempotency-Key`, `If-Match` and `If-None-Match`. See `docs/spec/requests.md`.

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::base::json::null_members;
use crate::exchange::dry_run::DryRun;
use crate::exchange::etag::{self, IfMatch};
use crate::exchange::idempotency::{IdempotencyRequest, SECRET_MEMBERS};
use crate::fair::low_priority::{Priority, run_low_priority};

use super::body::{BodyLimits, read_bytes};
use super::delivery::{collect_body, is_large};
use super::path::segments_without_tenant;

/// Returns the version that the request's `If-Match` requires.
pub(super) fn if_match(headers: &HeaderMap) -> IfMatch {
    joined_values(headers, &IF_MATCH).map_or_else(IfMatch::default, |text| IfMatch::parse(&text))
}

/// Returns the `If-None-Match` header of a GET or HEAD request.
pub(super) fn if_none_match(method: &Method, headers: &HeaderMap) -> Option<String> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if reads { joined_values(headers, &IF_NONE_MATCH) } else { None }
}

/// Turns the response into a 304 without a body if `known` contains its entity tag.
pub(super) fn not_modified_if_known(mut response: Response, known: &str) -> Response {
    let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
    if response.status() != StatusCode::OK || !tag.is_some_and(|tag| etag::matches_any(known, tag))
    {
        return response;
    }
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().remove(CONTENT_TYPE);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|_| axum::body::Body::empty())
}

/// Joins the values of a list header with commas. A value that is not text counts as empty.
fn joined_values(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    Some(values.map(|value| value.to_str().unwrap_or_default()).collect::<Vec<_>>().join(","))
}

/// Requests a dry run, and marks the response to one.
const DRY_RUN: HeaderName = HeaderName::from_static("dry-run");

/// Attaches a dry run to the request and returns it, if the request asks for one. A method that changes nothing ignores
/// the header.
///
/// # Errors
/// 400 if the value of the header is neither `true` nor `false`, or if there are several values.
pub(super) fn attach_dry_run(request: &mut Request) -> Result<Option<DryRun>> {
    if request.method().is_safe() {
        return Ok(None);
    }
    let mut sent = request.headers().get_all(DRY_RUN).iter();
    let is_dry = match (sent.next(), sent.next()) {
        (None, _) => false,
        (Some(value), None) if value.as_bytes().eq_ignore_ascii_case(b"true") => true,
        (Some(value), None) if value.as_bytes().eq_ignore_ascii_case(b"false") => false,
        _ => return Err(Error::field("Dry-Run", "invalid_input", "Send `true` or `false`.")),
    };
    let dry_run = is_dry.then(DryRun::default);
    dry_run.clone().map(|dry_run| request.extensions_mut().insert(dry_run));
    Ok(dry_run)
}

/// Marks the response to a dry run. A success becomes a 200 that describes what the request would have done.
pub(super) async fn describe_dry_run(dry_run: DryRun, mut response: Response) -> Response {
    if response.status().is_success() {
        let described = if is_large(&response) {
            run_low_priority(Priority::Answer, move || wrap(&dry_run, response)).await
        } else {
            Ok(wrap(&dry_run, response))
        };
        response = described.flatten().unwrap_or_else(IntoResponse::into_response);
    }
    response.headers_mut().insert(DRY_RUN, HeaderValue::from_static("true"));
    response
}

fn wrap(dry_run: &DryRun, response: Response) -> Result<Response> {
    let (mut parts, body) = response.into_parts();
    let (status, activity) = (parts.status.as_u16(), dry_run.take_activity());
    let mut text = format!(r#"{{"dry_run":true,"status":{status},"response":"#).into_bytes();
    if body.size_hint().exact() == Some(0) {
        text.extend_from_slice(b"null");
    } else {
        let shown = collect_body(body)?;
        text.reserve_exact(shown.len() + activity.len() + 16);
        null_members(&shown, &SECRET_MEMBERS, &mut text);
    }
    text.extend_from_slice(br#","activity":"#);
    text.extend_from_slice(&activity);
    text.push(b'}');
    parts.status = StatusCode::OK;
    parts.headers.remove(ETAG);
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(Response::from_parts(parts, Body::from(text)))
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest idempotency key, in characters.
const MAX_KEY_LENGTH: usize = 255;

/// Whether the request has an idempotency key.
pub(super) fn has_idempotency_key(request: &Request) -> bool {
    request.headers().contains_key(IDEMPOTENCY_KEY)
}

/// Attaches the idempotency key and a digest of the request. This reads the whole body. A dry run has no idempotency:
/// only its key is checked. The future is boxed, because every request would have room for it.
///
/// # Errors
/// 400 if the key is not valid, and the errors of [`read_bytes`].
pub(super) fn attach_idempotency_key(
    app: &App,
    request: Request,
    is_dry_run: bool,
) -> BoxFuture<'_, Result<Request>> {
    let attached = async move {
        let key = read_key(request.headers())?.to_owned();
        if is_dry_run {
            return Ok(request);
        }
        let (parts, body) = request.into_parts();
        let bytes = read_bytes(&parts, body, BodyLimits::of(app)).await?;
        let once = IdempotencyRequest::new(segments_without_tenant(&parts), &key, &bytes);
        let mut request = Request::from_parts(parts, Body::from(bytes));
        request.extensions_mut().insert(once);
        Ok(request)
    };
    attached.boxed()
}

fn read_key(headers: &HeaderMap) -> Result<&str> {
    let mut sent = headers.get_all(IDEMPOTENCY_KEY).iter();
    let key = sent.next().and_then(|key| key.to_str().ok()).unwrap_or_default();
    if sent.next().is_none() && (1..=MAX_KEY_LENGTH).contains(&key.len()) {
        return Ok(key);
    }
    let detail = format!("Send one key of 1 to {MAX_KEY_LENGTH} ASCII characters.");
    Err(Error::field("Idempotency-Key", "invalid_input", detail))
}
