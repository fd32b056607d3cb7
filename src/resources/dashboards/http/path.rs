//! The dashboard that a path names.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;

use crate::error::{Error, Result};
use crate::http::path::path_parameter;
use crate::http::routes::PathParameter;
use crate::ids::DashboardId;
use crate::input::Schema;

/// The path's `{dashboard_id}` on routes below a dashboard, or a 404 with the message of those routes. The handler
/// returns the 404, as for [`PathId`](crate::http::path::PathId).
pub struct PathDashboardId(pub Result<DashboardId>);

impl PathParameter for PathDashboardId {
    const NAME: &'static str = "dashboard_id";
    const DESCRIPTION: &'static str = "The id of the dashboard.";

    fn schema() -> RefOr<Schema> {
        DashboardId::schema()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathDashboardId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let id = path_parameter(parts, Self::NAME).and_then(|text| text.parse().ok());
        Ok(Self(id.ok_or_else(|| Error::not_found_as("Dashboard not found."))))
    }
}
