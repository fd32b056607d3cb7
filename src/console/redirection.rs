//! Redirections to other pages.

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::error::{Error, Result};

/// Returns a redirection to another page.
///
/// # Errors
/// 500 if `location` is not a valid header.
pub(super) fn see_other(location: &str) -> Result<Response> {
    let location = HeaderValue::try_from(location).map_err(Error::internal)?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response())
}
