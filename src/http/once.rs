//! `Idempotency-Key`: which request is to be done once (decisions §1).

use axum::body::Body;
use axum::extract::{FromRef, Request};
use axum::http::{HeaderMap, HeaderName};

use crate::error::{Error, Result};
use crate::idempotency::Sent;
use crate::state::App;

use super::body::{BodyLimits, read_bytes};
use super::path::placeless;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How many characters a key may have.
const LONGEST: usize = 255;

/// Whether a POST is to be done once: it comes with a key.
pub(super) fn is_asked(request: &Request) -> bool {
    request.headers().contains_key(KEY)
}

/// Notes beside a request that is to be done once which one it is: for that its whole body is read.
///
/// # Errors
/// 400 for a key that is none; what [`read_bytes`] refuses of the body.
pub(super) async fn note(app: &App, request: Request) -> Result<Request> {
    let key = key(request.headers())?.to_owned();
    let (parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let bytes = read_bytes(whole, BodyLimits::from_ref(app)).await?;
    let once = Sent::new(placeless(&parts), &key, &bytes);
    let mut request = Request::from_parts(parts, Body::from(bytes));
    request.extensions_mut().insert(once);
    Ok(request)
}

fn key(headers: &HeaderMap) -> Result<&str> {
    let mut sent = headers.get_all(KEY).iter();
    let key = sent.next().and_then(|key| key.to_str().ok()).unwrap_or_default();
    if sent.next().is_none() && (1..=LONGEST).contains(&key.len()) {
        return Ok(key);
    }
    let detail = format!("Send one key of 1 to {LONGEST} ASCII characters.");
    Err(Error::field("Idempotency-Key", "invalid_input", detail))
}
