//! The `Idempotency-Key` header. See `docs/spec/requests.md`.

use axum::body::Body;
use axum::extract::{FromRef, Request};
use axum::http::{HeaderMap, HeaderName};

use crate::error::{Error, Result};
use crate::idempotency::IdempotencyRequest;
use crate::state::App;

use super::body::{BodyLimits, read_bytes};
use super::path::segments_without_tenant;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest idempotency key, in characters.
const MAX_KEY_LENGTH: usize = 255;

/// Whether the request has an idempotency key.
pub(super) fn has_key(request: &Request) -> bool {
    request.headers().contains_key(IDEMPOTENCY_KEY)
}

/// Attaches the idempotency key and a digest of the request. This reads the whole body. A dry run has no idempotency:
/// only its key is checked.
///
/// # Errors
/// 400 if the key is not valid, and the errors of [`read_bytes`].
pub(super) async fn attach_request(
    app: &App,
    request: Request,
    is_dry_run: bool,
) -> Result<Request> {
    let key = read_key(request.headers())?.to_owned();
    if is_dry_run {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let bytes = read_bytes(whole, BodyLimits::from_ref(app)).await?;
    let once = IdempotencyRequest::new(segments_without_tenant(&parts), &key, &bytes);
    let mut request = Request::from_parts(parts, Body::from(bytes));
    request.extensions_mut().insert(once);
    Ok(request)
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
