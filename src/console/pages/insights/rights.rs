//! What the session may do with an insight.

use crate::console::pages::dashboard::Rights;
use crate::console::pages::object::ObjectPath;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The operation that changes an insight.
pub(super) const UPDATE: &str = "insights_partial_update";

/// Returns why the session cannot change an insight, or `None` if it may.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn refusal(
    request: &SignedIn,
    object: &ObjectPath,
    rights: &Rights,
) -> Result<Option<&'static str>> {
    Ok(if !request.api.may(&object.operation(UPDATE)).await? {
        Some("This session may not change insights.")
    } else if rights.may_edit() {
        None
    } else if rights.is_editor() {
        Some(
            "You may view this insight. A restricted dashboard shows it, and you may not edit that.",
        )
    } else {
        Some("You may view this insight. Access rules do not let you edit it.")
    })
}
