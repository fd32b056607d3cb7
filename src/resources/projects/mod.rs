//! Projects of an organization (API document, Project; facts-org §5).
//!
//! A project is kept as two records: [`Project`] is what lists show, [`Settings`] the rest of the full form.

pub mod body;
pub mod grants;
pub mod http;
mod input;
mod kinds;
mod settings;
mod visibility;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::input::Parsed;
use crate::json::Object;
use crate::resources::members::{self, Level, Membership};
use crate::resources::organizations::Organization;
use crate::resources::users;
use crate::secret::Draw;
use crate::store::{
    Count, Index, Indexed, Key, Owner, Record, Reference, Secrecy, Table, Tx, WriteTx,
};
use crate::time::Timestamp;

pub use input::{NewProject, ProjectFields};
pub use settings::{SECRECY as SETTINGS_SECRECY, Settings};
pub use visibility::{current_project, hidden_from, is_visible, list, visible};

/// What lists show of a project, and what rules decide by.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// What rules decide by.
    pub head: Head,
    /// The summary form of the API document, without what never differs.
    pub shown: Shown,
}

/// What rules decide by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The organization it belongs to.
    pub organization: OrganizationId,
    /// Its number.
    pub id: ProjectId,
    /// Whether plain members need a grant to see it.
    pub access_control: bool,
}

/// The summary form of the API document, without `ingested_event`, which never differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ProjectFixed)]
pub struct Shown {
    /// Its number.
    pub id: ProjectId,
    /// Its UUID.
    pub uuid: uuid::Uuid,
    /// The organization it belongs to.
    pub organization: OrganizationId,
    /// The public token that events are sent with.
    pub api_token: String,
    /// Its name, not necessarily its alone.
    pub name: String,
    /// Whether the snippet was set up.
    pub completed_snippet_onboarding: bool,
    /// Which products were set up.
    pub has_completed_onboarding_for: Option<Value>,
    /// Whether it holds demonstration data.
    pub is_demo: bool,
    /// Its time zone: a name of the IANA database, such as `Europe/Berlin`.
    #[schema(examples("Europe/Berlin"))]
    pub timezone: String,
    /// Whether plain members need a grant to see it.
    pub access_control: bool,
}

/// By its number alone, which is unique over all organizations.
pub const BY_ID: Index<Project, ProjectId> =
    Index::unique(Table::ProjectsById, |project| Some(project.head.id));
/// The private ones of an organization: the few that a list may have to pass over.
pub const PRIVATE: Index<Project, OrganizationId> =
    Index::many(Table::ProjectsPrivate, |project| {
        project.head.access_control.then_some(project.head.organization)
    });

impl Record for Project {
    const TABLE: Table = Table::Projects;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_ID, &PRIVATE];
    const COUNTS: &'static [Count<Self>] =
        &[Count::per(|project| Some(project.head.organization.encoded()))];
    type Key = (OrganizationId, ProjectId);
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> (OrganizationId, ProjectId) {
        (self.head.organization, self.head.id)
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.head.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![
            Reference::to::<Organization>(&self.head.organization),
            Reference::to::<Settings>(&self.key()),
        ]
    }
}

/// The token that events are sent with is in no export without secrets; a new file needs one.
pub const SECRECY: Secrecy<Project> = Secrecy::Member {
    name: "api_token",
    anew: |draw| Some(format!("\"{}\"", new_api_token(draw))),
};

fn new_api_token(draw: &mut Draw) -> String {
    format!("phc_{}", draw.token())
}

/// Makes a project and makes it the maker's current one.
///
/// # Errors
/// 403 for a plain member, unless it is a demonstration; 400 for a field.
pub fn create(
    tx: &mut WriteTx<'_>,
    caller: &Membership,
    new: &NewProject,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<ProjectId> {
    if !new.is_demo && !caller.level.administers() {
        return Err(Error::denied("Your organization access level is insufficient."));
    }
    let fields = new.fields.get()?;
    input::require_creatable(fields)?;
    require_may_restrict(caller, fields)?;
    let organization = caller.organization;
    let id = ProjectId(tx.next_number(Table::Projects)?);
    let mut project = Project {
        head: Head { organization, id, access_control: false },
        shown: Shown {
            id,
            uuid: draw.uuid(now),
            organization,
            api_token: new_api_token(draw),
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
    input::apply(fields.clone(), &mut project, &mut settings)?;
    tx.put(&project)?;
    tx.put(&settings)?;
    users::set_current(tx, caller.user, organization, Some(id))?;
    Ok(id)
}

/// Gives a new organization its owner and its first project.
///
/// # Errors
/// 404 when the organization or the user is gone; 400 for a field of the project.
pub fn create_first(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    owner: UserId,
    new: &NewProject,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<(Membership, ProjectId)> {
    let owner = members::create(tx, organization, owner, Level::Owner, draw, now)?;
    let project = create(tx, &owner, new, draw, now)?;
    Ok((owner, project))
}

/// Changes a project.
///
/// # Errors
/// 404 when it is gone; 403 where a plain member sends `access_control`; 400 for a field.
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
    require_may_restrict(caller, fields)?;
    if let Some(dashboard) = fields.primary_dashboard.clone().value()
        && !is_live_dashboard(tx, id, dashboard)?
    {
        return Err(Error::field(
            "primary_dashboard",
            "invalid_input",
            "Dashboard does not belong to this team.",
        ));
    }
    let (mut project, mut settings) = before.clone();
    input::apply(fields.clone(), &mut project, &mut settings)?;
    if (&project, &settings) == (&before.0, &before.1) {
        return Ok(());
    }
    settings.shown.updated_at = now;
    if project == before.0 {
        tx.touch::<Project>(&key)?;
    } else {
        tx.put(&project)?;
    }
    tx.put(&settings)
}

/// Removes a project: from here on nothing in it can be reached.
///
/// # Errors
/// 404 when it is gone.
pub fn remove(tx: &mut WriteTx<'_>, organization: OrganizationId, id: ProjectId) -> Result<()> {
    tx.remove::<Project>(&(organization, id))?.ok_or_else(Error::not_found)?;
    tx.remove::<Settings>(&(organization, id))?;
    Ok(())
}

fn require_may_restrict(caller: &Membership, fields: &ProjectFields) -> Result<()> {
    if fields.access_control.is_some() && !caller.level.administers() {
        return Err(Error::denied(
            "Your organization access level is insufficient to configure project access restrictions.",
        ));
    }
    Ok(())
}

/// The project with this number, in whichever organization.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find_by_id(tx: &impl Tx, id: ProjectId) -> Result<Option<Head>> {
    match tx.lookup(&BY_ID, &id)? {
        Some(key) => tx.head::<Project>(&key),
        None => Ok(None),
    }
}

/// Appends the summary form of the API document. `shown` is the record's JSON.
pub fn write_summary(shown: &[u8], out: &mut Vec<u8>) {
    Object::begin(out).splice(shown).raw("ingested_event", b"false").end();
}

/// What the project's full form shows of the caller and the moment.
pub struct Viewer<'v> {
    /// The caller's membership.
    pub member: &'v Membership,
    /// A signed token for the stream of live events.
    pub live_events_token: String,
}

/// The full form of the API document.
///
/// # Errors
/// 404 when the project is gone.
pub fn body(tx: &impl Tx, viewer: &Viewer<'_>, id: ProjectId) -> Result<Versioned> {
    let member = viewer.member;
    let key = (member.organization, id);
    let (head, version, own) = tx
        .view::<Project, _>(&key, |row| Ok((row.head, row.version, row.shown.to_vec())))?
        .ok_or_else(Error::not_found)?;
    let settings =
        tx.view::<Settings, _>(&key, |row| Ok(row.shown.to_vec()))?.ok_or_else(Error::not_found)?;
    let mut json = Vec::with_capacity(4096);
    Object::begin(&mut json)
        .splice(&own)
        .splice(&settings)
        .field("effective_membership_level", &effective_level(tx, member, &head)?)?
        .raw("has_group_types", b"false")
        .field("live_events_token", &viewer.live_events_token)?
        .raw("person_on_events_querying_enabled", br#""false""#)
        .raw("default_modifiers", br#""{}""#)
        .raw("product_intents", br#""[]""#)
        .end();
    Ok(Versioned::new(version, json))
}

/// The caller's level for a project (facts-org §5.3): the organization level, but the grant's for a
/// plain member of a private one.
fn effective_level(tx: &impl Tx, member: &Membership, project: &Head) -> Result<Option<i64>> {
    if !project.access_control || member.level.administers() {
        return Ok(Some(member.level.number()));
    }
    Ok(grants::find(tx, project, member.user)?.and_then(grants::GrantLevel::number))
}
