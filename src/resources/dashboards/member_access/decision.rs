//! What a member may do with a dashboard or an insight, decided by the same functions as for a request of the member.

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::ProjectId;
use crate::resources::access_controls::levels::{self, AccessLevel, MemberRights};
use crate::resources::access_controls::precedence::DecidingRule;
use crate::resources::access_controls::shared::{Shared, SharedMeta};
use crate::resources::access_controls::{rules, runs_project};
use crate::resources::dashboards::insights::{self, Insight, RestrictionOfInsight};
use crate::resources::dashboards::visible::CallerAccess;
use crate::resources::dashboards::{Dashboard, Meta, tiles};
use crate::resources::members::Membership;
use crate::resources::projects;
use crate::resources::shared::access_objects::Object;
use crate::store::Tx;

/// The object, and what restricts who may edit it.
pub(super) enum Target {
    /// A dashboard.
    Dashboard(Meta),
    /// An insight, and the live dashboards that show it; none if no dashboard of them is restricted.
    Insight(insights::Meta, Vec<Meta>),
}

/// What one member may do with the object, and what decides it.
pub(super) struct MemberAccess {
    pub(super) tenant: InProject,
    pub(super) object: Object,
    pub(super) is_creator: bool,
    /// Whether the member sees the project. If not, nothing else counts.
    pub(super) is_visible: bool,
    /// The access rule that applies, if one does.
    pub(super) rule: Option<DecidingRule>,
    pub(super) rights: MemberRights,
    /// Whether the member is exempt from the restriction: a collaborator of the dashboard, or a member whom the
    /// restriction of a dashboard with the insight lets edit.
    pub(super) is_exempt: bool,
}

impl Target {
    pub(super) fn of(tx: &impl Tx, project: ProjectId, object: Object) -> Result<Self> {
        match object {
            Object::Dashboard(id) => {
                let dashboard = tx.meta::<Dashboard>(&(project, id))?;
                dashboard.map(Self::Dashboard).ok_or_else(Error::not_found)
            }
            Object::Insight(id) => {
                let insight = tx.meta::<Insight>(&(project, id))?.ok_or_else(Error::not_found)?;
                let mut dashboards: Vec<Meta> = Vec::new();
                for (_, dashboard, _) in tiles::live_tiles(tx, (project, id))? {
                    dashboards.extend(tx.meta::<Dashboard>(&(project, dashboard))?);
                }
                // Then no member's rights on them need to be read.
                if !dashboards.iter().any(Meta::is_restricted) {
                    dashboards.clear();
                }
                Ok(Self::Insight(insight, dashboards))
            }
        }
    }

    fn shared(&self) -> SharedMeta {
        match self {
            Self::Dashboard(dashboard) => Dashboard::shared(dashboard),
            Self::Insight(insight, _) => Insight::shared(insight),
        }
    }

    /// Returns what a member of the organization may do with the object.
    pub(super) fn access(
        &self,
        tx: &impl Tx,
        project: &projects::Meta,
        member: &Membership,
    ) -> Result<MemberAccess> {
        let SharedMeta { object, created_by, .. } = self.shared();
        let tenant = InProject { member: member.clone(), project: project.clone() };
        let rule = rules::find_deciding(tx, &tenant, object)?;
        let ruled = rule.map(|rule| rule.level);
        let (rights, is_exempt) = match self {
            Self::Dashboard(dashboard) => {
                let collaborator = dashboard.collaborator_level(tx, &tenant)?;
                let rights = dashboard.rights_given(member, collaborator, ruled);
                (MemberRights::from(rights), collaborator.is_some())
            }
            Self::Insight(_, dashboards) => {
                let (restriction, privilege) = restriction(tx, &tenant, dashboards)?.levels();
                let rights = levels::on_insight(member, created_by, ruled, restriction, privilege);
                (rights, rights.is_restricted && rights.can_edit)
            }
        };
        let is_creator = created_by == Some(member.user);
        let is_visible = projects::is_visible(tx, member, project)?;
        Ok(MemberAccess { tenant, object, is_creator, is_visible, rule, rights, is_exempt })
    }
}

/// Returns how these dashboards restrict an insight that they show, for the member. Reads the rules once, because there may
/// be a thousand dashboards.
fn restriction(
    tx: &impl Tx,
    tenant: &InProject,
    dashboards: &[Meta],
) -> Result<RestrictionOfInsight> {
    let mut restriction = RestrictionOfInsight::default();
    if !dashboards.is_empty() {
        let access = CallerAccess::of(tx, tenant)?;
        for dashboard in dashboards {
            restriction.add(&access.rights(dashboard));
        }
    }
    Ok(restriction)
}

impl MemberAccess {
    /// Returns what the member may do with the object.
    pub(super) fn level(&self) -> AccessLevel {
        if self.is_visible { self.rights.level() } else { AccessLevel::None }
    }

    /// Returns whether the member may edit the access rules on the object.
    pub(super) fn can_edit_access_levels(&self, tx: &impl Tx) -> Result<bool> {
        let level = self.rights.user_access_level;
        Ok(self.is_visible && level.can_manage(runs_project(tx, &self.tenant)?))
    }
}
