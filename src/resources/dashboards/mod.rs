//! Dashboards of a project. See `docs/spec/dashboards.md`.
//!
//! A dashboard is stored as two records. [`Dashboard`] holds the fields that lists show. [`Details`] holds
//! the free-form fields, and exists only if at least one of them is set.

pub mod api;
mod changes;
pub mod deletions;
pub mod http;
pub mod insights;
mod list;
pub mod member_access;
mod registration;
pub mod templates;
pub mod texts;
pub mod tiles;

use std::collections::HashMap;

use crate::auth::{Caller, InProject};
use crate::resources::access_controls::levels::{self, AccessLevel, ObjectRights, Restriction};
use crate::resources::access_controls::rules;
use crate::resources::access_controls::shared::{CallerLevels, Shared, SharedMeta};
use crate::resources::collaborators;
use crate::resources::members::Membership;
use crate::resources::projects::Project;
use crate::resources::shared::prelude::*;

pub use api::{DashboardPatch, NewDashboard, ResponseOptions, body, require_shown};
pub use changes::{create, large_copy, update};
pub use list::{CreatedByFilter, CreationModes, Filter, list};
pub use registration::RECORDS;
pub use tiles::large_answer;

/// A dashboard without its free-form fields.
pub type Dashboard = RecordOf<Meta, Fields>;

/// Fields of a dashboard that access checks and lists read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the dashboard.
    pub project: ProjectId,
    /// The ID of the dashboard.
    pub id: DashboardId,
    /// The user who created the dashboard.
    pub created_by: Option<UserId>,
    /// 21 if every project member may edit; 37 if only collaborators may.
    pub restriction_level: i64,
    /// Whether the dashboard is soft-deleted.
    pub deleted: bool,
    /// Whether a [`Details`] record exists.
    pub detailed: bool,
}

/// The stored fields that lists show, in the order of the API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = DashboardFixed)]
pub struct Fields {
    /// Numeric ID, never reused.
    pub id: DashboardId,
    /// Display name.
    pub name: Option<String>,
    /// Description in plain text.
    pub description: String,
    /// Whether lists show the dashboard before those that are not pinned.
    pub pinned: bool,
    /// When the dashboard was created.
    pub created_at: Timestamp,
    /// Whether the dashboard has a public page.
    pub is_shared: bool,
    /// Whether the dashboard is deleted. A deleted dashboard can be restored.
    pub deleted: bool,
    /// How the dashboard was created: `default`, `template` or `duplicate`.
    #[schema(value_type = CreationModes)]
    pub creation_mode: String,
    /// Tags in lower case, sorted.
    pub tags: Vec<String>,
    /// Who may edit the dashboard: 21 for every project member; 37 for collaborators, the creator and
    /// admins.
    #[schema(value_type = Restriction)]
    pub restriction_level: i64,
}

/// Sort key of a dashboard in lists, after the project: not pinned, name.
type ListKey = (ProjectId, bool, Option<String>);

/// Live dashboards of a project in list order: pinned first, then by name with null last, then by ID.
pub const BY_NAME: Index<Dashboard, ListKey> =
    Index::covering(Table::DashboardsByName, |dashboard| {
        let Fields { pinned, name, deleted, .. } = &dashboard.fields;
        (!deleted).then(|| (dashboard.meta.project, !pinned, name.clone()))
    });

impl_record!(Dashboard {
    table: Dashboards,
    key: |dashboard| -> (ProjectId, DashboardId) { (dashboard.meta.project, dashboard.meta.id) },
    parts: meta: Meta, fields: Fields,
    projection: |meta, fields| Meta {
        restriction_level: fields.restriction_level,
        deleted: fields.deleted,
        ..*meta
    },
    indexes: [&BY_NAME],
    counts: [|dashboard| (!dashboard.meta.deleted).then(|| dashboard.meta.project.encoded())],
    owner: |dashboard, _| Ok(Some(dashboard.meta.organization.owner())),
    references: |dashboard| [
        Reference::to::<Project>(&(dashboard.meta.organization, dashboard.meta.project)),
    ],
});

/// The free-form fields of one dashboard.
pub type Details = RecordOf<(ProjectId, DashboardId), DetailsFields>;

/// Fields that only the detail view of a dashboard shows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = DashboardDetails)]
pub struct DetailsFields {
    /// The template that the dashboard was created from, or an empty string.
    pub use_template: String,
    /// The dashboard that this one was copied from, if any.
    pub use_dashboard: Option<u64>,
    /// Filters that apply to every tile.
    pub filters: Map<String, Value>,
    /// Values for the variables in the queries of tiles.
    pub variables: Map<String, Value>,
}

impl_record!(Details {
    table: DashboardDetails,
    key: |details| -> (ProjectId, DashboardId) { details.meta },
    parts: meta: (ProjectId, DashboardId), fields: DetailsFields,
    owner: |details, tx| {
        Ok(tx.meta::<Dashboard>(&details.meta)?.map(|meta| meta.organization.owner()))
    },
    references: |details| [Reference::to::<Dashboard>(&details.meta)],
});

impl Shared for Dashboard {
    const KIND: Kind = Kind::Dashboard;
    type Ref = DashboardId;

    fn key_of(project: ProjectId, number: u64) -> Self::Key {
        (project, DashboardId(number))
    }

    fn shared(meta: &Meta) -> SharedMeta {
        let Meta { organization, project, id, created_by, deleted, .. } = *meta;
        SharedMeta { organization, project, object: Object::Dashboard(id), created_by, deleted }
    }

    fn find_named(tx: &dyn Raw, project: ProjectId, id: &DashboardId) -> Result<Option<Meta>> {
        tx.meta::<Self>(&(project, *id))
    }

    fn lets_edit(tx: &dyn Raw, tenant: &InProject, meta: &Meta) -> Result<bool> {
        let collaborator = meta.collaborator_level(tx, tenant)?;
        Ok(meta.rights_given(&tenant.member, collaborator, None).can_edit())
    }
}

impl Meta {
    /// Returns whether only collaborators, the creator and admins may edit.
    const fn is_restricted(&self) -> bool {
        self.restriction_level > levels::EVERYONE_EDITS
    }

    /// Returns what the caller may do with the dashboard.
    pub fn rights(&self, tx: &dyn Raw, tenant: &InProject) -> Result<ObjectRights> {
        let collaborator = self.collaborator_level(tx, tenant)?;
        let rule_level = rules::level_on(tx, tenant, Object::Dashboard(self.id))?;
        Ok(self.rights_given(&tenant.member, collaborator, rule_level))
    }

    /// Returns the caller's level as a collaborator; `None` if the caller is not one, or every member of the project may
    /// edit.
    fn collaborator_level(&self, tx: &dyn Raw, tenant: &InProject) -> Result<Option<i64>> {
        if self.is_restricted() { collaborators::level(tx, tenant, self.id) } else { Ok(None) }
    }

    /// Like [`Meta::rights`], for a member whose collaborator level and access rules were read before.
    fn rights_given(
        &self,
        member: &Membership,
        collaborator: Option<i64>,
        rule_level: Option<AccessLevel>,
    ) -> ObjectRights {
        let Self { created_by, restriction_level, .. } = *self;
        levels::on_dashboard(member, created_by, restriction_level, collaborator, rule_level)
    }
}

/// Writes both records of a dashboard. A change of either record increments the version of the dashboard.
fn put(tx: &mut WriteTx<'_>, mut dashboard: Dashboard, details: DetailsFields) -> Result<()> {
    let key = dashboard.key();
    let before = (tx.version::<Dashboard>(&key)?, tx.version::<Details>(&key)?);
    let was_detailed = dashboard.meta.detailed;
    dashboard.meta.detailed = details != DetailsFields::default();
    tx.put(&dashboard)?;
    if dashboard.meta.detailed {
        tx.put(&Details { meta: key, fields: details })?;
    } else if was_detailed {
        tx.remove::<Details>(&key)?;
    }
    if tx.version::<Dashboard>(&key)? == before.0 && tx.version::<Details>(&key)? != before.1 {
        tx.bump_version::<Dashboard>(&key)?;
    }
    Ok(())
}

fn details(tx: &dyn Raw, meta: &Meta) -> Result<DetailsFields> {
    if !meta.detailed {
        return Ok(DetailsFields::default());
    }
    Ok(tx.get::<Details>(&(meta.project, meta.id))?.fields)
}

/// Returns the live dashboard in the path of a route of collaborators.
///
/// # Errors
/// 404 `Dashboard not found.` if the dashboard does not exist in this project or is deleted.
pub fn get_live(tx: &dyn Raw, project: ProjectId, id: DashboardId) -> Result<Meta> {
    let found = Dashboard::find_live(tx, project, &id)?;
    found.ok_or_else(|| Error::not_found_as("Dashboard not found."))
}

/// Sets `is_shared` on the dashboard, and increments its version even if `is_shared` does not change.
///
/// # Errors
/// 404 if the dashboard does not exist.
pub fn set_shared(
    tx: &mut WriteTx<'_>,
    key: &(ProjectId, DashboardId),
    is_shared: bool,
) -> Result<()> {
    let mut dashboard: Dashboard = tx.get(key)?;
    if dashboard.fields.is_shared == is_shared {
        return tx.bump_version::<Dashboard>(key);
    }
    dashboard.fields.is_shared = is_shared;
    tx.put(&dashboard)
}

/// Returns a new dashboard of the caller with default fields. Does not store it.
fn blank(
    tx: &mut WriteTx<'_>,
    caller: &Caller,
    tenant: &InProject,
    now: Timestamp,
) -> Result<Dashboard> {
    let id = DashboardId(tx.next_number(Table::Dashboards)?);
    let meta = Meta {
        organization: tenant.project.organization,
        project: tenant.project.id,
        id,
        created_by: Some(caller.user.id),
        restriction_level: levels::EVERYONE_EDITS,
        deleted: false,
        detailed: false,
    };
    let fields = Fields {
        id,
        created_at: now,
        creation_mode: "default".to_owned(),
        restriction_level: levels::EVERYONE_EDITS,
        ..Fields::default()
    };
    Ok(Dashboard { meta, fields })
}

/// What decides the caller's rights on each dashboard of a project, read once for a list.
struct CallerAccess<'p> {
    levels: CallerLevels<'p, Dashboard>,
    collaborator_levels: HashMap<DashboardId, i64>,
}

impl<'p> CallerAccess<'p> {
    fn of(tx: &dyn Raw, tenant: &'p InProject) -> Result<Self> {
        let collaborator_levels = collaborators::levels(tx, tenant)?;
        Ok(Self { levels: CallerLevels::of(tx, tenant)?, collaborator_levels })
    }

    /// Returns what the caller may do with a dashboard.
    fn rights(&self, dashboard: &Meta) -> ObjectRights {
        let collaborator = self.collaborator_levels.get(&dashboard.id).copied();
        let ruled = self.levels.ruled(dashboard);
        dashboard.rights_given(&self.levels.tenant.member, collaborator, ruled)
    }
}

/// Decides what the caller may do with a dashboard, and caches the decision. A response about one object must not name a
/// hidden dashboard.
pub struct VisibleDashboards<'p> {
    /// The caller in the project.
    pub tenant: &'p InProject,
    /// Whether no access rule can hide a dashboard from the caller.
    all: bool,
    /// What decides the rights on each dashboard, read when first needed.
    access: Option<CallerAccess<'p>>,
    cache: HashMap<DashboardId, Option<ObjectRights>>,
}

impl<'p> VisibleDashboards<'p> {
    /// Starts an empty cache for a caller in a project. Admins, and all members of a project without access
    /// rules on dashboards, see every dashboard.
    pub fn of(tx: &dyn Raw, tenant: &'p InProject) -> Result<Self> {
        let all = tenant.member.level.is_admin()
            || !rules::exist(tx, tenant.project.id, Kind::Dashboard)?;
        Ok(Self { tenant, all, access: None, cache: HashMap::new() })
    }

    /// Returns whether the caller may see this dashboard.
    pub fn shows(&mut self, tx: &dyn Raw, id: DashboardId) -> Result<bool> {
        Ok(self.all || self.rights(tx, id)?.is_some_and(|rights| rights.can_view()))
    }

    /// Returns what the caller may do with a dashboard; `None` if the dashboard does not exist.
    pub fn rights(&mut self, tx: &dyn Raw, id: DashboardId) -> Result<Option<ObjectRights>> {
        if let Some(known) = self.cache.get(&id) {
            return Ok(*known);
        }
        let access = match &self.access {
            Some(access) => access,
            None => self.access.insert(CallerAccess::of(tx, self.tenant)?),
        };
        let meta = tx.meta::<Dashboard>(&(self.tenant.project.id, id))?;
        let rights = meta.map(|meta| access.rights(&meta));
        self.cache.insert(id, rights);
        Ok(rights)
    }
}
