//! The activity log.

use steward::testing::resources::activity::Entry;
use steward::testing::store::{Order, Tx, Window};

use super::Workspace;

/// Returns all entries, oldest first.
pub fn entries(workspace: &Workspace) -> Vec<Entry> {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let all = Window { offset: 0, limit: usize::MAX, order: Order::Ascending };
    let mut entries = Vec::new();
    let read = tx.scan::<Entry, _>(&(), all, |row| {
        entries.push(row.into_record()?);
        Ok(())
    });
    read.expect("entries");
    entries.sort_by_key(|entry| (entry.meta.created_at, entry.meta.id));
    entries
}
