//! The token that a path names.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;

use crate::http::path::path_parameter;
use crate::http::routes::PathParameter;
use crate::input::Schema;

/// The path's `{token}`, unchecked.
pub struct PathToken(pub String);

impl PathParameter for PathToken {
    const NAME: &'static str = "token";
    const DESCRIPTION: &'static str =
        "The token of the public page. With the suffix `.json` the response is JSON.";

    fn schema() -> RefOr<Schema> {
        String::schema()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathToken {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(path_parameter(parts, Self::NAME).unwrap_or_default().into_owned()))
    }
}
