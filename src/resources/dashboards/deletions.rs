//! Deleted dashboards and insights. A deleted object has a [`Deletion`] until it is restored.

use crate::resources::access_controls::shared::{Shared, SharedMeta};
use crate::resources::shared::prelude::*;

/// Records who deleted a dashboard or an insight, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deletion {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the object.
    pub project: ProjectId,
    /// The deleted object.
    pub object: Object,
    /// The user who deleted it.
    pub removed_by: UserId,
    /// When it was deleted.
    pub removed_at: Timestamp,
}

/// Deleted objects of a kind in a project, ordered by the time of deletion.
pub const BY_TIME: Index<Deletion, (ProjectId, Kind, Timestamp)> =
    Index::many(Table::DeletionsByTime, |deletion| {
        Some((deletion.project, deletion.object.kind(), deletion.removed_at))
    });

impl_record!(Deletion {
    table: Deletions,
    key: |deletion| -> (ProjectId, Object) { (deletion.project, deletion.object) },
    indexes: [&BY_TIME],
    // The number of deleted objects of each kind in a project.
    counts: [|deletion| Some((deletion.project, deletion.object.kind()).encoded())],
    owner: |deletion, _| Ok(Some(deletion.organization.owner())),
    references: |deletion| [deletion.object.reference(deletion.project)],
});

/// Records that a user deleted an object.
pub fn record(
    tx: &mut WriteTx<'_>,
    deleted: SharedMeta,
    removed_by: UserId,
    removed_at: Timestamp,
) -> Result<()> {
    let SharedMeta { organization, project, object, .. } = deleted;
    tx.put(&Deletion { organization, project, object, removed_by, removed_at })
}

/// Visits the deleted objects of type `R` in a project, the last deleted first.
pub fn walk<R: Shared>(
    tx: &dyn Raw,
    project: ProjectId,
    window: Window,
    mut visit: impl FnMut(&Row<'_, R>, &Deletion) -> Result<()>,
) -> Result<()> {
    let window = Window { order: Order::Descending, ..window };
    tx.walk(&BY_TIME, &(project, R::KIND), window, |deletion| {
        let key = R::key_of(project, deletion.meta.object.number());
        let found = tx.view::<R, _>(&key, |row| visit(&row, &deletion.meta))?;
        found.ok_or_else(|| Error::internal("the record of a deletion names no object"))
    })
}
