//! What dashboards and insights have in common, and the caller's levels on one of them and on all of a kind in a project.

use std::collections::HashSet;
use std::hash::Hash;
use std::marker::PhantomData;
use std::str::FromStr;

use crate::auth::InProject;
use crate::resources::access_controls::levels::{self, AccessLevel};
use crate::resources::access_controls::rules::{self, CallerRules};
use crate::resources::shared::prelude::*;

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
        tx: &dyn Raw,
        project: ProjectId,
        named: &Self::Ref,
    ) -> Result<Option<Self::Meta>>;

    /// Returns the object of the project that a path names; `None` if it does not exist or is deleted.
    fn find_live(
        tx: &dyn Raw,
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
    fn get_live(tx: &dyn Raw, project: ProjectId, named: &Self::Ref) -> Result<Self::Meta> {
        Self::find_live(tx, project, named)?.ok_or_else(Error::not_found)
    }

    /// Returns whether the object's own restriction lets the caller edit it. Access rules are a separate check.
    fn lets_edit(tx: &dyn Raw, tenant: &InProject, meta: &Self::Meta) -> Result<bool>;
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

/// Returns the caller's level on one object.
pub fn level_on<R: Shared>(
    tx: &dyn Raw,
    tenant: &InProject,
    meta: &R::Meta,
) -> Result<AccessLevel> {
    let SharedMeta { object, created_by, .. } = R::shared(meta);
    let ruled = rules::level_on(tx, tenant, object)?;
    Ok(levels::on_object(&tenant.member, created_by, ruled))
}

/// Requires that the caller may create objects of type `R`.
///
/// # Errors
/// 403 otherwise.
pub fn require_can_create<R: Shared>(tx: &dyn Raw, tenant: &InProject) -> Result<()> {
    let ruled = rules::level_on_all(tx, tenant, R::KIND)?;
    levels::on_object(&tenant.member, None, ruled).require(AccessLevel::Editor)
}

/// What decides the caller's level on each object of type `R` in a project, read once.
pub struct CallerLevels<'p, R> {
    /// The caller in the project.
    pub tenant: &'p InProject,
    rules: CallerRules,
    of: PhantomData<R>,
}

impl<'p, R: Shared> CallerLevels<'p, R> {
    /// Reads the rules. They do not apply to admins.
    pub fn of(tx: &dyn Raw, tenant: &'p InProject) -> Result<Self> {
        let rules = if tenant.member.level.is_admin() {
            CallerRules::default()
        } else {
            CallerRules::of(tx, tenant, R::KIND)?
        };
        Ok(Self { tenant, rules, of: PhantomData })
    }

    /// Returns the level that rules give the caller on an object; `None` if no rule applies.
    pub fn ruled(&self, object: &R::Meta) -> Option<AccessLevel> {
        self.rules.on(R::shared(object).object.number())
    }

    /// Returns the caller's level on an object.
    pub fn level(&self, object: &R::Meta) -> AccessLevel {
        levels::on_object(&self.tenant.member, R::shared(object).created_by, self.ruled(object))
    }

    /// Returns the caller's level on all objects, without rules on single ones.
    pub fn default_level(&self) -> AccessLevel {
        levels::on_object(&self.tenant.member, None, self.rules.on_all())
    }

    /// Returns whether no rule hides an object from the caller.
    pub fn sees_all(&self) -> bool {
        self.default_level().can_view() && self.rules.restricted().next().is_none()
    }

    /// Requires that the caller may view the objects in general, was granted access to at least one, or created at
    /// least one.
    ///
    /// # Errors
    /// 403 otherwise.
    pub fn require_list(&self, tx: &dyn Raw) -> Result<()> {
        let allowed = self.default_level().require(AccessLevel::Viewer);
        if allowed.is_ok() || self.rules.grants_any() || self.owns_any(tx)? {
            return Ok(());
        }
        allowed
    }

    fn owns_any(&self, tx: &dyn Raw) -> Result<bool> {
        let mut owns = false;
        let me = Some(self.tenant.member.user);
        let first = Window { offset: 0, limit: 1, order: Order::Ascending };
        let mine = |meta: &R::Meta| R::shared(meta).created_by == me;
        tx.scan_where::<R, _>(&self.tenant.project.id, first, mine, |_| {
            owns = true;
            Ok(())
        })?;
        Ok(owns)
    }

    /// Returns what `pick` returns of each object, live or deleted, that rules hide from the caller. Visits every object
    /// if the caller's level on all objects does not allow viewing.
    pub fn hidden<T: Eq + Hash>(
        &self,
        tx: &dyn Raw,
        pick: impl Fn(&R::Meta) -> Option<T>,
    ) -> Result<HashSet<T>> {
        let project = self.tenant.project.id;
        let mut hidden = HashSet::new();
        let mut look_at = |meta: &R::Meta| {
            if !self.level(meta).can_view() {
                hidden.extend(pick(meta));
            }
            Ok(())
        };
        if self.default_level().can_view() {
            for number in self.rules.restricted() {
                tx.view::<R, _>(&R::key_of(project, number), |row| look_at(&row.meta))?;
            }
        } else {
            let all = Window::all(Order::Ascending);
            tx.scan::<R, _>(&project, all, |row| look_at(&row.meta))?;
        }
        Ok(hidden)
    }
}
