//! The caller's levels on all objects of a kind in a project.

use std::collections::HashSet;
use std::hash::Hash;
use std::marker::PhantomData;

use crate::auth::InProject;
use crate::error::Result;
use crate::ids::{ProjectId, UserId};
use crate::resources::access_controls::levels::{self, AccessLevel};
use crate::resources::access_controls::rules::CallerRules;
use crate::resources::access_objects::Object;
use crate::store::{Order, Record, Tx, Window};

/// A type of objects that have access rules. A key is the project and the number of the object.
pub trait RuledRecord: Record {
    /// Returns the object with this number.
    fn object(number: u64) -> Object;

    /// Returns the key of the object with this number.
    fn key_of(project: ProjectId, number: u64) -> Self::Key;

    /// Returns the number of the object.
    fn number(meta: &Self::Meta) -> u64;

    /// Returns the user who created the object.
    fn created_by(meta: &Self::Meta) -> Option<UserId>;
}

/// What decides the caller's level on each object of type `R` in a project, read once.
pub struct CallerLevels<'p, R> {
    /// The caller in the project.
    pub tenant: &'p InProject,
    rules: CallerRules,
    of: PhantomData<R>,
}

impl<'p, R: RuledRecord> CallerLevels<'p, R> {
    /// Reads the rules. They do not apply to admins.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn of(tx: &impl Tx, tenant: &'p InProject) -> Result<Self> {
        let rules = if tenant.member.level.is_admin() {
            CallerRules::default()
        } else {
            CallerRules::of(tx, tenant, R::object(0).kind())?
        };
        Ok(Self { tenant, rules, of: PhantomData })
    }

    /// Returns the level that rules give the caller on an object; `None` if no rule applies.
    pub fn ruled(&self, object: &R::Meta) -> Option<AccessLevel> {
        self.rules.on(R::number(object))
    }

    /// Returns the caller's level on an object.
    pub fn level(&self, object: &R::Meta) -> AccessLevel {
        levels::on_object(&self.tenant.member, R::created_by(object), self.ruled(object))
    }

    /// Returns the caller's level on all objects, without rules on single ones.
    pub fn default_level(&self) -> AccessLevel {
        levels::default_level(&self.tenant.member, self.rules.all)
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
    pub fn require_list(&self, tx: &impl Tx) -> Result<()> {
        let allowed = self.default_level().require(AccessLevel::Viewer);
        if allowed.is_ok() || self.rules.grants_any() || self.owns_any(tx)? {
            return Ok(());
        }
        allowed
    }

    fn owns_any(&self, tx: &impl Tx) -> Result<bool> {
        let mut owns = false;
        let me = Some(self.tenant.member.user);
        let first = Window { offset: 0, limit: 1, order: Order::Ascending };
        let mine = |meta: &R::Meta| R::created_by(meta) == me;
        tx.scan_where::<R, _>(&self.tenant.project.id, first, mine, |_| {
            owns = true;
            Ok(())
        })?;
        Ok(owns)
    }

    /// Returns what `pick` returns of each object, live or deleted, that rules hide from the caller. Visits every object
    /// if the caller's level on all objects does not allow viewing.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn hidden<T: Eq + Hash>(
        &self,
        tx: &impl Tx,
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
