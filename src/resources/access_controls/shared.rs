//! What dashboards and insights have in common.

use crate::ids::{ProjectId, UserId};
use crate::resources::access_objects::{Kind, Object};
use crate::store::Record;

/// A type of objects that have access rules and public pages: dashboards and insights. A key is the project and the
/// number of the object.
pub trait Shared: Record {
    /// The kind of the objects.
    const KIND: Kind;

    /// Returns the key of the object with this number.
    fn key_of(project: ProjectId, number: u64) -> Self::Key;

    /// Returns the metadata that all types have.
    fn shared(meta: &Self::Meta) -> SharedMeta;
}

/// The metadata that all types of [`Shared`] objects have.
#[derive(Debug, Clone, Copy)]
pub struct SharedMeta {
    /// The object.
    pub object: Object,
    /// The user who created the object.
    pub created_by: Option<UserId>,
}
