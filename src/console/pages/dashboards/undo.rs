//! The form that restores deleted dashboards.

use crate::console::layout::Undo;
use crate::console::visit::SignedIn;

/// Returns the form that restores the dashboards that were just deleted, which the query names.
pub(super) fn of_query(request: &SignedIn, base: &str) -> Option<Undo> {
    let ids = request.visit.query("undo").split(',').filter_map(|id| id.parse::<u64>().ok());
    restoring(ids.map(|id| id.to_string()), base)
}

/// Returns the form that restores these dashboards.
pub(super) fn restoring(ids: impl IntoIterator<Item = String>, base: &str) -> Option<Undo> {
    let mut fields: Vec<_> = ids.into_iter().map(|id| ("id", id)).collect();
    if fields.is_empty() {
        return None;
    }
    fields.push(("action", "restore".to_owned()));
    Some(Undo { action: base.to_owned(), fields })
}
