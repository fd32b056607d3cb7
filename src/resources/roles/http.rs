//! `/api/organizations/:organization_id/roles/`.

use crate::http::routes::Routes;

/// Adds the routes of roles.
pub fn routes(_: &mut Routes) {}
