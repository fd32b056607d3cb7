//! Ids in paths. One that is no id at all is one of nothing: 404, never 400 (decisions §1).

use std::borrow::Cow;
use std::str::FromStr;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::error::{Error, Result};

/// The path's `{id}`.
pub struct Id<T>(pub T);

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for Id<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        required(parts, "id")?.parse().map(Self).map_err(|_| Error::not_found())
    }
}

/// A user as a path names them: by UUID, or the caller by `@me`.
pub struct UserRef(pub Option<crate::ids::UserUuid>);

impl<S: Send + Sync> FromRequestParts<S> for UserRef {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        match &*required(parts, "user__uuid")? {
            "@me" => Ok(Self(None)),
            uuid => uuid.parse().map(|uuid| Self(Some(uuid))).map_err(|_| Error::not_found()),
        }
    }
}

/// The path's parameter of this name, percent-decoded, if its route has one. It is found by its place in
/// the route's template, so that nothing else of the path is looked at.
pub fn parameter<'p>(parts: &'p Parts, name: &str) -> Option<Cow<'p, str>> {
    let template = parts.extensions.get::<MatchedPath>()?.as_str();
    let named =
        |part: &str| part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) == Some(name);
    let place = template.split('/').position(named)?;
    let part = parts.uri.path().split('/').nth(place)?;
    percent_decode_str(part).decode_utf8().ok()
}

fn required<'p>(parts: &'p Parts, name: &str) -> Result<Cow<'p, str>> {
    parameter(parts, name).ok_or_else(Error::not_found)
}
