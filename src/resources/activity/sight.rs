//! What of a log somebody may read: what they may see of the things that it tells of.
//!
//! Today's rights decide, also of what was long ago: an entry is hidden while its project or its dashboard
//! is. What is hidden is left out of counts too.

use std::collections::{HashMap, HashSet};

use crate::access::InProject;
use crate::access::levels::{self, Guarded};
use crate::error::Result;
use crate::ids::{DashboardId, OrganizationId, ProjectId};
use crate::resources::access_controls::rules::Ruling;
use crate::resources::dashboards::{self, Dashboard};
use crate::resources::members::Membership;
use crate::resources::projects::{self, Project};
use crate::store::{Order, Tx, Window};

use super::about::About;
use super::{Counted, Entry, Head};

/// A log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    /// An organization's: what was done with it, and in its projects.
    Organization(OrganizationId),
    /// A project's, of this organization.
    Project(OrganizationId, ProjectId),
}

impl Log {
    /// The organization whose log it is, or is a part of.
    pub(super) const fn organization(self) -> OrganizationId {
        match self {
            Self::Organization(id) | Self::Project(id, _) => id,
        }
    }

    /// How many entries there are in all.
    fn length(self, tx: &impl Tx) -> Result<u64> {
        tx.count::<Entry>(&match self {
            Self::Organization(id) => Counted::Organization(id),
            Self::Project(_, id) => Counted::Project(id),
        })
    }

    /// Whether an entry of the organization is in it.
    pub(super) fn holds(self, entry: &Head) -> bool {
        match self {
            Self::Organization(_) => true,
            Self::Project(_, id) => entry.project == Some(id),
        }
    }
}

/// What of a log somebody may read.
pub struct Sight {
    /// The log.
    pub(super) log: Log,
    /// The projects that they may see, with the dashboards that are hidden from them there; none where they
    /// see all there is and was.
    within: Option<HashMap<ProjectId, HashSet<DashboardId>>>,
}

impl Sight {
    /// What a member reads of the organization's log. Admins and owners read all of it. Others do not read
    /// what was done in projects that they may not see, or that were removed, nor with keys, nor with
    /// dashboards that rules hide from them.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn of_organization(tx: &impl Tx, member: &Membership) -> Result<Self> {
        let log = Log::Organization(member.organization);
        if reads_all(member) {
            return Ok(Self { log, within: None });
        }
        let member = std::slice::from_ref(member);
        let mut within = HashMap::new();
        for key in projects::visible(tx, member, None)? {
            if let (Some(project), [member]) = (tx.head::<Project>(&key)?, member) {
                let place = InProject { member: member.clone(), project };
                within.insert(key.1, hidden_dashboards(tx, &place)?);
            }
        }
        Ok(Self { log, within: Some(within) })
    }

    /// What a member reads of a project's log: the same of what was done there.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read.
    pub fn of_project(tx: &impl Tx, place: &InProject) -> Result<Self> {
        let project = place.project.id;
        let log = Log::Project(place.project.organization, project);
        if reads_all(&place.member) {
            return Ok(Self { log, within: None });
        }
        let hidden = hidden_dashboards(tx, place)?;
        Ok(Self { log, within: Some(HashMap::from_iter([(project, hidden)])) })
    }

    /// Whether an entry of the log is theirs to read.
    pub(super) fn shows(&self, entry: &Head, about: &About<'_>) -> bool {
        let Some(within) = &self.within else { return true };
        match entry.project {
            None => !about.is_for_admins(),
            Some(project) => within.get(&project).is_some_and(|hidden| {
                hidden.is_empty() || about.dashboard().is_none_or(|id| !hidden.contains(&id))
            }),
        }
    }

    /// How many entries are theirs to read, and whether that is all there are.
    pub(super) fn count(&self, tx: &impl Tx) -> Result<(u64, bool)> {
        let length = self.log.length(tx)?;
        let Some(within) = &self.within else { return Ok((length, true)) };
        let mut count = match self.log {
            Log::Organization(id) => tx.count::<Entry>(&Counted::Open(id))?,
            Log::Project(..) => 0,
        };
        for (project, hidden) in within {
            let mut shown = tx.count::<Entry>(&Counted::Project(*project))?;
            for dashboard in hidden {
                let hidden = tx.count::<Entry>(&Counted::Dashboard(*project, *dashboard))?;
                shown = shown.saturating_sub(hidden);
            }
            count += shown;
        }
        Ok((count, count == length))
    }
}

/// Whether a member reads all of an organization's log, which takes no looking.
fn reads_all(member: &Membership) -> bool {
    member.level.administers()
}

/// The dashboards of a project, removed ones too, that rules hide from a member. Where a rule hides all but
/// some, every dashboard is looked at.
fn hidden_dashboards(tx: &impl Tx, place: &InProject) -> Result<HashSet<DashboardId>> {
    let project = place.project.id;
    let ruling = Ruling::of(tx, place)?;
    let mut hidden = HashSet::new();
    let mut look_at = |head: &dashboards::Head| {
        if is_hidden(place, &ruling, head) {
            hidden.insert(head.id);
        }
        Ok(())
    };
    if levels::on_all(&place.member, ruling.all).lets_view() {
        for id in ruling.singled_out() {
            tx.view::<Dashboard, _>(&(project, id), |row| look_at(&row.head))?;
        }
    } else {
        let all = Window::all(Order::Ascending);
        tx.scan::<Dashboard, _>(&project, all, |row| look_at(&row.head))?;
    }
    Ok(hidden)
}

/// Collaborators edit; whether they see is for rules to say.
fn is_hidden(place: &InProject, ruling: &Ruling, dashboard: &dashboards::Head) -> bool {
    let dashboards::Head { created_by, restriction_level, id, .. } = *dashboard;
    let ruled = ruling.on(id);
    let guarded = Guarded { created_by, restriction_level, collaborator: None, ruled };
    !levels::rights(&place.member, guarded).can_view()
}
