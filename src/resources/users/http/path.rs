//! The user that a path names.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::error::{Error, Result};
use crate::http::path::path_parameter;
use crate::http::routes::PathParameter;
use crate::ids::{UUID_PATTERN, UserUuid};
use crate::input::Schema;

/// The path's user: a UUID, or `None` for `@me`, the caller. A value that does not parse is a 404, as in
/// [`PathId`](crate::http::path::PathId).
pub struct PathUser(pub Result<Option<UserUuid>>);

impl PathParameter for PathUser {
    const NAME: &'static str = "user__uuid";
    const DESCRIPTION: &'static str = "The user's UUID, or `@me` for yourself.";

    fn schema() -> RefOr<Schema> {
        let pattern = format!("^(@me|{UUID_PATTERN})$");
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathUser {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = path_parameter(parts, Self::NAME).unwrap_or_default();
        Ok(Self(match &*text {
            "@me" => Ok(None),
            uuid => uuid.parse().map(Some).map_err(|_| Error::not_found()),
        }))
    }
}
