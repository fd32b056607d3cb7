//! Whether the session may create dashboards or insights.

use serde::Deserialize;
use serde_json::json;

use crate::console::levels::is_editor;
use crate::console::operation::{Operation, Write};
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The answer about the access rules on all objects of a kind.
#[derive(Deserialize)]
struct OnAll {
    user_access_level: String,
}

/// Returns whether the session may create dashboards in a project.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn may_create_dashboards(request: &SignedIn, project: &str) -> Result<bool> {
    may_create(request, project, ("dashboards_create", "dashboard")).await
}

/// Returns whether the session may create insights in a project.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn may_create_insights(request: &SignedIn, project: &str) -> Result<bool> {
    may_create(request, project, ("insights_create", "insight")).await
}

/// Asks for the level on all objects of the kind. A session that may not read access rules asks by a dry run.
async fn may_create(
    request: &SignedIn,
    project: &str,
    (create, kind): (&'static str, &str),
) -> Result<bool> {
    if !request.api.may(&Operation::new(create, [project])).await? {
        return Ok(false);
    }
    let path = format!("/api/projects/{project}/resource_access_controls/?resource={kind}");
    if let Some(on_all) = request.api.get_if_allowed::<OnAll>(&path).await? {
        return Ok(is_editor(&on_all.user_access_level));
    }
    let refusal = request.api.dry_run(&Write::new(create, [project]).body(json!({}))).await?;
    Ok(refusal.is_none_or(|error| error.status() != 403))
}
