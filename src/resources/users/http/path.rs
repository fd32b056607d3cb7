//! The user that a path names.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::error::{Error, Result};
use crate::http::path::path_parameter;
use crate::ids::UserUuid;

/// The path's user: a UUID, or `None` for `@me`, the caller. A value that does not parse is a 404, as in
/// [`PathId`](crate::http::path::PathId).
pub struct PathUser(pub Result<Option<UserUuid>>);

impl<S: Send + Sync> FromRequestParts<S> for PathUser {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = path_parameter(parts, "user__uuid").unwrap_or_default();
        Ok(Self(match &*text {
            "@me" => Ok(None),
            uuid => uuid.parse().map(Some).map_err(|_| Error::not_found()),
        }))
    }
}
