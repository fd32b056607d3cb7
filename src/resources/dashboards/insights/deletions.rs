//! Deleted insights. A deleted insight has an [`InsightDeletion`] until it is restored.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{InsightId, OrganizationId, ProjectId, UserId};
use crate::store::{Index, Key, Reference, Table, WriteTx, impl_record};
use crate::time::Timestamp;

use super::{Insight, Meta};

/// Records who deleted an insight, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InsightDeletion {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the insight.
    pub project: ProjectId,
    /// The deleted insight.
    pub insight: InsightId,
    /// The user who deleted it.
    pub removed_by: UserId,
    /// When it was deleted.
    pub removed_at: Timestamp,
}

/// Deleted insights of a project, ordered by the time of deletion.
pub const BY_MOMENT: Index<InsightDeletion, (ProjectId, Timestamp)> =
    Index::many(Table::InsightRemovalsByMoment, |removal| {
        Some((removal.project, removal.removed_at))
    });

impl_record!(InsightDeletion {
    table: InsightRemovals,
    key: |deletion| -> (ProjectId, InsightId) { (deletion.project, deletion.insight) },
    indexes: [&BY_MOMENT],
    counts: [|removal| Some(removal.project.encoded())],
    owner: |deletion, _| Ok(Some(deletion.organization.owner())),
    references: |deletion| [Reference::to::<Insight>(&(deletion.project, deletion.insight))],
});

/// Records the deletion of an insight.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn record(
    tx: &mut WriteTx<'_>,
    insight: &Meta,
    removed_by: UserId,
    removed_at: Timestamp,
) -> Result<()> {
    let Meta { organization, project, id: insight, .. } = *insight;
    tx.put(&InsightDeletion { organization, project, insight, removed_by, removed_at })
}

/// Removes the record of the deletion of an insight, if there is one.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn forget(tx: &mut WriteTx<'_>, key: (ProjectId, InsightId)) -> Result<()> {
    tx.remove::<InsightDeletion>(&key).map(drop)
}
