//! Decides which entries of a log a member may read.
//!
//! The current permissions apply to old entries too: an entry is hidden while the member may not see its project or the
//! dashboard or insight that it is about. Counts leave hidden entries out.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::auth::InProject;
use crate::resources::access_controls::shared::{CallerLevels, Shared, level_on};
use crate::resources::collaborators::Collaborator;
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::Insight;
use crate::resources::members::Membership;
use crate::resources::projects::grants::Grant;
use crate::resources::projects::{self, Project};
use crate::resources::shared::prelude::*;
use crate::resources::shared::registration::VisitUser;

use super::api::Scope;
use super::{Entry, Fields, Meta, about_object, in_organization, in_project, open_in};

/// An activity log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogScope {
    /// The organization, whose log includes its projects.
    pub(super) organization: OrganizationId,
    /// The project, for the log of one project.
    pub(super) project: Option<ProjectId>,
}

impl LogScope {
    /// Returns the number of entries in the log, including hidden ones.
    fn length(self, tx: &dyn Raw) -> Result<u64> {
        match self.project {
            None => tx.count::<Entry>(&in_organization(self.organization)),
            Some(id) => tx.count::<Entry>(&in_project(id)),
        }
    }

    /// Returns whether the log contains this entry of its organization.
    pub(super) fn holds(self, entry: &Meta) -> bool {
        self.project.is_none() || self.project == entry.project
    }
}

/// The entries of a log that a member may read.
pub struct Visibility {
    pub(super) log: LogScope,
    /// The projects that the member may see, and for each project the objects that are hidden from the member.
    /// `None` if the member may read the whole log.
    projects: Option<HashMap<ProjectId, HashSet<Object>>>,
}

impl Visibility {
    /// Returns what a member may read of the organization's log. Admins and owners may read all of it. Other members
    /// may not read entries of projects that they cannot see or that were deleted, of keys, or of objects that
    /// access controls hide from them.
    pub fn of_organization(tx: &dyn Raw, member: &Membership) -> Result<Self> {
        let log = LogScope { organization: member.organization, project: None };
        if member.level.is_admin() {
            return Ok(Self { log, projects: None });
        }
        let mut within = HashMap::new();
        for key in projects::list_visible(tx, std::slice::from_ref(member), None)? {
            if let Some(project) = tx.meta::<Project>(&key)? {
                let tenant = InProject { member: member.clone(), project };
                within.insert(key.1, hidden_objects(tx, &tenant)?);
            }
        }
        Ok(Self { log, projects: Some(within) })
    }

    /// Returns what a member may read of a project's log, by the same rules.
    pub fn of_project(tx: &dyn Raw, tenant: &InProject) -> Result<Self> {
        let project = tenant.project.id;
        let organization = tenant.project.organization;
        let log = LogScope { organization, project: Some(project) };
        if tenant.member.level.is_admin() {
            return Ok(Self { log, projects: None });
        }
        let hidden = hidden_objects(tx, tenant)?;
        Ok(Self { log, projects: Some(HashMap::from_iter([(project, hidden)])) })
    }

    /// Returns whether the member may read the entry.
    pub(super) fn shows(&self, entry: &Meta, entity: &EntityRef<'_>) -> bool {
        let Some(within) = &self.projects else { return true };
        match entry.project {
            None => !entity.is_for_admins(),
            Some(project) => within.get(&project).is_some_and(|hidden| {
                hidden.is_empty() || entity.object().is_none_or(|object| !hidden.contains(&object))
            }),
        }
    }

    /// Returns the number of entries that the member may read, and whether that is the whole log.
    pub(super) fn count(&self, tx: &dyn Raw) -> Result<(u64, bool)> {
        let length = self.log.length(tx)?;
        let Some(within) = &self.projects else { return Ok((length, true)) };
        let mut count = match self.log.project {
            None => tx.count::<Entry>(&open_in(self.log.organization))?,
            Some(_) => 0,
        };
        for (project, hidden) in within {
            let mut visible = tx.count::<Entry>(&in_project(*project))?;
            for object in hidden {
                let hidden = tx.count::<Entry>(&about_object(*project, *object))?;
                visible = visible.saturating_sub(hidden);
            }
            count += visible;
        }
        Ok((count, count == length))
    }
}

/// Returns whether a member may read one entry, by the same rules. Reads only what decides about this entry.
pub(super) fn shows_to(
    tx: &dyn Raw,
    member: &Membership,
    entry: &Meta,
    entity: &EntityRef<'_>,
) -> Result<bool> {
    if member.level.is_admin() {
        return Ok(true);
    }
    let Some(id) = entry.project else { return Ok(!entity.is_for_admins()) };
    let Some(project) = projects::find_visible(tx, member, id)? else { return Ok(false) };
    let Some(object) = entity.object() else { return Ok(true) };
    let tenant = InProject { member: member.clone(), project };
    match object {
        Object::Dashboard(_) => can_view::<Dashboard>(tx, &tenant, object),
        Object::Insight(_) => can_view::<Insight>(tx, &tenant, object),
    }
}

fn can_view<R: Shared>(tx: &dyn Raw, tenant: &InProject, object: Object) -> Result<bool> {
    let key = R::key_of(tenant.project.id, object.number());
    let Some(meta) = tx.meta::<R>(&key)? else { return Ok(true) };
    Ok(level_on::<R>(tx, tenant, &meta)?.can_view())
}

/// Returns the objects of a project, including deleted ones, that access controls hide from a member.
fn hidden_objects(tx: &dyn Raw, tenant: &InProject) -> Result<HashSet<Object>> {
    let mut hidden = hidden_records::<Dashboard>(tx, tenant)?;
    hidden.extend(hidden_records::<Insight>(tx, tenant)?);
    Ok(hidden)
}

fn hidden_records<R: Shared>(tx: &dyn Raw, tenant: &InProject) -> Result<HashSet<Object>> {
    let object = |meta: &R::Meta| Some(R::shared(meta).object);
    CallerLevels::<R>::of(tx, tenant)?.hidden(tx, object)
}

/// The target of an entry, parsed without its list of changes.
#[derive(Deserialize)]
pub(super) struct EntityRef<'e> {
    /// The type of the changed object.
    #[serde(borrow)]
    pub(super) scope: Cow<'e, str>,
    /// The id of the changed object.
    #[serde(borrow)]
    pub(super) item_id: Cow<'e, str>,
    /// The action, for example `created`.
    #[serde(borrow)]
    pub(super) activity: Cow<'e, str>,
}

impl EntityRef<'_> {
    /// Returns the object that a member must see to read the entry.
    pub(super) fn object(&self) -> Option<Object> {
        Scope::find(&self.scope)?.object_of(&self.item_id)
    }

    /// Returns whether only admins may read the entry.
    pub(super) fn is_for_admins(&self) -> bool {
        Scope::find(&self.scope).is_some_and(|scope| scope.admins_only)
    }
}

impl Entry {
    /// Calls `visit` with the user that made the change, and with the member that an access rule or a collaborator names:
    /// the last part of the item's id.
    pub(super) fn visit_users(&mut self, visit: &mut VisitUser<'_>) {
        self.meta.user.iter_mut().for_each(&mut *visit);
        let Fields { scope, item_id, .. } = &mut self.fields;
        let names_member = [Grant::SCOPE, Collaborator::SCOPE].contains(&scope.as_str());
        if let Some((rest, last)) = item_id.rsplit_once(':').filter(|_| names_member)
            && let Ok(mut user) = last.parse()
        {
            visit(&mut user);
            *item_id = format!("{rest}:{user}");
        }
    }
}
