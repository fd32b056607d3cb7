//! What a caller may do with the public page of an object.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::resources::access_controls::caller_levels::level_on;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::shared::Shared;
use crate::resources::access_objects::Object;
use crate::resources::dashboards;
use crate::resources::dashboards::insights::{Insight, InsightRef};
use crate::store::Tx;

use super::SharingKey;

/// The object that a path names.
pub enum ObjectRef {
    /// A dashboard.
    Dashboard(DashboardId),
    /// An insight.
    Insight(InsightRef),
}

/// A live object, and the caller's rights on its public page.
pub struct Shareable {
    /// The key of its sharing configuration.
    pub key: SharingKey,
    level: AccessLevel,
    share: Result<()>,
}

impl ObjectRef {
    /// Finds the object in the project.
    ///
    /// # Errors
    /// 404 if it does not exist or is deleted.
    pub fn find(&self, tx: &impl Tx, tenant: &InProject) -> Result<Shareable> {
        match self {
            Self::Dashboard(id) => of_dashboard(tx, tenant, *id),
            Self::Insight(named) => of_insight(tx, tenant, named),
        }
    }
}

fn of_dashboard(tx: &impl Tx, tenant: &InProject, id: DashboardId) -> Result<Shareable> {
    let rights = dashboards::get_live(tx, tenant.project.id, id)?.rights(tx, tenant)?;
    Ok(Shareable {
        key: (tenant.project.id, Object::Dashboard(id)),
        level: rights.user_access_level,
        share: rights.require_share(),
    })
}

/// As in PostHog, only access rules decide, and no restriction of the dashboards that show the insight.
fn of_insight(tx: &impl Tx, tenant: &InProject, named: &InsightRef) -> Result<Shareable> {
    let found = Insight::find_live(tx, tenant.project.id, named)?;
    let insight = found.ok_or_else(|| Error::not_found_as("Insight not found."))?;
    let level = level_on::<Insight>(tx, tenant, &insight)?;
    let denied = |_| Error::denied("You don't have edit permissions for this insight.");
    Ok(Shareable {
        key: (tenant.project.id, Object::Insight(insight.id)),
        level,
        share: level.require(AccessLevel::Editor).map_err(denied),
    })
}

impl Shareable {
    /// Checks that the caller may view the object.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_view(&self) -> Result<()> {
        self.level.require(AccessLevel::Viewer)
    }

    /// Returns whether the caller may share the object: editors may.
    pub fn can_share(&self) -> bool {
        self.share.is_ok()
    }

    /// Checks that the caller may share the object, and returns the key of its sharing configuration.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_share(self) -> Result<SharingKey> {
        self.share.map(|()| self.key)
    }
}
