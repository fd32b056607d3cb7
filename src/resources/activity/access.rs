//! What the log tells of those who say who may do what: grants, access rules and collaborators. Their
//! level is told where they are made or removed, too.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::ids::{DashboardId, OrganizationId, ProjectId};
use crate::resources::access_controls::rules::Rule;
use crate::resources::collaborators::Collaborator;
use crate::resources::dashboards::Dashboard;
use crate::resources::projects::Project;
use crate::resources::projects::grants::Grant;
use crate::store::{Row, Tx};

use super::subject::{Loggable, Place, shown_name};

/// A rule of a project's access controls: who has it, and which level.
impl Loggable for Grant {
    const SCOPE: &'static str = "AccessControl";
    const TOLD_WHOLE: bool = true;

    fn item_id(head: &Self::Head) -> String {
        format!("{}:{}", head.project, head.user)
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.organization), Some(head.project)))
    }

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        project_name(tx, row.head.organization, row.head.project)
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_level".to_owned(), row.head.level.word().into())]))
    }
}

/// A rule on one dashboard or all of a project: whom it is about, and which level it gives.
impl Loggable for Rule {
    const SCOPE: &'static str = "AccessControl";
    const TOLD_WHOLE: bool = true;

    fn item_id(head: &Self::Head) -> String {
        let dashboard = head.dashboard.map_or("*".to_owned(), |id| id.to_string());
        let user = head.user.map_or("*".to_owned(), |id| id.to_string());
        format!("{}:dashboard:{dashboard}:{user}", head.project)
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.organization), Some(head.project)))
    }

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        match row.head.dashboard {
            Some(id) => dashboard_name(tx, row.head.project, id),
            None => project_name(tx, row.head.organization, row.head.project),
        }
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_level".to_owned(), row.head.level.word().into())]))
    }
}

/// A collaborator of a dashboard: who, and which level.
impl Loggable for Collaborator {
    const SCOPE: &'static str = "DashboardCollaborator";
    const TOLD_WHOLE: bool = true;

    fn item_id(head: &Self::Head) -> String {
        format!("{}:{}", head.dashboard, head.user)
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.organization), Some(head.project)))
    }

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        dashboard_name(tx, row.head.project, row.head.dashboard)
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("level".to_owned(), row.head.level.into())]))
    }
}

fn dashboard_name(tx: &impl Tx, project: ProjectId, id: DashboardId) -> Result<Option<String>> {
    Ok(tx.view::<Dashboard, _>(&(project, id), |row| shown_name(&row))?.flatten())
}

fn project_name(
    tx: &impl Tx,
    organization: OrganizationId,
    id: ProjectId,
) -> Result<Option<String>> {
    Ok(tx.view::<Project, _>(&(organization, id), |row| shown_name(&row))?.flatten())
}
