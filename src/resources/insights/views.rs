//! When members last viewed insights. A client records views; reading an insight does not. See `docs/spec/insights.md`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{InsightId, OrganizationId, ProjectId, UserId};
use crate::input;
use crate::input::{FieldType, Identifier, ListOf, Parsed, Required, Schema};
use crate::resources::access_controls::caller_levels::CallerLevels;
use crate::resources::dashboards::insights::Insight;
use crate::resources::members::Membership;
use crate::store::{Index, Reference, Table, Tx, WriteTx, impl_record};
use crate::time::Timestamp;

/// The maximum number of insights in a request.
const MAX_VIEWED: usize = 2_500;

/// When a member last viewed an insight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastView {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the insight.
    pub project: ProjectId,
    /// The member.
    pub user: UserId,
    /// The insight.
    pub insight: InsightId,
    /// When the member last viewed the insight.
    pub viewed_at: Timestamp,
}

/// Views by member.
pub const BY_MEMBER: Index<LastView, (OrganizationId, UserId)> =
    Index::many(Table::InsightViewsByMember, |view| Some((view.organization, view.user)));

impl_record!(LastView {
    table: InsightViews,
    key: |view| -> (ProjectId, UserId, InsightId) { (view.project, view.user, view.insight) },
    indexes: [&BY_MEMBER],
    reuses_keys: true,
    owner: |view, _| Ok(Some(view.organization.owner())),
    references: |view| [
        Reference::to::<Insight>(&(view.project, view.insight)),
        Reference::to::<Membership>(&(view.organization, view.user)),
    ],
});

/// `insight_ids`: the numbers of 1 to 2,500 insights.
#[derive(Debug, Clone, Copy)]
pub struct ViewedIds;

impl FieldType for ViewedIds {
    type Value = Vec<u64>;

    fn read(value: &Value) -> Result<Self::Value> {
        let ids = ListOf::<Identifier, MAX_VIEWED>::read(value)?;
        if ids.is_empty() {
            return Err(Error::invalid("empty", "This list may not be empty."));
        }
        Ok(ids)
    }

    fn schema() -> Schema {
        ListOf::<Identifier, MAX_VIEWED>::schema()
    }
}

input! {
    /// The insights that the caller views.
    pub struct NewViews {
        /// The numbers of 1 to 2,500 insights. Those that do not exist or that the caller may not view are ignored.
        insight_ids: Required<ViewedIds>,
    }
}

/// The response to recorded views, which is empty.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedViews {}

/// Records that the caller views insights now. Ignores insights that are deleted or that the caller may not view.
///
/// # Errors
/// 400 for an invalid field.
pub fn record(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    sent: &Parsed<NewViews>,
    now: Timestamp,
) -> Result<()> {
    let levels = CallerLevels::<Insight>::of(tx, tenant)?;
    let (project, user) = (tenant.project.id, tenant.member.user);
    for id in sent.get()?.insight_ids.iter().copied().map(InsightId) {
        let insight = tx.meta::<Insight>(&(project, id))?;
        if insight.is_some_and(|insight| !insight.deleted && levels.level(&insight).can_view()) {
            tx.put(&LastView {
                organization: tenant.project.organization,
                project,
                user,
                insight: id,
                viewed_at: now,
            })?;
        }
    }
    Ok(())
}

/// Returns when the caller last viewed an insight.
pub(super) fn last_viewed(
    tx: &impl Tx,
    tenant: &InProject,
    insight: InsightId,
) -> Result<Option<Timestamp>> {
    let view = tx.meta::<LastView>(&(tenant.project.id, tenant.member.user, insight))?;
    Ok(view.map(|view| view.viewed_at))
}
