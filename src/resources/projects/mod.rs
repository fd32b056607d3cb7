//! Projects of an organization. See `docs/spec/projects.md`.
//!
//! A project is stored as two records. [`Project`] holds the fields that lists show, [`Settings`] all other
//! fields.

pub mod api;
pub mod grants;
pub mod http;
mod settings;
mod visibility;

use crate::resources::members::{self, Level, Membership};
use crate::resources::organizations::Organization;
use crate::resources::shared::prelude::*;
use crate::resources::users;

use api::ProjectBody;
pub use api::{NewProject, ProjectFields, RECORDS};
pub use grants::set_default;
pub use settings::Settings;
pub use visibility::{
    NameVisibility, current_project, find_visible, hidden_projects, is_visible, list, list_visible,
};

/// A project without its settings.
pub type Project = RecordOf<Meta, Fields>;

/// Fields of a project that access checks and indexes read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The ID of the project.
    pub id: ProjectId,
    /// Whether the project is private.
    pub access_control: bool,
}

/// The stored fields that lists show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ProjectFixed)]
pub struct Fields {
    /// Numeric ID, unique across organizations.
    pub id: ProjectId,
    /// UUID of the project.
    pub uuid: uuid::Uuid,
    /// The organization of the project.
    pub organization: OrganizationId,
    /// Public token with which events are sent.
    pub api_token: String,
    /// Display name. Several projects can have the same name.
    pub name: String,
    /// Whether the snippet was installed.
    pub completed_snippet_onboarding: bool,
    /// Products whose onboarding is complete.
    pub has_completed_onboarding_for: Option<Value>,
    /// Whether the project holds demo data.
    pub is_demo: bool,
    /// Name of a time zone in the IANA database, such as `Europe/Berlin`.
    #[schema(examples("Europe/Berlin"))]
    pub timezone: String,
    /// Whether the project is private: other than admins, only members with access may see it. True exactly if the access
    /// rule for everyone has level `none`.
    pub access_control: bool,
}

/// By ID, which is unique across organizations.
pub const BY_ID: Index<Project, ProjectId> =
    Index::unique(Table::ProjectsById, |project| Some(project.meta.id));
/// The private projects of an organization, which lists may have to skip.
pub const PRIVATE_PROJECTS: Index<Project, OrganizationId> =
    Index::many(Table::ProjectsPrivate, |project| {
        project.meta.access_control.then_some(project.meta.organization)
    });

impl_record!(Project {
    table: Projects,
    key: |project| -> (OrganizationId, ProjectId) { (project.meta.organization, project.meta.id) },
    parts: meta: Meta, fields: Fields,
    projection: |meta, fields| Meta { access_control: fields.access_control, ..meta.clone() },
    indexes: [&BY_ID, &PRIVATE_PROJECTS],
    counts: [|project| Some(project.meta.organization.encoded())],
    owner: |project, _| Ok(Some(project.meta.organization.owner())),
    references: |project| [
        Reference::to::<Organization>(&project.meta.organization),
        Reference::to::<Settings>(&project.key()),
    ],
});

/// An export without secrets leaves out `api_token`, and an import generates a new one.
const REDACTION: Redaction<Project> =
    Redaction::Member { name: "api_token", regenerate: |draw| Some(new_api_token(draw).into()) };

fn new_api_token(rng: &mut SeededRng) -> String {
    format!("phc_{}", rng.token())
}

/// Creates a project, and makes it the caller's current project.
///
/// # Errors
/// 403 if the caller is not an admin, unless the project is a demo; 400 for an invalid field.
pub fn create(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    new: &NewProject,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<ProjectId> {
    let id = add(tx, caller, new, rng, now)?;
    tx.log_about::<Project>(&(caller.organization, id));
    Ok(id)
}

/// Creates a project in a write whose activity entry may be about another object.
fn add(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    new: &NewProject,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<ProjectId> {
    if !new.is_demo && !caller.level.is_admin() {
        return Err(Error::denied("Your organization access level is insufficient."));
    }
    let fields = new.fields.get()?;
    if matches!(fields.primary_dashboard, Patch::Value(_)) {
        let detail = "Primary dashboard cannot be set on project creation.";
        return Err(Error::field("primary_dashboard", "invalid_input", detail));
    }
    require_may_restrict(caller, fields.access_control.is_some())?;
    let organization = caller.organization;
    let id = ProjectId(tx.next_number(Table::Projects)?);
    let mut project = Project {
        meta: Meta { organization, id, access_control: false },
        fields: Fields {
            id,
            uuid: rng.uuid(now),
            organization,
            api_token: new_api_token(rng),
            name: "Default project".to_owned(),
            completed_snippet_onboarding: false,
            has_completed_onboarding_for: None,
            is_demo: false,
            timezone: "UTC".to_owned(),
            access_control: false,
        },
    };
    let filters = settings::default_test_account_filters(tx, organization)?;
    let mut settings = Settings::new(organization, id, filters, now);
    api::apply(fields.clone(), &mut project.fields, &mut settings.fields)?;
    tx.put(&project)?;
    tx.put(&settings)?;
    grants::follow_access_control(tx, &project, now)?;
    users::set_current_tenant(tx, caller.user, organization, Some(id))?;
    Ok(id)
}

/// Adds the owner and the first project to a new organization, which the activity entry is about.
///
/// # Errors
/// 404 if the organization or the user does not exist; 400 for an invalid field of the project.
pub fn create_first(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    owner: UserId,
    new: &NewProject,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<(Membership, ProjectId)> {
    let owner = members::create(tx, organization, owner, Level::Owner, rng, now)?;
    let project = add(tx, &owner, new, rng, now)?;
    Ok((owner, project))
}

/// Updates a project.
///
/// # Errors
/// 404 if the project does not exist; 403 if the request changes `access_control` and the caller is not an
/// admin; 400 for an invalid field.
pub fn update(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    id: ProjectId,
    fields: &Parsed<ProjectFields>,
    is_live_dashboard: fn(&WriteTx<'_>, ProjectId, u64) -> Result<bool>,
    now: Timestamp,
) -> Result<()> {
    let key = (caller.organization, id);
    let before: (Project, Settings) = (tx.get(&key)?, tx.get(&key)?);
    let fields = fields.get()?;
    let is_open = !before.0.fields.access_control;
    require_may_restrict(caller, fields.access_control.is_some_and(|sent| sent == is_open))?;
    if let Some(dashboard) = fields.primary_dashboard.clone().value()
        && !is_live_dashboard(tx, id, dashboard)?
    {
        let detail = "Dashboard does not belong to this team.";
        return Err(Error::field("primary_dashboard", "invalid_input", detail));
    }
    let (mut project, mut settings) = before.clone();
    api::apply(fields.clone(), &mut project.fields, &mut settings.fields)?;
    if (&project, &settings) == (&before.0, &before.1) {
        return Ok(());
    }
    settings.fields.updated_at = now;
    tx.log_about::<Project>(&key);
    if project == before.0 {
        tx.bump_version::<Project>(&key)?;
    } else {
        tx.put(&project)?;
        grants::follow_access_control(tx, &project, now)?;
    }
    tx.put(&settings)
}

/// Replaces the public token of a project.
///
/// # Errors
/// 404 if the project does not exist.
pub fn reset_token(
    tx: &mut WriteTx<'_>,
    key: (OrganizationId, ProjectId),
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let (mut project, mut settings): (Project, Settings) = (tx.get(&key)?, tx.get(&key)?);
    project.fields.api_token = new_api_token(rng);
    settings.fields.updated_at = now;
    tx.put(&project)?;
    tx.put(&settings)
}

/// Deletes a project. All requests to the project fail from then on; a background task deletes its other records.
///
/// # Errors
/// 404 if the project does not exist.
pub fn delete(tx: &mut WriteTx<'_>, organization: OrganizationId, id: ProjectId) -> Result<()> {
    tx.remove::<Project>(&(organization, id))?.ok_or_else(Error::not_found)?;
    tx.remove::<Settings>(&(organization, id))?;
    Ok(())
}

/// Checks that the caller may set `access_control`, if the request sets it.
fn require_may_restrict(caller: &Membership, sets: bool) -> Result<()> {
    if sets && !caller.level.is_admin() {
        return Err(Error::denied(
            "Your organization access level is insufficient to configure project access restrictions.",
        ));
    }
    Ok(())
}

/// Returns the project with this ID, in any organization.
pub fn find_by_id(tx: &dyn Raw, id: ProjectId) -> Result<Option<Meta>> {
    tx.lookup(&BY_ID, &id)?.map_or(Ok(None), |key| tx.meta::<Project>(&key))
}

/// Returns the organization of a project, if the project exists.
pub fn organization_of(tx: &dyn Raw, id: ProjectId) -> Result<Option<OrganizationId>> {
    Ok(find_by_id(tx, id)?.map(|project| project.organization))
}

/// Renders the detail view of a project. `live_events_token` is signed, for the stream of live events.
///
/// # Errors
/// 404 if the project does not exist.
pub fn body(
    tx: &dyn Raw,
    member: &Membership,
    id: ProjectId,
    live_events_token: &str,
) -> Result<Versioned> {
    let key = (member.organization, id);
    let (meta, version, own) = tx
        .view::<Project, _>(&key, |row| Ok((row.meta, row.version, row.fields.to_vec())))?
        .ok_or_else(Error::not_found)?;
    let settings = tx
        .view::<Settings, _>(&key, |row| Ok(row.fields.to_vec()))?
        .ok_or_else(Error::not_found)?;
    let body = ProjectBody {
        own: JsonText::new(&own),
        settings: JsonText::new(&settings),
        effective_membership_level: effective_level(tx, member, &meta)?,
        live_events_token,
    };
    Ok(Versioned::new(version, body.to_json(4096)?))
}

/// Returns the caller's level in the project: the organization level, or the highest level of the grants for the caller
/// and for the caller's roles if the project is private and the caller is not an admin.
fn effective_level(tx: &dyn Raw, member: &Membership, project: &Meta) -> Result<Option<i64>> {
    if !project.access_control || member.level.is_admin() {
        return Ok(Some(member.level.number()));
    }
    Ok(grants::given(tx, project, member)?.and_then(|(level, _)| level.number()))
}
