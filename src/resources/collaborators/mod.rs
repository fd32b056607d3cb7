//! Collaborators: who edits a dashboard that is restricted to them (API document, Dashboard collaborator;
//! facts-dashboards §10).

pub mod body;
pub mod http;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::access::InProject;
use crate::access::levels::{self, COLLABORATORS_EDIT, EVERYONE_EDITS, Guarded};
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{CollaboratorId, DashboardId, OrganizationId, ProjectId, UserId, UserUuid};
use crate::input;
use crate::input::{Choice, Choices, Parsed, Required, UuidField};
use crate::json::{Array, Object};
use crate::resources::members::{self, Membership};
use crate::resources::projects;
use crate::resources::users::{self, User};
use crate::secret::Draw;
use crate::store::{
    Index, Indexed, Key, Order, Owner, Record, Reference, Table, Tx, Window, WriteTx,
};
use crate::time::Timestamp;

/// A user who may edit a restricted dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collaborator {
    /// The organization of all of them.
    pub organization: OrganizationId,
    /// The dashboard's project.
    pub project: ProjectId,
    /// The dashboard.
    pub dashboard: DashboardId,
    /// Who.
    pub user: UserId,
    /// The row's own id.
    pub id: CollaboratorId,
    /// What they may do: 37, edit.
    pub level: i64,
    /// When they were added.
    pub added_at: Timestamp,
    /// When the row last changed.
    pub updated_at: Timestamp,
}

/// What a member collaborates on.
pub const BY_USER: Index<Collaborator, (OrganizationId, UserId)> =
    Index::many(Table::CollaboratorsByUser, |row| Some((row.organization, row.user)));

impl Record for Collaborator {
    const TABLE: Table = Table::Collaborators;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_USER];
    const KEYS_COME_BACK: bool = true;
    type Key = (ProjectId, DashboardId, UserId);
    type Head = Self;
    type Shown = ();

    fn key(&self) -> Self::Key {
        (self.project, self.dashboard, self.user)
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        let dashboard = (self.project, self.dashboard).encoded();
        vec![
            Reference { table: Table::Dashboards, key: dashboard },
            Reference::to::<Membership>(&(self.organization, self.user)),
        ]
    }
}

/// What `level` takes.
pub struct Privileges;

impl Choices for Privileges {
    type Value = i64;
    const ALL: &'static [i64] = &[EVERYONE_EDITS, COLLABORATORS_EDIT];
}

input! {
    /// Somebody to be made a collaborator.
    pub struct NewCollaborator {
        /// Who.
        user_uuid: Required<UuidField>,
        /// What they may do: 37, edit. Viewing, 21, is everybody's and cannot be given.
        level: Required<Choice<Privileges>>,
    }
}

/// A dashboard, as far as it decides who may collaborate on it.
#[derive(Debug, Clone, Copy)]
pub struct Restricted {
    /// Its number.
    pub id: DashboardId,
    /// Who made it.
    pub created_by: Option<UserId>,
    /// [`EVERYONE_EDITS`] or [`COLLABORATORS_EDIT`].
    pub restriction_level: i64,
}

impl Restricted {
    /// What it brings to the question of what somebody without a row may do with it.
    const fn guarded(&self) -> Guarded {
        let Self { created_by, restriction_level, .. } = *self;
        Guarded { created_by, restriction_level, collaborator: None, ruled: None }
    }
}

/// Makes somebody a collaborator, by the checks of facts-dashboards §10 in their order. That the caller
/// may edit the dashboard is checked before.
///
/// # Errors
/// 400 for a field, for a dashboard that everyone edits, and for somebody who cannot be one or need not.
pub fn create(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: Restricted,
    new: &Parsed<NewCollaborator>,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<Collaborator> {
    let new = new.get()?;
    if dashboard.restriction_level <= EVERYONE_EDITS {
        return Err(refused(
            "Cannot add collaborators to a dashboard on the lowest restriction level.",
        ));
    }
    if new.level != COLLABORATORS_EDIT {
        return Err(refused("Only edit access can be explicitly specified currently."));
    }
    let member = get_eligible(tx, place, dashboard, UserUuid(new.user_uuid))?;
    let collaborator = Collaborator {
        organization: member.organization,
        project: place.project.id,
        dashboard: dashboard.id,
        user: member.user,
        id: CollaboratorId(draw.uuid(now)),
        level: new.level,
        added_at: now,
        updated_at: now,
    };
    if tx.exists::<Collaborator>(&collaborator.key())? {
        return Err(refused("User already is a collaborator."));
    }
    tx.put(&collaborator)?;
    Ok(collaborator)
}

/// The member with this UUID, who sees the project and has no right to edit the dashboard anyway.
fn get_eligible(
    tx: &impl Tx,
    place: &InProject,
    dashboard: Restricted,
    uuid: UserUuid,
) -> Result<Membership> {
    let user = match tx.lookup(&users::BY_UUID, &uuid)? {
        Some(id) => tx.head::<User>(&id)?.filter(|user| user.is_active),
        None => None,
    };
    let user = user.ok_or_else(|| refused("User does not exist."))?;
    let outside = || refused("Cannot add collaborators that have no access to the project.");
    let member = members::find(tx, place.project.organization, user.id)?.ok_or_else(outside)?;
    if !projects::is_visible(tx, &member, &place.project)? {
        return Err(outside());
    }
    if levels::rights(&member, dashboard.guarded()).can_restrict {
        return Err(refused(
            "Cannot add collaborators that already have inherent access (the dashboard owner or a project admins).",
        ));
    }
    Ok(member)
}

fn refused(detail: &'static str) -> Error {
    Error::invalid("invalid_input", detail)
}

/// Removes a collaborator, whether the list shows it or not. That the caller may edit the dashboard is
/// checked before.
///
/// # Errors
/// 404 for somebody who is none; 400 for a dashboard that everyone edits.
pub fn remove(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    dashboard: Restricted,
    user: UserId,
) -> Result<()> {
    let key = (place.project.id, dashboard.id, user);
    if !tx.exists::<Collaborator>(&key)? {
        return Err(Error::not_found());
    }
    if dashboard.restriction_level <= EVERYONE_EDITS {
        return Err(refused(
            "Cannot remove collaborators from a dashboard on the lowest restriction level.",
        ));
    }
    tx.remove::<Collaborator>(&key)?;
    Ok(())
}

/// The caller's level as a collaborator of a dashboard, if they are one.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn level(tx: &impl Tx, place: &InProject, dashboard: DashboardId) -> Result<Option<i64>> {
    let key = (place.project.id, dashboard, place.member.user);
    Ok(tx.head::<Collaborator>(&key)?.map(|row| row.level))
}

/// The caller's level on each dashboard of the project that they are a collaborator of.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn levels(tx: &impl Tx, place: &InProject) -> Result<HashMap<DashboardId, i64>> {
    let mine = (place.member.organization, place.member.user, place.project.id);
    let mut levels = HashMap::new();
    tx.walk(&BY_USER, &mine, Window::all(Order::Ascending), |row| {
        levels.insert(row.head.dashboard, row.head.level);
        Ok(())
    })?;
    Ok(levels)
}

/// Removes a former member from up to `limit` dashboards on which they collaborated; returns how many.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn remove_of(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    user: UserId,
    limit: usize,
) -> Result<usize> {
    let keys = tx.keys(&BY_USER, &(organization, user), limit)?;
    for key in &keys {
        tx.remove::<Collaborator>(key)?;
    }
    Ok(keys.len())
}

/// Whether lists show it: inactive users are left out, and who is no member.
fn is_listed(tx: &impl Tx, row: &Collaborator) -> Result<bool> {
    Ok(members::find_listed(tx, row.organization, row.user)?.is_some())
}

/// The collaborators of a dashboard, by user, as a JSON array.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list(tx: &impl Tx, place: &InProject, dashboard: DashboardId) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut items = Array::begin(&mut out);
    let of_dashboard = (place.project.id, dashboard);
    tx.scan::<Collaborator, _>(&of_dashboard, Window::all(Order::Ascending), |row| {
        if is_listed(tx, &row.head)? {
            items.item(|out| write_body(tx, &row.head, out))?;
        }
        Ok(())
    })?;
    items.end();
    Ok(out)
}

/// The Dashboard collaborator of the API document.
///
/// # Errors
/// 404 when the user is gone.
pub fn body(tx: &impl Tx, row: &Collaborator) -> Result<Versioned> {
    let mut json = Vec::with_capacity(512);
    write_body(tx, row, &mut json)?;
    Ok(Versioned::new(tx.version::<Collaborator>(&row.key())?, json))
}

fn write_body(tx: &impl Tx, row: &Collaborator, out: &mut Vec<u8>) -> Result<()> {
    let written = tx.view::<User, _>(&row.user, |user| {
        Object::begin(out)
            .field("id", &row.id)?
            .field("dashboard_id", &row.dashboard)?
            .raw("user", user.shown)
            .field("level", &row.level)?
            .field("added_at", &row.added_at)?
            .field("updated_at", &row.updated_at)?
            .field("user_uuid", &user.head.uuid)?
            .end();
        Ok(())
    })?;
    written.ok_or_else(Error::not_found)
}
