//! The rights of the session on dashboards, as the API describes them.

use serde::Deserialize;
use serde_json::Value;

use crate::console::levels::{MAY_EDIT, is_editor};
use crate::console::operation::Operation;
use crate::console::pages::dashboard_name;
use crate::console::pages::object::ObjectPath;
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

/// The levels of the session on a dashboard.
#[derive(Debug, Clone, Deserialize)]
pub(in crate::console::pages) struct Rights {
    user_access_level: String,
    effective_privilege_level: u8,
}

impl Rights {
    /// Whether access rules and the restriction let the session edit.
    pub(in crate::console::pages) fn may_edit(&self) -> bool {
        self.is_editor() && self.effective_privilege_level == MAY_EDIT
    }

    /// Whether access rules let the session edit. A restriction may still not.
    pub(in crate::console::pages) fn is_editor(&self) -> bool {
        is_editor(&self.user_access_level)
    }

    /// Returns why the session may not edit.
    pub(super) fn reason(&self) -> &'static str {
        if self.is_editor() {
            "You may view this dashboard. Only its collaborators edit it."
        } else {
            "You may view this dashboard. Access rules do not let you edit it."
        }
    }
}

/// Returns why the session cannot change a dashboard in a project, or `None` if it may.
pub(super) async fn refusal(
    request: &SignedIn,
    project: &str,
    rights: &Rights,
) -> Result<Option<String>> {
    if !may_write(request, project).await? {
        return Ok(Some("This session may not change dashboards.".to_owned()));
    }
    Ok((!rights.may_edit()).then(|| rights.reason().to_owned()))
}

/// Returns the name in the JSON of a dashboard.
pub(super) fn name_in(dashboard: &Value) -> String {
    dashboard_name(dashboard.get("name").and_then(Value::as_str)).to_owned()
}

/// Reads the name of a dashboard. One that was deleted meanwhile has only its id.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn name_of(request: &SignedIn, dashboard: &ObjectPath) -> Result<String> {
    let found: Option<Value> = request.api.get_if_allowed(&dashboard.api("")).await?;
    Ok(found.map_or_else(|| format!("Dashboard {}", dashboard.id), |found| name_in(&found)))
}

/// Reads a dashboard. Returns its name, its version, and why the session cannot change it.
///
/// # Errors
/// The error of the API.
pub(super) async fn name_version_and_refusal(
    request: &SignedIn,
    object: &ObjectPath,
) -> Result<(String, Option<String>, Option<String>)> {
    let found = request.api.get_versioned(&object.api("")).await?;
    let name = name_in(&found.body);
    let rights = serde_json::from_value(found.body).map_err(Error::internal)?;
    Ok((name, found.version, refusal(request, &object.tenant, &rights).await?))
}

/// Returns whether the API would admit the session to a change of dashboards in a project.
pub(in crate::console::pages) async fn may_write(
    request: &SignedIn,
    project: &str,
) -> Result<bool> {
    request.api.may(&Operation::new("dashboards_partial_update", [project, "0"])).await
}
