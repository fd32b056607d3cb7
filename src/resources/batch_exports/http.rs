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
    OrganizationBatchExportFields, SentPatch,
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

/// The routes of batch exports.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("batch_export:read");
    let write = Needs::scope("batch_export:write");
    routes
        .get(IN_ORGANIZATION, "batch_exports_list", read, list_in_organization)
        .answers(200, "BatchExportList");
    routes
        .post(IN_ORGANIZATION, "batch_exports_create", write, create_in_organization)
        .takes::<OrganizationBatchExportFields>()
        .answers(201, "BatchExport");
    routes
        .get(ONE_IN_ORGANIZATION, "batch_exports_retrieve", read, retrieve::<InOrganization>)
        .answers(200, "BatchExport");
    routes
        .patch(ONE_IN_ORGANIZATION, "batch_exports_partial_update", write, update::<InOrganization>)
        .takes::<BatchExportPatch>()
        .answers(200, "BatchExport");
    routes.delete(ONE_IN_ORGANIZATION, "batch_exports_destroy", write, destroy::<InOrganization>);
    routes
        .post(PAUSE_IN_ORGANIZATION, "batch_exports_pause_create", write, pause::<InOrganization>)
        .takes::<BatchExportState>()
        .empty(200);
    routes
        .post(
            UNPAUSE_IN_ORGANIZATION,
            "batch_exports_unpause_create",
            write,
            unpause::<InOrganization>,
        )
        .takes::<BatchExportState>()
        .empty(200);
    routes
        .get(IN_PROJECT, "projects_batch_exports_list", read, list_in_project)
        .answers(200, "BatchExportList");
    routes
        .post(IN_PROJECT, "projects_batch_exports_create", write, create_in_project)
        .takes::<BatchExportFields>()
        .answers(201, "BatchExport");
    routes
        .get(ONE_IN_PROJECT, "projects_batch_exports_retrieve", read, retrieve::<InProject>)
        .answers(200, "BatchExport");
    routes
        .patch(ONE_IN_PROJECT, "projects_batch_exports_partial_update", write, update::<InProject>)
        .takes::<BatchExportPatch>()
        .answers(200, "BatchExport");
    routes.delete(ONE_IN_PROJECT, "projects_batch_exports_destroy", write, destroy::<InProject>);
    routes
        .post(PAUSE_IN_PROJECT, "projects_batch_exports_pause_create", write, pause::<InProject>)
        .takes::<BatchExportState>()
        .empty(200);
    routes
        .post(
            UNPAUSE_IN_PROJECT,
            "projects_batch_exports_unpause_create",
            write,
            unpause::<InProject>,
        )
        .takes::<BatchExportState>()
        .empty(200);
}

async fn list_in_organization(at: Admitted<InOrganization>, page: Page) -> Answered {
    let hidden = hidden_from(&*at.tx, &at.place.member)?;
    page.walking(!hidden.is_empty())
        .answer(move |page| {
            let organization = at.place.member.organization;
            super::list_in_organization(
                &*at.tx,
                organization,
                &hidden,
                page.window(Order::Descending),
            )
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
    page.answer(move |page| {
        super::list_in_project(&*at.tx, at.place.project.id, page.window(Order::Descending))
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
