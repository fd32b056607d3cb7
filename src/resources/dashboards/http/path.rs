//! The dashboard in the path of the routes below a dashboard.

use utoipa::PartialSchema;
use utoipa::openapi::RefOr;

use crate::error::{Error, Result};
use crate::http::routes::PathParameter;
use crate::ids::DashboardId;
use crate::input::Schema;

impl PathParameter for DashboardId {
    const NAME: &'static str = "dashboard_id";
    const DESCRIPTION: &'static str = "The id of the dashboard.";

    fn schema() -> RefOr<Schema> {
        <Self as PartialSchema>::schema()
    }

    /// The 404 has the message of these routes.
    fn parse(text: &str) -> Result<Self> {
        text.parse().map_err(|_| Error::not_found_as("Dashboard not found."))
    }
}
