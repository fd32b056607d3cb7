//! The caller's access levels on insights.

use crate::auth::InProject;
use crate::error::Result;
use crate::resources::access_controls::levels::{self, AccessLevel};
use crate::resources::access_controls::rules::{self, CallerRules};
use crate::resources::access_objects::{Kind, Object};
use crate::resources::members::Membership;
use crate::store::Tx;

use super::Meta;

/// Returns the caller's level on one insight.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn level_on(tx: &impl Tx, tenant: &InProject, insight: &Meta) -> Result<AccessLevel> {
    let ruled = rules::level_on(tx, tenant, Object::Insight(insight.id))?;
    Ok(levels::on_object(&tenant.member, insight.created_by, ruled))
}

/// Requires that the caller may create insights.
///
/// # Errors
/// 403 otherwise.
pub fn require_can_create(tx: &impl Tx, tenant: &InProject) -> Result<()> {
    levels::require_create(&tenant.member, rules::level_on_all(tx, tenant, Kind::Insight)?)
}

/// What decides the caller's level on each insight of a project, read once.
pub struct InsightLevels<'p> {
    member: &'p Membership,
    /// The access rules on insights that apply to the caller.
    pub rules: CallerRules,
}

impl<'p> InsightLevels<'p> {
    /// Reads the rules. They do not apply to admins.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn of(tx: &impl Tx, tenant: &'p InProject) -> Result<Self> {
        let rules = if tenant.member.level.is_admin() {
            CallerRules::default()
        } else {
            CallerRules::of(tx, tenant, Kind::Insight)?
        };
        Ok(Self { member: &tenant.member, rules })
    }

    /// Returns the caller's level on an insight.
    pub fn level(&self, insight: &Meta) -> AccessLevel {
        levels::on_object(self.member, insight.created_by, self.rules.on(insight.id.0))
    }

    /// Returns the caller's level on all insights, without rules on single ones.
    pub fn default_level(&self) -> AccessLevel {
        levels::default_level(self.member, self.rules.all)
    }
}
