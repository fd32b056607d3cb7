//! Activity entries for access controls and collaborators. Entries for `created` and `deleted` include the level.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::ids::{DashboardId, OrganizationId, ProjectId};
use crate::resources::access_controls::rules::AccessRule;
use crate::resources::collaborators::Collaborator;
use crate::resources::dashboards::Dashboard;
use crate::resources::projects::Project;
use crate::resources::projects::grants::Grant;
use crate::store::{Row, Tx};

use super::log_target::{Location, Loggable, public_name};

/// An access control on a project: the item is the project and the member.
impl Loggable for Grant {
    const SCOPE: &'static str = "AccessControl";
    const LOG_ALL_FIELDS: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        format!("{}:{}", meta.project, meta.user)
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        project_name(tx, row.meta.organization, row.meta.project)
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_level".to_owned(), row.meta.level.as_str().into())]))
    }
}

/// An access control on one dashboard, or on all dashboards of a project (`*`), for one user or for all (`*`).
impl Loggable for AccessRule {
    const SCOPE: &'static str = "AccessControl";
    const LOG_ALL_FIELDS: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        let dashboard = meta.dashboard.map_or("*".to_owned(), |id| id.to_string());
        let user = meta.user.map_or("*".to_owned(), |id| id.to_string());
        format!("{}:dashboard:{dashboard}:{user}", meta.project)
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        match row.meta.dashboard {
            Some(id) => dashboard_name(tx, row.meta.project, id),
            None => project_name(tx, row.meta.organization, row.meta.project),
        }
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_level".to_owned(), row.meta.level.as_str().into())]))
    }
}

/// A collaborator of a dashboard: the item is the dashboard and the user.
impl Loggable for Collaborator {
    const SCOPE: &'static str = "DashboardCollaborator";
    const LOG_ALL_FIELDS: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        format!("{}:{}", meta.dashboard, meta.user)
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        dashboard_name(tx, row.meta.project, row.meta.dashboard)
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("level".to_owned(), row.meta.level.into())]))
    }
}

fn dashboard_name(tx: &impl Tx, project: ProjectId, id: DashboardId) -> Result<Option<String>> {
    Ok(tx.view::<Dashboard, _>(&(project, id), |row| public_name(&row))?.flatten())
}

fn project_name(
    tx: &impl Tx,
    organization: OrganizationId,
    id: ProjectId,
) -> Result<Option<String>> {
    Ok(tx.view::<Project, _>(&(organization, id), |row| public_name(&row))?.flatten())
}
