//! What dashboards and insights have in common.

use std::str::FromStr;

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::resources::shared::access_objects::{Kind, Object};
use crate::store::{Record, Tx};

/// A type of objects that have access rules and public pages: dashboards and insights. A key is the project and the
/// number of the object.
pub trait Shared: Record {
    /// The kind of the objects.
    const KIND: Kind;
    /// What names an object in a path.
    type Ref: FromStr + Send + Sync + 'static;

    /// Returns the key of the object with this number.
    fn key_of(project: ProjectId, number: u64) -> Self::Key;

    /// Returns the metadata that all types have.
    fn shared(meta: &Self::Meta) -> SharedMeta;

    /// Returns the object of the project that a path names; `None` if it does not exist. It may be deleted.
    fn find_named(
        tx: &impl Tx,
        project: ProjectId,
        named: &Self::Ref,
    ) -> Result<Option<Self::Meta>>;

    /// Returns the object of the project that a path names; `None` if it does not exist or is deleted.
    fn find_live(
        tx: &impl Tx,
        project: ProjectId,
        named: &Self::Ref,
    ) -> Result<Option<Self::Meta>> {
        let found = Self::find_named(tx, project, named)?;
        Ok(found.filter(|meta| !Self::shared(meta).deleted))
    }

    /// Returns the live object of the project that a path names.
    ///
    /// # Errors
    /// 404 if it does not exist or is deleted.
    fn get_live(tx: &impl Tx, project: ProjectId, named: &Self::Ref) -> Result<Self::Meta> {
        Self::find_live(tx, project, named)?.ok_or_else(Error::not_found)
    }

    /// Returns whether the object's own restriction lets the caller edit it. Access rules are a separate check.
    fn lets_edit(tx: &impl Tx, tenant: &InProject, meta: &Self::Meta) -> Result<bool>;
}

/// The metadata that all types of [`Shared`] objects have.
#[derive(Debug, Clone, Copy)]
pub struct SharedMeta {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the object.
    pub project: ProjectId,
    /// The object.
    pub object: Object,
    /// The user who created the object.
    pub created_by: Option<UserId>,
    /// Whether the object is soft-deleted.
    pub deleted: bool,
}
