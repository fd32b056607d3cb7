//! What pages read about a dashboard before they show a form: its name, its version, and whether the session may edit.

use serde_json::Value;

use crate::console::pages::dashboard_name;
use crate::console::pages::object::ObjectPath;
use crate::console::pages::shareable::DASHBOARD;
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

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
    Ok((name, found.version, DASHBOARD.refusal(request, &object.tenant, &rights).await?))
}
