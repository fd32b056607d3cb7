//! The role that a path names.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;

use crate::error::{Error, Result};
use crate::http::path::path_parameter;
use crate::http::routes::PathParameter;
use crate::ids::RoleId;
use crate::input::Schema;

/// The path's `{role_id}`, or a 404 if it does not parse. The handler returns the 404, as for
/// [`PathId`](crate::http::path::PathId).
pub struct PathRoleId(pub Result<RoleId>);

impl PathParameter for PathRoleId {
    const NAME: &'static str = "role_id";
    const DESCRIPTION: &'static str = "The id of the role.";

    fn schema() -> RefOr<Schema> {
        RoleId::schema()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathRoleId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let id = path_parameter(parts, Self::NAME).and_then(|text| text.parse().ok());
        Ok(Self(id.ok_or_else(Error::not_found)))
    }
}
