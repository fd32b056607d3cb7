//! `/api/organizations/:organization_id/batch_exports/` and `/api/projects/:project_id/batch_exports/`.

use std::collections::BTreeSet;

use axum::extract::State;

use crate::access::{Admitted, Changing, InOrganization, InProject, Needs, Place};
use crate::error::Result;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::page::Page;
use crate::http::path::Id;
use crate::http::routes::Routes;
use crate::ids::{BatchExportId, ProjectId};
use crate::input::Parsed;
use crate::resources::members::Membership;
use crate::resources::{projects, sweeps};
use crate::secret::Seed;
use crate::state::App;
use crate::store::{Order, Tx};

use super::{
    BatchExport, BatchExportFields, BatchExportPatch, BatchExportState, Of,
    OrganizationBatchExportFields, SentPatch, Shown,
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

/// An example of an export.
const EXPORT: &str = r#"{"name": "Nightly", "interval": "day", "destination":
    {"type": "HTTP", "config": {"url": "https://events.corp.example/in", "token": "t0k3n"}}}"#;
/// One that names its project.
const IN_PROJECT_1: &str = r#"{"project_id": 1, "name": "Nightly", "interval": "day", "destination":
    {"type": "HTTP", "config": {"url": "https://events.corp.example/in", "token": "t0k3n"}}}"#;

/// The routes of batch exports.
pub fn routes(routes: &mut Routes) {
    /// What can be done with one export, wherever it is reached: at these paths, under these names.
    fn one<P: Holds>(
        routes: &mut Routes,
        [path, pause_path, unpause_path]: [&'static str; 3],
        [retrieves, updates, destroys, pauses, unpauses]: [&'static str; 5],
    ) {
        let read = Needs::scope("batch_export:read");
        let write = Needs::scope("batch_export:write");
        routes
            .get(path, retrieves, read, retrieve::<P>)
            .summary("Retrieve a batch export, without its secrets.")
            .id::<BatchExportId>()
            .answers::<Shown>(200);
        routes
            .patch(path, updates, write, update::<P>)
            .summary("Change a batch export. What is left out of its configuration stays.")
            .id::<BatchExportId>()
            .takes::<BatchExportPatch>()
            .example(r#"{"interval": "day"}"#)
            .answers::<Shown>(200);
        routes
            .delete(path, destroys, write, destroy::<P>)
            .summary("Remove a batch export.")
            .id::<BatchExportId>();
        routes
            .post(pause_path, pauses, write, pause::<P>)
            .summary("Pause a batch export.")
            .id::<BatchExportId>()
            .takes::<BatchExportState>()
            .example("{}")
            .empty(200);
        routes
            .post(unpause_path, unpauses, write, unpause::<P>)
            .summary("Let a paused batch export run.")
            .id::<BatchExportId>()
            .takes::<BatchExportState>()
            .example("{}")
            .empty(200);
    }

    let read = Needs::scope("batch_export:read");
    let write = Needs::scope("batch_export:write");
    routes.noun(
        "batch_exports",
        "What is exported of a project, how often, and where to. Nothing here runs them.",
    );
    routes
        .get(IN_ORGANIZATION, "batch_exports_list", read, list_in_organization)
        .summary("List the batch exports of an organization, newest first.")
        .lists::<Shown>();
    routes
        .post(IN_ORGANIZATION, "batch_exports_create", write, create_in_organization)
        .summary("Add a batch export to one of the organization's projects.")
        .takes::<OrganizationBatchExportFields>()
        .example(IN_PROJECT_1)
        .answers::<Shown>(201);
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
        .lists::<Shown>();
    routes
        .post(IN_PROJECT, "projects_batch_exports_create", write, create_in_project)
        .summary("Add a batch export to a project.")
        .takes::<BatchExportFields>()
        .example(EXPORT)
        .answers::<Shown>(201);
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

async fn list_in_organization(at: Admitted<InOrganization>, page: Page) -> Answered {
    page.answer(at, |tx, at, page| {
        let hidden = hidden_from(tx, &at.place.member)?;
        let organization = at.place.member.organization;
        super::list_in_organization(tx, organization, &hidden, page.window(Order::Descending))
    })
    .await
}

/// The projects whose exports the member may not see, of those that have any: private ones, and those that
/// were removed and are yet to be swept.
fn hidden_from(tx: &impl Tx, member: &Membership) -> Result<BTreeSet<ProjectId>> {
    let removed = sweeps::removed_projects(tx, member.organization)?;
    super::with_exports(tx, projects::hidden_from(tx, member)?.into_iter().chain(removed))
}

async fn list_in_project(at: Admitted<InProject>, page: Page) -> Answered {
    page.answer(at, |tx, at, page| {
        super::list_in_project(tx, at.place.project.id, page.window(Order::Descending))
    })
    .await
}

async fn create_in_organization(
    State(app): State<App>,
    at: Changing<InOrganization>,
    Body(sent): Body,
) -> Answered {
    let (new, seed) = (Parsed::<OrganizationBatchExportFields>::of(&sent), Seed::take());
    app.post(&at, move |tx, _, place: &InOrganization, now| {
        let new = new.get()?;
        let project = super::named_project(tx, &place.member, new.project)?;
        let id = super::create(tx, &project, &new.fields, &mut seed.draw(), now)?;
        super::body(tx, (project.id, id)).map(Answer::Created)
    })
    .await
}

async fn create_in_project(
    State(app): State<App>,
    at: Changing<InProject>,
    Body(sent): Body,
) -> Answered {
    let (new, seed) = (Parsed::<BatchExportFields>::of(&sent), Seed::take());
    app.post(&at, move |tx, _, place: &InProject, now| {
        let id = super::create(tx, &place.project, &new, &mut seed.draw(), now)?;
        super::body(tx, (place.project.id, id)).map(Answer::Created)
    })
    .await
}

/// Where exports are reached by their ids.
trait Holds: Place {
    /// Where the export with this id lies, which is in this place.
    ///
    /// # Errors
    /// 404 where none is, as far as the caller may see.
    fn place_of(&self, tx: &impl Tx, id: BatchExportId) -> Result<Of>;
}

impl Holds for InOrganization {
    fn place_of(&self, tx: &impl Tx, id: BatchExportId) -> Result<Of> {
        super::find_in_organization(tx, &self.member, id)
    }
}

impl Holds for InProject {
    fn place_of(&self, _: &impl Tx, id: BatchExportId) -> Result<Of> {
        Ok((self.project.id, id))
    }
}

async fn retrieve<P: Holds>(at: Admitted<P>, Id(id): Id<BatchExportId>) -> Answered {
    let id = id?;
    super::body(&*at.tx, at.place.place_of(&*at.tx, id)?).map(Answer::Shown)
}

async fn update<P: Holds>(
    State(app): State<App>,
    at: Changing<P>,
    Id(id): Id<BatchExportId>,
    Body(sent): Body,
) -> Answered {
    let (id, patch, expected) = (id?, SentPatch::of(&sent), at.expected.clone());
    app.change(&at, move |tx, _, place: &P, now| {
        let of = place.place_of(tx, id)?;
        super::update(tx, of, &patch, now)?;
        expected.require::<BatchExport>(tx, &of)?;
        super::body(tx, of)
    })
    .await
    .map(Answer::Shown)
}

async fn destroy<P: Holds>(
    State(app): State<App>,
    at: Changing<P>,
    Id(id): Id<BatchExportId>,
) -> Answered {
    let (id, expected) = (id?, at.expected.clone());
    app.change(&at, move |tx, _, place: &P, _| {
        let of = place.place_of(tx, id)?;
        super::remove(tx, of)?;
        expected.require::<BatchExport>(tx, &of)
    })
    .await?;
    Ok(Answer::NoContent)
}

async fn pause<P: Holds>(
    State(app): State<App>,
    at: Changing<P>,
    Id(id): Id<BatchExportId>,
    Body(sent): Body,
) -> Answered {
    let (id, sent) = (id?, Parsed::<BatchExportState>::of(&sent));
    app.post(&at, move |tx, _, place: &P, now| {
        super::pause(tx, place.place_of(tx, id)?, &sent, now)?;
        Ok(Answer::Empty)
    })
    .await
}

async fn unpause<P: Holds>(
    State(app): State<App>,
    at: Changing<P>,
    Id(id): Id<BatchExportId>,
    Body(sent): Body,
) -> Answered {
    let (id, sent) = (id?, Parsed::<BatchExportState>::of(&sent));
    app.post(&at, move |tx, _, place: &P, now| {
        super::unpause(tx, place.place_of(tx, id)?, &sent, now)?;
        Ok(Answer::Empty)
    })
    .await
}
