//! `/api/organizations/:organization_id/projects/` and `/api/projects/`.

use crate::http::prelude::*;
use crate::resources::access_controls::shared::Shared;
use crate::resources::cascade_delete;
use crate::resources::dashboards::Dashboard;
use crate::resources::members::{Level, Membership};
use crate::resources::shared::prelude::*;
use crate::resources::users::UserFilter;

use super::api::{ProjectBody, ProjectSummary};
use super::visibility::MemberProjectBody;
use super::{NewProject, Project, ProjectFields};

const IN_ORGANIZATION: &str = "/api/organizations/{organization_id}/projects/";
const ONE_IN_ORGANIZATION: &str = "/api/organizations/{organization_id}/projects/{project_id}/";
const OF_MEMBER: &str = "/api/organizations/{organization_id}/members/{user__uuid}/projects/";
const MINE: &str = "/api/projects/";
const RESET_IN_ORGANIZATION: &str =
    "/api/organizations/{organization_id}/projects/{project_id}/reset_token/";
const ONE: &str = "/api/projects/{project_id}/";
const RESET: &str = "/api/projects/{project_id}/reset_token/";

/// Adds the routes of projects.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("project:read");
    let write = Requirements::scope("project:write");
    routes.resource("projects", "Projects of an organization, with their settings.");
    routes
        .get(IN_ORGANIZATION, "organizations_projects_list", read, list_in_organization)
        .summary("List the projects of an organization, oldest first.")
        .returns_page::<ProjectSummary>();
    routes
        .post(IN_ORGANIZATION, "organizations_projects_create", write, create)
        .summary("Create a project, and make it your current project.")
        .body::<ProjectFields>()
        .example(r#"{"name": "Shop", "timezone": "Europe/Berlin"}"#)
        .returns::<ProjectBody>(201);
    routes
        .get(MINE, "projects_list", read, list_mine)
        .summary("List the projects that you may see in all your organizations.")
        .returns_page::<ProjectSummary>();
    let read_access = Requirements::scope("access_control:read");
    routes
        .get(OF_MEMBER, "members_projects_list", read_access, list_of_member)
        .summary("List what a member may do in each project that you may see, and why, oldest project first.")
        .in_path::<UserFilter>()
        .returns_page::<MemberProjectBody>();
    let nested = [
        "organizations_projects_retrieve",
        "organizations_projects_partial_update",
        "organizations_projects_destroy",
    ];
    let own = ["projects_retrieve", "projects_partial_update", "projects_destroy"];
    for (path, operations) in [(ONE_IN_ORGANIZATION, nested), (ONE, own)] {
        let [retrieves, updates, destroys] = operations;
        routes
            .get(path, retrieves, read, retrieve)
            .summary("Retrieve a project.")
            .returns::<ProjectBody>(200);
        routes
            .patch(path, updates, write, update)
            .summary("Update a project.")
            .body::<ProjectFields>()
            .example(r#"{"name": "Shop", "week_start_day": 1}"#)
            .returns::<ProjectBody>(200);
        routes
            .delete(path, destroys, write.level(Level::Admin), destroy)
            .summary("Delete a project with everything in it.");
    }
    for (path, operation) in [
        (RESET_IN_ORGANIZATION, "organizations_projects_reset_token_partial_update"),
        (RESET, "projects_reset_token_partial_update"),
    ] {
        routes
            .patch(path, operation, write.level(Level::Admin), reset_token)
            .summary(
                "Replace the `api_token` of a project. The old one is no longer the project's.",
            )
            .returns::<ProjectBody>(200);
    }
}

async fn list_in_organization(at: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    page.respond(at, |tx, at, page| {
        let mut items = JsonItems::default();
        let window = page.window(Order::Ascending);
        let only = at.caller.key.scoped_projects();
        let count = super::list(tx, &at.tenant.member, only, window, &mut |_, own| {
            items.push(ProjectSummary { own })
        })?;
        Ok((count, items.into_bytes()))
    })
    .await
}

async fn list_of_member(
    at: ReadAccess<InOrganization>,
    PathParam(named): PathParam<UserFilter>,
    page: PageParams,
) -> ApiResult {
    let named = named?;
    page.respond(at, move |tx, at, page| {
        let (caller, key) = (&at.tenant.member, &at.caller.key);
        let user = named.get(tx, caller.user)?;
        let (only, visibility) = (key.scoped_projects(), key.name_visibility());
        let window = page.window(Order::Ascending);
        super::visibility::list_of_member(tx, caller, user, only, visibility, window)
    })
    .await
}

/// Lists the projects that the caller may see in all their organizations, ordered by ID.
async fn list_mine(at: ReadAccess<Global>, page: PageParams) -> ApiResult {
    page.respond(at, |tx, at, page| {
        let Window { offset, limit, .. } = page.window(Order::Ascending);
        let memberships = at.caller.open_memberships(tx, usize::MAX)?;
        let only = at.caller.key.scoped_projects();
        let mine = super::list_visible(tx, &memberships, only)?;
        let mut items = JsonItems::default();
        for key in mine.iter().skip(offset).take(limit) {
            tx.view::<Project, _>(key, |row| items.push(ProjectSummary { own: row.json() }))?;
        }
        Ok((mine.len() as u64, items.into_bytes()))
    })
    .await
}

async fn create(at: WriteAccess<InOrganization>, JsonBody(sent): JsonBody) -> ApiResult {
    let (new, seed, signer) = (NewProject::of(&sent), at.app.seed(), at.app.clone());
    at.post(move |tx, _, tenant: &InOrganization, now| {
        let id = super::create(tx, &tenant.member, &new, &mut seed.rng(), now)?;
        body(tx, &signer, &tenant.member, id).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve(at: ReadAccess<InProject>) -> ApiResult {
    body(at.tx(), &at.app, &at.tenant.member, at.tenant.project.id).map(ApiResponse::Object)
}

async fn update(at: WriteAccess<InProject>, JsonBody(sent): JsonBody) -> ApiResult {
    let (fields, signer) = (Parsed::<ProjectFields>::new(&sent), at.app.clone());
    at.update::<Project>(move |tx, _, tenant: &InProject, now| {
        let id = tenant.project.id;
        super::update(tx, &tenant.member, id, &fields, is_live_dashboard, now)?;
        Ok(((tenant.member.organization, id), body(tx, &signer, &tenant.member, id)?))
    })
    .await
}

async fn reset_token(at: WriteAccess<InProject>, _: IgnoredBody) -> ApiResult {
    let (seed, signer) = (at.app.seed(), at.app.clone());
    at.update::<Project>(move |tx, _, tenant: &InProject, now| {
        let key = (tenant.member.organization, tenant.project.id);
        super::reset_token(tx, key, &mut seed.rng(), now)?;
        Ok((key, body(tx, &signer, &tenant.member, key.1)?))
    })
    .await
}

fn is_live_dashboard(tx: &WriteTx<'_>, project: ProjectId, dashboard: u64) -> Result<bool> {
    Ok(Dashboard::find_live(tx, project, &DashboardId(dashboard))?.is_some())
}

async fn destroy(at: WriteAccess<InProject>) -> ApiResult {
    at.delete::<Project>(move |tx, _, tenant: &InProject, _| {
        let (organization, id) = (tenant.project.organization, tenant.project.id);
        cascade_delete::delete_project(tx, organization, id)?;
        Ok((organization, id))
    })
    .await
}

fn body(tx: &dyn Raw, app: &App, member: &Membership, id: ProjectId) -> Result<Versioned> {
    let project: Project = tx.get(&(member.organization, id))?;
    let live_events_token = app.live_events_token(id, &project.fields.api_token)?;
    super::body(tx, member, id, &live_events_token)
}
