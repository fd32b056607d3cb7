//! The `Dry-Run` header. See `docs/spec/requests.md`.

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::dry_run::DryRun;
use crate::error::{Error, Result};
use crate::idempotency::SECRET_MEMBERS;
use crate::json::null_members;
use crate::low_priority::{Priority, run_low_priority};

use super::delivery::{collect_body, is_large};

/// Requests a dry run, and marks the response to one.
pub(super) const DRY_RUN: HeaderName = HeaderName::from_static("dry-run");

/// Attaches a dry run to the request and returns it, if the request asks for one. A method that changes nothing ignores
/// the header.
///
/// # Errors
/// 400 if the value of the header is neither `true` nor `false`, or if there are several values.
pub(super) fn attach(request: &mut Request) -> Result<Option<DryRun>> {
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
pub(super) async fn describe(dry_run: DryRun, mut response: Response) -> Response {
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
