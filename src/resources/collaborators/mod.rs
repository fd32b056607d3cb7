//! Collaborators: the users who may edit a restricted dashboard. See `docs/spec/collaborators.md`.

pub mod http;

use std::collections::HashMap;

use crate::auth::InProject;
use crate::ids::{CollaboratorId, UserUuid};
use crate::input::{Choice, Required, UuidField, choices};
use crate::resources::access_controls::levels::{self, COLLABORATORS_EDIT, EVERYONE_EDITS};
use crate::resources::members::{self, Membership};
use crate::resources::projects;
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, User};

/// A user who may edit a restricted dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collaborator {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the dashboard.
    pub project: ProjectId,
    /// The dashboard.
    pub dashboard: DashboardId,
    /// The user.
    pub user: UserId,
    /// UUID of this record, not of the user.
    pub id: CollaboratorId,
    /// Always [`COLLABORATORS_EDIT`].
    pub level: i64,
    /// When the user became a collaborator.
    pub added_at: Timestamp,
    /// When the record last changed.
    pub updated_at: Timestamp,
}

/// Collaborators by user.
pub const BY_USER: Index<Collaborator, (OrganizationId, UserId)> =
    Index::many(Table::CollaboratorsByUser, |row| Some((row.organization, row.user)));

impl_record!(Collaborator {
    table: Collaborators,
    key: |collaborator| -> (ProjectId, DashboardId, UserId) {
        (collaborator.project, collaborator.dashboard, collaborator.user)
    },
    indexes: [&BY_USER],
    reuses_keys: true,
    owner: |collaborator, _| Ok(Some(collaborator.organization.owner())),
    references: |collaborator| {
        let dashboard = (collaborator.project, collaborator.dashboard).encoded();
        [
            Reference { table: Table::Dashboards, key: dashboard },
            Reference::to::<Membership>(&(collaborator.organization, collaborator.user)),
        ]
    },
});

choices! {
    /// The values of `level`.
    pub struct Privileges: i64 = [EVERYONE_EDITS, COLLABORATORS_EDIT];
}

input! {
    /// The fields of a new collaborator.
    pub struct NewCollaborator {
        /// UUID of the user.
        user_uuid: Required<UuidField>,
        /// Must be 37, for edit. Every member may view the dashboard, so 21 is refused.
        level: Required<Choice<Privileges>>,
    }
}

/// The fields of a dashboard that decide who can become a collaborator.
#[derive(Debug, Clone, Copy)]
pub struct RestrictedDashboard {
    /// The ID of the dashboard.
    pub id: DashboardId,
    /// The user who created the dashboard.
    pub created_by: Option<UserId>,
    /// [`EVERYONE_EDITS`] or [`COLLABORATORS_EDIT`].
    pub restriction_level: i64,
}

/// Adds a collaborator. The order of the checks is PostHog's. The caller has checked that the request may
/// edit the dashboard.
///
/// # Errors
/// 400 for an invalid field, if every project member may edit the dashboard, or if the user cannot become a
/// collaborator or already is one.
pub fn create(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: RestrictedDashboard,
    new: &Parsed<NewCollaborator>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<Collaborator> {
    let new = new.get()?;
    if dashboard.restriction_level <= EVERYONE_EDITS {
        return Err(invalid(
            "Cannot add collaborators to a dashboard on the lowest restriction level.",
        ));
    }
    if new.level != COLLABORATORS_EDIT {
        return Err(invalid("Only edit access can be explicitly specified currently."));
    }
    let member = get_eligible(tx, tenant, dashboard, UserUuid(new.user_uuid))?;
    let collaborator = Collaborator {
        organization: member.organization,
        project: tenant.project.id,
        dashboard: dashboard.id,
        user: member.user,
        id: CollaboratorId(rng.uuid(now)),
        level: new.level,
        added_at: now,
        updated_at: now,
    };
    if tx.exists::<Collaborator>(&collaborator.key())? {
        return Err(invalid("User already is a collaborator."));
    }
    tx.put(&collaborator)?;
    Ok(collaborator)
}

/// Returns the member with this user UUID, if the member may see the project and cannot edit the dashboard
/// already.
fn get_eligible(
    tx: &dyn Raw,
    tenant: &InProject,
    dashboard: RestrictedDashboard,
    uuid: UserUuid,
) -> Result<Membership> {
    let id = tx.lookup(&users::BY_UUID, &uuid)?;
    let user = id.map_or(Ok(None), |id| tx.meta::<User>(&id))?.filter(|user| user.is_active);
    let user = user.ok_or_else(|| invalid("User does not exist."))?;
    let outside = || invalid("Cannot add collaborators that have no access to the project.");
    let member = members::find(tx, tenant.project.organization, user.id)?.ok_or_else(outside)?;
    if !projects::is_visible(tx, &member, &tenant.project)? {
        return Err(outside());
    }
    if levels::manages_inherently(&member, dashboard.created_by) {
        return Err(invalid(
            "Cannot add collaborators that already have inherent access (the dashboard owner or a project admins).",
        ));
    }
    Ok(member)
}

/// Deletes a collaborator, even one that lists leave out. The caller has checked that the request may edit
/// the dashboard.
///
/// # Errors
/// 404 if the user is not a collaborator; 400 if every project member may edit the dashboard.
pub fn delete(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    dashboard: RestrictedDashboard,
    user: UserId,
) -> Result<()> {
    let key = (tenant.project.id, dashboard.id, user);
    if !tx.exists::<Collaborator>(&key)? {
        return Err(Error::not_found());
    }
    if dashboard.restriction_level <= EVERYONE_EDITS {
        return Err(invalid(
            "Cannot remove collaborators from a dashboard on the lowest restriction level.",
        ));
    }
    tx.remove::<Collaborator>(&key)?;
    Ok(())
}

/// Returns the caller's level as a collaborator of a dashboard; `None` if the caller is not one.
pub fn level(tx: &dyn Raw, tenant: &InProject, dashboard: DashboardId) -> Result<Option<i64>> {
    let key = (tenant.project.id, dashboard, tenant.member.user);
    Ok(tx.meta::<Collaborator>(&key)?.map(|row| row.level))
}

/// Returns the caller's level on each dashboard of the project on which the caller is a collaborator.
pub fn levels(tx: &dyn Raw, tenant: &InProject) -> Result<HashMap<DashboardId, i64>> {
    let mine = (tenant.member.organization, tenant.member.user, tenant.project.id);
    let mut levels = HashMap::new();
    tx.walk(&BY_USER, &mine, Window::all(Order::Ascending), |row| {
        levels.insert(row.meta.dashboard, row.meta.level);
        Ok(())
    })?;
    Ok(levels)
}

/// Renders the collaborators of a dashboard as a JSON array, ordered by user.
pub fn list(tx: &dyn Raw, tenant: &InProject, dashboard: DashboardId) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let of_dashboard = (tenant.project.id, dashboard);
    Array::write(&mut out, |array| {
        tx.scan::<Collaborator, _>(&of_dashboard, Window::all(Order::Ascending), |row| {
            // A collaborator is listed only as an active user and a member.
            match members::find_listed(tx, row.meta.organization, row.meta.user)? {
                Some(_) => view_body(tx, &row.meta, |body| array.push(body)),
                None => Ok(()),
            }
        })
    })?;
    Ok(out)
}

/// Renders a collaborator.
///
/// # Errors
/// 404 if the user does not exist.
pub fn body(tx: &dyn Raw, row: &Collaborator) -> Result<Versioned> {
    let json = view_body(tx, row, |body| body.to_json(512))?;
    Ok(Versioned::new(tx.version::<Collaborator>(&row.key())?, json))
}

/// Passes the JSON of a collaborator to `read`.
fn view_body<T>(
    tx: &dyn Raw,
    row: &Collaborator,
    mut read: impl FnMut(CollaboratorBody<'_>) -> Result<T>,
) -> Result<T> {
    let viewed = tx.view::<User, _>(&row.user, |user| {
        read(CollaboratorBody {
            id: row.id,
            dashboard_id: row.dashboard,
            user: user.json(),
            level: row.level,
            added_at: row.added_at,
            updated_at: row.updated_at,
            user_uuid: user.meta.uuid,
        })
    })?;
    viewed.ok_or_else(Error::not_found)
}

output! {
    /// A user who may edit a restricted dashboard.
    pub struct CollaboratorBody<'a> as DashboardCollaborator {
        /// UUID of the collaborator, not of the user.
        id: CollaboratorId,
        /// The dashboard.
        dashboard_id: DashboardId,
        /// The user.
        user: JsonText<'a, users::Fields> as users::Fields,
        /// What the user may do. Always 37, for edit.
        level: i64 as Privileges,
        /// When the user became a collaborator.
        added_at: Timestamp,
        /// When the collaborator last changed.
        updated_at: Timestamp,
        /// UUID of the user, for the path of the DELETE request.
        user_uuid: UserUuid,
    }
}

/// The records of collaborators.
pub const RECORDS: &[&dyn RegisteredRecord] = &[&record::<Collaborator>()
    .logged()
    .names_users(|collaborator, visit| visit(&mut collaborator.user))
    .deleted_with_project()
    .deleted_with_member(|tx, member, limit| tx.remove_indexed(&BY_USER, &member, limit))];

/// A collaborator of a dashboard: the item is the dashboard and the user.
impl Loggable for Collaborator {
    const SCOPE: &'static str = "DashboardCollaborator";
    const LOG_ALL_FIELDS: bool = true;

    fn object_of(item_id: &str) -> Option<Object> {
        item_id.split(':').next()?.parse().ok().map(Object::Dashboard)
    }

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(
            format!("{}:{}", meta.dashboard, meta.user),
            Some(meta.organization),
            Some(meta.project),
        ))
    }

    fn named_after(meta: &Self::Meta) -> Option<Reference> {
        let key = (meta.project, meta.dashboard).encoded();
        Some(Reference { table: Table::Dashboards, key })
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("level".to_owned(), row.meta.level.into())]))
    }
}
