//! What access controls declare about their records.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::resources::access_objects::{Kind, Object};
use crate::resources::loggable::{Location, Loggable};
use crate::resources::projects::Project;
use crate::resources::projects::grants::Grant;
use crate::resources::registration::{RegisteredRecord, record};
use crate::store::{Reference, Row, Tx};

use super::rules::{self, AccessRule};

/// The records of access controls. An access control on a project is a [`Grant`].
pub const RECORDS: &[&dyn RegisteredRecord] = &[&record::<AccessRule>()
    .logged()
    .names_users(|rule, visit| rule.subject.visit_user(visit))
    .deleted_with_project()
    .deleted_with_member(|tx, member, limit| tx.remove_indexed(&rules::BY_MEMBER, &member, limit))
    .deleted_with_role(|tx, role, limit| tx.remove_indexed(&rules::BY_ROLE, &role, limit))];

/// An access control on one object, or on all objects of a kind (`*`), for one subject.
impl Loggable for AccessRule {
    const SCOPE: &'static str = Grant::SCOPE;
    const LOG_ALL_FIELDS: bool = true;

    fn item_id(meta: &Self::Meta) -> String {
        let object = meta.object.map_or("*".to_owned(), |number| number.to_string());
        format!("{}:{}:{object}:{}", meta.project, meta.kind.as_str(), meta.subject)
    }

    /// Returns `None` for an access control on a project, and for one on all objects of a kind: `*` is not a number.
    fn object_of(item_id: &str) -> Option<Object> {
        let mut parts = item_id.split(':').skip(1);
        let kind = Kind::named(parts.next()?)?;
        Object::of(kind, parts.next()?.parse().ok()?)
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        let project = || Reference::to::<Project>(&(meta.organization, meta.project));
        Some(meta.target().map_or_else(project, |object| object.reference(meta.project)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_level".to_owned(), row.meta.level.as_str().into())]))
    }
}
