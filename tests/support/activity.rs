//! The activity log.

use steward::testing::resources::activity::Entry;

use super::Workspace;

/// Returns all entries, oldest first.
pub fn entries(workspace: &Workspace) -> Vec<Entry> {
    let mut entries = workspace.records::<Entry>(&());
    entries.sort_by_key(|entry| (entry.meta.created_at, entry.meta.id));
    entries
}
