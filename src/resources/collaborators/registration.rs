//! What collaborators declare about their records.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::resources::access_objects::Object;
use crate::resources::loggable::{Location, Loggable};
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Key, Reference, Row, Table, Tx};

use super::{BY_USER, Collaborator};

/// The records of collaborators.
pub const RECORDS: &[&dyn RegisteredRecord] = &[&record::<Collaborator>()
    .logged()
    .names_users(|collaborator, visit| visit(&mut collaborator.user))
    .deleted_with_project()
    .deleted_with_member(|tx, member, limit| tx.remove_indexed(&BY_USER, &member, limit))];

/// A collaborator of a dashboard: the item is the dashboard and the user.
impl Loggable for Collaborator {
    const SCOPE: &'static str = "DashboardCollaborator";
    const LOG_ALL_FIELDS: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        format!("{}:{}", meta.dashboard, meta.user)
    }

    fn object_of(item_id: &str) -> Option<Object> {
        item_id.split(':').next()?.parse().ok().map(Object::Dashboard)
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        let key = (meta.project, meta.dashboard).encoded();
        Some(Reference { table: Table::Dashboards, key })
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("level".to_owned(), row.meta.level.into())]))
    }
}
