//! What access controls declare about their records.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::ids::DashboardId;
use crate::resources::loggable::{Location, Loggable};
use crate::resources::projects::Project;
use crate::resources::projects::grants::Grant;
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Key, Reference, Row, Table, Tx};

use super::rules::{self, AccessRule};

/// The records of access controls. An access control on a project is a [`Grant`].
pub const RECORDS: &[&dyn RegisteredRecord] = &[&record::<AccessRule>()
    .logged()
    .deleted_with_project()
    .deleted_with_member(|tx, member, limit| tx.remove_indexed(&rules::BY_MEMBER, &member, limit))];

/// An access control on one dashboard, or on all dashboards of a project (`*`), for one user or for all (`*`).
impl Loggable for AccessRule {
    const SCOPE: &'static str = Grant::SCOPE;
    const LOG_ALL_FIELDS: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        let dashboard = meta.dashboard.map_or("*".to_owned(), |id| id.to_string());
        let user = meta.user.map_or("*".to_owned(), |id| id.to_string());
        format!("{}:dashboard:{dashboard}:{user}", meta.project)
    }

    /// Returns `None` for an access control on a project, and for one on all dashboards: `*` is not a number.
    fn dashboard_of(item_id: &str) -> Option<DashboardId> {
        let mut parts = item_id.split(':');
        (parts.nth(1) == Some("dashboard")).then(|| parts.next()?.parse().ok()).flatten()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        Some(match meta.dashboard {
            Some(id) => Reference { table: Table::Dashboards, key: (meta.project, id).encoded() },
            None => Reference::to::<Project>(&(meta.organization, meta.project)),
        })
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_level".to_owned(), row.meta.level.as_str().into())]))
    }
}
