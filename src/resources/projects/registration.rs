//! What projects declare about their records.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::resources::loggable::{Location, Loggable};
use crate::resources::pending_deletion::PendingDeletion;
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Reference, Row, Tx};

use super::grants::{self, Grant};
use super::{Project, REDACTION, Settings, settings};

/// The records of projects. `cascade_delete` deletes the projects of a deleted organization one by one.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<Project>()
        .redacted(REDACTION)
        .logged()
        .parent(|(organization, project)| PendingDeletion::Project(organization, project))
        .numbered(|project| project.meta.id.0),
    &record::<Settings>().redacted(settings::REDACTION).logged(),
    &record::<Grant>()
        .logged()
        .names_users(|grant, visit| grant.subject.visit_user(visit))
        .deleted_with_project_of_organization()
        .deleted_with_member(|tx, member, limit| {
            tx.remove_indexed(&grants::BY_USER, &member, limit)
        })
        .deleted_with_role(|tx, role, limit| tx.remove_indexed(&grants::BY_ROLE, &role, limit)),
];

impl Loggable for Project {
    const SCOPE: &'static str = "Project";
    const HIDDEN: &'static [&'static str] = &["api_token"];

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.id)))
    }
}

impl Loggable for Settings {
    const SCOPE: &'static str = Project::SCOPE;
    const HIDDEN: &'static [&'static str] = &["slack_incoming_webhook"];

    fn item_id(meta: &Self::Meta) -> String {
        meta.1.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.0), Some(meta.1)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        Some(Reference::to::<Project>(meta))
    }
}

/// An access control on a project: the item is the project and the subject.
impl Loggable for Grant {
    const SCOPE: &'static str = "AccessControl";
    const LOG_ALL_FIELDS: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        format!("{}:{}", meta.project, meta.subject)
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        Some(Reference::to::<Project>(&(meta.organization, meta.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_level".to_owned(), row.meta.level.as_str().into())]))
    }
}
