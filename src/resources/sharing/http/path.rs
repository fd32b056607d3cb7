//! The object or the token that a path names.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;

use crate::error::Result;
use crate::http::path::path_parameter;
use crate::http::routes::PathParameter;
use crate::input::Schema;
use crate::resources::access_controls::shared::Shared;
use crate::resources::shared::loggable::Loggable;
use crate::resources::sharing::not_found;

/// What the path's `{dashboard_id}`, or the `{id}` of an insight, names; or a 404 if it does not parse. The handler
/// returns the 404 itself, because a bad body takes precedence over a missing object.
pub struct PathObject<R: Shared>(pub Result<R::Ref>);

impl<S: Send + Sync, R: Shared + Loggable> FromRequestParts<S> for PathObject<R> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = path_parameter(parts, "dashboard_id").or_else(|| path_parameter(parts, "id"));
        let named = text.and_then(|text| text.parse().ok());
        Ok(Self(named.ok_or_else(not_found::<R>)))
    }
}

/// The path's `{token}`, unchecked.
pub struct PathToken(pub String);

impl PathParameter for PathToken {
    const NAME: &'static str = "token";
    const DESCRIPTION: &'static str =
        "The token of the public page. With the suffix `.json` the response is JSON.";

    fn schema() -> RefOr<Schema> {
        String::schema()
    }

    fn parse(text: &str) -> Result<Self> {
        Ok(Self(text.to_owned()))
    }
}
