//! The line that says what a form has done, on the page that follows it.

use crate::console::visit::Visit;

/// The parameter of the query that names the notice.
const DONE: &str = "done";

/// The notices, each with its name in the query. A link can only choose among these texts.
const NOTICES: [(&str, &str); 20] = [
    ("added", "Added."),
    ("accepted", "Accepted."),
    ("created", "Created."),
    ("deleted", "Deleted."),
    ("disabled", "Disabled."),
    ("duplicated", "Duplicated."),
    ("enabled", "Enabled."),
    ("invited", "Invited."),
    ("left", "You have left the organization."),
    ("moved", "Moved."),
    ("paused", "Paused."),
    ("removed", "Removed."),
    ("restored", "Restored."),
    ("reverted", "Reverted."),
    ("revoked", "Revoked."),
    ("rotated", "Rotated."),
    ("saved", "Saved."),
    ("sent", "Sent."),
    ("unpaused", "Unpaused."),
    ("verified", "Verified."),
];

/// Returns the notice that the page's query names.
pub(super) fn of(visit: &Visit) -> Option<&'static str> {
    let name = visit.query(DONE);
    NOTICES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Returns the path of a page that shows a notice.
pub(in crate::console) fn with_notice(path: &str, name: &'static str) -> String {
    debug_assert!(NOTICES.iter().any(|(known, _)| *known == name), "an unknown notice: {name}");
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}{DONE}={name}")
}
