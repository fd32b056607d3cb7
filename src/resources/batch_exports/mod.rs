//! Batch exports: what a project exports, how often, and where. Steward stores exports but does not run them. See
//! `docs/spec/batch-exports.md`.

mod api;
mod destination;
mod hogql;
pub mod http;

use std::collections::HashSet;
use std::fmt;

use crate::ids::BatchExportId;
use crate::resources::members::Membership;
use crate::resources::projects::{self, Project};
use crate::resources::shared::prelude::*;
use crate::resources::shared::reading::{walk_page, walk_visible};

pub use api::{
    BatchExportFields, BatchExportPatch, BatchExportState, OrganizationBatchExportFields,
    PatchBody, RECORDS,
};
pub use destination::Target;

/// A batch export.
pub type BatchExport = RecordOf<Meta, Fields>;

/// The fields of a batch export that access rules and lists need.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The id of the export.
    pub id: BatchExportId,
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the export.
    pub project: ProjectId,
    /// The number of the export in order of creation, which sorts lists.
    pub serial: u64,
}

/// A batch export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = BatchExport)]
pub struct Fields {
    /// The id of the export.
    pub id: BatchExportId,
    /// The project of the export.
    pub team_id: ProjectId,
    /// The name of the export.
    pub name: String,
    /// The model that it exports.
    #[schema(value_type = Option<api::Models>)]
    pub model: Option<String>,
    /// The destination of the export, without secrets.
    pub destination: Target,
    /// How often the export runs.
    #[schema(value_type = api::Intervals)]
    pub interval: String,
    /// Whether it is paused.
    pub paused: bool,
    /// When the export was created.
    pub created_at: Timestamp,
    /// When the export was last updated.
    pub last_updated_at: Timestamp,
    /// When the export was last paused.
    pub last_paused_at: Option<Timestamp>,
    /// The export does not run before this time.
    pub start_at: Option<Timestamp>,
    /// The export does not run after this time.
    pub end_at: Option<Timestamp>,
    /// The latest runs. Always empty: Steward does not run exports.
    #[schema(value_type = Vec<Value>, max_items = 0)]
    pub latest_runs: [(); 0],
    /// The rows and columns to export, in `HogQL`.
    pub hogql_query: Option<String>,
    /// The columns of the query. Always null.
    #[schema(value_type = Option<Value>)]
    pub schema: (),
    /// The filter for the rows to export.
    pub filters: Option<Value>,
}

/// The key of an export: its project and its id.
pub type ExportKey = (ProjectId, BatchExportId);

/// The export with an id. Ids are unique over all projects.
pub const BY_ID: Index<BatchExport, BatchExportId> =
    Index::unique(Table::BatchExportsById, |export| Some(export.meta.id));
/// The exports of an organization, oldest first.
pub const OF_ORGANIZATION: Index<BatchExport, (OrganizationId, u64)> =
    Index::many(Table::BatchExportsOfOrganization, |export| {
        Some((export.meta.organization, export.meta.serial))
    });
/// The exports of a project, oldest first.
pub const OF_PROJECT: Index<BatchExport, (ProjectId, u64)> =
    Index::many(Table::BatchExportsOfProject, |export| {
        Some((export.meta.project, export.meta.serial))
    });

impl_record!(BatchExport {
    table: BatchExports,
    key: |export| -> ExportKey { (export.meta.project, export.meta.id) },
    parts: meta: Meta, fields: Fields,
    indexes: [&BY_ID, &OF_ORGANIZATION, &OF_PROJECT],
    counts: [
        |export| Some(export.meta.organization.encoded()),
        |export| Some(export.meta.project.encoded()),
    ],
    owner: |export, _| Ok(Some(export.meta.organization.owner())),
    references: |export| [
        Reference::to::<Project>(&(export.meta.organization, export.meta.project)),
    ],
});

/// Creates an export in a project.
///
/// # Errors
/// 400 for an invalid field.
pub fn create(
    tx: &mut WriteTx<'_>,
    project: &projects::Meta,
    new: &Parsed<BatchExportFields>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<BatchExportId> {
    let new = new.get()?.clone();
    let id = BatchExportId(rng.uuid(now));
    let meta = Meta {
        id,
        organization: project.organization,
        project: project.id,
        serial: tx.next_number(Table::BatchExports)?,
    };
    let secrets = new.destination.secrets.clone();
    tx.put(&BatchExport { meta, fields: api::shown(new, (id, project.id), now) })?;
    put_secrets(tx, (project.id, id), secrets)?;
    Ok(id)
}

/// Returns the project that the body names, at an organization's path.
///
/// # Errors
/// 400 if the organization has no such project or the member may not see it.
pub fn named_project(tx: &dyn Raw, member: &Membership, sent: u64) -> Result<projects::Meta> {
    let found = projects::find_visible(tx, member, ProjectId(sent))?;
    found.ok_or_else(|| does_not_exist("project_id", sent))
}

/// Returns the key of an export of an organization, if the member may see its project.
///
/// # Errors
/// 404 if the export does not exist, its project was deleted or the member may not see the project.
pub fn find_in_organization(
    tx: &dyn Raw,
    member: &Membership,
    id: BatchExportId,
) -> Result<ExportKey> {
    let (project, _) = tx.lookup(&BY_ID, &id)?.ok_or_else(Error::not_found)?;
    projects::find_visible(tx, member, project)?.ok_or_else(Error::not_found)?;
    Ok((project, id))
}

/// Updates an export. A patch that changes nothing also leaves `last_updated_at`.
///
/// # Errors
/// 404 if the export does not exist, 400 for an invalid field.
pub fn update(
    tx: &mut WriteTx<'_>,
    of: ExportKey,
    patch: &PatchBody,
    now: Timestamp,
) -> Result<()> {
    let mut export: BatchExport = tx.get(&of)?;
    let before = export.fields.clone();
    let secrets = tx.find::<Secrets>(&of)?.map(|secrets| secrets.values).unwrap_or_default();
    let (patch, destination) = patch.get(&before.destination, &secrets)?;
    patch.clone().apply_to(&mut export.fields);
    let mut kept = secrets.clone();
    if let Some(destination) = destination {
        export.fields.destination = destination.target;
        kept = destination.secrets;
    }
    if export.fields == before && kept == secrets {
        return Ok(());
    }
    export.fields.last_updated_at = now;
    tx.put(&export)?;
    put_secrets(tx, of, kept)
}

/// Pauses or unpauses an export. Unpausing keeps `last_paused_at`. An export that is in this state already stays
/// unchanged. The fields of the body are validated but not applied.
///
/// # Errors
/// 404 if the export does not exist, 400 for an invalid field.
pub fn set_paused(
    tx: &mut WriteTx<'_>,
    of: ExportKey,
    paused: bool,
    sent: &Parsed<BatchExportState>,
    now: Timestamp,
) -> Result<()> {
    let mut export: BatchExport = tx.get(&of)?;
    sent.get()?;
    if export.fields.paused == paused {
        return Ok(());
    }
    export.fields.paused = paused;
    if paused {
        export.fields.last_paused_at = Some(now);
    }
    export.fields.last_updated_at = now;
    tx.put(&export)
}

/// Deletes an export and its secrets.
///
/// # Errors
/// 404 if the export does not exist.
pub fn delete(tx: &mut WriteTx<'_>, of: ExportKey) -> Result<()> {
    tx.remove::<Secrets>(&of)?;
    tx.remove::<BatchExport>(&of)?.map(drop).ok_or_else(Error::not_found)
}

/// Lists the exports of a project, newest first. Returns the total and the items in `window` as the items of a JSON
/// array.
pub fn list_in_project(tx: &dyn Raw, project: ProjectId, window: Window) -> Result<(u64, Vec<u8>)> {
    let mut items = JsonItems::default();
    let push = |row: Row<'_, BatchExport>| items.push(row.json());
    let count = walk_page(tx, &OF_PROJECT, &project, window, push)?;
    Ok((count, items.into_bytes()))
}

/// Lists the exports of all projects of an organization except the `hidden` ones. Returns the same as
/// [`list_in_project`].
pub fn list_in_organization(
    tx: &dyn Raw,
    organization: OrganizationId,
    hidden: &HashSet<ProjectId>,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let mut hidden_exports = 0;
    for project in hidden {
        hidden_exports += tx.count::<BatchExport>(project)?;
    }
    let mut items = JsonItems::default();
    let keep = |meta: &Meta| !hidden.contains(&meta.project);
    let push = |row: Row<'_, BatchExport>| items.push(row.json());
    let count =
        walk_visible(tx, &OF_ORGANIZATION, &organization, window, hidden_exports, keep, push)?;
    Ok((count, items.into_bytes()))
}

/// Returns the JSON of an export.
///
/// # Errors
/// 404 if the export does not exist.
pub fn body(tx: &dyn Raw, of: ExportKey) -> Result<Versioned> {
    let fields = tx.view(&of, |row: Row<'_, BatchExport>| {
        Ok(Versioned::new(row.version, row.fields.to_vec()))
    })?;
    fields.ok_or_else(Error::not_found)
}

/// The secret values of an export's destination, which no response contains. Stored only if there are any.
pub struct Secrets {
    of: ExportKey,
    values: JsonObject,
}

/// Hides the values.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("of", &self.of).finish_non_exhaustive()
    }
}

impl_record!(Secrets {
    table: BatchExportSecrets,
    key: |secrets| -> ExportKey { secrets.of },
    parts: of: ExportKey, values: JsonObject,
    owner: |secrets, tx| {
        Ok(tx.meta::<BatchExport>(&secrets.of)?.map(|meta| meta.organization.owner()))
    },
    references: |secrets| [Reference::to::<BatchExport>(&secrets.of)],
});

/// Stores the secret values of an export, or deletes the record if there are none.
fn put_secrets(tx: &mut WriteTx<'_>, of: ExportKey, values: JsonObject) -> Result<()> {
    if values.is_empty() {
        return tx.remove::<Secrets>(&of).map(drop);
    }
    tx.put(&Secrets { of, values })
}
