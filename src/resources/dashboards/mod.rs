//! Dashboards of a project (API document, Dashboard; facts-dashboards §2-§4).
//!
//! A dashboard is kept as two records: [`Dashboard`] is what lists show, [`Details`] the free-form rest,
//! kept only where it is not all empty.

pub mod body;
mod copies;
mod create;
pub mod http;
mod input;
pub mod insights;
mod list;
pub mod removals;
pub mod templates;
pub mod texts;
pub mod tiles;
mod update;
mod visible;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::access::InProject;
use crate::access::levels::{self, AccessLevel, Guarded, Rights};
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{DashboardId, OrganizationId, ProjectId, UserId};
use crate::resources::access_controls::rules;
use crate::resources::collaborators;
use crate::resources::projects::Project;
use crate::store::{Count, Index, Indexed, Key, Owner, Record, Reference, Table, Tx, WriteTx};
use crate::time::Timestamp;

pub use body::Once;
pub use create::{create, large_copy};
pub use input::{DashboardPatch, NewDashboard, Sent};
pub use list::{CreationModes, Filter, Maker, list};
pub use tiles::large_answer;
pub use update::update;

/// What lists show of a dashboard, and what rules decide by.
#[derive(Debug, Clone, PartialEq)]
pub struct Dashboard {
    /// What rules and lists decide by.
    pub head: Head,
    /// Its own fields.
    pub shown: Shown,
}

/// What rules and lists decide by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The organization of its project.
    pub organization: OrganizationId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// Its number.
    pub id: DashboardId,
    /// Who made it.
    pub created_by: Option<UserId>,
    /// 21 or 37.
    pub restriction_level: i64,
    /// Whether it is soft-deleted.
    pub deleted: bool,
    /// Whether there are [`Details`].
    pub detailed: bool,
}

/// The dashboard's own fields, in the document's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DashboardFixed)]
pub struct Shown {
    /// Its number.
    pub id: DashboardId,
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: String,
    /// Whether it stands on top of lists.
    pub pinned: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it has a public page.
    pub is_shared: bool,
    /// Whether it is soft-deleted.
    pub deleted: bool,
    /// `default`, `template` or `duplicate`.
    #[schema(value_type = CreationModes)]
    pub creation_mode: String,
    /// Words to find it by, sorted.
    pub tags: Vec<String>,
    /// 21: everyone in the project edits; 37: only collaborators do.
    #[schema(value_type = input::Restriction)]
    pub restriction_level: i64,
}

/// How a dashboard stands in a list: not pinned, name, number.
type ListKey = (ProjectId, bool, Option<String>);

/// The live dashboards of a project in the order of lists: pinned first, then by name, null last.
pub const BY_NAME: Index<Dashboard, ListKey> =
    Index::covering(Table::DashboardsByName, |dashboard| {
        let Shown { pinned, name, deleted, .. } = &dashboard.shown;
        (!deleted).then(|| (dashboard.head.project, !pinned, name.clone()))
    });

impl Record for Dashboard {
    const TABLE: Table = Table::Dashboards;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_NAME];
    const COUNTS: &'static [Count<Self>] = &[Count::per(|dashboard| {
        (!dashboard.head.deleted).then(|| dashboard.head.project.encoded())
    })];
    type Key = (ProjectId, DashboardId);
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> (ProjectId, DashboardId) {
        (self.head.project, self.head.id)
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.head.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Project>(&(self.head.organization, self.head.project))]
    }
}

/// What only a single dashboard shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Details {
    /// Whose they are.
    pub key: (ProjectId, DashboardId),
    /// Its fields.
    pub shown: DetailsShown,
}

/// The free-form fields of a dashboard.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = DashboardDetails)]
pub struct DetailsShown {
    /// The template it was made from.
    pub use_template: String,
    /// The dashboard it was made from.
    pub use_dashboard: Option<u64>,
    /// What its tiles are filtered by.
    pub filters: Map<String, Value>,
    /// What its queries are given.
    pub variables: Map<String, Value>,
}

impl Record for Details {
    const TABLE: Table = Table::DashboardDetails;
    type Key = (ProjectId, DashboardId);
    type Head = (ProjectId, DashboardId);
    type Shown = DetailsShown;

    fn key(&self) -> Self::Key {
        self.key
    }

    fn parts(&self) -> (&Self::Head, &DetailsShown) {
        (&self.key, &self.shown)
    }

    fn join(key: Self::Head, shown: DetailsShown) -> Self {
        Self { key, shown }
    }

    fn owner(&self, tx: &impl Tx) -> Result<Option<Owner>> {
        Ok(tx.head::<Dashboard>(&self.key)?.map(|head| head.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Dashboard>(&self.key)]
    }
}

impl Head {
    /// What the caller may do with it.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn rights(&self, tx: &impl Tx, place: &InProject) -> Result<Rights> {
        let restricted = self.restriction_level > levels::EVERYONE_EDITS;
        let collaborator =
            if restricted { collaborators::level(tx, place, self.id)? } else { None };
        Ok(self.rights_given(place, collaborator, rules::on(tx, place, self.id)?))
    }

    /// What the caller may do with it, given their level as a collaborator and what rules say of them.
    fn rights_given(
        &self,
        place: &InProject,
        collaborator: Option<i64>,
        ruled: Option<AccessLevel>,
    ) -> Rights {
        let Self { created_by, restriction_level, .. } = *self;
        let guarded = Guarded { created_by, restriction_level, collaborator, ruled };
        levels::rights(&place.member, guarded)
    }
}

/// Writes both records. The version of the dashboard moves with either.
fn put(tx: &mut WriteTx<'_>, mut dashboard: Dashboard, details: DetailsShown) -> Result<()> {
    let key = dashboard.key();
    let versions = |tx: &WriteTx<'_>| -> Result<(u64, u64)> {
        Ok((tx.version::<Dashboard>(&key)?, tx.version::<Details>(&key)?))
    };
    let (before, details_before) = versions(tx)?;
    let was_detailed = dashboard.head.detailed;
    dashboard.head.detailed = details != DetailsShown::default();
    tx.put(&dashboard)?;
    if dashboard.head.detailed {
        tx.put(&Details { key, shown: details })?;
    } else if was_detailed {
        tx.remove::<Details>(&key)?;
    }
    let (after, details_after) = versions(tx)?;
    if after == before && details_after != details_before {
        tx.touch::<Dashboard>(&key)?;
    }
    Ok(())
}

fn details(tx: &impl Tx, head: &Head) -> Result<DetailsShown> {
    if !head.detailed {
        return Ok(DetailsShown::default());
    }
    Ok(tx.get::<Details>(&(head.project, head.id))?.shown)
}

/// The live dashboard with this number.
///
/// # Errors
/// 404 for none, or a removed one.
fn live(tx: &impl Tx, project: ProjectId, id: DashboardId) -> Result<Dashboard> {
    let dashboard: Dashboard = tx.get(&(project, id))?;
    if dashboard.head.deleted {
        return Err(Error::not_found());
    }
    Ok(dashboard)
}

/// Whether the project has a live dashboard with this number.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn is_live(tx: &impl Tx, project: ProjectId, id: DashboardId) -> Result<bool> {
    Ok(tx.head::<Dashboard>(&(project, id))?.is_some_and(|head| !head.deleted))
}

/// The live dashboard that something hangs on (facts-dashboards §10, §11).
///
/// # Errors
/// 404 `Dashboard not found.` for none, a removed one, or one of another project.
pub fn get_live(tx: &impl Tx, project: ProjectId, id: DashboardId) -> Result<Head> {
    let found = tx.head::<Dashboard>(&(project, id))?.filter(|head| !head.deleted);
    found.ok_or_else(|| Error::not_found_as("Dashboard not found."))
}

/// Says on the dashboard that its sharing changed, and whether it has a public page since.
///
/// # Errors
/// 404 when it is gone.
pub fn note_sharing(tx: &mut WriteTx<'_>, head: &Head, is_shared: bool) -> Result<()> {
    let key = (head.project, head.id);
    let mut dashboard: Dashboard = tx.get(&key)?;
    if dashboard.shown.is_shared == is_shared {
        return tx.touch::<Dashboard>(&key);
    }
    dashboard.shown.is_shared = is_shared;
    tx.put(&dashboard)
}

/// The body of the answer to a write of a dashboard, as [`body()`] renders it; none if it is large. That ends the batch of
/// the write, and [`body()`] renders it from the state that the commit left.
///
/// # Errors
/// What [`body()`] refuses.
pub fn body_of_write(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    id: DashboardId,
    once: Once,
) -> Result<Option<Versioned>> {
    body::of_write(tx, place, id, once)
}

/// The Dashboard of the API document with its detail fields.
///
/// # Errors
/// 404 for none, or a removed one.
pub fn body(tx: &impl Tx, place: &InProject, id: DashboardId, once: Once) -> Result<Versioned> {
    body::detail(tx, place, id, once)
}
