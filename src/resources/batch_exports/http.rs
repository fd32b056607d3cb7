//! `/api/organizations/:organization_id/batch_exports/` and `/api/projects/:project_id/batch_exports/`.

use crate::auth::Tenant;
use crate::http::prelude::*;
use crate::ids::BatchExportId;
use crate::resources::{cascade_delete, projects};

use super::{
    BatchExport, BatchExportFields, BatchExportPatch, BatchExportState, ExportKey, Fields,
    OrganizationBatchExportFields, PatchBody,
};

const IN_ORGANIZATION: &str = "/api/organizations/{organization_id}/batch_exports/";
const ONE_IN_ORGANIZATION: &str = "/api/organizations/{organization_id}/batch_exports/{id}/";
const PAUSE_IN_ORGANIZATION: &str =
    "/api/organizations/{organization_id}/batch_exports/{id}/pause/";
const UNPAUSE_IN_ORGANIZATION: &str =
    "/api/organizations/{organization_id}/batch_exports/{id}/unpause/";
const IN_PROJECT: &str = "/api/projects/{project_id}/batch_exports/";
const ONE_IN_PROJECT: &str = "/api/projects/{project_id}/batch_exports/{id}/";
const PAUSE_IN_PROJECT: &str = "/api/projects/{project_id}/batch_exports/{id}/pause/";
const UNPAUSE_IN_PROJECT: &str = "/api/projects/{project_id}/batch_exports/{id}/unpause/";

/// An example of a batch export.
const EXPORT: &str = r#"{"name": "Nightly", "interval": "day", "destination":
    {"type": "HTTP", "config": {"url": "https://events.corp.example/in", "token": "t0k3n"}}}"#;
/// An example with a project.
const IN_PROJECT_1: &str = r#"{"project_id": 1, "name": "Nightly", "interval": "day", "destination":
    {"type": "HTTP", "config": {"url": "https://events.corp.example/in", "token": "t0k3n"}}}"#;

/// Adds the routes of batch exports.
pub fn routes(routes: &mut Routes) {
    /// Adds the routes of one export below an organization or a project, with these paths and operation ids.
    fn one<P: ExportTenant>(
        routes: &mut Routes,
        [path, pause_path, unpause_path]: [&'static str; 3],
        [retrieves, updates, destroys, pauses, unpauses]: [&'static str; 5],
    ) {
        let read = Requirements::scope("batch_export:read");
        let write = Requirements::scope("batch_export:write");
        routes
            .get(path, retrieves, read, retrieve::<P>)
            .summary("Retrieve a batch export, without its secrets.")
            .id::<BatchExportId>()
            .returns::<Fields>(200);
        routes
            .patch(path, updates, write, update::<P>)
            .summary("Update a batch export. Keys that are left out of its configuration keep their values.")
            .id::<BatchExportId>()
            .body::<BatchExportPatch>()
            .example(r#"{"interval": "day"}"#)
            .returns::<Fields>(200);
        routes
            .delete(path, destroys, write, destroy::<P>)
            .summary("Delete a batch export.")
            .id::<BatchExportId>();
        routes
            .post(pause_path, pauses, write, set_paused::<P, true>)
            .summary("Pause a batch export.")
            .id::<BatchExportId>()
            .body::<BatchExportState>()
            .example("{}")
            .returns_empty(200);
        routes
            .post(unpause_path, unpauses, write, set_paused::<P, false>)
            .summary("Unpause a batch export.")
            .id::<BatchExportId>()
            .body::<BatchExportState>()
            .example("{}")
            .returns_empty(200);
    }

    let read = Requirements::scope("batch_export:read");
    let write = Requirements::scope("batch_export:write");
    routes.resource(
        "batch_exports",
        "The configuration of batch exports of a project. Steward stores exports but does not run them.",
    );
    routes
        .get(IN_ORGANIZATION, "batch_exports_list", read, list_in_organization)
        .summary("List the batch exports of an organization, newest first.")
        .returns_page::<Fields>();
    routes
        .post(IN_ORGANIZATION, "batch_exports_create", write, create_in_organization)
        .summary("Create a batch export in one of the organization's projects.")
        .body::<OrganizationBatchExportFields>()
        .example(IN_PROJECT_1)
        .returns::<Fields>(201);
    one::<InOrganization>(
        routes,
        [ONE_IN_ORGANIZATION, PAUSE_IN_ORGANIZATION, UNPAUSE_IN_ORGANIZATION],
        [
            "batch_exports_retrieve",
            "batch_exports_partial_update",
            "batch_exports_destroy",
            "batch_exports_pause_create",
            "batch_exports_unpause_create",
        ],
    );
    routes
        .get(IN_PROJECT, "projects_batch_exports_list", read, list_in_project)
        .summary("List the batch exports of a project, newest first.")
        .returns_page::<Fields>();
    routes
        .post(IN_PROJECT, "projects_batch_exports_create", write, create_in_project)
        .summary("Create a batch export in a project.")
        .body::<BatchExportFields>()
        .example(EXPORT)
        .returns::<Fields>(201);
    one::<InProject>(
        routes,
        [ONE_IN_PROJECT, PAUSE_IN_PROJECT, UNPAUSE_IN_PROJECT],
        [
            "projects_batch_exports_retrieve",
            "projects_batch_exports_partial_update",
            "projects_batch_exports_destroy",
            "projects_batch_exports_pause_create",
            "projects_batch_exports_unpause_create",
        ],
    );
}

async fn list_in_organization(at: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    page.respond(at, |tx, at, page| {
        // Also deleted projects whose records are not yet deleted.
        let mut hidden = projects::hidden_projects(tx, &at.tenant.member)?;
        let organization = at.tenant.member.organization;
        hidden.extend(cascade_delete::pending_projects(tx, organization)?);
        super::list_in_organization(tx, organization, &hidden, page.window(Order::Descending))
    })
    .await
}

async fn list_in_project(at: ReadAccess<InProject>, page: PageParams) -> ApiResult {
    page.respond(at, |tx, at, page| {
        super::list_in_project(tx, at.tenant.project.id, page.window(Order::Descending))
    })
    .await
}

async fn create_in_organization(
    at: WriteAccess<InOrganization>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (new, seed) = (Parsed::<OrganizationBatchExportFields>::new(&sent), at.app.seed());
    at.post(move |tx, _, tenant: &InOrganization, now| {
        let new = new.get()?;
        let project = super::named_project(tx, &tenant.member, new.project)?;
        let id = super::create(tx, &project, &new.fields, &mut seed.rng(), now)?;
        super::body(tx, (project.id, id)).map(ApiResponse::Created)
    })
    .await
}

async fn create_in_project(at: WriteAccess<InProject>, JsonBody(sent): JsonBody) -> ApiResult {
    let (new, seed) = (Parsed::<BatchExportFields>::new(&sent), at.app.seed());
    at.post(move |tx, _, tenant: &InProject, now| {
        let id = super::create(tx, &tenant.project, &new, &mut seed.rng(), now)?;
        super::body(tx, (tenant.project.id, id)).map(ApiResponse::Created)
    })
    .await
}

/// A path below which exports are addressed by their ids.
trait ExportTenant: Tenant {
    /// Returns the key of the export with this id below this path.
    ///
    /// # Errors
    /// 404 if the export does not exist or the caller may not see it.
    fn key_of(&self, tx: &dyn Raw, id: BatchExportId) -> Result<ExportKey>;
}

impl ExportTenant for InOrganization {
    fn key_of(&self, tx: &dyn Raw, id: BatchExportId) -> Result<ExportKey> {
        super::find_in_organization(tx, &self.member, id)
    }
}

impl ExportTenant for InProject {
    fn key_of(&self, _: &dyn Raw, id: BatchExportId) -> Result<ExportKey> {
        Ok((self.project.id, id))
    }
}

async fn retrieve<P: ExportTenant>(
    at: ReadAccess<P>,
    PathId(id): PathId<BatchExportId>,
) -> ApiResult {
    let id = id?;
    super::body(at.tx(), at.tenant.key_of(at.tx(), id)?).map(ApiResponse::Object)
}

async fn update<P: ExportTenant>(
    at: WriteAccess<P>,
    PathId(id): PathId<BatchExportId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, patch) = (id?, PatchBody::of(&sent));
    at.update::<BatchExport>(move |tx, _, tenant: &P, now| {
        let of = tenant.key_of(tx, id)?;
        super::update(tx, of, &patch, now)?;
        Ok((of, super::body(tx, of)?))
    })
    .await
}

async fn destroy<P: ExportTenant>(
    at: WriteAccess<P>,
    PathId(id): PathId<BatchExportId>,
) -> ApiResult {
    let id = id?;
    at.delete::<BatchExport>(move |tx, _, tenant: &P, _| {
        let of = tenant.key_of(tx, id)?;
        super::delete(tx, of)?;
        Ok(of)
    })
    .await
}

async fn set_paused<P: ExportTenant, const PAUSED: bool>(
    at: WriteAccess<P>,
    PathId(id): PathId<BatchExportId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, sent) = (id?, Parsed::<BatchExportState>::new(&sent));
    at.post(move |tx, _, tenant: &P, now| {
        super::set_paused(tx, tenant.key_of(tx, id)?, PAUSED, &sent, now)?;
        Ok(ApiResponse::Empty)
    })
    .await
}
