//! Ids in paths. One that is no id at all is one of nothing: 404, never 400 (decisions §1).

use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::error::{Error, Result};

/// The path's `{id}`.
pub struct Id<T>(pub T);

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for Id<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let text = parameter(parts, state, "id").await?;
        text.parse().map(Self).map_err(|_| Error::not_found())
    }
}

/// A user as a path names them: by UUID, or the caller by `@me`.
pub struct UserRef(pub Option<crate::ids::UserUuid>);

impl<S: Send + Sync> FromRequestParts<S> for UserRef {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        match parameter(parts, state, "user__uuid").await?.as_str() {
            "@me" => Ok(Self(None)),
            uuid => uuid.parse().map(|uuid| Self(Some(uuid))).map_err(|_| Error::not_found()),
        }
    }
}

/// The path's parameter of this name, percent-decoded.
///
/// # Errors
/// 404 where it is no UTF-8.
pub async fn parameter<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Result<String> {
    find_parameter(parts, state, name).await?.ok_or_else(Error::not_found)
}

/// The path's parameter of this name, percent-decoded, if the path has one.
///
/// # Errors
/// 404 where it is no UTF-8.
pub async fn find_parameter<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<Option<String>> {
    let all =
        RawPathParams::from_request_parts(parts, state).await.map_err(|_| Error::not_found())?;
    let found = all.iter().find(|(known, _)| *known == name);
    Ok(found.map(|(_, text)| text.to_owned()))
}
