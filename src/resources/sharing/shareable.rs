//! What a caller may do with the public page of an object.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::resources::access_controls::caller_levels::level_on;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::shared::Shared;
use crate::resources::loggable::Loggable;
use crate::store::Tx;

use super::SharingKey;

/// A live object, and the caller's rights on its public page.
pub struct Shareable {
    /// The key of its sharing configuration.
    pub key: SharingKey,
    /// Whether the caller may share the object: editors may.
    pub can_share: bool,
    level: AccessLevel,
}

impl Shareable {
    /// Finds the object in the project. As in PostHog, a restriction of the dashboards that show an insight does not
    /// decide who may share the insight.
    ///
    /// # Errors
    /// 404 if the object does not exist or is deleted.
    pub fn find<R: Shared + Loggable>(
        tx: &impl Tx,
        tenant: &InProject,
        named: &R::Ref,
    ) -> Result<Self> {
        let project = tenant.project.id;
        let meta = R::find_live(tx, project, named)?.ok_or_else(not_found::<R>)?;
        let level = level_on::<R>(tx, tenant, &meta)?;
        let is_editor = level.require(AccessLevel::Editor).is_ok();
        let can_share = is_editor && R::lets_edit(tx, tenant, &meta)?;
        Ok(Self { key: (project, R::shared(&meta).object), can_share, level })
    }

    /// Checks that the caller may view the object.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_view(&self) -> Result<()> {
        self.level.require(AccessLevel::Viewer)
    }

    /// Checks that the caller may share the object, and returns the key of its sharing configuration. As in PostHog,
    /// the error's text is the same whether an access rule or a restriction denies it.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_share(self) -> Result<SharingKey> {
        if self.can_share {
            return Ok(self.key);
        }
        let kind = self.key.1.kind().as_str();
        Err(Error::denied(format!("You don't have edit permissions for this {kind}.")))
    }
}

/// Returns the 404 of the routes of sharing for an object of type `R`.
pub fn not_found<R: Loggable>() -> Error {
    Error::not_found_as(format!("{} not found.", R::SCOPE))
}
