//! Batch exports of a project: what is to be exported, how often, and where to (API document, Batch export;
//! decisions §4; facts-crosscutting §e). They are kept and shown; nothing here runs them.

mod destination;
mod hogql;
pub mod http;
mod input;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{BatchExportId, OrganizationId, ProjectId};
use crate::input::{JsonObject, Parsed};
use crate::json::Items;
use crate::resources::members::Membership;
use crate::resources::projects::{self, Project};
use crate::secret::Draw;
use crate::store::{
    Count, Index, Indexed, Key, Owner, Record, Reference, Row, Table, Tx, Window, WriteTx,
};
use crate::time::Timestamp;

pub use destination::{Destination, DestinationFields, DestinationPatch, Service, Target};
pub use input::{
    BatchExportFields, BatchExportPatch, BatchExportState, OrganizationBatchExportFields, SentPatch,
};

/// A batch export.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchExport {
    /// What rules and lists decide by.
    pub head: Head,
    /// Its fields.
    pub shown: Shown,
}

/// What rules and lists decide by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Its id.
    pub id: BatchExportId,
    /// The organization that its project is in.
    pub organization: OrganizationId,
    /// Its project.
    pub project: ProjectId,
    /// Counts the exports of the file: lists are sorted by it.
    pub serial: u64,
}

/// What is exported, how often, and where to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = BatchExport)]
pub struct Shown {
    /// Its id.
    pub id: BatchExportId,
    /// Its project.
    pub team_id: ProjectId,
    /// What people call it.
    pub name: String,
    /// What it exports.
    #[schema(value_type = Option<input::Models>)]
    pub model: Option<String>,
    /// Where it goes, without the secrets.
    pub destination: Target,
    /// How often it runs.
    #[schema(value_type = input::Intervals)]
    pub interval: String,
    /// Whether it is paused.
    pub paused: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub last_updated_at: Timestamp,
    /// When it was last paused.
    pub last_paused_at: Option<Timestamp>,
    /// Before which it does not run.
    pub start_at: Option<Timestamp>,
    /// After which it does not run.
    pub end_at: Option<Timestamp>,
    /// Its runs, of which there are none: nothing here runs it.
    #[schema(value_type = Vec<Value>, max_items = 0)]
    pub latest_runs: [(); 0],
    /// What it exports of the model, in `HogQL`.
    pub hogql_query: Option<String>,
    /// What the query's columns would be.
    #[schema(value_type = Option<Value>)]
    pub schema: (),
    /// Which rows it exports.
    pub filters: Option<Value>,
}

/// Where an export lies: its project, and its id.
pub type Of = (ProjectId, BatchExportId);

/// By id alone, which is unique over all projects.
pub const BY_ID: Index<BatchExport, BatchExportId> =
    Index::unique(Table::BatchExportsById, |export| Some(export.head.id));
/// The exports of an organization, oldest first.
pub const OF_ORGANIZATION: Index<BatchExport, (OrganizationId, u64)> =
    Index::many(Table::BatchExportsOfOrganization, |export| {
        Some((export.head.organization, export.head.serial))
    });
/// The exports of a project, oldest first.
pub const OF_PROJECT: Index<BatchExport, (ProjectId, u64)> =
    Index::many(Table::BatchExportsOfProject, |export| {
        Some((export.head.project, export.head.serial))
    });

impl Record for BatchExport {
    const TABLE: Table = Table::BatchExports;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_ID, &OF_ORGANIZATION, &OF_PROJECT];
    const COUNTS: &'static [Count<Self>] = &[
        Count::per(|export| Some(export.head.organization.encoded())),
        Count::per(|export| Some(export.head.project.encoded())),
    ];
    type Key = Of;
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> Of {
        (self.head.project, self.head.id)
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
        vec![Reference::to::<Project>(&(self.head.organization, self.head.project))]
    }
}

/// What of an export's destination is never shown. There is none for an export without secrets.
pub struct Secrets {
    of: Of,
    values: JsonObject,
}

/// Shows nothing of the values.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("of", &self.of).finish_non_exhaustive()
    }
}

impl Record for Secrets {
    const TABLE: Table = Table::BatchExportSecrets;
    type Key = Of;
    type Head = Of;
    type Shown = JsonObject;

    fn key(&self) -> Of {
        self.of
    }

    fn parts(&self) -> (&Of, &JsonObject) {
        (&self.of, &self.values)
    }

    fn join(of: Of, values: JsonObject) -> Self {
        Self { of, values }
    }

    fn owner(&self, tx: &impl Tx) -> Result<Option<Owner>> {
        Ok(tx.head::<BatchExport>(&self.of)?.map(|head| head.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<BatchExport>(&self.of)]
    }
}

/// Adds an export to a project.
///
/// # Errors
/// 400 for a field.
pub fn create(
    tx: &mut WriteTx<'_>,
    project: &projects::Head,
    new: &Parsed<BatchExportFields>,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<BatchExportId> {
    let new = new.get()?.clone();
    let id = BatchExportId(draw.uuid(now));
    let head = Head {
        id,
        organization: project.organization,
        project: project.id,
        serial: tx.next_number(Table::BatchExports)?,
    };
    let secrets = new.destination.secrets.clone();
    tx.put(&BatchExport { head, shown: input::shown(new, (id, project.id), now) })?;
    put_secrets(tx, (project.id, id), secrets)?;
    Ok(id)
}

/// The project that an export is to be added to, by what was sent at an organization's path.
///
/// # Errors
/// 400 for one that the organization lacks or the member may not see.
pub fn named_project(tx: &impl Tx, member: &Membership, sent: u64) -> Result<projects::Head> {
    let found = tx.head::<Project>(&(member.organization, ProjectId(sent)))?;
    if let Some(project) = found
        && projects::is_visible(tx, member, &project)?
    {
        return Ok(project);
    }
    let detail = format!("Invalid pk \"{sent}\" - object does not exist.");
    Err(Error::field("project_id", "does_not_exist", detail))
}

/// Where an export of an organization lies, for a member who may see its project.
///
/// # Errors
/// 404 for no such export, and for one of a removed project or of one that the member may not see.
pub fn find_in_organization(tx: &impl Tx, member: &Membership, id: BatchExportId) -> Result<Of> {
    let (project, _) = tx.lookup(&BY_ID, &id)?.ok_or_else(Error::not_found)?;
    let found = tx.head::<Project>(&(member.organization, project))?;
    let found = found.ok_or_else(Error::not_found)?;
    if projects::is_visible(tx, member, &found)? {
        Ok((project, id))
    } else {
        Err(Error::not_found())
    }
}

/// Changes an export. What says nothing new changes nothing, not even the moment of the last change.
///
/// # Errors
/// 404 for no such export; 400 for a field.
pub fn update(tx: &mut WriteTx<'_>, of: Of, patch: &SentPatch, now: Timestamp) -> Result<()> {
    let mut export: BatchExport = tx.get(&of)?;
    let before = export.shown.clone();
    let secrets = tx.find::<Secrets>(&of)?.map(|secrets| secrets.values).unwrap_or_default();
    let (patch, destination) = patch.get(&before.destination, &secrets)?;
    input::apply(patch.clone(), &mut export.shown);
    let mut kept = secrets.clone();
    if let Some(destination) = destination {
        export.shown.destination = destination.target;
        kept = destination.secrets;
    }
    if export.shown == before && kept == secrets {
        return Ok(());
    }
    export.shown.last_updated_at = now;
    tx.put(&export)?;
    put_secrets(tx, of, kept)
}

fn put_secrets(tx: &mut WriteTx<'_>, of: Of, values: JsonObject) -> Result<()> {
    if values.is_empty() {
        return tx.remove::<Secrets>(&of).map(drop);
    }
    tx.put(&Secrets { of, values })
}

/// Pauses an export; one that is paused stays as it is (decisions §4). The fields are checked and left alone.
///
/// # Errors
/// 404 for no such export; 400 for a field.
pub fn pause(
    tx: &mut WriteTx<'_>,
    of: Of,
    sent: &Parsed<BatchExportState>,
    now: Timestamp,
) -> Result<()> {
    let mut export: BatchExport = tx.get(&of)?;
    sent.get()?;
    if export.shown.paused {
        return Ok(());
    }
    export.shown.paused = true;
    export.shown.last_paused_at = Some(now);
    export.shown.last_updated_at = now;
    tx.put(&export)
}

/// Lets an export run again, and keeps when it was last paused; one that is not paused stays as it is
/// (decisions §4). The fields are checked and left alone.
///
/// # Errors
/// 404 for no such export; 400 for a field.
pub fn unpause(
    tx: &mut WriteTx<'_>,
    of: Of,
    sent: &Parsed<BatchExportState>,
    now: Timestamp,
) -> Result<()> {
    let mut export: BatchExport = tx.get(&of)?;
    sent.get()?;
    if !export.shown.paused {
        return Ok(());
    }
    export.shown.paused = false;
    export.shown.last_updated_at = now;
    tx.put(&export)
}

/// Removes an export, and its secrets with it.
///
/// # Errors
/// 404 for no such export.
pub fn remove(tx: &mut WriteTx<'_>, of: Of) -> Result<()> {
    tx.remove::<Secrets>(&of)?;
    tx.remove::<BatchExport>(&of)?.map(drop).ok_or_else(Error::not_found)
}

/// The exports of a project, newest first: how many there are in all, and those in `window` as the items of
/// a JSON array.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list_in_project(tx: &impl Tx, project: ProjectId, window: Window) -> Result<(u64, Vec<u8>)> {
    let count = tx.count::<BatchExport>(&project)?;
    let mut items = Items::default();
    if window.begins_within(count) {
        tx.walk(&OF_PROJECT, &project, window, |row| push(&mut items, &row))?;
    }
    Ok((count, items.into_bytes()))
}

/// Those of `projects` that have exports.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn with_exports(
    tx: &impl Tx,
    projects: impl IntoIterator<Item = ProjectId>,
) -> Result<BTreeSet<ProjectId>> {
    let mut found = BTreeSet::new();
    for project in projects {
        if tx.count::<BatchExport>(&project)? > 0 {
            found.insert(project);
        }
    }
    Ok(found)
}

/// The same over all projects of an organization but the `hidden` ones.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list_in_organization(
    tx: &impl Tx,
    organization: OrganizationId,
    hidden: &BTreeSet<ProjectId>,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let mut count = tx.count::<BatchExport>(&organization)?;
    for project in hidden {
        count = count.saturating_sub(tx.count::<BatchExport>(project)?);
    }
    let mut items = Items::default();
    if !window.begins_within(count) {
        return Ok((count, items.into_bytes()));
    }
    if hidden.is_empty() {
        tx.walk(&OF_ORGANIZATION, &organization, window, |row| push(&mut items, &row))?;
    } else {
        let keep = |head: &Head| !hidden.contains(&head.project);
        tx.walk_kept(&OF_ORGANIZATION, &organization, window, keep, |row| push(&mut items, &row))?;
    }
    Ok((count, items.into_bytes()))
}

fn push(items: &mut Items, row: &Row<'_, BatchExport>) -> Result<()> {
    items.push(|out| {
        out.extend_from_slice(row.shown);
        Ok(())
    })
}

/// A batch export as answers show it.
///
/// # Errors
/// 404 for no such export.
pub fn body(tx: &impl Tx, of: Of) -> Result<Versioned> {
    let shown = tx.view(&of, |row: Row<'_, BatchExport>| {
        Ok(Versioned::new(row.version, row.shown.to_vec()))
    })?;
    shown.ok_or_else(Error::not_found)
}
